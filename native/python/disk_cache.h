// The cache on disk as dispatch uses it: whether to, with which warnings.
#pragma once

#include <optional>
#include <string>

#include "artifact/hash.h"
#include "python/machine_code.h"
#include "python/state.h"
#include "support/knobs.h"

namespace cuvil::python {

// Where to look and to write; nothing if the cache is off, for this function, by the environment, or
// since it could not be used.
std::optional<CachePlace> cache_for(const State& s, const Knobs& knobs);

// Adds all specialisations of this key that are on disk and were not looked for before. False with the
// indicator set: a warning that is an error.
bool load_cached(State& s, const std::string& directory, const artifact::Hash& key, bool* added);

// Says once, by its path, that a cache cannot be used; it is left alone from then on. False as above.
bool give_up(const std::string& directory, const Error& e);

}  // namespace cuvil::python
