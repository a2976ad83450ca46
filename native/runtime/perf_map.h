// Names of generated code for perf and what else reads its maps. Used by python/specialisation.
#pragma once

#include <span>

#include "artifact/format.h"

namespace cuvil::runtime {

// Appends the functions of a blob that has been loaded at `base` to /tmp/perf-<pid>.map, if CUVIL_PERF asks
// for it. A file that cannot be written is left alone.
void note_in_perf_map(const void* base, std::span<const artifact::CodeSymbol> symbols);

}  // namespace cuvil::runtime
