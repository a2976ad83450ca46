// sinh, cosh, tanh and their inverses.
//
// With |x| = n ln2 + r the addition theorem needs only sinh and cosh of the short r, for which two
// polynomials in r^2 serve all three functions, and sinh and cosh of n ln2, which are exact sums of
// powers of 2 as long as both powers matter:
//   sinh |x| = 2^(n-1) ((1 - 4^-n) cosh r + (1 + 4^-n) sinh r), cosh |x| with the signs swapped.
#include "math_coeffs.h"
#include "math_kernels.h"

namespace cuvil::codegen {

using llvm::Value;

namespace {

struct Hyperbolic {
  Pair sinh, cosh;  // divided by 2^(n-1); low parts hold all but the leading terms
  Rounded n;
};

Hyperbolic hyperbolic(MathBuilder& m, Value* a, bool want_cosh = true, bool want_sinh = true) {
  const auto [n, r] = reduce_by_ln2(m, {a});
  Value* power = m.pow2(m.b.CreateNeg(m.b.CreateShl(n.bits, m.ci(1))));
  power = m.select(m.lt(n.value, m.by_type(30.0, 60.0)), power, m.c(0));
  const Pair minus = m.fast_two_sum(m.c(1), m.neg(power));
  const Pair plus = m.fast_two_sum(m.c(1), power);
  Value* z = m.mul(r.hi, r.hi);
  Value* sinh_tail = m.mul_add(m.mul(z, r.hi), m.poly(z, coeffs::sinh), r.lo);
  Value* cosh_tail = m.mul(z, m.poly(z, coeffs::cosh));
  if (!m.is_wide()) cosh_tail = m.mul_add(r.hi, r.lo, cosh_tail);
  // head + p r, then everything of second order. head is 0 or larger than the other summand.
  auto combine = [&](Pair head, Pair p) -> Pair {
    const Pair product = m.two_prod(p.hi, r.hi);
    Pair s = m.fast_two_sum(head.hi, product.hi);
    Value* second = m.mul_add(head.hi, cosh_tail, m.mul(p.hi, sinh_tail));
    s.lo = m.add(m.add(m.add(s.lo, head.lo), product.lo), second);
    return s;
  };
  Hyperbolic result{{}, {}, n};
  if (want_sinh) result.sinh = combine(minus, plus);
  if (want_cosh) result.cosh = combine(plus, minus);
  return result;
}

// Halving the exponent's share first keeps 2^(n-1) x right at both ends of the range.
Value* scale_half(MathBuilder& m, Pair x, Rounded n) { return m.scale(m.mul(m.sum(x), 0.5), n); }

Value* bounded_abs(MathBuilder& m, Value* x, double float_bound, double double_bound) {
  return m.at_most(m.abs(x), m.by_type(float_bound, double_bound));
}

// From here on log(2a) is asinh a and acosh a to all bits; 1 / (4 a^2) is lost.
double far_bound(const MathBuilder& m) { return m.by_type(0x1p14, 0x1p30); }

// log(a + root) for far a too, where the root is a itself.
Value* log_of_sum(MathBuilder& m, Value* a, Value* far, Pair near) {
  return log_kernel(m, m.select(far, Pair{a}, near), m.select(far, m.c(1), m.c(0)));
}

}  // namespace

Value* emit_sinh(MathBuilder& m, Value* x) {
  const Hyperbolic h = hyperbolic(m, bounded_abs(m, x, 91, 712), /*want_cosh=*/false);
  return m.copysign(scale_half(m, h.sinh, h.n), x);
}

Value* emit_cosh(MathBuilder& m, Value* x) {
  const Hyperbolic h = hyperbolic(m, bounded_abs(m, x, 91, 712), true, /*want_sinh=*/false);
  return scale_half(m, h.cosh, h.n);
}

namespace {

// Float alone: 1 - 2 / (e^2a + 1), whose error fades as the quotient does, and a polynomial below.
Value* tanh_f32(MathBuilder& m, Value* x) {
  Value* a = m.abs(x);
  Value* z = m.mul(a, a);
  Value* near = m.mul_add(m.mul(z, a), m.poly(z, coeffs::tanh), a);
  const auto [n, r] = reduce_by_ln2(m, {m.at_most(m.mul(a, 2.0), 20.0)});
  Value* power = m.pow2(n.bits);
  Value* tail = m.mul_add(m.mul(r.hi, r.hi), m.poly(r.hi, coeffs::exp), r.hi);
  // e^2a + 1 in one rounding: 2^n + 1 is exact.
  Value* sum = m.mul_add(tail, power, m.add(power, 1.0));
  Value* far = m.b.CreateFSub(m.c(1), m.div(m.c(2), sum));
  return m.copysign(m.select(m.gt(a, 0.8), far, near), x);
}

}  // namespace

Value* emit_tanh(MathBuilder& m, Value* x) {
  if (m.is_f32()) return tanh_f32(m, x);
  const Hyperbolic h = hyperbolic(m, bounded_abs(m, x, 10, 22));
  const Pair s = m.fast_two_sum(h.sinh.hi, h.sinh.lo), c = m.fast_two_sum(h.cosh.hi, h.cosh.lo);
  return m.copysign(m.sum(m.div(s, c)), x);
}

Value* emit_asinh(MathBuilder& m, Value* x) {
  // asinh a = log(1 + w), w = a + a^2 / (1 + sqrt(1 + a^2)): w keeps its relative accuracy near 0.
  Value* a = m.abs(x);
  Value* far = m.gt(a, far_bound(m));
  Value* near = m.at_most(a, far_bound(m));
  const Pair square = m.two_prod(near, near);
  const Pair root = m.sqrt(one_plus(m, square));
  const Pair quotient = m.div(square, one_plus(m, root));
  const Pair sum = m.two_sum(near, quotient.hi);
  const Pair w = m.add(sum, quotient.lo);
  Value* y = log_of_sum(m, a, far, one_plus(m, w));
  if (m.is_wide()) y = m.select(m.lt(a, 0x1p-3), log1p_near(m, w.hi), y);
  // Infinity, NaN, and what is too small for its square to count.
  y = m.select(m.b.CreateFCmpOLT(a, m.inf()), y, a);
  return m.copysign(m.select(m.lt(a, 0x1p-30), m.mul_add(m.mul(a, -1.0 / 6), m.mul(a, a), a), y),
                    x);
}

Value* emit_acosh(MathBuilder& m, Value* x) {
  // With t = x - 1: acosh x = log(1 + w), w = t + sqrt(t (t + 2)).
  Value* far = m.gt(x, far_bound(m));
  const Pair t{m.sub(m.at_most(x, far_bound(m)), 1.0)};
  const Pair root = m.sqrt(m.mul(t, m.two_sum(t.hi, m.c(2))));
  const Pair w = m.add(m.two_sum(root.hi, t.hi), root.lo);
  Value* y = log_of_sum(m, x, far, one_plus(m, w));
  if (m.is_wide()) y = m.select(m.lt(w.hi, 0x1p-3), log1p_near(m, w.hi), y);
  y = m.select(m.b.CreateFCmpOEQ(x, m.inf()), x, y);
  return m.select(m.b.CreateFCmpULT(x, m.c(1)), m.nan(), y);
}

Value* emit_atanh(MathBuilder& m, Value* x) {
  // atanh a = log(1 + w) / 2, w = 2a / (1 - a).
  Value* a = m.abs(x);
  const Pair w = m.div(Pair{m.mul(a, 2.0)}, m.two_sum(m.c(1), m.neg(a)));
  Value* y = m.mul(log_kernel(m, one_plus(m, w)), 0.5);
  if (m.is_wide()) {
    Value* z = m.mul(a, a);
    Value* small = m.mul_add(m.mul(m.mul(z, a), 0.5), m.poly(z, coeffs::log), a);
    y = m.select(m.lt(a, 0x1p-3), small, y);
  }
  y = m.select(m.eq(a, 1.0), m.inf(), y);
  y = m.select(m.b.CreateFCmpUGT(a, m.c(1)), m.nan(), y);
  return m.copysign(m.select(m.lt(a, 0x1p-30), a, y), x);
}

}  // namespace cuvil::codegen
