// asin, acos, atan and atan2: each reduces to an odd polynomial on a short interval.
#include "math_coeffs.h"
#include "math_kernels.h"

namespace cuvil::codegen {

using llvm::Value;

namespace {

// pi times a power of 2.
Constant2 pi(const MathBuilder& m, double factor) {
  const Constant2 pi = m.by_type<Constant2>({0x1.921fb6p+1, -0x1.777a5cf72cecep-24},
                                            {0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53});
  return {pi.hi * factor, pi.lo * factor};
}

// asin t = t + t * tail for the t that serves |x| = a: a itself up to 1/2, and above that
// sqrt((1 - a) / 2), from asin a = pi/2 - 2 asin t. Beyond 1 the root is NaN, as it should be.
struct AsinCore {
  Value* above_half;
  Pair t;
  Value* tail;
};

AsinCore asin_core(MathBuilder& m, Value* a) {
  Value* above_half = m.gt(a, 0.5);
  Value* half_rest = m.mul(m.b.CreateFSub(m.c(1), a), 0.5);  // exact where used
  const Pair root = m.sqrt(Pair{half_rest});
  Value* z = m.select(above_half, half_rest, m.mul(a, a));
  const Pair t{m.select(above_half, root.hi, a), m.select(above_half, root.lo, nullptr)};
  return {above_half, t, m.mul(z, m.poly(z, coeffs::asin))};
}

// atan(n / d) for 0 <= n, d, not both 0 and their quotient representable. By the size of n / d:
//   up to tan(pi/8): the quotient itself    up to tan(3pi/8): pi/4 + atan((n - d) / (n + d))
//   above: pi/2 - atan(d / n)
Pair atan_ratio(MathBuilder& m, Value* n, Value* d) {
  Value* beyond_first = m.b.CreateFCmpOGT(n, m.mul(d, 0x1.a827999fcef32p-2));
  Value* beyond_second = m.b.CreateFCmpOGT(n, m.mul(d, 0x1.3504f333f9de6p+1));
  const Pair middle_n = m.two_sum(n, m.neg(d)), middle_d = m.two_sum(n, d);
  const Pair top =
      m.select(beyond_second, Pair{m.neg(d)}, m.select(beyond_first, middle_n, Pair{n}));
  const Pair bottom = m.select(beyond_second, Pair{n}, m.select(beyond_first, middle_d, Pair{d}));
  const Pair t = m.div(top, bottom);
  Value* z = m.mul(t.hi, t.hi);
  Value* tail = m.mul_add(m.mul(z, t.hi), m.poly(z, coeffs::atan), t.lo);
  const Pair zero{m.c(0)};
  const Pair base = m.select(beyond_second, m.constant(pi(m, 0.5)),
                             m.select(beyond_first, m.constant(pi(m, 0.25)), zero));
  const Pair sum = m.fast_two_sum(base.hi, t.hi);
  return m.add(sum, m.add(base.lo, tail));
}

Value* is_nan(MathBuilder& m, Value* x, Value* y) { return m.b.CreateFCmpUNO(x, y); }

}  // namespace

Value* emit_asin(MathBuilder& m, Value* x) {
  const auto [above_half, t, tail] = asin_core(m, m.abs(x));
  const Pair base = m.select(above_half, m.constant(pi(m, 0.5)), Pair{m.c(0)});
  Value* factor = m.select(above_half, m.c(-2), m.c(1));
  const Pair sum = m.fast_two_sum(base.hi, m.mul(t.hi, factor));
  Value* low = m.mul_add(t.hi, tail, t.lo);
  Value* rest = m.add(m.mul_add(low, factor, base.lo), sum.lo);
  return m.copysign(m.add(sum.hi, rest), x);
}

Value* emit_acos(MathBuilder& m, Value* x) {
  //   x <= -1/2: pi - 2 asin t     |x| < 1/2: pi/2 - asin x     x >= 1/2: 2 asin t
  const auto [above_half, t, tail] = asin_core(m, m.abs(x));
  Value* negative = m.lt(x, 0.0);
  const Pair outer = m.select(negative, m.constant(pi(m, 1)), Pair{m.c(0)});
  const Pair base = m.select(above_half, outer, m.constant(pi(m, 0.5)));
  Value* outer_factor = m.select(negative, m.c(-2), m.c(2));
  Value* inner_factor = m.select(negative, m.c(1), m.c(-1));
  Value* factor = m.select(above_half, outer_factor, inner_factor);
  const Pair sum = m.fast_two_sum(base.hi, m.mul(t.hi, factor));
  Value* low = m.mul_add(t.hi, tail, t.lo);
  return m.add(sum.hi, m.add(m.mul_add(low, factor, base.lo), sum.lo));
}

Value* emit_atan(MathBuilder& m, Value* x) {
  // From 2^60 on the result is pi/2 rounded; the bound keeps infinity out of the quotient.
  return m.copysign(m.sum(atan_ratio(m, m.at_most(m.abs(x), 0x1p60), m.c(1))), x);
}

Value* emit_atan2(MathBuilder& m, Value* y, Value* x) {
  auto& b = m.b;
  Value* ax = m.abs(x);
  Value* ay = m.abs(y);
  Value* small_quotient = nullptr;
  Value* quotient_is_all = nullptr;
  if (m.is_f64()) {
    // |y| << |x|: then the angle is y / x to all bits, rounded once even if subnormal.
    small_quotient = m.div(ay, ax);
    quotient_is_all = m.lt(small_quotient, 0x1p-60);
  }
  // Only the direction counts where a coordinate is infinite or both are zero.
  Value* x_inf = b.CreateFCmpOEQ(ax, m.inf());
  Value* y_inf = b.CreateFCmpOEQ(ay, m.inf());
  Value* some_inf = b.CreateOr(x_inf, y_inf);
  Value* both_zero = b.CreateAnd(m.eq(x, 0), m.eq(y, 0));
  ax = m.select(some_inf, m.select(x_inf, m.c(1), m.c(0)), ax);
  ay = m.select(some_inf, m.select(y_inf, m.c(1), m.c(0)), ay);
  ax = m.select(both_zero, m.c(1), ax);
  if (m.is_f64()) {
    // Bring the larger one near 1 so that the other steps neither overflow nor lose bits.
    Value* larger = m.select(b.CreateFCmpOGT(ay, ax), ay, ax);
    Value* biased = b.CreateLShr(m.to_bits(larger), m.ci(52));
    Value* top = b.CreateICmpEQ(biased, m.ci(2046));
    Value* field = b.CreateSelect(top, m.ci(1), b.CreateSub(m.ci(2046), biased));
    Value* factor = m.from_bits(b.CreateShl(field, m.ci(52)));
    ax = m.mul(ax, factor);
    ay = m.mul(ay, factor);
  }
  const Pair angle = atan_ratio(m, ay, ax);
  // The sign bit of x decides, also that of -0. pi - angle in the left half plane.
  Value* left = b.CreateICmpSLT(m.to_bits(x), m.ci(0));
  const Pair half_turn = m.constant(pi(m, 1));
  const Pair full = m.fast_two_sum(half_turn.hi, m.neg(angle.hi));
  Value* rest = m.add(m.sub(half_turn.lo, angle.lo), full.lo);
  Value* right_angle = m.sum(angle);
  if (m.is_f64()) right_angle = m.select(quotient_is_all, small_quotient, right_angle);
  Value* result = m.copysign(m.select(left, m.add(full.hi, rest), right_angle), y);
  return m.select(is_nan(m, x, y), b.CreateFAdd(x, y), result);
}

}  // namespace cuvil::codegen
