// From the arguments of a call to the request for a specialisation: classification, hints, and
// which axes become symbolic. Used by dispatch.
#pragma once

#include "python/state.h"

namespace cuvil::python {

// The request for this call, objects borrowed from `args`. False with the indicator set: an argument
// that Cuvil does not take, or one that contradicts its hint in rank or dtype.
bool make_request(const State& s, const BoundArgs& args, compiler::Request* out);

// What all keys of this process have in common: versions, the CPU. Called at import, which has the time: asking
// the CPU takes 30 us on a virtual machine.
const std::string& process_part();

// The key of the directory that a specialisation belongs to.
artifact::Hash key_of(const State& s, const std::vector<artifact::ArgSpec>& arguments);

// Makes the axes symbolic that are so in this artifact.
void follow_artifact(const artifact::Artifact& a, compiler::Request* out);

// What to keep of a request so that it can be made again.
Recipe recipe_of(const compiler::Request& r);
// The request made again, with objects of `given` (a call of the same kind) if there is one; `hold`
// keeps the objects that stand for the arguments alive. False with the indicator set if an object is gone.
bool request_again(const State& s, const Recipe& recipe, const BoundArgs* given,
                   std::vector<PyRef>* hold, compiler::Request* out);

}  // namespace cuvil::python
