// TapeNest: see nest.h.
#include "codegen/nest.h"

namespace cuvil::codegen {

using llvm::Value;

Memory make_memory(FunctionBuilder& f, const PlanAccess& a) {
  Memory m;
  m.base = f.offset(f.buffer_address(a.buffer), f.dim(a.offset));
  for (ir::Dim s : a.strides) m.strides.push_back(f.dim(s));
  m.dtype = a.dtype;
  return m;
}

TapeNest::TapeNest(FunctionBuilder& f, const ops::Tape& tape, llvm::ArrayRef<Memory> loads,
                   size_t axes, int vector_axis, llvm::ArrayRef<int32_t> index_axis,
                   llvm::ArrayRef<ops::Ref> wanted, bool ordered)
    : f_(f),
      expr_(f),
      tape_(tape),
      loads_(loads.begin(), loads.end()),
      axes_(static_cast<int>(axes)),
      vector_axis_(vector_axis),
      index_axis_(index_axis.begin(), index_axis.end()),
      wanted_(wanted.begin(), wanted.end()),
      value_(tape.insts.size(), nullptr),
      indices_(axes, nullptr) {
  classify(wanted, ordered);
}

void TapeNest::classify(llvm::ArrayRef<ops::Ref> wanted, bool ordered) {
  const size_t n = tape_.insts.size();
  live_.assign(n, false);
  vector_.assign(n, false);
  depth_.assign(n, -1);
  for (ops::Ref r : wanted)
    if (r.valid()) live_[r.id] = true;
  for (size_t i = n; i-- > 0;) {
    const ops::Inst& inst = tape_.insts[i];
    if (inst.prim == ops::Prim::kCheck) live_[i] = true;
    if (!live_[i]) continue;
    for (ops::Ref r : {inst.a, inst.b, inst.c})
      if (r.valid()) live_[r.id] = true;
  }
  read_.assign(loads_.size(), false);
  for (size_t i = 0; i < n; ++i) {
    const ops::Inst& inst = tape_.insts[i];
    switch (inst.prim) {
      case ops::Prim::kLoad:
        read_[inst.imm] = read_[inst.imm] || live_[i];
        for (int axis = 0; axis < axes_; ++axis) {
          if (loads_[inst.imm].zero(axis)) continue;
          depth_[i] = axis;
          if (axis == vector_axis_) vector_[i] = true;
        }
        if (ordered) depth_[i] = axes_ - 1;
        break;
      case ops::Prim::kIndex:
        depth_[i] = index_axis_[inst.imm];
        vector_[i] = depth_[i] == vector_axis_ && depth_[i] >= 0;
        break;
      case ops::Prim::kAccumulator:
        depth_[i] = axes_ - 1;
        vector_[i] = vector_axis_ >= 0;
        break;
      default:
        for (ops::Ref r : {inst.a, inst.b, inst.c}) {
          if (!r.valid()) continue;
          depth_[i] = std::max(depth_[i], depth_[r.id]);
          vector_[i] = vector_[i] || vector_[r.id];
        }
        // A loop that does not run must not raise.
        if (inst.prim == ops::Prim::kCheck) depth_[i] = axes_ - 1;
    }
  }
}

TapeNest::Cursor TapeNest::cursor(const Memory& m) {
  Cursor c;
  c.at.assign(axes_ + 1, m.base);
  return c;
}

void TapeNest::advance(Cursor& c, const Memory& m, int axis, Value* index) {
  Value* p = c.at[axis];
  if (!m.zero(axis) && as_const(index) != 0) {
    // Scaled by the element so that the multiplication becomes part of the address.
    p = m.unit(axis) ? f_.b.CreateGEP(expr_.memory_type(m.dtype, 1), p, index)
                     : f_.offset(p, f_.mul(index, m.strides[axis]));
  }
  for (int k = axis + 1; k <= axes_; ++k) c.at[k] = p;
}

void TapeNest::begin() {
  cursors_.clear();
  for (const Memory& m : loads_) cursors_.push_back(cursor(m));
  for (size_t i = 0; i < tape_.insts.size(); ++i)
    if (live_[i] && depth_[i] < 0) emit(i);
}

void TapeNest::enter(int axis, Value* index, unsigned width, Value* mask) {
  indices_[axis] = index;
  if (axis == vector_axis_) {
    width_ = width;
    mask_ = mask;
  }
  for (size_t k = 0; k < loads_.size(); ++k)
    if (read_[k]) advance(cursors_[k], loads_[k], axis, index);
  for (size_t i = 0; i < tape_.insts.size(); ++i) {
    if (!live_[i] || depth_[i] != axis) continue;
    if (!vector_[i])  // its splats are of another iteration
      wide_.erase(wide_.lower_bound({static_cast<int32_t>(i), 0}),
                  wide_.upper_bound({static_cast<int32_t>(i), ~0u}));
    emit(i);
  }
}

void TapeNest::prepare(unsigned width) {
  if (width == 1) return;
  for (ops::Ref r : wanted_)
    if (!vector_[r.id] && value_[r.id] != nullptr) value(r, width);
  for (size_t i = 0; i < tape_.insts.size(); ++i) {
    if (!live_[i] || !vector_[i]) continue;
    const ops::Inst& inst = tape_.insts[i];
    for (ops::Ref r : {inst.a, inst.b, inst.c})
      if (r.valid() && !vector_[r.id] && value_[r.id] != nullptr) value(r, width);
  }
}

Value* TapeNest::value(ops::Ref r, unsigned width) {
  Value* v = value_[r.id];
  if (width == 1 || vector_[r.id]) return v;
  Value*& wide = wide_[{r.id, width}];
  if (wide == nullptr) wide = expr_.splat(v, width);
  return wide;
}

void TapeNest::emit(size_t i) {
  const ops::Inst& inst = tape_.insts[i];
  const unsigned width = vector_[i] ? width_ : 1;
  auto operand = [&](ops::Ref r) -> Value* { return r.valid() ? value(r, width) : nullptr; };
  switch (inst.prim) {
    case ops::Prim::kLoad:
      value_[i] = load(loads_[inst.imm], cursors_[inst.imm].at[depth_[i] + 1], width, mask_);
      return;
    case ops::Prim::kConst: value_[i] = expr_.constant(inst.type, inst.imm, 1); return;
    case ops::Prim::kDim: value_[i] = f_.dim(ir::Dim{static_cast<int32_t>(inst.imm)}); return;
    case ops::Prim::kIndex:
      if (depth_[i] < 0) {
        value_[i] = f_.number(0);
      } else {
        Value* at = indices_[depth_[i]];
        if (!origin_.empty()) at = f_.add(at, origin_[depth_[i]]);
        value_[i] = expr_.iota(at, width);
      }
      return;
    case ops::Prim::kAccumulator: value_[i] = accumulators_[inst.imm]; return;
    case ops::Prim::kCheck:
      value_[i] = operand(inst.a);
      f_.raise_if(value_[i], static_cast<uint32_t>(inst.imm));
      return;
    default:
      value_[i] = expr_.emit(inst, tape_.type(inst.a), operand(inst.a), operand(inst.b),
                             operand(inst.c), width);
  }
}

namespace {

llvm::SmallVector<int, 64> reversed_lanes(unsigned width) {
  llvm::SmallVector<int, 64> lanes;
  for (unsigned i = width; i-- > 0;) lanes.push_back(static_cast<int>(i));
  return lanes;
}

}  // namespace

Value* TapeNest::load(const Memory& m, Value* address, unsigned width, Value* mask) {
  if (width == 1 || m.unit(vector_axis_))
    return expr_.load(address, m.dtype, width, width == 1 ? nullptr : mask);
  auto& B = f_.b;
  llvm::Type* whole = expr_.memory_type(m.dtype, width);
  llvm::Type* one = expr_.memory_type(m.dtype, 1);
  Value* v;
  if (m.reversed(vector_axis_)) {
    Value* low = B.CreateConstGEP1_64(one, address, -static_cast<int64_t>(width - 1));
    v = B.CreateAlignedLoad(whole, low, llvm::Align(1));
    v = B.CreateShuffleVector(v, reversed_lanes(width));
  } else {
    v = llvm::PoisonValue::get(whole);
    for (unsigned k = 0; k < width; ++k) {
      Value* p = f_.offset(address, f_.mul(m.strides[vector_axis_], f_.number(k)));
      v = B.CreateInsertElement(v, B.CreateAlignedLoad(one, p, llvm::Align(1)), k);
    }
  }
  return expr_.from_memory(v, m.dtype, width);
}

void TapeNest::store(Value* v, const Memory& m, Value* address, unsigned width, Value* mask) {
  if (width == 1 || m.unit(vector_axis_)) {
    expr_.store(v, address, m.dtype, width, width == 1 ? nullptr : mask);
    return;
  }
  auto& B = f_.b;
  llvm::Type* one = expr_.memory_type(m.dtype, 1);
  v = expr_.to_memory(v, m.dtype, width);
  if (m.reversed(vector_axis_)) {
    Value* low = B.CreateConstGEP1_64(one, address, -static_cast<int64_t>(width - 1));
    B.CreateAlignedStore(B.CreateShuffleVector(v, reversed_lanes(width)), low, llvm::Align(1));
    return;
  }
  for (unsigned k = 0; k < width; ++k) {
    Value* p = f_.offset(address, f_.mul(m.strides[vector_axis_], f_.number(k)));
    B.CreateAlignedStore(B.CreateExtractElement(v, k), p, llvm::Align(1));
  }
}

}  // namespace cuvil::codegen
