// pow: |x|^y = e^(y log |x|) with the logarithm in double-word arithmetic, then C99's special cases.
#include "math_kernels.h"

namespace cuvil::codegen {

using llvm::Value;

namespace {

struct Parity {
  Value* integer;
  Value* odd;
};

// Adding 2^52 leaves an integer's units in the lowest bit, without the rounding instructions that
// baseline x86 lacks.
Parity parity(MathBuilder& m, Value* y) {
  Value* a = m.abs(y);
  Value* large = m.b.CreateFCmpOGE(a, m.c(0x1p52));
  Value* shifted = m.add(a, 0x1p52);
  Value* unchanged = m.b.CreateFCmpOEQ(m.sub(shifted, 0x1p52), a);
  Value* integer = m.b.CreateOr(large, unchanged);
  // From 2^52 to 2^53 the significand's own last bit is the unit; beyond, all are even.
  Value* units = m.b.CreateSelect(large, m.to_bits(a), m.to_bits(shifted));
  Value* last = m.b.CreateICmpNE(m.b.CreateAnd(units, m.ci(1)), m.ci(0));
  return {integer, m.b.CreateAnd(m.b.CreateAnd(integer, last), m.lt(a, 0x1p53))};
}

}  // namespace

Value* emit_pow(MathBuilder& m, Value* x, Value* y) {
  auto& b = m.b;
  Value* a = m.abs(x);
  const Pair log = log_pair(m, log_parts(m, {a}, /*precise=*/true));
  // Beyond 2^66 every a but 1 over- or underflows; the bound keeps the product finite.
  const Pair exponent = m.mul(Pair{m.at_least(m.at_most(y, 0x1p66), -0x1p66)}, log);
  Value* magnitude = exp_kernel(m, exponent);

  Value* zero = m.eq(a, 0);
  Value* infinite = b.CreateFCmpOEQ(a, m.inf());
  Value* inverted = m.lt(y, 0);
  Value* extreme = m.select(b.CreateXor(zero, inverted), m.c(0), m.inf());
  Value* at_extreme = b.CreateOr(zero, infinite);
  magnitude = m.select(at_extreme, extreme, magnitude);

  const auto [integer, odd] = parity(m, y);
  Value* negative = b.CreateICmpSLT(m.to_bits(x), m.ci(0));
  Value* signed_result = m.select(b.CreateAnd(negative, odd), m.neg(magnitude), magnitude);
  Value* undefined =
      b.CreateAnd(b.CreateAnd(negative, b.CreateNot(integer)), b.CreateNot(at_extreme));
  Value* result = m.select(undefined, m.nan(), signed_result);
  result = m.select(b.CreateFCmpUNO(x, y), m.nan(), result);
  return m.select(b.CreateOr(m.eq(y, 0), m.eq(x, 1)), m.c(1), result);
}

}  // namespace cuvil::codegen
