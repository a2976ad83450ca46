// erf and erfc. Near 0 an odd polynomial; beyond, erfc a = e^(-a^2) g(t) / (1 + 2a), where
// g = (1 + 2a) e^(a^2) erfc a is almost constant in t = (a - K) / (a + K)
// (Shepherd & Laframboise, Math. Comp. 36 (1981) 249).
#include "math_coeffs.h"
#include "math_kernels.h"

namespace cuvil::codegen {

using llvm::Value;

namespace {

// Where the far form takes over. erfc cannot wait as long: there the odd polynomial's rounding
// errors meet a small result.
constexpr double erf_split = 0.91, erfc_split = 0.8;
constexpr double k = 3.75;
// Part of g's constant term, added last: the rounding of a coefficient near 1 would show.
constexpr double erfc_head = 1.2265625;

// `head` + `p` is g for the interval at hand.
Value* erfc_far(MathBuilder& m, Value* a, const Poly& p, double head) {
  // One division yields both reciprocals; t and the quotient are as good as they need to be.
  Value* sum = m.add(a, k);
  const Pair bottom = m.two_sum(m.c(1), m.mul(a, 2.0));
  Value* both = m.div(m.c(1), m.mul(sum, bottom.hi));
  Value* t = m.mul(m.mul(m.sub(a, k), bottom.hi), both);
  const Pair g = m.fast_two_sum(m.c(head), m.poly(t, p));
  const Pair factor = m.div(g, bottom, m.mul(sum, both));
  return exp_kernel(m, m.neg(m.two_prod(a, a)), factor);
}

Value* erf_near_tail(MathBuilder& m, Value* x) {
  return m.mul(x, m.poly(m.mul(x, x), coeffs::erf));
}

// 1 - e^(-a q(a)): float has no bits to lose to the division, and the error shrinks with erfc.
Value* erf_far_f32(MathBuilder& m, Value* a) {
  Value* q = m.poly(a, coeffs::erf_log);
  const auto [n, r] = reduce_by_ln2(m, {m.neg(m.mul_add(a, q, a))});
  Value* power = m.pow2(n.bits);
  Value* tail = m.mul_add(m.mul(r.hi, r.hi), m.poly(r.hi, coeffs::exp), r.hi);
  return m.mul_add(m.neg(tail), power, m.b.CreateFSub(m.c(1), power));
}

}  // namespace

Value* emit_erf(MathBuilder& m, Value* x) {
  Value* a = m.abs(x);
  Value* near = m.add(x, erf_near_tail(m, x));
  Value* bounded = m.at_most(a, m.by_type(4.0, 6.0));
  Value* far = m.is_f32()
                   ? erf_far_f32(m, bounded)
                   : m.b.CreateFSub(m.c(1), erfc_far(m, bounded, coeffs::erf_far, erfc_head));
  return m.copysign(m.select(m.gt(a, erf_split), far, near), x);
}

Value* emit_erfc(MathBuilder& m, Value* x) {
  Value* a = m.abs(x);
  const Pair head = m.two_sum(m.c(1), m.neg(x));
  Value* near = m.add(head.hi, m.sub(head.lo, erf_near_tail(m, x)));
  Value* far = erfc_far(m, m.at_most(a, 27.5), coeffs::erfc, erfc_head);
  far = m.select(m.lt(x, 0.0), m.b.CreateFSub(m.c(2), far), far);
  return m.select(m.gt(a, erfc_split), far, near);
}

}  // namespace cuvil::codegen
