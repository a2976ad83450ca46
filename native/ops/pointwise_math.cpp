// Elementary functions. Rows of numpy.*, scipy.special.* and math.* (Python floats).
#include <cmath>
#include <numbers>

#include "ops/python_numbers.h"

namespace cuvil::ops {
namespace {

Ref narrow(const BodyContext& c, Ref r) { return c.tape.cast(result_dtype(c), r); }
Ref operand(const BodyContext& c, size_t k) { return widen(c.tape, c.operands[k]); }

template <MathFn f> Ref math_body(const BodyContext& c) {
  Ref b = c.operands.size() > 1 ? operand(c, 1) : Ref{};
  return narrow(c, c.tape.math(f, operand(c, 0), b));
}

// The factor is rounded to the type first, as NumPy's is.
Ref scaled(const BodyContext& c, double factor) {
  Ref a = operand(c, 0);
  return narrow(c, c.tape.mul(a, c.tape.number(c.tape.type(a), factor)));
}
template <class F> F factor_of(bool to_degrees) {
  const F pi = std::numbers::pi_v<F>;
  return to_degrees ? F(180) / pi : pi / F(180);
}
Ref angle(const BodyContext& c, bool to_degrees) {
  bool wide = c.tape.type(operand(c, 0)) == DType::kF64;
  return scaled(c, wide ? factor_of<double>(to_degrees) : factor_of<float>(to_degrees));
}
Ref degrees_body(const BodyContext& c) { return angle(c, true); }
Ref radians_body(const BodyContext& c) { return angle(c, false); }

// log(exp(a) + exp(b)) without overflow; equal operands (infinities too) are a case of their own.
Ref logaddexp_body(const BodyContext& c) {
  Tape& t = c.tape;
  Ref a = operand(c, 0), b = operand(c, 1);
  DType T = t.type(a);
  Ref d = t.sub(a, b);
  Ref tail = t.math(MathFn::log1p, t.math(MathFn::exp, t.neg(t.abs(d))));
  Ref r = t.add(t.select(t.lt(t.number(T, 0), d), a, b), tail);
  r = t.select(t.is_nan(d), d, r);
  return narrow(c, t.select(t.eq(a, b), t.add(a, t.number(T, std::numbers::ln2)), r));
}
Ref logaddexp2_body(const BodyContext& c) {
  Tape& t = c.tape;
  Ref a = operand(c, 0), b = operand(c, 1);
  DType T = t.type(a);
  Ref d = t.sub(a, b);
  Ref tail = t.math(MathFn::log1p, t.math(MathFn::exp2, t.neg(t.abs(d))));
  tail = t.mul(t.number(T, std::numbers::log2e), tail);
  Ref r = t.add(t.select(t.lt(t.number(T, 0), d), a, b), tail);
  r = t.select(t.is_nan(d), d, r);
  return narrow(c, t.select(t.eq(a, b), t.add(a, t.number(T, 1)), r));
}

Ref expit_body(const BodyContext& c) {
  Tape& t = c.tape;
  Ref a = operand(c, 0);
  Ref one = t.number(t.type(a), 1);
  return narrow(c, t.div(one, t.add(one, t.math(MathFn::exp, t.neg(a)))));
}

// ---- Build functions ----------------------------------------------------------------------------------
// np.sinc(x): sin(pi x) / (pi x), with NumPy's tiny argument in place of 0.
Result<ArgValue> build_sinc(Builder& b, const DialectRow&, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  const ArgValue product[] = {std::numbers::pi, x};
  CUVIL_TRY(ArgValue scaled, call_ufunc(b, "multiply", product));
  ir::ValueId y = scaled.get<TensorArg>()->value;
  const ir::Type t = b.type(y);
  const double eps = t.dtype == DType::kF64 ? 0x1p-52 : t.dtype == DType::kF32 ? 0x1p-23 : 0x1p-10;
  CUVIL_TRY(y, emit_pointwise(b, "where", {b.cast(y, DType::kBool), y, b.constant(t.dtype, eps)},
                              t.dtype));
  ir::ValueId s = b.emit("sin", {y}, t);
  return scalar_if_rank0(b, b.emit("divide", {s, y}, t));
}

// math.f(x): on a Python number, in f64. What Python raises is checked.
enum class Domain : uint8_t {
  kAll,
  kNotNegative,
  kPositive,
  kFinite,
  kUnit,
  kOpenUnit,
  kFromOne,
  kAboveMinusOne
};

struct MathRow {
  std::string_view name, op;
  Domain domain;
  bool overflows;  // an infinite result from a finite argument is an OverflowError
};
constexpr MathRow kMathRows[] = {
    {"math.sqrt", "sqrt", Domain::kNotNegative, false},
    {"math.cbrt", "cbrt", Domain::kAll, false},
    {"math.exp", "exp", Domain::kAll, true},
    {"math.exp2", "exp2", Domain::kAll, true},
    {"math.expm1", "expm1", Domain::kAll, true},
    {"math.log", "log", Domain::kPositive, false},
    {"math.log2", "log2", Domain::kPositive, false},
    {"math.log10", "log10", Domain::kPositive, false},
    {"math.log1p", "log1p", Domain::kAboveMinusOne, false},
    {"math.sin", "sin", Domain::kFinite, false},
    {"math.cos", "cos", Domain::kFinite, false},
    {"math.tan", "tan", Domain::kFinite, false},
    {"math.asin", "arcsin", Domain::kUnit, false},
    {"math.acos", "arccos", Domain::kUnit, false},
    {"math.atan", "arctan", Domain::kAll, false},
    {"math.sinh", "sinh", Domain::kAll, true},
    {"math.cosh", "cosh", Domain::kAll, true},
    {"math.tanh", "tanh", Domain::kAll, false},
    {"math.asinh", "arcsinh", Domain::kAll, false},
    {"math.acosh", "arccosh", Domain::kFromOne, false},
    {"math.atanh", "arctanh", Domain::kOpenUnit, false},
    {"math.erf", "erf", Domain::kAll, false},
    {"math.erfc", "erfc", Domain::kAll, false},
    {"math.fabs", "absolute", Domain::kAll, false},
    {"math.degrees", "degrees", Domain::kAll, false},
    {"math.radians", "radians", Domain::kAll, false},
};

// Emits the condition under which Python raises "math domain error"; invalid: never.
ir::ValueId outside(Builder& b, Domain domain, ir::ValueId x) {
  const ir::Type boolean{DType::kBool, {}}, f64{DType::kF64, {}};
  auto number = [&](double v) { return b.constant(DType::kF64, v); };
  auto compare = [&](std::string_view op, ir::ValueId l, ir::ValueId r) {
    return b.emit(op, {l, r}, boolean);
  };
  switch (domain) {
    case Domain::kAll: return {};
    case Domain::kNotNegative: return compare("less", x, number(0));
    case Domain::kPositive: return compare("less_equal", x, number(0));
    case Domain::kFinite: return b.emit("isinf", {x}, boolean);
    case Domain::kUnit: return compare("greater", b.emit("absolute", {x}, f64), number(1));
    case Domain::kOpenUnit:
      return compare("greater_equal", b.emit("absolute", {x}, f64), number(1));
    case Domain::kFromOne: return compare("less", x, number(1));
    case Domain::kAboveMinusOne: return compare("less_equal", x, number(-1));
  }
  return {};
}

Result<ArgValue> build_math(Builder& b, const DialectRow& row, Args args) {
  const ir::Type boolean{DType::kBool, {}}, f64{DType::kF64, {}};
  for (const MathRow& m : kMathRows) {
    if (m.name != row.name) continue;
    CUVIL_TRY(ir::ValueId x, python_float(b, args[0]));
    ir::ValueId bad = outside(b, m.domain, x);
    if (bad.valid()) x = raise_if(b, x, bad, ErrorClass::kValueError, "math domain error");
    ir::ValueId r = b.emit(m.op, {x}, f64);
    if (m.overflows) {
      ir::ValueId over =
          b.emit("logical_and", {b.emit("isfinite", {x}, boolean), b.emit("isinf", {r}, boolean)},
                 boolean);
      r = raise_if(b, r, over, ErrorClass::kOverflowError, "math range error");
    }
    return weak_float(r);
  }
  return b.error(ErrorClass::kInternal, "no row for " + std::string(row.name));
}

// math.atan2, hypot, copysign: two Python numbers, nothing is raised.
Result<ArgValue> build_math2(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(ir::ValueId x, python_float(b, args[0]));
  CUVIL_TRY(ir::ValueId y, python_float(b, args[1]));
  return weak_float(b.emit(row.op, {x, y}, {DType::kF64, {}}));
}

Result<ArgValue> build_math_test(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(ir::ValueId x, python_float(b, args[0]));
  return weak_bool(b.emit(row.op, {x}, {DType::kBool, {}}));
}

constexpr std::string_view kFloats = "efd";
template <MathFn f> constexpr OpInfo math_op(std::string_view name, std::string_view doc,
                                             std::string_view loops = kFloats) {
  return pointwise(
      name,
      static_cast<int8_t>(f == MathFn::pow || f == MathFn::atan2 || f == MathFn::hypot ? 2 : 1),
      math_body<f>, loops, "=", doc);
}

constexpr OpInfo kOps[] = {
    math_op<MathFn::exp>("exp", "e to the power a"),
    math_op<MathFn::exp2>("exp2", "2 to the power a"),
    math_op<MathFn::expm1>("expm1", "exp(a) - 1 without cancellation"),
    math_op<MathFn::log>("log", "natural logarithm"),
    math_op<MathFn::log2>("log2", "logarithm to base 2"),
    math_op<MathFn::log10>("log10", "logarithm to base 10"),
    math_op<MathFn::log1p>("log1p", "log(1 + a) without cancellation"),
    math_op<MathFn::sin>("sin", "sine of radians"),
    math_op<MathFn::cos>("cos", "cosine of radians"),
    math_op<MathFn::tan>("tan", "tangent of radians"),
    math_op<MathFn::asin>("arcsin", "inverse sine"),
    math_op<MathFn::acos>("arccos", "inverse cosine"),
    math_op<MathFn::atan>("arctan", "inverse tangent"),
    math_op<MathFn::sinh>("sinh", "hyperbolic sine"),
    math_op<MathFn::cosh>("cosh", "hyperbolic cosine"),
    math_op<MathFn::tanh>("tanh", "hyperbolic tangent"),
    math_op<MathFn::asinh>("arcsinh", "inverse hyperbolic sine"),
    math_op<MathFn::acosh>("arccosh", "inverse hyperbolic cosine"),
    math_op<MathFn::atanh>("arctanh", "inverse hyperbolic tangent"),
    math_op<MathFn::cbrt>("cbrt", "cube root"),
    math_op<MathFn::atan2>("arctan2", "angle of the point (b, a)"),
    math_op<MathFn::hypot>("hypot", "sqrt(a*a + b*b) without overflow"),
    math_op<MathFn::erf>("erf", "error function", "df"),
    math_op<MathFn::erfc>("erfc", "1 - erf(a) without cancellation", "df"),
    pointwise("expit", 1, expit_body, "df", "=", "1 / (1 + exp(-a))"),
    pointwise("degrees", 1, degrees_body, kFloats, "=", "radians to degrees", true),
    pointwise("radians", 1, radians_body, kFloats, "=", "degrees to radians", true),
    pointwise("logaddexp", 2, logaddexp_body, kFloats, "=", "log(exp(a) + exp(b))"),
    pointwise("logaddexp2", 2, logaddexp2_body, kFloats, "=", "log2(2**a + 2**b)"),
};

constexpr DialectRow kRows[] = {
    {"numpy.exp", kUnaryParams, build_ufunc, "exp"},
    {"numpy.exp2", kUnaryParams, build_ufunc, "exp2"},
    {"numpy.expm1", kUnaryParams, build_ufunc, "expm1"},
    {"numpy.log", kUnaryParams, build_ufunc, "log"},
    {"numpy.log2", kUnaryParams, build_ufunc, "log2"},
    {"numpy.log10", kUnaryParams, build_ufunc, "log10"},
    {"numpy.log1p", kUnaryParams, build_ufunc, "log1p"},
    {"numpy.sin", kUnaryParams, build_ufunc, "sin"},
    {"numpy.cos", kUnaryParams, build_ufunc, "cos"},
    {"numpy.tan", kUnaryParams, build_ufunc, "tan"},
    {"numpy.arcsin", kUnaryParams, build_ufunc, "arcsin"},
    {"numpy.asin", kUnaryParams, build_ufunc, "arcsin"},
    {"numpy.arccos", kUnaryParams, build_ufunc, "arccos"},
    {"numpy.acos", kUnaryParams, build_ufunc, "arccos"},
    {"numpy.arctan", kUnaryParams, build_ufunc, "arctan"},
    {"numpy.atan", kUnaryParams, build_ufunc, "arctan"},
    {"numpy.sinh", kUnaryParams, build_ufunc, "sinh"},
    {"numpy.cosh", kUnaryParams, build_ufunc, "cosh"},
    {"numpy.tanh", kUnaryParams, build_ufunc, "tanh"},
    {"numpy.arcsinh", kUnaryParams, build_ufunc, "arcsinh"},
    {"numpy.asinh", kUnaryParams, build_ufunc, "arcsinh"},
    {"numpy.arccosh", kUnaryParams, build_ufunc, "arccosh"},
    {"numpy.acosh", kUnaryParams, build_ufunc, "arccosh"},
    {"numpy.arctanh", kUnaryParams, build_ufunc, "arctanh"},
    {"numpy.atanh", kUnaryParams, build_ufunc, "arctanh"},
    {"numpy.cbrt", kUnaryParams, build_ufunc, "cbrt"},
    {"numpy.arctan2", kBinaryParams, build_ufunc, "arctan2"},
    {"numpy.atan2", kBinaryParams, build_ufunc, "arctan2"},
    {"numpy.hypot", kBinaryParams, build_ufunc, "hypot"},
    {"numpy.degrees", kUnaryParams, build_ufunc, "degrees"},
    {"numpy.rad2deg", kUnaryParams, build_ufunc, "degrees"},
    {"numpy.radians", kUnaryParams, build_ufunc, "radians"},
    {"numpy.deg2rad", kUnaryParams, build_ufunc, "radians"},
    {"numpy.logaddexp", kBinaryParams, build_ufunc, "logaddexp"},
    {"numpy.logaddexp2", kBinaryParams, build_ufunc, "logaddexp2"},
    {"numpy.sinc", "x", build_sinc},
    {"scipy.special.erf", kUnaryParams, build_ufunc, "erf"},
    {"scipy.special.erfc", kUnaryParams, build_ufunc, "erfc"},
    {"scipy.special.expit", kUnaryParams, build_ufunc, "expit"},
    {"math.sqrt", "x, /", build_math},
    {"math.cbrt", "x, /", build_math},
    {"math.exp", "x, /", build_math},
    {"math.exp2", "x, /", build_math},
    {"math.expm1", "x, /", build_math},
    {"math.log", "x, /", build_math},
    {"math.log2", "x, /", build_math},
    {"math.log10", "x, /", build_math},
    {"math.log1p", "x, /", build_math},
    {"math.sin", "x, /", build_math},
    {"math.cos", "x, /", build_math},
    {"math.tan", "x, /", build_math},
    {"math.asin", "x, /", build_math},
    {"math.acos", "x, /", build_math},
    {"math.atan", "x, /", build_math},
    {"math.sinh", "x, /", build_math},
    {"math.cosh", "x, /", build_math},
    {"math.tanh", "x, /", build_math},
    {"math.asinh", "x, /", build_math},
    {"math.acosh", "x, /", build_math},
    {"math.atanh", "x, /", build_math},
    {"math.erf", "x, /", build_math},
    {"math.erfc", "x, /", build_math},
    {"math.fabs", "x, /", build_math},
    {"math.degrees", "x, /", build_math},
    {"math.radians", "x, /", build_math},
    {"math.atan2", "y, x, /", build_math2, "arctan2"},
    {"math.hypot", "x, y, /", build_math2, "hypot"},
    {"math.copysign", "x, y, /", build_math2, "copysign"},
    {"math.isnan", "x, /", build_math_test, "isnan"},
    {"math.isinf", "x, /", build_math_test, "isinf"},
    {"math.isfinite", "x, /", build_math_test, "isfinite"},
};

}  // namespace

FamilyTable math_table() { return {kOps, kRows}; }

}  // namespace cuvil::ops
