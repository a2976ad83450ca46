// kMap: loop nests over a tape. Also the loop over a vector axis, which reduce and gemm share.
#include <llvm/IR/Intrinsics.h>

#include "artifact/abi.h"
#include "codegen/kernel.h"

namespace cuvil::codegen {

using llvm::Value;

namespace {

constexpr double kParallelFrom_ns = 100e3;                 // less is not worth waking threads for
constexpr double kPiece_ns = 20e3;                         // the least work of a piece
constexpr unsigned kLight = 4, kMedium = 12, kHeavy = 40;  // tape weights

unsigned register_bytes(DType t) { return t == DType::kF16 ? 4 : size_of(t); }

}  // namespace

unsigned widest_element(const ops::Tape& tape, llvm::ArrayRef<Memory> accesses) {
  unsigned widest = 1;
  for (const Memory& m : accesses) widest = std::max(widest, register_bytes(m.dtype));
  for (const ops::Inst& i : tape.insts)
    if (i.prim != ops::Prim::kConst && i.prim != ops::Prim::kDim && i.prim != ops::Prim::kLoad)
      widest = std::max(widest, register_bytes(i.type));
  return widest;
}

Widths choose_widths(Unit& u, const ops::Tape& tape, unsigned element_bytes, unsigned weight,
                     llvm::ArrayRef<Memory> accesses, size_t axis, std::optional<int64_t> extent) {
  (void)tape;
  unsigned lanewise = 0;
  bool reversed = false;
  for (const Memory& m : accesses) {
    if (m.unit(axis) || m.zero(axis)) continue;
    if (m.reversed(axis))
      reversed = true;
    else
      ++lanewise;
  }
  Widths w;
  w.single = std::max(1u, u.target.vector_bytes / element_bytes);
  w.masked = u.target.has_masks && lanewise == 0 && !reversed;
  unsigned several = 1;
  if (lanewise > 0) {
    // Gathering lanes costs two instructions a lane: worth it if much is done with them.
    if (weight < 8 * lanewise) w.single = 1;
    w.single = std::min(w.single, 16u);
  } else {
    several = weight <= kLight ? 4 : weight <= kMedium ? 2 : 1;
  }
  if (extent) {
    while (w.single > 1 && static_cast<int64_t>(w.single / 2) >= *extent) w.single /= 2;
    if (!w.masked)
      while (static_cast<int64_t>(w.single) > *extent && w.single > 1) w.single /= 2;
    while (several > 1 && static_cast<int64_t>(w.single * several) > *extent) several /= 2;
  }
  while (several > 1 && w.single * several > 64) several /= 2;  // lanes of a mask
  w.body = w.single * several;
  if (w.single == 1) w.masked = false;
  w.only_masked = w.masked && weight > kHeavy && !(extent && *extent % w.single == 0);
  return w;
}

Value* lane_mask(FunctionBuilder& f, Value* count, unsigned width) {
  auto& B = f.b;
  auto* bits = llvm::IntegerType::get(f.unit.context, width);
  auto* lanes = llvm::FixedVectorType::get(f.unit.i1, width);
  if (auto c = as_const(count)) {
    llvm::SmallVector<llvm::Constant*, 64> on;
    for (unsigned i = 0; i < width; ++i)
      on.push_back(llvm::ConstantInt::get(f.unit.i1, static_cast<int64_t>(i) < *c));
    return llvm::ConstantVector::get(on);
  }
  if (width > 32) {  // a shift by 64 is undefined: compare lanes instead
    llvm::SmallVector<llvm::Constant*, 64> steps;
    for (unsigned i = 0; i < width; ++i) steps.push_back(llvm::ConstantInt::get(f.unit.i8, i));
    return B.CreateICmpULT(llvm::ConstantVector::get(steps),
                           B.CreateVectorSplat(width, B.CreateTrunc(count, f.unit.i8)));
  }
  Value* ones = B.CreateSub(B.CreateShl(f.number(1), count), f.number(1));
  return B.CreateBitCast(B.CreateTrunc(ones, bits), lanes);
}

void vector_loop(FunctionBuilder& f, const Widths& w, Value* begin, Value* end,
                 llvm::function_ref<void(Value*, unsigned, Value*)> body) {
  auto& B = f.b;
  if (w.only_masked) {
    f.loop(begin, end, w.single, [&](Value* i) {
      Value* left = B.CreateSub(end, i);
      Value* count =
          B.CreateSelect(B.CreateICmpSLT(left, f.number(w.single)), left, f.number(w.single));
      body(i, w.single, lane_mask(f, count, w.single));
    });
    return;
  }
  Value* from = begin;
  auto whole = [&](unsigned width) {
    Value* count = B.CreateAnd(B.CreateSub(end, from), f.number(-static_cast<int64_t>(width)));
    Value* to = f.add(from, count);
    f.loop(from, to, width, [&](Value* i) {
      for (unsigned k = 0; k < width; k += w.single) body(f.add(i, f.number(k)), w.single, nullptr);
    });
    from = to;
  };
  if (w.body > w.single) whole(w.body);
  if (w.single > 1) whole(w.single);
  if (!w.masked) {
    f.loop(from, end, 1, [&](Value* i) { body(i, 1, nullptr); });
    return;
  }
  Value* left = B.CreateSub(end, from);
  f.if_then(B.CreateICmpSGT(left, f.number(0)),
            [&] { body(from, w.single, lane_mask(f, left, w.single)); });
}

void emit_region(FunctionBuilder& f, const ops::Tape& tape, const Region& r, bool ordered) {
  const size_t axes = r.ranges.size();
  const int inner = static_cast<int>(axes) - 1;
  TapeNest nest(f, tape, r.loads, axes, inner, r.index_axis, r.values, ordered);
  llvm::SmallVector<TapeNest::Cursor, 4> to;
  for (const Memory& m : r.stores) to.push_back(nest.cursor(m));
  auto finish = [&](unsigned width, Value* mask) {
    for (size_t s = 0; s < r.stores.size(); ++s)
      nest.store(nest.value(r.values[s], width), r.stores[s], to[s].at[axes], width, mask);
  };
  nest.set_origin(r.origin);
  nest.begin();
  if (axes == 0) {
    finish(1, nullptr);
    return;
  }
  Widths w;
  if (!ordered) {
    llvm::SmallVector<Memory, 12> accesses(r.loads.begin(), r.loads.end());
    accesses.append(r.stores.begin(), r.stores.end());
    std::optional<int64_t> extent;
    auto first = as_const(r.ranges[inner].first), last = as_const(r.ranges[inner].second);
    if (first && last) extent = *last - *first;
    w = choose_widths(f.unit, tape, widest_element(tape, accesses), tape_weight(tape), accesses,
                      inner, extent);
  }
  // A store of a value that is one for all lanes cannot go through a scalar address.
  auto open = [&](auto& self, int axis) -> void {
    auto enter = [&](Value* i, unsigned width, Value* mask) {
      nest.enter(axis, i, width, mask);
      for (size_t s = 0; s < r.stores.size(); ++s) nest.advance(to[s], r.stores[s], axis, i);
    };
    if (axis < inner) {
      f.loop(r.ranges[axis].first, r.ranges[axis].second, 1, [&](Value* i) {
        enter(i, 1, nullptr);
        self(self, axis + 1);
      });
      return;
    }
    nest.prepare(w.single);
    vector_loop(f, w, r.ranges[axis].first, r.ranges[axis].second,
                [&](Value* i, unsigned width, Value* mask) {
                  enter(i, width, mask);
                  finish(width, mask);
                });
  };
  open(open, 0);
}

bool worth_dividing(const schedule::Kernel& k, int64_t example) {
  return k.cost_ns > kParallelFrom_ns && example > 1;
}

void run_over(FunctionBuilder& entry, const schedule::Kernel& k, ir::Dim count, bool may_divide,
              llvm::function_ref<void(FunctionBuilder&, Value*, Value*)> body) {
  Unit& u = entry.unit;
  auto extent = u.dims.as_constant(count);
  int64_t example = u.dims.example(count).value_or(1);
  bool divide = may_divide && worth_dividing(k, example);
  llvm::SmallVector<llvm::Type*, 4> types{u.ptr, u.ptr};
  if (divide) types.append({u.i64, u.i64});
  llvm::Function* fn = u.make_function(k.name, types);
  FunctionBuilder f(u, fn, fn->getArg(0), fn->getArg(1), false);
  if (divide)
    body(f, fn->getArg(2), fn->getArg(3));
  else
    body(f, f.number(0), extent ? f.number(*extent) : f.dim(count));
  f.return_code(0);
  f.finish();

  Value* code;
  if (divide) {
    auto grain = static_cast<int64_t>(kPiece_ns / (k.cost_ns / static_cast<double>(example))) + 1;
    code = entry.service(offsetof(CuvilServices, parallel_for), u.i32,
                         {entry.call, fn, entry.frame, entry.dim(count), entry.number(grain)});
  } else {
    code = entry.b.CreateCall(fn, {entry.call, entry.frame});
  }
  entry.return_if(entry.b.CreateICmpNE(code, llvm::ConstantInt::get(u.i32, 0)), code);
}

void emit_map(FunctionBuilder& entry, const schedule::Kernel& k) {
  Unit& u = entry.unit;
  Plan p = make_plan(k, k.extents.size());
  drop_unit_axes(u, p, 0, p.axes.size());
  const bool ordered = k.may_raise || k.carries_dependence;
  if (!ordered && !p.stores.empty()) {
    sort_axes(u, p, p.stores[0], 0, p.axes.size());
    merge_axes(u, p, k, 0, p.axes.size());
  }
  const size_t divided = divided_axis(u, p, p.axes.size());
  ir::Dim count = p.axes.empty() ? u.dims.constant(1) : p.axes[divided].extent;
  run_over(entry, k, count, !ordered, [&](FunctionBuilder& f, Value* begin, Value* end) {
    Region r;
    for (size_t i = 0; i < p.axes.size(); ++i)
      r.ranges.push_back(i == divided
                             ? std::pair{begin, end}
                             : std::pair<Value*, Value*>{f.number(0), f.dim(p.axes[i].extent)});
    for (const PlanAccess& a : p.loads) r.loads.push_back(make_memory(f, a));
    for (const PlanAccess& a : p.stores) r.stores.push_back(make_memory(f, a));
    r.index_axis.assign(p.index_axis.begin(), p.index_axis.end());
    for (const auto& s : k.stores) r.values.push_back(s.value);
    emit_region(f, k.tape, r, ordered);
  });
}

}  // namespace cuvil::codegen
