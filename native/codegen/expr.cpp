// The primitives: arithmetic, comparison, bits, rounding. Conversions: convert.cpp; fmod: fmod.cpp.
#include "codegen/expr.h"

#include <llvm/IR/Intrinsics.h>

#include "codegen/math.h"

namespace cuvil::codegen {

using llvm::Value;
using llvm::Intrinsic::ID;
namespace Intrinsic = llvm::Intrinsic;

llvm::Type* Expr::widen(llvm::Type* t, unsigned width) const {
  return width == 1 ? t : llvm::FixedVectorType::get(t, width);
}

llvm::Type* Expr::type(DType t, unsigned width) const {
  switch (t) {
    case DType::kBool: return widen(u_.i1, width);
    case DType::kF16:
    case DType::kF32: return widen(u_.f32, width);
    case DType::kF64: return widen(u_.f64, width);
    default: return widen(llvm::IntegerType::get(u_.context, size_of(t) * 8u), width);
  }
}

Value* Expr::integer(llvm::Type* t, uint64_t v) const { return llvm::ConstantInt::get(t, v); }
Value* Expr::real(llvm::Type* t, double v) const { return llvm::ConstantFP::get(t, v); }

Value* Expr::splat(Value* scalar, unsigned width) {
  if (width == 1 || scalar->getType()->isVectorTy()) return scalar;
  if (auto* c = llvm::dyn_cast<llvm::Constant>(scalar))
    return llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(width), c);
  return f_.b.CreateVectorSplat(width, scalar);
}

Value* Expr::constant(DType t, uint64_t bits, unsigned width) {
  llvm::Constant* c = nullptr;
  switch (t) {
    case DType::kF16: {
      llvm::APFloat v(llvm::APFloat::IEEEhalf(), llvm::APInt(16, bits & 0xffff));
      bool inexact;
      v.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &inexact);
      c = llvm::ConstantFP::get(u_.context, v);
      break;
    }
    case DType::kF32:
      c = llvm::ConstantFP::get(u_.context, llvm::APFloat(llvm::APFloat::IEEEsingle(),
                                                          llvm::APInt(32, bits & 0xffffffff)));
      break;
    case DType::kF64:
      c = llvm::ConstantFP::get(u_.context,
                                llvm::APFloat(llvm::APFloat::IEEEdouble(), llvm::APInt(64, bits)));
      break;
    case DType::kBool: c = llvm::ConstantInt::get(u_.i1, bits != 0); break;
    default: c = llvm::ConstantInt::get(type(t, 1), bits); break;
  }
  return splat(c, width);
}

Value* Expr::iota(Value* first, unsigned width) {
  if (width == 1) return first;
  llvm::SmallVector<llvm::Constant*, 64> steps;
  for (unsigned i = 0; i < width; ++i) steps.push_back(u_.i64_const(i));
  Value* v = llvm::ConstantVector::get(steps);
  return as_const(first) == 0 ? v : f_.b.CreateAdd(splat(first, width), v);
}

Value* Expr::lanes(Value* v, unsigned first, unsigned count) {
  if (count == 1) return f_.b.CreateExtractElement(v, first);
  llvm::SmallVector<int, 64> pick;
  for (unsigned i = 0; i < count; ++i) pick.push_back(static_cast<int>(first + i));
  return f_.b.CreateShuffleVector(v, pick);
}

Value* Expr::fold(Value* v, unsigned width, llvm::function_ref<Value*(Value*, Value*)> combine) {
  for (; width > 1; width /= 2) v = combine(lanes(v, 0, width / 2), lanes(v, width / 2, width / 2));
  return v;
}

Value* Expr::fma(Value* a, Value* b, Value* c) {
  return f_.b.CreateIntrinsic(Intrinsic::fma, {a->getType()}, {a, b, c});
}

Value* Expr::emit(const ops::Inst& inst, DType operand, Value* a, Value* b, Value* c,
                  unsigned width) {
  auto& B = f_.b;
  const DType t = inst.type;
  auto rounded = [&](Value* v) { return t == DType::kF16 ? round_f16(v, width) : v; };
  auto intrinsic = [&](ID id) { return B.CreateUnaryIntrinsic(id, a); };
  switch (inst.prim) {
    case ops::Prim::kAdd:
    case ops::Prim::kSub:
    case ops::Prim::kMul:
    case ops::Prim::kDiv:
    case ops::Prim::kRem: return rounded(binary(inst, a, b, width));
    case ops::Prim::kNeg: return is_float(t) ? B.CreateFNeg(a) : B.CreateNeg(a);
    case ops::Prim::kAbs:
      if (is_float(t)) return intrinsic(Intrinsic::fabs);
      if (!is_signed(t)) return a;
      return B.CreateBinaryIntrinsic(Intrinsic::abs, a, B.getFalse());
    case ops::Prim::kSqrt: return rounded(intrinsic(Intrinsic::sqrt));
    case ops::Prim::kFloor: return is_float(t) ? intrinsic(Intrinsic::floor) : a;
    case ops::Prim::kCeil: return is_float(t) ? intrinsic(Intrinsic::ceil) : a;
    case ops::Prim::kTrunc: return is_float(t) ? intrinsic(Intrinsic::trunc) : a;
    case ops::Prim::kRint: return is_float(t) ? intrinsic(Intrinsic::rint) : a;
    case ops::Prim::kCopySign: return B.CreateBinaryIntrinsic(Intrinsic::copysign, a, b);
    case ops::Prim::kFma:
      if (!is_float(t)) return B.CreateAdd(B.CreateMul(a, b), c);
      return rounded(u_.target.has_fma ? fma(a, b, c) : fma_without_hardware(a, b, c, width));
    case ops::Prim::kAnd: return B.CreateAnd(a, b);
    case ops::Prim::kOr: return B.CreateOr(a, b);
    case ops::Prim::kXor: return B.CreateXor(a, b);
    case ops::Prim::kShl:
    case ops::Prim::kShr: return shift(inst, a, b, width);
    case ops::Prim::kEq: return is_float(operand) ? B.CreateFCmpOEQ(a, b) : B.CreateICmpEQ(a, b);
    case ops::Prim::kNe: return is_float(operand) ? B.CreateFCmpUNE(a, b) : B.CreateICmpNE(a, b);
    case ops::Prim::kLt:
      if (is_float(operand)) return B.CreateFCmpOLT(a, b);
      return is_signed(operand) ? B.CreateICmpSLT(a, b) : B.CreateICmpULT(a, b);
    case ops::Prim::kLe:
      if (is_float(operand)) return B.CreateFCmpOLE(a, b);
      return is_signed(operand) ? B.CreateICmpSLE(a, b) : B.CreateICmpULE(a, b);
    case ops::Prim::kSelect: return B.CreateSelect(a, b, c);
    case ops::Prim::kCast: return cast(a, operand, t, width);
    case ops::Prim::kBitcast: {
      Value* bits = to_memory(a, operand, width);
      return from_memory(B.CreateBitCast(bits, memory_type(t, width)), t, width);
    }
    case ops::Prim::kMath: {
      MathOptions options{.has_fma = u_.target.has_fma};
      return rounded(emit_math(static_cast<MathFn>(inst.imm), B, a, b, options));
    }
    case ops::Prim::kLoad:
    case ops::Prim::kConst:
    case ops::Prim::kIndex:
    case ops::Prim::kDim:
    case ops::Prim::kAccumulator:
    case ops::Prim::kCheck: break;  // the kernel's, not an expression's
  }
  return a;
}

Value* Expr::binary(const ops::Inst& inst, Value* a, Value* b, unsigned width) {
  auto& B = f_.b;
  const DType t = inst.type;
  if (is_float(t)) {
    switch (inst.prim) {
      case ops::Prim::kAdd: return B.CreateFAdd(a, b);
      case ops::Prim::kSub: return B.CreateFSub(a, b);
      case ops::Prim::kMul: return B.CreateFMul(a, b);
      case ops::Prim::kDiv: return B.CreateFDiv(a, b);
      default: return fmod(t, a, b, width);
    }
  }
  switch (inst.prim) {
    case ops::Prim::kAdd: return is_bool(t) ? B.CreateOr(a, b) : B.CreateAdd(a, b);
    case ops::Prim::kSub: return is_bool(t) ? B.CreateXor(a, b) : B.CreateSub(a, b);
    case ops::Prim::kMul: return is_bool(t) ? B.CreateAnd(a, b) : B.CreateMul(a, b);
    default: return divide(t, a, b, width, inst.prim == ops::Prim::kRem);
  }
}

// Truncating division: b == 0 gives 0, MIN / -1 gives MIN. x86 has no vector division of integers, so
// that of up to 32 bits goes through floating point, where the truncated quotient is exact: with p bits of
// significand and |a|, |b| < 2^n, the quotient is at least 1/|b| away from the next integer and its
// rounding error is below |a/b| * 2^-p, which is less as long as n < p.
Value* Expr::divide(DType t, Value* a, Value* b, unsigned width, bool remainder) {
  auto& B = f_.b;
  llvm::Type* type = a->getType();
  Value* zero = B.CreateICmpEQ(b, integer(type, 0));
  Value* minus_one = is_signed(t) ? B.CreateICmpEQ(b, integer(type, ~0ull)) : nullptr;
  Value* special = minus_one ? B.CreateOr(zero, minus_one) : zero;
  Value* safe = B.CreateSelect(special, integer(type, 1), b);
  unsigned bits = size_of(t) * 8u;
  Value* q;
  if (is_bool(t)) {
    q = a;
  } else if (width > 1 && bits <= 32) {
    llvm::Type* real = widen(bits <= 16 ? u_.f32 : u_.f64, width);
    // Wide enough to be signed: conversions to and from unsigned are slow before AVX-512.
    llvm::Type* middle = widen(bits <= 16 ? u_.i32 : u_.i64, width);
    if (bits == 32 && is_signed(t)) middle = type;
    auto up = [&](Value* v) {
      if (v->getType() != middle)
        v = is_signed(t) ? B.CreateSExt(v, middle) : B.CreateZExt(v, middle);
      return B.CreateSIToFP(v, real);
    };
    Value* quotient = B.CreateFDiv(up(a), up(safe));
    q = B.CreateFPToSI(quotient, middle);
    if (middle != type) q = B.CreateTrunc(q, type);
  } else {
    q = is_signed(t) ? B.CreateSDiv(a, safe) : B.CreateUDiv(a, safe);
  }
  if (remainder) {
    Value* r = B.CreateSub(a, B.CreateMul(q, safe));  // 0 for the special divisors, as it must be
    return is_bool(t) ? B.CreateAnd(a, llvm::Constant::getNullValue(type)) : r;
  }
  if (minus_one) q = B.CreateSelect(minus_one, B.CreateNeg(a), q);
  return B.CreateSelect(zero, integer(type, 0), q);
}

Value* Expr::shift(const ops::Inst& inst, Value* a, Value* b, unsigned) {
  auto& B = f_.b;
  llvm::Type* type = a->getType();
  uint64_t bits = size_of(inst.type) * 8u;
  Value* within = B.CreateICmpULT(b, integer(type, bits));
  if (inst.prim == ops::Prim::kShr && is_signed(inst.type))
    return B.CreateAShr(a, B.CreateSelect(within, b, integer(type, bits - 1)));
  Value* by = B.CreateSelect(within, b, integer(type, 0));
  Value* v = inst.prim == ops::Prim::kShl ? B.CreateShl(a, by) : B.CreateLShr(a, by);
  return B.CreateSelect(within, v, integer(type, 0));
}

unsigned tape_weight(const ops::Tape& t) {
  unsigned weight = 0;
  for (const ops::Inst& i : t.insts) {
    switch (i.prim) {
      case ops::Prim::kMath: weight += 30; break;
      case ops::Prim::kRem: weight += 20; break;
      case ops::Prim::kDiv: weight += is_float(i.type) ? 1 : 10; break;
      case ops::Prim::kConst:
      case ops::Prim::kDim: break;
      default: ++weight;
    }
  }
  return weight;
}

}  // namespace cuvil::codegen
