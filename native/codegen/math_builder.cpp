// The arithmetic vocabulary of math_builder.h. Every fadd here is a plain IEEE operation: the
// compensated sums depend on it, so nothing sets fast-math flags and nothing may contract.
#include "math_builder.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

#include <bit>
#include <cassert>
#include <cmath>
#include <limits>

namespace cuvil::codegen {

using llvm::Value;

MathBuilder::MathBuilder(llvm::IRBuilderBase& builder, Precision p, bool fma, llvm::Type* type)
    : b(builder),
      precision(p),
      has_fma(fma),
      fp(type),
      i(type->getWithNewType(p == Precision::f32 ? builder.getInt32Ty() : builder.getInt64Ty())),
      mantissa(p == Precision::f32 ? 23 : 52),
      bias(p == Precision::f32 ? 127 : 1023) {
  assert((p != Precision::f32 || fma) && "float arithmetic relies on FMA; use wide without it");
}

Value* MathBuilder::c(double value) const { return llvm::ConstantFP::get(fp, value); }

Value* MathBuilder::ci(int64_t value) const {
  return llvm::ConstantInt::get(i, static_cast<uint64_t>(value), /*IsSigned=*/true);
}

Value* MathBuilder::bits_of(double value) const {
  return is_f32() ? ci(std::bit_cast<int32_t>(static_cast<float>(value)))
                  : ci(std::bit_cast<int64_t>(value));
}

Value* MathBuilder::inf() const { return llvm::ConstantFP::getInfinity(fp); }
Value* MathBuilder::nan() const { return llvm::ConstantFP::getNaN(fp); }

Value* MathBuilder::add(Value* x, Value* y) {
  if (!x || !y) return x ? x : y;
  return b.CreateFAdd(x, y);
}

Value* MathBuilder::sub(Value* x, Value* y) {
  if (!x || !y) return x ? x : neg(y);
  return b.CreateFSub(x, y);
}

Value* MathBuilder::mul(Value* x, Value* y) { return x && y ? b.CreateFMul(x, y) : nullptr; }

Value* MathBuilder::mul_add(Value* x, Value* y, Value* z) {
  if (!x || !y) return z;
  if (!z) return mul(x, y);
  if (has_fma) return b.CreateIntrinsic(llvm::Intrinsic::fma, {fp}, {x, y, z});
  return add(mul(x, y), z);
}

Value* MathBuilder::sqrt(Value* x) { return b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x); }
Value* MathBuilder::abs(Value* x) { return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }

Value* MathBuilder::copysign(Value* magnitude, Value* sign) {
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
}

Value* MathBuilder::poly(Value* x, const Poly& coefficients) {
  const auto terms = is_f32() ? coefficients.f32 : is_f64() ? coefficients.f64 : coefficients.wide;
  assert(!terms.empty() && "no polynomial fitted for this precision");
  Value* total = c(terms.back());
  for (size_t k = terms.size() - 1; k-- > 0;) total = mul_add(total, x, c(terms[k]));
  return total;
}

Value* MathBuilder::select(Value* cond, Value* x, Value* y) {
  if (!x && !y) return nullptr;
  return b.CreateSelect(cond, x ? x : c(0), y ? y : c(0));
}

Pair MathBuilder::select(Value* cond, Pair x, Pair y) {
  return {select(cond, x.hi, y.hi), select(cond, x.lo, y.lo)};
}

Rounded MathBuilder::round(Value* x, double scale) {
  Value* magic = c(std::ldexp(1.5, mantissa));
  Value* shifted = scale == 1.0 ? b.CreateFAdd(x, magic) : mul_add(x, c(scale), magic);
  return {b.CreateFSub(shifted, magic), to_bits(shifted)};
}

Value* MathBuilder::to_fp(Value* n, double offset) {
  return to_fp(n, c(std::ldexp(1.0, mantissa) + offset));
}

Value* MathBuilder::to_fp(Value* n, Value* offset_plus_2_mantissa) {
  Value* shifted = from_bits(b.CreateOr(n, bits_of(std::ldexp(1.0, mantissa))));
  return b.CreateFSub(shifted, offset_plus_2_mantissa);
}

Value* MathBuilder::pow2(Value* n_bits) {
  // Whatever n_bits carries above the exponent's width leaves through the top.
  return from_bits(b.CreateShl(b.CreateAdd(n_bits, ci(bias)), ci(mantissa)));
}

Value* MathBuilder::scale(Value* x, Rounded n) {
  // 2^n may itself be out of range, so go through 2^(n - k) and 2^k, k at the side of n. The first
  // product is exact; the second rounds once, to a subnormal or to infinity if it must.
  const int k = (bias + 1) / 2;
  Value* up = b.CreateFCmpOGT(n.value, c(0));
  Value* first = pow2(b.CreateAdd(n.bits, b.CreateSelect(up, ci(-k), ci(k))));
  Value* second = select(up, c(std::ldexp(1.0, k)), c(std::ldexp(1.0, -k)));
  return mul(mul(x, first), second);
}

Pair MathBuilder::two_sum(Value* x, Value* y) {
  Value* s = add(x, y);
  if (is_wide()) return {s};
  Value* y_part = sub(s, x);
  Value* x_part = sub(s, y_part);
  return {s, add(sub(x, x_part), sub(y, y_part))};
}

Pair MathBuilder::fast_two_sum(Value* x, Value* y) {
  if (!y) return {x};
  Value* s = add(x, y);
  if (is_wide()) return {s};
  return {s, add(sub(x, s), y)};
}

Pair MathBuilder::split(Value* x) {
  // Veltkamp: the upper and lower half of the significand. Overflows from 2^996 on, which no
  // caller comes near because they reduce or scale their arguments first.
  Value* t = mul(x, c(0x1p27 + 1));
  Value* hi = sub(t, sub(t, x));
  return {hi, sub(x, hi)};
}

Pair MathBuilder::two_prod(Value* x, Value* y) {
  Value* p = mul(x, y);
  if (is_wide()) return {p};
  if (has_fma) return {p, mul_add(x, y, b.CreateFNeg(p))};
  const Pair xs = split(x), ys = split(y);
  Value* error = sub(mul(xs.hi, ys.hi), p);
  error = add(add(error, mul(xs.hi, ys.lo)), mul(xs.lo, ys.hi));
  return {p, add(error, mul(xs.lo, ys.lo))};
}

Pair MathBuilder::add(Pair x, Value* low) { return fast_two_sum(x.hi, add(x.lo, low)); }

Pair MathBuilder::mul(Pair x, Pair y) {
  Pair p = two_prod(x.hi, y.hi);
  p.lo = mul_add(x.lo, y.hi, mul_add(x.hi, y.lo, p.lo));
  return fast_two_sum(p.hi, p.lo);
}

Pair MathBuilder::mul(Pair x, Constant2 y) {
  return mul(x, is_wide() ? Pair{c(y.hi + y.lo)} : constant(y));
}

Pair MathBuilder::div(Pair x, Pair y, Value* reciprocal) {
  if (is_wide()) return {reciprocal ? mul(x.hi, reciprocal) : div(x.hi, y.hi)};
  // One division serves twice: the quotient by the reciprocal is a little off, and x - q*y, exact
  // but for the low parts, puts it right.
  if (!reciprocal) reciprocal = div(c(1), y.hi);
  Value* q = mul(x.hi, reciprocal);
  const Pair back = two_prod(q, y.hi);
  Value* rest = sub(sub(x.hi, back.hi), back.lo);
  rest = add(rest, x.lo);
  if (y.lo) rest = sub(rest, mul(q, y.lo));
  return fast_two_sum(q, mul(rest, reciprocal));
}

Pair MathBuilder::sqrt(Pair x) {
  Value* s = sqrt(x.hi);
  if (is_wide()) return {s};
  const Pair back = two_prod(s, s);
  Value* rest = add(sub(sub(x.hi, back.hi), back.lo), x.lo);
  Value* floor = at_least(s, is_f32() ? 0x1p-60 : 0x1p-500);
  return fast_two_sum(s, div(mul(rest, c(0.5)), floor));
}

}  // namespace cuvil::codegen
