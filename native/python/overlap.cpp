#include "python/overlap.h"

#include <algorithm>
#include <numeric>

namespace cuvil::python {
namespace {

// Bytes [low, high) that an array may touch; empty if it has no elements.
struct Extent {
  intptr_t low, high;
};

Extent extent(const CuvilArray& a, int64_t item, uint8_t rank) {
  auto low = reinterpret_cast<intptr_t>(a.data), high = low + item;
  for (int i = 0; i < rank; ++i) {
    if (a.shape[i] == 0) return {0, 0};
    intptr_t reach = a.strides[i] * (a.shape[i] - 1);
    (reach < 0 ? low : high) += reach;
  }
  return {low, high};
}

// All elements of both lie on one grid of g bytes; elements whose places in a cell of the grid are
// disjoint never meet: a[::2] and a[1::2].
bool on_disjoint_lanes(const CuvilArray& a, int64_t a_item, uint8_t a_rank, const CuvilArray& b,
                       int64_t b_item, uint8_t b_rank) {
  int64_t g = 0;
  for (int i = 0; i < a_rank; ++i)
    if (a.shape[i] > 1) g = std::gcd(g, a.strides[i]);
  for (int i = 0; i < b_rank; ++i)
    if (b.shape[i] > 1) g = std::gcd(g, b.strides[i]);
  if (g == 0) return false;
  int64_t from = reinterpret_cast<intptr_t>(b.data) - reinterpret_cast<intptr_t>(a.data);
  int64_t lane = (from % g + g) % g;  // of b, where a's elements begin at 0
  return lane >= a_item && lane + b_item <= g;
}

}  // namespace

Overlap overlap_of(const CuvilArray& a, int64_t a_item, uint8_t a_rank, const CuvilArray& b,
                   int64_t b_item, uint8_t b_rank) {
  Extent x = extent(a, a_item, a_rank), y = extent(b, b_item, b_rank);
  bool empty = x.low == x.high || y.low == y.high;
  if (empty || x.high <= y.low || y.high <= x.low) return Overlap::kDisjoint;
  if (a.data == b.data && a_item == b_item && a_rank == b_rank &&
      std::equal(a.shape, a.shape + a_rank, b.shape) &&
      std::equal(a.strides, a.strides + a_rank, b.strides))
    return Overlap::kSame;
  return on_disjoint_lanes(a, a_item, a_rank, b, b_item, b_rank) ? Overlap::kDisjoint
                                                                 : Overlap::kMayOverlap;
}

}  // namespace cuvil::python
