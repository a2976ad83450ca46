// cbrt and hypot: roots by a hardware square root or by iteration, finished with one exact residue.
#include "math_coeffs.h"
#include "math_kernels.h"

#include <cmath>

namespace cuvil::codegen {

using llvm::Value;

Value* emit_cbrt(MathBuilder& m, Value* x) {
  // |x| = 2^(3q + j) u, 1 <= u < 2, 0 <= j < 3. With v near u^(-1/3) and h = 1 - u v^3, one step
  // v (1 + h/3 + 2h^2/9 + 14h^3/81) squares the error twice; then cbrt u = u v^2 up to a residue.
  auto& b = m.b;
  Value* a = m.abs(x);
  Value* subnormal = nullptr;
  Value* scaled = a;
  if (m.is_f64()) {
    subnormal = m.lt(a, 0x1p-1022);
    scaled = m.select(subnormal, m.mul(a, 0x1p54), a);
  }
  Value* bits = m.to_bits(scaled);
  Value* biased = b.CreateLShr(bits, m.ci(52));
  Value* significand = b.CreateOr(b.CreateAnd(bits, m.ci(0xfffffffffffff)), m.bits_of(1.0));
  Value* u = m.from_bits(significand);
  // floor(biased / 3) by a multiplication that is exact below 2^15; 1023 = 3 * 341.
  Value* third = b.CreateLShr(b.CreateMul(biased, m.ci(0xaaab)), m.ci(17));
  Value* j = b.CreateSub(biased, b.CreateMul(third, m.ci(3)));
  Value* is_one = b.CreateICmpEQ(j, m.ci(1));
  Value* is_two = b.CreateICmpEQ(j, m.ci(2));

  Value* v = m.poly(u, coeffs::rcbrt);
  Value* h = m.mul_add(m.neg(m.mul(u, v)), m.mul(v, v), m.c(1));
  Value* step = m.mul_add(m.mul_add(h, 14.0 / 81, m.c(2.0 / 9)), h, m.c(1.0 / 3));
  v = m.mul_add(m.mul(v, h), step, v);
  // 2^j u and its root: the powers of 2 are exact, the root's factor is not but is corrected below.
  Value* factor = m.select(is_two, m.c(0x1.965fea53d6e3dp+0),
                           m.select(is_one, m.c(0x1.428a2f98d728bp+0), m.c(1)));
  Value* target = m.mul(u, m.select(is_two, m.c(4), m.select(is_one, m.c(2), m.c(1))));
  Value* t = m.mul(m.mul(u, m.mul(v, v)), factor);
  if (!m.is_wide()) {
    const Pair square = m.two_prod(t, t);
    const Pair cube = m.two_prod(square.hi, t);
    Value* rest = m.sub(m.sub(m.sub(target, cube.hi), cube.lo), m.mul(square.lo, t));
    // 1 / (3 t^2) = v^2 / (3 factor^2) to the few bits that matter.
    t = m.add(t, m.div(rest, m.mul(square.hi, 3.0)));
  }
  // 2^q, q = third - 341, less the 18 = 54 / 3 that the subnormal scaling added.
  Value* field = b.CreateAdd(third, m.ci(1023 - 341));
  if (subnormal) field = b.CreateSub(field, b.CreateSelect(subnormal, m.ci(18), m.ci(0)));
  Value* y = m.mul(t, m.from_bits(b.CreateShl(field, m.ci(52))));
  Value* ordinary = b.CreateAnd(m.gt(a, 0), b.CreateFCmpOLT(a, m.inf()));
  return m.select(ordinary, m.copysign(y, x), x);
}

Value* emit_hypot(MathBuilder& m, Value* x, Value* y) {
  auto& b = m.b;
  Value* ax = m.abs(x);
  Value* ay = m.abs(y);
  Value* result;
  if (m.is_wide()) {
    result = m.sqrt(m.mul_add(ax, ax, m.mul(ay, ay)));
  } else {
    Value* swap = b.CreateFCmpOGT(ay, ax);
    Value* larger = m.select(swap, ay, ax);
    Value* smaller = m.select(swap, ax, ay);
    // One of three powers of 2 brings the squares into range.
    Value* up = m.lt(larger, 0x1p-400);
    Value* down = m.gt(larger, 0x1p400);
    Value* factor = m.select(up, m.c(0x1p600), m.select(down, m.c(0x1p-600), m.c(1)));
    Value* back = m.select(up, m.c(0x1p-600), m.select(down, m.c(0x1p600), m.c(1)));
    const Pair p = m.two_prod(m.mul(larger, factor), m.mul(larger, factor));
    const Pair q = m.two_prod(m.mul(smaller, factor), m.mul(smaller, factor));
    const Pair sum = m.fast_two_sum(p.hi, q.hi);
    result = m.mul(m.sum(m.sqrt(m.add(sum, m.add(p.lo, q.lo)))), back);
  }
  // An infinite leg wins over NaN.
  Value* some_inf = b.CreateOr(b.CreateFCmpOEQ(ax, m.inf()), b.CreateFCmpOEQ(ay, m.inf()));
  result = m.select(some_inf, m.inf(), result);
  Value* undefined = b.CreateAnd(b.CreateFCmpUNO(x, y), b.CreateNot(some_inf));
  return m.select(undefined, b.CreateFAdd(x, y), result);
}

}  // namespace cuvil::codegen
