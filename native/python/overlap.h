// How the memory of two arrays relates, for alias predicates.
#pragma once

#include "artifact/abi.h"
#include "python/py.h"

namespace cuvil::python {

enum class Overlap : uint8_t { kDisjoint, kSame, kMayOverlap };

// kSame: the same data, shape and strides. Proving that interleaved views are disjoint may fail.
Overlap overlap_of(const CuvilArray& a, int64_t a_item, uint8_t a_rank, const CuvilArray& b,
                   int64_t b_item, uint8_t b_rank);

}  // namespace cuvil::python
