// What a kernel costs, in nanoseconds: an estimate for whether threads are worth it and whether the GIL
// is released. From constant extents, or from those of the call that is compiled for. Called by emit.cpp.
#include <algorithm>

#include "schedule/lower.h"

namespace cuvil::schedule {

namespace {

constexpr double kBytes_per_ns = 10, kSimple_per_ns = 10, kMath_per_ns = 0.5;

double tape_cost(const ops::Tape& t) {
  using ops::Prim;
  double ns = 0;
  for (const ops::Inst& i : t.insts) {
    switch (i.prim) {
      case Prim::kLoad:
      case Prim::kConst:
      case Prim::kIndex:
      case Prim::kDim:
      case Prim::kAccumulator: break;
      case Prim::kMath: ns += 1 / kMath_per_ns; break;
      case Prim::kDiv:
      case Prim::kRem:
      case Prim::kSqrt: ns += 4 / kSimple_per_ns; break;
      default: ns += 1 / kSimple_per_ns;
    }
  }
  return ns;
}

}  // namespace

double kernel_cost(const ir::Graph& g, const Kernel& k) {
  auto extent = [&](size_t axis) {
    return static_cast<double>(std::max<int64_t>(g.dims.example(k.extents[axis]).value_or(1), 0));
  };
  double all = 1, outer = 1;
  const size_t kept = k.result_axes();
  for (size_t i = 0; i < k.extents.size(); ++i) {
    all *= extent(i);
    if (i < kept) outer *= extent(i);
  }
  auto bytes = [&](const BufferAccess& a) {
    double n = size_of(a.dtype);
    for (size_t i = 0; i < k.extents.size(); ++i)
      if (!g.dims.is_constant(a.access.strides[i], 0)) n *= extent(i);
    return n;
  };
  double moved = 0;
  for (const BufferAccess& l : k.loads) moved += bytes(l);
  for (const Store& s : k.stores) moved += bytes(s.to);
  double ns = moved / kBytes_per_ns + outer * tape_cost(k.epilogue);
  switch (k.kind) {
    case Kernel::Kind::kMap: ns += all * tape_cost(k.tape); break;
    case Kernel::Kind::kReduce:
      ns += all * (tape_cost(k.tape) + static_cast<double>(k.reductions.size()) / kSimple_per_ns);
      break;
    case Kernel::Kind::kMatMul: ns += all * 2 / kSimple_per_ns; break;
  }
  return ns;
}

}  // namespace cuvil::schedule
