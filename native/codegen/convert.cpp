// Expr's conversions: NumPy's astype between any two types, f16 in both directions with and without
// hardware, elements in memory, and a fused multiply-add for CPUs that lack one.
#include <llvm/IR/Intrinsics.h>

#include "codegen/expr.h"

namespace cuvil::codegen {

using llvm::Value;

// ---- Memory --------------------------------------------------------------------------------------

llvm::Type* Expr::memory_type(DType t, unsigned width) const {
  switch (t) {
    case DType::kBool: return widen(u_.i8, width);
    case DType::kF16: return widen(u_.i16, width);
    default: return type(t, width);
  }
}

Value* Expr::to_memory(Value* v, DType t, unsigned width) {
  if (t == DType::kBool) return f_.b.CreateZExt(v, memory_type(t, width));
  if (t == DType::kF16) return half_bits(v, width);
  return v;
}

Value* Expr::from_memory(Value* v, DType t, unsigned width) {
  if (t == DType::kBool)
    return f_.b.CreateICmpNE(v, llvm::Constant::getNullValue(memory_type(t, width)));
  if (t == DType::kF16) return half_value(v, width);
  return v;
}

Value* Expr::load(Value* address, DType t, unsigned width, Value* mask) {
  llvm::Type* type = memory_type(t, width);
  Value* v = mask != nullptr
                 ? static_cast<Value*>(f_.b.CreateMaskedLoad(type, address, llvm::Align(1), mask,
                                                             llvm::Constant::getNullValue(type)))
                 : f_.b.CreateAlignedLoad(type, address, llvm::Align(1));
  return from_memory(v, t, width);
}

void Expr::store(Value* v, Value* address, DType t, unsigned width, Value* mask) {
  v = to_memory(v, t, width);
  if (mask != nullptr)
    f_.b.CreateMaskedStore(v, address, llvm::Align(1), mask);
  else
    f_.b.CreateAlignedStore(v, address, llvm::Align(1));
}

// ---- f16 -------------------------------------------------------------------------------------------

Value* Expr::half_value(Value* bits, unsigned width) {
  auto& B = f_.b;
  llvm::Type* real = widen(u_.f32, width);
  llvm::Type* word = widen(u_.i32, width);
  if (u_.target.has_f16c)
    return B.CreateFPExt(B.CreateBitCast(bits, widen(llvm::Type::getHalfTy(u_.context), width)),
                         real);
  // Exponent and significand moved into place, then scaled by 2^112, which also normalises subnormals.
  Value* wide = B.CreateZExt(bits, word);
  Value* magnitude = B.CreateAnd(wide, integer(word, 0x7fff));
  Value* sign = B.CreateShl(B.CreateAnd(wide, integer(word, 0x8000)), integer(word, 16));
  Value* scale = B.CreateBitCast(integer(word, (254u - 15) << 23), real);
  Value* moved = B.CreateBitCast(B.CreateShl(magnitude, integer(word, 13)), real);
  Value* scaled = B.CreateBitCast(B.CreateFMul(moved, scale), word);
  Value* special = B.CreateICmpUGE(magnitude, integer(word, 0x7c00));
  Value* out = B.CreateSelect(special, B.CreateOr(scaled, integer(word, 0x7f800000)), scaled);
  return B.CreateBitCast(B.CreateOr(out, sign), real);
}

Value* Expr::half_bits(Value* v, unsigned width) {
  auto& B = f_.b;
  llvm::Type* real = widen(u_.f32, width);
  llvm::Type* word = widen(u_.i32, width);
  llvm::Type* half = widen(u_.i16, width);
  if (u_.target.has_f16c)
    return B.CreateBitCast(B.CreateFPTrunc(v, widen(llvm::Type::getHalfTy(u_.context), width)),
                           half);
  Value* bits = B.CreateBitCast(v, word);
  Value* magnitude = B.CreateAnd(bits, integer(word, 0x7fffffff));
  Value* sign = B.CreateLShr(B.CreateAnd(bits, integer(word, 0x80000000u)), integer(word, 16));
  // Normal: rebias, round to nearest even in the 13 bits that go.
  Value* odd = B.CreateAnd(B.CreateLShr(magnitude, integer(word, 13)), integer(word, 1));
  Value* rebased = B.CreateAdd(magnitude, integer(word, ((15u - 127) << 23) + 0xfff));
  Value* normal = B.CreateLShr(B.CreateAdd(rebased, odd), integer(word, 13));
  // Subnormal: adding 0.5 leaves the result in the low bits, rounded by the addition.
  Value* added = B.CreateBitCast(
      B.CreateFAdd(B.CreateBitCast(magnitude, real), llvm::ConstantFP::get(real, 0.5)), word);
  Value* subnormal = B.CreateSub(added, integer(word, 126u << 23));
  Value* small = B.CreateICmpULT(magnitude, integer(word, 113u << 23));
  Value* finite = B.CreateSelect(small, subnormal, normal);
  Value* nan =
      B.CreateOr(B.CreateAnd(B.CreateLShr(magnitude, integer(word, 13)), integer(word, 0x3ff)),
                 integer(word, 0x7e00));
  Value* is_nan = B.CreateICmpUGT(magnitude, integer(word, 0x7f800000));
  Value* large = B.CreateSelect(is_nan, nan, integer(word, 0x7c00));
  Value* out = B.CreateSelect(B.CreateICmpUGE(magnitude, integer(word, 143u << 23)), large, finite);
  return B.CreateTrunc(B.CreateOr(out, sign), half);
}

Value* Expr::round_f16(Value* v, unsigned width) { return half_value(half_bits(v, width), width); }

// f64 -> f16 in one rounding: first to f32 rounding to odd (if inexact, the neighbour whose last bit is
// set), whose 24 bits are more than the 11 + 2 that make the second rounding innocuous.
Value* Expr::double_to_half(Value* v, unsigned width) {
  auto& B = f_.b;
  llvm::Type* real = widen(u_.f32, width);
  llvm::Type* word = widen(u_.i32, width);
  Value* near = B.CreateFPTrunc(v, real);
  Value* back = B.CreateFPExt(near, v->getType());
  Value* bits = B.CreateBitCast(near, word);
  Value* inexact = B.CreateFCmpONE(back, v);
  Value* even = B.CreateICmpEQ(B.CreateAnd(bits, integer(word, 1)), integer(word, 0));
  Value* away = B.CreateFCmpOGT(B.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                B.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v));
  Value* step = B.CreateSelect(away, integer(word, ~0ull), integer(word, 1));
  Value* odd = B.CreateAdd(bits, step);
  bits = B.CreateSelect(B.CreateAnd(inexact, even), odd, bits);
  return round_f16(B.CreateBitCast(bits, real), width);
}

// ---- Casts -----------------------------------------------------------------------------------------

Value* Expr::cast(Value* v, DType from, DType to, unsigned width) {
  auto& B = f_.b;
  if (from == to) return v;
  llvm::Type* target = type(to, width);
  if (is_bool(to)) {
    Value* zero = llvm::Constant::getNullValue(v->getType());
    return is_float(from) ? B.CreateFCmpUNE(v, zero) : B.CreateICmpNE(v, zero);
  }
  if (is_float(to)) {
    if (is_float(from)) {
      if (from == DType::kF64 && to == DType::kF16) return double_to_half(v, width);
      if (from == DType::kF64) return B.CreateFPTrunc(v, target);
      if (to == DType::kF64) return B.CreateFPExt(v, target);
      return to == DType::kF16 ? round_f16(v, width) : v;
    }
    if (is_bool(from)) return B.CreateSelect(v, real(target, 1.0), real(target, 0.0));
    v = is_signed(from) ? B.CreateSIToFP(v, target) : B.CreateUIToFP(v, target);
    return to == DType::kF16 ? round_f16(v, width) : v;  // through float, as NumPy does
  }
  if (is_float(from)) return float_to_int(v, from, to, width);
  return is_signed(from) ? B.CreateSExtOrTrunc(v, target) : B.CreateZExtOrTrunc(v, target);
}

// What cvttss2si and its relatives give: INT_MIN of `bits` for NaN and everything out of range.
Value* Expr::truncate_checked(Value* v, bool is_double, unsigned bits, unsigned width) {
  auto& B = f_.b;
  llvm::Type* result = widen(bits == 32 ? u_.i32 : u_.i64, width);
  double top = bits == 32 ? 0x1p31 : 0x1p63;
  Value* below = B.CreateFCmpOLT(v, real(v->getType(), top));
  // -2^31 - 1 is a double: what lies between it and -2^31 truncates to -2^31.
  Value* above = is_double && bits == 32 ? B.CreateFCmpOGT(v, real(v->getType(), -top - 1))
                                         : B.CreateFCmpOGE(v, real(v->getType(), -top));
  Value* inside = B.CreateAnd(below, above);
  Value* safe = B.CreateSelect(inside, v, real(v->getType(), 0));
  Value* minimum = integer(result, bits == 32 ? 0x80000000u : 0x8000000000000000ull);
  return B.CreateSelect(inside, B.CreateFPToSI(safe, result), minimum);
}

Value* Expr::float_to_int(Value* v, DType from, DType to, unsigned width) {
  auto& B = f_.b;
  bool is_double = from == DType::kF64;
  if (to == DType::kI64) return truncate_checked(v, is_double, 64, width);
  if (to == DType::kU64 || to == DType::kU32) {
    // The upper half of the range is brought down by its half and the bit put back.
    unsigned bits = to == DType::kU64 ? 64 : 32;
    llvm::Type* result = type(to, width);
    Value* top = real(v->getType(), bits == 64 ? 0x1p63 : 0x1p31);
    Value* large = B.CreateFCmpOGE(v, top);
    Value* reduced = B.CreateSelect(large, B.CreateFSub(v, top), v);
    Value* bit =
        B.CreateSelect(large, integer(result, bits == 64 ? 0x8000000000000000ull : 0x80000000u),
                       integer(result, 0));
    return B.CreateXor(truncate_checked(reduced, is_double, bits, width), bit);
  }
  Value* word = truncate_checked(v, is_double, 32, width);
  return B.CreateTrunc(word, type(to, width));
}

// ---- fma -------------------------------------------------------------------------------------------

// f32 only: the product is exact in f64, the sum is rounded to odd there, then once to f32.
Value* Expr::fma_without_hardware(Value* a, Value* b, Value* c, unsigned width) {
  auto& B = f_.b;
  llvm::Type* wide = widen(u_.f64, width);
  llvm::Type* word = widen(u_.i64, width);
  Value* product = B.CreateFMul(B.CreateFPExt(a, wide), B.CreateFPExt(b, wide));
  Value* addend = B.CreateFPExt(c, wide);
  Value* sum = B.CreateFAdd(product, addend);
  Value* part = B.CreateFSub(sum, product);
  Value* error =
      B.CreateFAdd(B.CreateFSub(product, B.CreateFSub(sum, part)), B.CreateFSub(addend, part));
  Value* zero = real(wide, 0);
  Value* bits = B.CreateBitCast(sum, word);
  Value* even = B.CreateICmpEQ(B.CreateAnd(bits, integer(word, 1)), integer(word, 0));
  Value* inexact = B.CreateFCmpONE(error, zero);
  // Towards the error: up in magnitude if it has the sum's sign.
  Value* same = B.CreateICmpSGE(B.CreateXor(bits, B.CreateBitCast(error, word)), integer(word, 0));
  Value* odd = B.CreateAdd(bits, B.CreateSelect(same, integer(word, 1), integer(word, ~0ull)));
  bits = B.CreateSelect(B.CreateAnd(even, inexact), odd, bits);
  return B.CreateFPTrunc(B.CreateBitCast(bits, wide), widen(u_.f32, width));
}

}  // namespace cuvil::codegen
