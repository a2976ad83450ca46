// emit_math: picks the precision a function is computed in and dispatches over math.def.
#include "math.h"

#include "math_kernels.h"

namespace cuvil::codegen {

using llvm::Value;

namespace {

// Float functions that meet their bound faster in double, where nothing needs compensation.
bool prefers_wide(MathFn fn) {
  switch (fn) {
    case MathFn::exp:
    case MathFn::exp2:
    case MathFn::expm1:
    case MathFn::log:
    case MathFn::log2:
    case MathFn::log10:
    case MathFn::log1p:
    case MathFn::sin:
    case MathFn::cos:
    case MathFn::asin:
    case MathFn::acos:
    case MathFn::asinh:
    case MathFn::acosh:
    case MathFn::atanh:
    case MathFn::sinh:
    case MathFn::cosh:
    case MathFn::tanh:
    case MathFn::erf: return false;
    default: return true;
  }
}

Value* call(Value* (*emit)(MathBuilder&, Value*), MathBuilder& m, Value* x, Value*) {
  return emit(m, x);
}

Value* call(Value* (*emit)(MathBuilder&, Value*, Value*), MathBuilder& m, Value* x, Value* y) {
  return emit(m, x, y);
}

Value* dispatch(MathFn fn, MathBuilder& m, Value* x, Value* y) {
  switch (fn) {
// clang-format off
#define CUVIL_MATH(name, arity) case MathFn::name: return call(emit_##name, m, x, y);
#include "ops/math.def"
#undef CUVIL_MATH
    // clang-format on
  }
  llvm_unreachable("MathFn outside math.def");
}

}  // namespace

Value* emit_math(MathFn fn, llvm::IRBuilderBase& b, Value* x, Value* y, const MathOptions& opt) {
  llvm::Type* type = x->getType();
  assert(type->getScalarType()->isFloatTy() || type->getScalarType()->isDoubleTy());
  // A caller's flags would let later passes reassociate the compensated sums away.
  llvm::IRBuilderBase::FastMathFlagGuard guard(b);
  b.clearFastMathFlags();
  if (type->getScalarType()->isDoubleTy()) {
    MathBuilder m(b, Precision::f64, opt.has_fma, type);
    return dispatch(fn, m, x, y);
  }
  if (opt.has_fma && !prefers_wide(fn)) {
    MathBuilder m(b, Precision::f32, true, type);
    return dispatch(fn, m, x, y);
  }
  llvm::Type* wide = type->getWithNewType(b.getDoubleTy());
  MathBuilder m(b, Precision::wide, opt.has_fma, wide);
  Value* result = dispatch(fn, m, b.CreateFPExt(x, wide), y ? b.CreateFPExt(y, wide) : nullptr);
  return b.CreateFPTrunc(result, type);
}

}  // namespace cuvil::codegen
