// exp, exp2 and expm1: e^x = 2^n e^r with |r| <= ln2/2 (Cody & Waite 1980), e^r a polynomial.
#include "math_coeffs.h"
#include "math_kernels.h"

#include <cmath>

namespace cuvil::codegen {

using llvm::Value;

namespace {

constexpr double log2_e = 0x1.71547652b82fep+0;

// e^r - 1 = r.hi + tail; the tail is below r^2 and carries the low part.
Value* exp_tail(MathBuilder& m, Pair r, const Poly& p) {
  return m.mul_add(m.mul(r.hi, r.hi), m.poly(r.hi, p), r.lo);
}

}  // namespace

Constant2 ln2_split(const MathBuilder& m) {
  // Float has FMA, and then x - n * hi is exact with a full head: both are multiples of 2^-25 and
  // the difference is below 1/2. Double must do without, so hi leaves 11 bits for n.
  return m.by_type<Constant2>({0x1.62e430p-1, -0x1.05c610ca86c39p-29},
                              {0x1.62e42fefa38p-1, 0x1.ef35793c7673p-45});
}

ExpReduction reduce_by_ln2(MathBuilder& m, Pair x) {
  const Constant2 ln2 = ln2_split(m);
  const Rounded n = m.round(x.hi, log2_e);
  Value* head = m.mul_add(n.value, -ln2.hi, x.hi);
  Value* low = m.mul(n.value, ln2.lo);
  Value* r = m.sub(head, low);
  if (m.is_wide()) return {n, {r}};
  return {n, {r, m.add(m.sub(m.sub(head, r), low), x.lo)}};
}

Value* exp_kernel(MathBuilder& m, Pair x, Pair factor) {
  // Beyond these the result is 0 or infinity whatever the factor; inside, 2^n stays representable.
  Value* bounded = m.at_least(x.hi, m.by_type(-106.0, -748.0));
  bounded = m.at_most(bounded, m.by_type(90.0, 711.0));
  if (!x.lo) {
    const auto [n, r] = reduce_by_ln2(m, {bounded});
    // The low part of r is worth a quarter of a unit at most.
    Value* e = m.add(m.add(r.hi, exp_tail(m, {r.hi}, coeffs::exp)), 1.0);
    return m.scale(factor.hi ? m.mul(e, factor.hi) : e, n);
  }
  // The low part of a value far outside is not small, and inside it may be far above r's last place.
  Value* low = m.select(m.b.CreateFCmpOEQ(bounded, x.hi), x.lo, m.c(0));
  auto [n, r] = reduce_by_ln2(m, {bounded, low});
  r = m.fast_two_sum(r.hi, r.lo);
  const Pair e = m.add(m.fast_two_sum(m.c(1), r.hi), exp_tail(m, r, coeffs::exp));
  return m.scale(factor.hi ? m.sum(m.mul(e, factor)) : e.hi, n);
}

Value* emit_exp(MathBuilder& m, Value* x) { return exp_kernel(m, {x}); }

Value* emit_exp2(MathBuilder& m, Value* x) {
  x = m.at_least(x, m.by_type(-152.0, -1078.0));
  x = m.at_most(x, m.by_type(129.0, 1025.0));
  const Rounded n = m.round(x, 1.0);
  Value* r = m.sub(x, n.value);
  const Pair r_ln2 =
      m.mul(Pair{r}, m.by_type<Constant2>({0x1.62e430p-1, -0x1.05c610ca86c39p-29},
                                          {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56}));
  Value* tail = m.mul_add(m.mul(r, r), m.poly(r, coeffs::exp2), r_ln2.lo);
  return m.scale(m.add(m.add(r_ln2.hi, tail), 1.0), n);
}

Value* emit_expm1(MathBuilder& m, Value* x) {
  // e^x - 1 = 2^n ((1 - 2^-n) + r + tail). Below the lower bound the result is -1.
  Value* bounded = m.at_least(x, m.by_type(-20.0, -45.0));
  bounded = m.at_most(bounded, m.by_type(90.0, 711.0));
  const auto [n, r] = reduce_by_ln2(m, {bounded});
  // 2^-n is out of range for the largest n, and without effect long before.
  Value* inverse = m.pow2(m.b.CreateNeg(n.bits));
  inverse = m.select(m.lt(n.value, 64.0), inverse, m.c(0));
  const Pair rest = m.fast_two_sum(m.c(1), m.neg(inverse));
  const Pair head = m.fast_two_sum(rest.hi, r.hi);
  Value* y = m.add(head.hi, m.add(exp_tail(m, r, coeffs::exp), m.add(head.lo, rest.lo)));
  // Zero keeps its sign.
  return m.select(m.eq(x, 0), x, m.scale(y, n));
}

}  // namespace cuvil::codegen
