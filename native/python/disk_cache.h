// The cache on disk as dispatch uses it: whether to, with which warnings.
#pragma once

#include <optional>
#include <string>

#include "artifact/hash.h"
#include "python/state.h"
#include "support/knobs.h"

namespace cuvil::python {

// Where to look and to write; nothing if the cache is off, for this function, by the environment, or
// since it could not be used.
std::optional<std::string> cache_for(const State& s, const Knobs& knobs);

// Adds all specialisations of this key that are on disk and were not looked for before. False with the
// indicator set: a warning that is an error.
bool load_cached(State& s, const std::string& directory, const artifact::Hash& key, bool* added);

// Keeps an artifact, if another process can check its guards. False as above.
bool keep_cached(const std::string& directory, const artifact::Artifact& a,
                 const std::vector<uint8_t>& bytes, const Knobs& knobs);

}  // namespace cuvil::python
