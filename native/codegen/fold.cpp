// Fold: see fold.h.
#include "codegen/fold.h"

#include <llvm/IR/Intrinsics.h>

#include <limits>

namespace cuvil::codegen {

using llvm::Value;
using ops::ReduceKind;

namespace {
constexpr int64_t kNowhere = std::numeric_limits<int64_t>::max();
}

Fold::Fold(FunctionBuilder& f, const schedule::Reduction& r)
    : f_(f), expr_(f), reduction_(&r), kind_(r.kind), type_(r.accumulator) {
  if (kind_ == ReduceKind::kAny || kind_ == ReduceKind::kAll) type_ = DType::kBool;
}

llvm::Type* Fold::slot_type(size_t slot, unsigned width) {
  return expr_.type(slot == 1 && is_arg() ? DType::kI64 : type_, width);
}

Slots Fold::identity(unsigned width) {
  llvm::Type* t = expr_.type(type_, 1);
  const unsigned bits = size_of(type_) * 8u;
  llvm::Constant* c = llvm::Constant::getNullValue(t);
  const bool low = kind_ == ReduceKind::kMax || kind_ == ReduceKind::kArgMax;
  switch (kind_) {
    case ReduceKind::kSum:
    case ReduceKind::kAny: break;
    case ReduceKind::kProd:
      c = is_float(type_) ? llvm::ConstantFP::get(t, 1.0) : llvm::ConstantInt::get(t, 1);
      break;
    case ReduceKind::kAll: c = llvm::ConstantInt::get(t, 1); break;
    case ReduceKind::kMin:
    case ReduceKind::kMax:
    case ReduceKind::kArgMin:
    case ReduceKind::kArgMax:
      if (is_float(type_))
        c = llvm::ConstantFP::getInfinity(t, low);
      else if (is_bool(type_))
        c = llvm::ConstantInt::get(t, !low);
      else if (is_signed(type_))
        c = llvm::ConstantInt::get(
            t, low ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt::getSignedMaxValue(bits));
      else
        c = llvm::ConstantInt::get(
            t, low ? llvm::APInt::getZero(bits) : llvm::APInt::getMaxValue(bits));
  }
  Slots s{expr_.splat(c, width)};
  if (is_arg()) s.push_back(expr_.splat(f_.number(kNowhere), width));
  return s;
}

Value* Fold::prepare(Value* x, DType from, unsigned width, Value* mask) {
  x = expr_.cast(x, from, type_, width);
  return mask != nullptr ? f_.b.CreateSelect(mask, x, identity(width)[0]) : x;
}

// x strictly better than best. NaN beats every number, and the first NaN stays.
Value* Fold::better(Value* x, Value* best) {
  auto& B = f_.b;
  const bool max = kind_ == ReduceKind::kMax || kind_ == ReduceKind::kArgMax;
  if (!is_float(type_)) {
    if (is_signed(type_)) return max ? B.CreateICmpSGT(x, best) : B.CreateICmpSLT(x, best);
    return max ? B.CreateICmpUGT(x, best) : B.CreateICmpULT(x, best);
  }
  // Unordered or better, and best is a number.
  Value* wins = max ? B.CreateFCmpUGT(x, best) : B.CreateFCmpULT(x, best);
  return B.CreateAnd(wins, B.CreateFCmpORD(best, best));
}

void Fold::step(Slots& acc, Value* x, Value* position, unsigned) {
  auto& B = f_.b;
  switch (kind_) {
    case ReduceKind::kSum:
      acc[0] = is_float(type_)  ? B.CreateFAdd(acc[0], x)
               : is_bool(type_) ? B.CreateOr(acc[0], x)
                                : B.CreateAdd(acc[0], x);
      return;
    case ReduceKind::kProd:
      acc[0] = is_float(type_)  ? B.CreateFMul(acc[0], x)
               : is_bool(type_) ? B.CreateAnd(acc[0], x)
                                : B.CreateMul(acc[0], x);
      return;
    case ReduceKind::kAny: acc[0] = B.CreateOr(acc[0], x); return;
    case ReduceKind::kAll: acc[0] = B.CreateAnd(acc[0], x); return;
    case ReduceKind::kMin:
    case ReduceKind::kMax:
      if (is_float(type_)) {
        // One max instruction (it keeps a NaN that is in acc), then what x has of NaN.
        Value* wins =
            kind_ == ReduceKind::kMax ? B.CreateFCmpOGT(x, acc[0]) : B.CreateFCmpOLT(x, acc[0]);
        Value* best = B.CreateSelect(wins, x, acc[0]);
        acc[0] = B.CreateSelect(B.CreateFCmpUNO(x, x), x, best);
        return;
      }
      acc[0] = B.CreateSelect(better(x, acc[0]), x, acc[0]);
      return;
    case ReduceKind::kArgMin:
    case ReduceKind::kArgMax: {
      Value* wins = better(x, acc[0]);
      acc[0] = B.CreateSelect(wins, x, acc[0]);
      acc[1] = B.CreateSelect(wins, position, acc[1]);
    }
  }
}

Slots Fold::merge(const Slots& a, const Slots& b) {
  if (!is_arg()) {
    Slots out = a;
    step(out, b[0], nullptr, 1);
    return out;
  }
  auto& B = f_.b;
  Value* wins = better(b[0], a[0]);
  Value* loses = better(a[0], b[0]);
  Value* earlier = B.CreateICmpSLT(b[1], a[1]);
  Value* take = B.CreateOr(wins, B.CreateAnd(B.CreateNot(loses), earlier));
  return {B.CreateSelect(take, b[0], a[0]), B.CreateSelect(take, b[1], a[1])};
}

Slots Fold::narrow(const Slots& a, unsigned from, unsigned to) {
  Slots out = a;
  for (unsigned w = from; w > to; w /= 2) {
    Slots low, high;
    for (Value* v : out) {
      low.push_back(expr_.lanes(v, 0, w / 2));
      high.push_back(expr_.lanes(v, w / 2, w / 2));
    }
    out = merge(low, high);
  }
  return out;
}

Slots Fold::fold_lanes(const Slots& a, unsigned width) { return narrow(a, width, 1); }

Slots Fold::total_identity(unsigned width) {
  if (!compensated()) return identity(width);
  Value* zero = llvm::Constant::getNullValue(expr_.type(type_, width));
  return {zero, zero};
}

void Fold::add_to_total(Slots& total, const Slots& block) {
  if (!compensated()) {
    total = merge(total, block);
    return;
  }
  // Knuth's exact sum: s + error == total + block.
  auto& B = f_.b;
  Value *t = total[0], *x = block[0];
  Value* s = B.CreateFAdd(t, x);
  Value* part = B.CreateFSub(s, t);
  Value* error = B.CreateFAdd(B.CreateFSub(t, B.CreateFSub(s, part)), B.CreateFSub(x, part));
  total[0] = s;
  total[1] = B.CreateFAdd(total[1], error);
}

Slots Fold::close_total(const Slots& total) {
  if (!compensated()) return total;
  // Where the sum is infinite or NaN the compensation is NaN and says nothing.
  auto& B = f_.b;
  Value* whole = B.CreateFAdd(total[0], total[1]);
  return {B.CreateSelect(B.CreateFCmpUNO(total[1], total[1]), total[0], whole)};
}

Value* Fold::result(const Slots& acc, unsigned width) {
  auto& B = f_.b;
  if (is_arg()) {
    // Nothing was better than the identity: all elements equal it, the first one is at 0.
    Value* none = B.CreateICmpEQ(acc[1], expr_.splat(f_.number(kNowhere), width));
    return B.CreateSelect(none, llvm::Constant::getNullValue(acc[1]->getType()), acc[1]);
  }
  if (type_ == DType::kF16) return expr_.round_f16(acc[0], width);
  return expr_.cast(acc[0], type_, reduction_->accumulator, width);
}

}  // namespace cuvil::codegen
