// The arithmetic vocabulary in which math_*.cpp writes each function once for three precisions.
// Internal to the elementary functions; emit_math (math.h) is their only door.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <span>

namespace cuvil::codegen {

enum class Precision : uint8_t {
  f32,   // a float computed in float; always with FMA
  f64,   // a double computed in double
  wide,  // a float computed in double: 29 spare bits make all compensation unnecessary
};

// One polynomial fitted for each precision, constant term first (math_coeffs.h). Empty: not used.
struct Poly {
  std::span<const double> f32, f64, wide;
};

// A constant to twice the working precision. The head may be short so that products are exact.
struct Constant2 {
  double hi, lo;
};

// An unevaluated sum. lo == nullptr says the low part is zero, or below what `wide` cares about;
// operations that take a low part accept that and emit nothing for it.
struct Pair {
  llvm::Value* hi;
  llvm::Value* lo = nullptr;
};

// A number rounded to an integer by adding 1.5 * 2^mantissa: `value` is the integer as a floating
// number, `bits` holds it in its low bits, in two's complement, under the exponent of the sum.
struct Rounded {
  llvm::Value* value;
  llvm::Value* bits;
};

class MathBuilder {
 public:
  MathBuilder(llvm::IRBuilderBase& b, Precision precision, bool has_fma, llvm::Type* type);

  llvm::IRBuilderBase& b;
  const Precision precision;
  const bool has_fma;
  llvm::Type* const fp;  // the working floating type, scalar or vector
  llvm::Type* const i;   // the integer type of the same shape
  const int mantissa;    // 23 or 52
  const int bias;        // 127 or 1023

  bool is_f32() const { return precision == Precision::f32; }
  bool is_f64() const { return precision == Precision::f64; }
  bool is_wide() const { return precision == Precision::wide; }
  // The alternative that belongs to the working type.
  template <class T> T by_type(T if_float, T if_double) const {
    return is_f32() ? if_float : if_double;
  }

  llvm::Value* c(double value) const;
  llvm::Value* ci(int64_t value) const;
  llvm::Value* bits_of(double value) const;  // the encoding of a constant, as an integer
  llvm::Value* inf() const;
  llvm::Value* nan() const;

  llvm::Value* add(llvm::Value* x, llvm::Value* y);  // either may be null, meaning zero
  llvm::Value* sub(llvm::Value* x, llvm::Value* y);
  llvm::Value* mul(llvm::Value* x, llvm::Value* y);  // null if either is
  llvm::Value* mul(llvm::Value* x, double y) { return mul(x, c(y)); }
  llvm::Value* add(llvm::Value* x, double y) { return add(x, c(y)); }
  llvm::Value* sub(llvm::Value* x, double y) { return sub(x, c(y)); }
  llvm::Value* div(llvm::Value* x, llvm::Value* y) { return b.CreateFDiv(x, y); }
  llvm::Value* neg(llvm::Value* x) { return x ? b.CreateFNeg(x) : nullptr; }
  // x * y + z, in one rounding where the target has it. A null z means zero.
  llvm::Value* mul_add(llvm::Value* x, llvm::Value* y, llvm::Value* z);
  llvm::Value* mul_add(llvm::Value* x, double y, llvm::Value* z) { return mul_add(x, c(y), z); }
  llvm::Value* sqrt(llvm::Value* x);
  llvm::Value* abs(llvm::Value* x);
  llvm::Value* copysign(llvm::Value* magnitude, llvm::Value* sign);
  llvm::Value* poly(llvm::Value* x, const Poly& coefficients);

  // Comparisons are ordered: false for NaN.
  llvm::Value* lt(llvm::Value* x, double y) { return b.CreateFCmpOLT(x, c(y)); }
  llvm::Value* gt(llvm::Value* x, double y) { return b.CreateFCmpOGT(x, c(y)); }
  llvm::Value* eq(llvm::Value* x, double y) { return b.CreateFCmpOEQ(x, c(y)); }
  llvm::Value* select(llvm::Value* cond, llvm::Value* x, llvm::Value* y);
  Pair select(llvm::Value* cond, Pair x, Pair y);
  // Bounds that let NaN through, unlike minnum and maxnum.
  llvm::Value* at_least(llvm::Value* x, double bound) { return select(lt(x, bound), c(bound), x); }
  llvm::Value* at_most(llvm::Value* x, double bound) { return select(gt(x, bound), c(bound), x); }

  llvm::Value* to_bits(llvm::Value* x) { return b.CreateBitCast(x, i); }
  llvm::Value* from_bits(llvm::Value* x) { return b.CreateBitCast(x, fp); }
  Rounded round(llvm::Value* x, double scale);  // x * scale to an integer below 2^(mantissa - 1)
  // An integer 0 <= n < 2^mantissa as a floating number, minus `offset`. Exact, and native
  // everywhere: sitofp from 64 bits is not. The second form takes offset + 2^mantissa.
  llvm::Value* to_fp(llvm::Value* n, double offset);
  llvm::Value* to_fp(llvm::Value* n, llvm::Value* offset_plus_2_mantissa);
  llvm::Value* pow2(llvm::Value* n_bits);  // 2^n for the low bits of n; |n| < bias
  // x * 2^n with one rounding, also where the result is subnormal or overflows; |x| in [1/4, 4].
  llvm::Value* scale(llvm::Value* x, Rounded n);

  // Error-free transformations (Dekker 1971, Knuth). In `wide` the error is dropped.
  Pair two_sum(llvm::Value* x, llvm::Value* y);
  Pair fast_two_sum(llvm::Value* x, llvm::Value* y);  // needs |x| >= |y| or x == 0
  Pair two_prod(llvm::Value* x, llvm::Value* y);
  // Double-word arithmetic on top, accurate to a few units of the low word's last bits.
  Pair add(Pair x, llvm::Value* low);  // low is below x.hi
  Pair mul(Pair x, Pair y);
  Pair mul(Pair x, Constant2 y);
  // x / y; 1 / y.hi must be a normal number and may be passed if an approximation is at hand.
  Pair div(Pair x, Pair y, llvm::Value* reciprocal = nullptr);
  Pair sqrt(Pair x);  // zero gives zero
  Pair neg(Pair x) { return {neg(x.hi), neg(x.lo)}; }
  Pair constant(Constant2 x) const { return {c(x.hi), is_wide() ? nullptr : c(x.lo)}; }
  llvm::Value* sum(Pair x) { return add(x.hi, x.lo); }

 private:
  Pair split(llvm::Value* x);
};

}  // namespace cuvil::codegen
