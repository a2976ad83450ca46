// What happens when the last specialisation does not fit: the others, then a compile.
#pragma once

#include "python/state.h"

namespace cuvil::python {

// The arguments as the caller gave them: for running the plain function.
struct RawCall {
  PyObject* const* args;
  size_t nargsf;
  PyObject* kwnames;
};

PyObject* call_slow(State& s, const BoundArgs& bound, const RawCall& raw);

// Finds or makes the specialisation for these arguments without running it. NULL with the indicator
// set.
Entry* prepare_call(State& s, const BoundArgs& bound);

// Looks on disk for these arguments' kind, without compiling. False with the indicator set.
bool look_up(State& s, const BoundArgs& bound);

// Adds a specialisation from bytes. False with the indicator set.
bool add_artifact(State& s, std::vector<uint8_t> bytes);

// Texts of a specialisation ("ir", "llvm", ...), by compiling it again, for the objects of `given` if
// that is not NULL. False with the indicator set.
bool texts_of(State& s, const Entry& e, const BoundArgs* given, uint32_t want,
              std::map<std::string, std::string>* out);

}  // namespace cuvil::python
