// log, log2, log10, log1p and the double-word logarithm that pow and the inverse hyperbolics use.
//
// x = 2^e m with sqrt(1/2) <= m < sqrt(2), f = m - 1, s = f / (2 + f): then
// log m = 2 atanh s = 2s + s^3 L(s^2), and since s^2 < 0.03 few terms do (Cody & Waite 1980, ch. 5).
#include "math_coeffs.h"
#include "math_kernels.h"

#include <cmath>

namespace cuvil::codegen {

using llvm::Value;

namespace {

constexpr double sqrt_half = 0x1.6a09e667f3bcdp-1;

struct Split {
  Value* exponent;  // e as a floating number
  Value* biased;    // e + bias as an integer
  Value* mantissa;  // m
};

Split split_exponent(MathBuilder& m, Value* x) {
  const double no_offset = std::ldexp(1.0, m.mantissa) + m.bias;
  Value* offset = m.c(no_offset);
  if (!m.is_wide()) {  // a float in a double is never subnormal
    const int shift = m.mantissa + 1;
    Value* subnormal = m.lt(x, std::ldexp(1.0, 1 - m.bias));
    x = m.select(subnormal, m.mul(x, std::ldexp(1.0, shift)), x);
    offset = m.select(subnormal, m.c(no_offset + shift), offset);
  }
  Value* one = m.bits_of(1.0);
  Value* above = m.b.CreateAdd(m.to_bits(x), m.b.CreateSub(one, m.bits_of(sqrt_half)));
  Value* biased = m.b.CreateLShr(above, m.ci(m.mantissa));
  Value* mantissa = m.b.CreateSub(m.to_bits(x), m.b.CreateShl(biased, m.ci(m.mantissa)));
  return {m.to_fp(biased, offset), biased, m.from_bits(m.b.CreateAdd(mantissa, one))};
}

// log(0) = -inf, log(inf) = inf, log of NaN and of anything negative is NaN.
Value* with_log_specials(MathBuilder& m, Value* x, Value* result, double zero = 0) {
  result = m.select(m.b.CreateFCmpOEQ(x, m.inf()), x, result);
  result = m.select(m.b.CreateFCmpULT(x, m.c(zero)), m.nan(), result);
  return m.select(m.eq(x, zero), m.neg(m.inf()), result);
}

// low * 2^-e. At the two largest e the factor is not a normal number, and low has no effect.
Value* scale_low(MathBuilder& m, Value* low, Value* biased) {
  Value* field = m.b.CreateSub(m.ci(2 * m.bias), biased);
  Value* factor = m.from_bits(m.b.CreateShl(field, m.ci(m.mantissa)));
  factor = m.b.CreateSelect(m.b.CreateICmpSGT(field, m.ci(0)), factor, m.c(0));
  return m.mul(low, factor);
}

// log of a mantissa pair, to `precise` or to about 7 bits more than the working precision.
Pair log_mantissa(MathBuilder& m, Pair u, bool precise) {
  const Pair f = m.fast_two_sum(m.sub(u.hi, 1.0), u.lo);
  const Pair d = m.add(m.fast_two_sum(m.c(2), f.hi), f.lo);
  Value* s = m.div(f.hi, d.hi);
  if (m.is_wide()) {
    Value* z = m.mul(s, s);
    return {m.mul_add(m.mul(z, s), m.poly(z, coeffs::log), m.mul(s, 2.0))};
  }
  // 1 / d = (1 - s) / 2, so the quotient's low part costs no second division.
  const Pair back = m.two_prod(s, d.hi);
  Value* rest = m.sub(m.sub(f.hi, back.hi), back.lo);
  rest = m.sub(m.add(rest, f.lo), m.mul(s, d.lo));
  Value* s_low = m.mul(rest, m.mul_add(s, -0.5, m.c(0.5)));
  Value* twice = m.mul(s, 2.0);
  if (!precise) {
    Value* z = m.mul(s, s);
    Value* tail = m.mul_add(m.mul(z, s), m.poly(z, coeffs::log), m.mul(s_low, 2.0));
    return m.fast_two_sum(twice, tail);
  }
  const Pair s_pair = m.fast_two_sum(s, s_low);
  const Pair z = m.mul(s_pair, s_pair);
  const Pair cube = m.mul(z, s_pair);
  const Constant2 two_thirds = m.by_type<Constant2>({0x1.555556p-1, -0x1.5555555555555p-26},
                                                    {0x1.5555555555555p-1, 0x1.5555555555555p-55});
  const Pair second = m.mul(cube, two_thirds);
  Value* further = m.mul(m.mul(cube.hi, z.hi), m.poly(z.hi, coeffs::log_tail));
  const Pair sum = m.fast_two_sum(m.mul(s_pair.hi, 2.0), second.hi);
  Value* low = m.add(m.add(second.lo, further), m.add(sum.lo, m.mul(s_pair.lo, 2.0)));
  return m.fast_two_sum(sum.hi, low);
}

}  // namespace

LogParts log_parts(MathBuilder& m, Pair u, bool precise) {
  const Split parts = split_exponent(m, u.hi);
  Pair mantissa{parts.mantissa};
  if (u.lo) mantissa.lo = scale_low(m, u.lo, parts.biased);
  return {parts.exponent, log_mantissa(m, mantissa, precise)};
}

Pair log_pair(MathBuilder& m, LogParts parts) {
  const Constant2 ln2 = m.by_type<Constant2>({0x1.62e400p-1, 0x1.7f7d1cf79abcap-20}, ln2_split(m));
  if (m.is_wide()) {
    Value* low = m.mul_add(parts.exponent, ln2.lo, parts.mantissa.hi);
    return {m.mul_add(parts.exponent, ln2.hi, low)};
  }
  const Pair sum = m.fast_two_sum(m.mul(parts.exponent, ln2.hi), parts.mantissa.hi);
  const Pair low = m.two_prod(parts.exponent, m.c(ln2.lo));
  return m.add(m.add(sum, parts.mantissa.lo), m.add(low.hi, low.lo));
}

Value* log1p_near(MathBuilder& m, Value* w) {
  Value* s = m.div(w, m.add(w, 2.0));
  Value* z = m.mul(s, s);
  return m.mul_add(m.mul(z, s), m.poly(z, coeffs::log), m.mul(s, 2.0));
}

Pair one_plus(MathBuilder& m, Pair w) { return m.add(m.two_sum(w.hi, m.c(1)), w.lo); }

namespace {

// The float logarithms: log u = f + rest + e ln2 with u = 2^e (1 + f). A longer polynomial in f is
// cheaper than the division that s = f / (2 + f) takes.
struct FloatLog {
  Value* exponent;
  Value* f;
  Value* rest;
};

FloatLog float_log(MathBuilder& m, Pair u) {
  const Split parts = split_exponent(m, u.hi);
  Value* f = m.sub(parts.mantissa, 1.0);
  Value* square = m.mul(f, f);
  Value* rest = m.mul(m.mul(square, f), m.poly(f, coeffs::log_poly));
  if (u.lo) {
    // u.lo / u.hi = (u.lo 2^-e) / (1 + f), for which 1 - f + f^2 is close enough. f itself takes in
    // what it can: u.hi may be 1 and u.lo all that matters.
    Value* low = scale_low(m, u.lo, parts.biased);
    const Pair sum = m.fast_two_sum(f, low);
    rest = m.add(rest, m.mul_add(low, m.sub(square, f), sum.lo));
    f = sum.hi;
  }
  return {parts.exponent, f, m.mul_add(square, -0.5, rest)};
}

// (f + rest) * factor + e * unit with unit.hi short enough for e * unit.hi to be exact.
Value* float_log_in_base(MathBuilder& m, Value* x, Constant2 factor, Constant2 unit) {
  const auto [e, f, rest] = float_log(m, {x});
  const Pair head = m.two_prod(f, m.c(factor.hi));
  const Pair sum = m.fast_two_sum(m.mul(e, unit.hi), head.hi);
  Value* low = m.mul_add(rest, factor.hi, m.mul_add(f, factor.lo, head.lo));
  if (unit.lo != 0) low = m.mul_add(e, unit.lo, low);
  return with_log_specials(m, x, m.add(sum.hi, m.add(sum.lo, low)));
}

}  // namespace

Value* log_kernel(MathBuilder& m, Pair u, Value* doublings) {
  if (!m.is_f32()) {
    LogParts parts = log_parts(m, u, /*precise=*/false);
    parts.exponent = m.add(parts.exponent, doublings);
    return m.sum(log_pair(m, parts));
  }
  const Constant2 ln2 = ln2_split(m);
  const auto [exponent, f, rest] = float_log(m, u);
  Value* e = m.add(exponent, doublings);
  return m.mul_add(e, ln2.hi, m.add(m.mul_add(e, ln2.lo, rest), f));
}

Value* emit_log(MathBuilder& m, Value* x) {
  if (m.is_f32()) return with_log_specials(m, x, log_kernel(m, {x}));
  const Constant2 ln2 = ln2_split(m);
  // 2s = f - s f exactly, which leaves the rounding of s to terms of order f^2 (Tang 1990).
  const auto [e, biased, mantissa] = split_exponent(m, x);
  Value* f = m.sub(mantissa, 1.0);
  Value* s = m.div(f, m.add(f, 2.0));
  Value* z = m.mul(s, s);
  Value* inner = m.mul_add(m.neg(z), m.poly(z, coeffs::log), f);
  Value* low = m.mul_add(m.neg(s), inner, m.mul(e, ln2.lo));
  const Pair head = m.fast_two_sum(m.mul(e, ln2.hi), f);
  return with_log_specials(m, x, m.add(head.hi, m.add(head.lo, low)));
}

Value* emit_log2(MathBuilder& m, Value* x) {
  if (m.is_f32()) return float_log_in_base(m, x, {0x1.715476p+0, 0x1.4ae0bf85ddf44p-26}, {1, 0});
  const LogParts parts = log_parts(m, {x}, /*precise=*/false);
  const Pair scaled = m.mul(parts.mantissa, Constant2{0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56});
  const Pair sum = m.fast_two_sum(parts.exponent, scaled.hi);
  return with_log_specials(m, x, m.add(sum.hi, m.add(sum.lo, scaled.lo)));
}

Value* emit_log10(MathBuilder& m, Value* x) {
  if (m.is_f32())
    return float_log_in_base(m, x, {0x1.bcb7b2p-2, -0x1.5b235e39ab2a9p-27},
                             {0x1.3442p-2, -0x1.95ec10c0219dcp-19});
  const LogParts parts = log_parts(m, {x}, /*precise=*/false);
  const Pair scaled = m.mul(parts.mantissa, Constant2{0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57});
  const Constant2 log10_2{0x1.34413509f78p-2, 0x1.fef311f12b358p-46};
  const Pair sum = m.fast_two_sum(m.mul(parts.exponent, log10_2.hi), scaled.hi);
  Value* low = m.add(m.mul_add(parts.exponent, log10_2.lo, scaled.lo), sum.lo);
  return with_log_specials(m, x, m.add(sum.hi, low));
}

Value* emit_log1p(MathBuilder& m, Value* x) {
  Value* result = log_kernel(m, one_plus(m, {x}));
  if (m.is_wide()) result = m.select(m.lt(m.abs(x), 0x1p-2), log1p_near(m, x), result);
  // What is small enough is its own result: zero keeps its sign and a subnormal its bits.
  Value* tiny = m.lt(m.abs(x), m.by_type(0x1p-25, 0x1p-54));
  return with_log_specials(m, x, m.select(tiny, x, result), -1);
}

}  // namespace cuvil::codegen
