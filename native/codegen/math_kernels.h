// One emitter a row of math.def, and the kernels that more than one file builds on.
#pragma once

#include "math_builder.h"

namespace cuvil::codegen {

#define CUVIL_MATH_PARAMETERS_1 MathBuilder &m, llvm::Value *x
#define CUVIL_MATH_PARAMETERS_2 MathBuilder &m, llvm::Value *x, llvm::Value *y
#define CUVIL_MATH(name, arity) llvm::Value* emit_##name(CUVIL_MATH_PARAMETERS_##arity);
#include "ops/math.def"
#undef CUVIL_MATH
#undef CUVIL_MATH_PARAMETERS_1
#undef CUVIL_MATH_PARAMETERS_2

// ln 2 with a head short enough that n * hi is exact for every exponent n of the type.
Constant2 ln2_split(const MathBuilder& m);

// x = n ln2 + r with |r| <= ln2 / 2. |x| must be below 2^11 (2^8 for float).
struct ExpReduction {
  Rounded n;
  Pair r;
};
ExpReduction reduce_by_ln2(MathBuilder& m, Pair x);

// e^x * factor, rounded once even if subnormal. 2^-7 <= factor <= 1; factor.hi null stands for 1.
llvm::Value* exp_kernel(MathBuilder& m, Pair x, Pair factor = {nullptr});

// log(u) = exponent * ln2 + mantissa for finite u > 0, kept apart for the bases other than e.
// `precise` asks for about 12 more bits than correct rounding needs, as pow does.
struct LogParts {
  llvm::Value* exponent;
  Pair mantissa;
};
LogParts log_parts(MathBuilder& m, Pair u, bool precise);
Pair log_pair(MathBuilder& m, LogParts parts);
// log(u 2^doublings) rounded; doublings may be null.
llvm::Value* log_kernel(MathBuilder& m, Pair u, llvm::Value* doublings = nullptr);
Pair one_plus(MathBuilder& m, Pair w);  // 1 + w, for log1p-like use of log_kernel
// log(1 + w) for |w| <= 1/4 where `wide` did not keep 1 + w exact.
llvm::Value* log1p_near(MathBuilder& m, llvm::Value* w);

// |x| beyond the fast reduction: the quadrant and x - quadrant * pi/2, by Payne and Hanek's method.
// Garbage for infinities and NaN.
struct TrigReduction {
  Pair r;
  llvm::Value* quadrant;  // only its two low bits count
};
TrigReduction reduce_huge(MathBuilder& m, llvm::Value* x);

}  // namespace cuvil::codegen
