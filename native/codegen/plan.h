// A kernel's iteration space made simple before code is emitted: axes of size 1 dropped, axes that are
// traversed as one merged, axes sorted by how the result lies in memory. Used by loops, reduce and gemm.
#pragma once

#include <vector>

#include "codegen/unit.h"

namespace cuvil::codegen {

struct PlanAxis {
  ir::Dim extent;
  bool reduced = false;
};

struct PlanAccess {
  schedule::BufferId buffer;
  DType dtype = DType::kF32;
  ir::Dim offset;
  std::vector<ir::Dim> strides;  // bytes, one an axis of the plan
};

struct Plan {
  std::vector<PlanAxis> axes;
  std::vector<PlanAccess> loads, stores;
  std::vector<int32_t> index_axis;  // kernel's axis -> plan's; -1: dropped, its index is 0

  void erase_axis(size_t axis);
  void swap_axes(size_t a, size_t b);
};

// Axes of the kernel as they are; the last `inner` ones are marked as reduced.
Plan make_plan(const schedule::Kernel& k, size_t kept);
void drop_unit_axes(Unit& u, Plan& p, size_t first, size_t last);
// Orders axes [first, last) by the strides of `lead`, largest first. Legal where order does not matter.
void sort_axes(Unit& u, Plan& p, const PlanAccess& lead, size_t first, size_t last);
// Merges neighbours among axes [first, last) that every access steps over evenly. Axes whose index the
// tape reads stay apart. Returns the new `last`.
size_t merge_axes(Unit& u, Plan& p, const schedule::Kernel& k, size_t first, size_t last);

// Which of axes [0, last) is divided among threads: the first, unless it is short and another is longer.
size_t divided_axis(Unit& u, const Plan& p, size_t last);
// |stride| in the call that is compiled for; -1: unknown.
int64_t example_stride(Unit& u, ir::Dim d);
bool stores_into_loads(const schedule::Program& p, const schedule::Kernel& k);

}  // namespace cuvil::codegen
