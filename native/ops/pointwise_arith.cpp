// Arithmetic ufuncs: add to power, sign, square. Rows of numpy.* and operator.*.
#include "ops/interpret.h"
#include "ops/python_numbers.h"
#include "ops/structural.h"

namespace cuvil::ops {
namespace {

Ref narrow(const BodyContext& c, Ref r) { return c.tape.cast(result_dtype(c), r); }
Ref operand(const BodyContext& c, size_t k) { return widen(c.tape, c.operands[k]); }

Ref add_body(const BodyContext& c) {
  if (is_bool(result_dtype(c))) return c.tape.bor(c.operands[0], c.operands[1]);
  return narrow(c, c.tape.add(operand(c, 0), operand(c, 1)));
}
Ref subtract_body(const BodyContext& c) {
  return narrow(c, c.tape.sub(operand(c, 0), operand(c, 1)));
}
Ref multiply_body(const BodyContext& c) {
  if (is_bool(result_dtype(c))) return c.tape.band(c.operands[0], c.operands[1]);
  return narrow(c, c.tape.mul(operand(c, 0), operand(c, 1)));
}
Ref divide_body(const BodyContext& c) {
  return narrow(c, c.tape.div(operand(c, 0), operand(c, 1)));
}

// True where the remainder of the truncating division has to move by one divisor.
Ref signs_differ(Tape& t, Ref mod, Ref b) {
  Ref zero = t.integer(t.type(b), 0);
  return t.bxor(t.lt(b, zero), t.lt(mod, zero));
}

Ref floor_divide_body(const BodyContext& c) {
  Tape& t = c.tape;
  Ref a = operand(c, 0), b = operand(c, 1);
  DType T = t.type(a);
  if (!is_float(T)) {
    Ref q = t.div(a, b);
    if (!is_signed(T)) return q;
    Ref r = t.rem(a, b);
    Ref down = t.band(t.ne(r, t.integer(T, 0)), signs_differ(t, r, b));
    return t.select(down, t.sub(q, t.integer(T, 1)), q);
  }
  // npy_divmod: from the exact remainder, then snapped to the nearest integer.
  Ref zero = t.number(T, 0), one = t.number(T, 1);
  Ref mod = t.rem(a, b), quotient = t.div(a, b);
  Ref div = t.div(t.sub(a, mod), b);
  Ref down = t.band(t.ne(mod, zero), signs_differ(t, mod, b));
  div = t.select(down, t.sub(div, one), div);
  Ref floor = t.unary(Prim::kFloor, div);
  Ref up = t.lt(t.number(T, 0.5), t.sub(div, floor));
  Ref snapped = t.select(up, t.add(floor, one), floor);
  Ref r = t.select(t.ne(div, zero), snapped, t.binary(Prim::kCopySign, zero, quotient));
  return narrow(c, t.select(t.eq(b, zero), quotient, r));
}

Ref remainder_body(const BodyContext& c) {
  Tape& t = c.tape;
  Ref a = operand(c, 0), b = operand(c, 1);
  DType T = t.type(a);
  Ref r = t.rem(a, b);
  if (!is_float(T) && !is_signed(T)) return r;
  Ref zero = t.integer(T, 0);
  Ref moved = t.select(signs_differ(t, r, b), t.add(r, b), r);
  if (!is_float(T)) return t.select(t.ne(r, zero), moved, r);
  // With b == 0 (and wherever fmod gives NaN) r is NaN and stays so.
  return narrow(c, t.select(t.eq(r, zero), t.binary(Prim::kCopySign, zero, b), moved));
}

Ref fmod_body(const BodyContext& c) { return narrow(c, c.tape.rem(operand(c, 0), operand(c, 1))); }

Ref multiply_up(Tape& t, Ref base, uint64_t exponent) {
  Ref r;
  while (exponent) {
    if (exponent & 1) r = r.valid() ? t.mul(r, base) : base;
    exponent >>= 1;
    if (exponent) base = t.mul(base, base);
  }
  return r;
}

Ref int_power(Tape& t, Ref base, Ref exponent) {
  DType T = t.type(base);
  if (t.at(exponent).prim == Prim::kConst) {
    uint64_t e = static_cast<uint64_t>(int_value(T, t.at(exponent).imm));
    return e == 0 ? t.integer(T, 1) : multiply_up(t, base, e);
  }
  // Branch-free: one square and one multiply a bit of the exponent.
  int bits = size_of(T) * 8 - (is_signed(T) ? 1 : 0);
  Ref r = t.integer(T, 1);
  for (int k = 0; k < bits; ++k) {
    Ref bit = t.band(exponent, t.integer(T, static_cast<int64_t>(uint64_t{1} << k)));
    r = t.select(t.ne(bit, t.integer(T, 0)), t.mul(r, base), r);
    if (k + 1 < bits) base = t.mul(base, base);
  }
  return r;
}

Ref power_body(const BodyContext& c) {
  Tape& t = c.tape;
  Ref a = operand(c, 0), b = operand(c, 1);
  if (!is_float(t.type(a))) return int_power(t, a, b);
  // A small constant integer power of an f32 in f64: rounded once, so no worse than pow.
  if (t.type(a) == DType::kF32 && t.at(b).prim == Prim::kConst) {
    double e = float_value(DType::kF32, t.at(b).imm);
    double n = e < 0 ? -e : e;
    if (n >= 1 && n <= 8 && n == static_cast<int>(n)) {
      Ref r = multiply_up(t, t.cast(DType::kF64, a), static_cast<uint64_t>(n));
      if (e < 0) r = t.div(t.number(DType::kF64, 1), r);
      return narrow(c, t.cast(DType::kF32, r));
    }
  }
  return narrow(c, t.math(MathFn::pow, a, b));
}

// The exponent is one number for all elements, known at run time: NumPy then takes exact short cuts.
Ref power_scalar_body(const BodyContext& c) {
  Tape& t = c.tape;
  Ref a = operand(c, 0), b = operand(c, 1);
  DType T = t.type(a);
  Ref r = t.math(MathFn::pow, a, b);
  r = t.select(t.eq(b, t.number(T, 2)), t.mul(a, a), r);
  r = t.select(t.eq(b, t.number(T, 0.5)), t.unary(Prim::kSqrt, a), r);
  return narrow(c, t.select(t.eq(b, t.number(T, -1)), t.div(t.number(T, 1), a), r));
}

Ref negative_body(const BodyContext& c) { return c.tape.neg(c.operands[0]); }
Ref positive_body(const BodyContext& c) { return c.operands[0]; }
Ref absolute_body(const BodyContext& c) {
  DType T = c.tape.type(c.operands[0]);
  return is_bool(T) || is_unsigned(T) ? c.operands[0] : c.tape.abs(c.operands[0]);
}
Ref sign_body(const BodyContext& c) {
  Tape& t = c.tape;
  Ref a = operand(c, 0);
  DType T = t.type(a);
  Ref zero = t.integer(T, 0), one = t.integer(T, 1);
  Ref rest = is_float(T) ? t.select(t.eq(a, zero), zero, a) : zero;
  if (!is_unsigned(T)) rest = t.select(t.lt(a, zero), t.integer(T, -1), rest);
  return narrow(c, t.select(t.lt(zero, a), one, rest));
}
Ref reciprocal_body(const BodyContext& c) {
  Tape& t = c.tape;
  Ref a = operand(c, 0);
  DType T = is_float(t.type(a)) ? t.type(a) : DType::kF64;
  return narrow(c, t.div(t.number(T, 1), t.cast(T, a)));
}
Ref square_body(const BodyContext& c) {
  return narrow(c, c.tape.mul(operand(c, 0), operand(c, 0)));
}
Ref sqrt_body(const BodyContext& c) { return narrow(c, c.tape.unary(Prim::kSqrt, operand(c, 0))); }

// ---- Build functions ---------------------------------------------------------------------------------
Result<ArgValue> build_divmod(Builder& b, const DialectRow& row, Args args) {
  ArgList out;
  for (std::string_view op : {"floor_divide", "remainder"}) {
    Result<ArgValue> r = row.name == "builtins.divmod" && all_python_numbers(args)
                             ? python_operator(b, op, args)
                             : call_ufunc(b, op, args.first(2));
    CUVIL_TRY(ArgValue v, std::move(r));
    out.push_back(std::move(v));
  }
  return ArgValue::list(std::move(out));
}

Result<ArgValue> build_power(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(auto dtype, read_ufunc_options(b, row, args.subspan(2)));
  CUVIL_TRY(Operand base, classify(b, args[0]));
  CUVIL_TRY(Operand exponent, classify(b, args[1]));
  if (row.name == "numpy.float_power") dtype = DType::kF64;
  const Operand both[] = {base, exponent};
  CUVIL_TRY(Loop loop, resolve_loop(b, *find_op("power"), "power", both, dtype));
  const DType T = loop.input;
  CUVIL_TRY(ir::ValueId x, materialise(b, base, T));
  CUVIL_TRY(ir::ValueId e, materialise(b, exponent, T));
  const ir::Shape shapes[] = {b.type(x).shape, b.type(e).shape};
  CUVIL_TRY(ir::Shape shape, b.broadcast_shapes(shapes));

  const bool rank0 = b.type(e).rank() == 0;
  const ir::Op* def = b.g.def(e);
  if (rank0 && def && def->desc->name == "constant") {
    auto bits = static_cast<uint64_t>(def->integer(attr::kBits));
    const double v = is_float(T) ? float_value(T, bits) : static_cast<double>(int_value(T, bits));
    bool empty = false;
    for (ir::Dim d : shape) empty |= b.g.dims.is_constant(d, 0);
    if (is_signed(T) && v < 0 && !empty)
      return b.error(ErrorClass::kValueError,
                     "Integers to negative integer powers are not allowed.",
                     "convert the base to a float type first");
    if (v == 0) return scalar_if_rank0(b, emit_full(b, b.constant_int(T, 1), shape));
    std::string_view op = v == 1         ? "positive"
                          : v == 2       ? "square"
                          : !is_float(T) ? ""
                          : v == 0.5     ? "sqrt"
                          : v == -1      ? "reciprocal"
                                         : "";
    if (!op.empty()) {
      CUVIL_TRY(ir::ValueId r, emit_pointwise(b, op, {b.broadcast_to(x, shape)}, T));
      return scalar_if_rank0(b, r);
    }
  } else if (is_signed(T)) {
    e = b.broadcast_to(e, shape);  // an exponent that meets no base raises nothing
    ir::ValueId zero = b.broadcast_to(b.constant_int(T, 0), shape);
    ir::ValueId negative = b.emit("less", {e, zero}, {DType::kBool, shape});
    e = raise_if(b, e, negative, ErrorClass::kValueError,
                 "Integers to negative integer powers are not allowed.",
                 "convert the base to a float type first");
  }
  const bool scalar = is_float(T) && rank0 && !(def && def->desc->name == "constant");
  CUVIL_TRY(ir::ValueId r, emit_pointwise(b, scalar ? "power_scalar" : "power", {x, e}, T));
  return scalar_if_rank0(b, r);
}

// abs(x) and x.conj() of numbers and arrays.
Result<ArgValue> build_unary_operator(Builder& b, const DialectRow& row, Args args) {
  return build_operator(b, row, args.first(1));
}

Result<ArgValue> build_pow_builtin(Builder& b, const DialectRow& row, Args args) {
  if (!args[2].missing_or_none())
    return b.error(ErrorClass::kUnsupported, "pow() with three arguments", "use (a ** b) % m");
  return build_operator(b, row, args.first(2));
}

constexpr std::string_view kNumbers = "bBhHiIlLefd", kNotBool = "-bBhHiIlLefd",
                           kAll = "?bBhHiIlLefd", kFloats = "efd";

constexpr OpInfo kOps[] = {
    pointwise("add", 2, add_body, kAll, "=", "a + b; bool: or", true),
    pointwise("subtract", 2, subtract_body, kNotBool, "=", "a - b", true),
    pointwise("multiply", 2, multiply_body, kAll, "=", "a * b; bool: and", true),
    pointwise("divide", 2, divide_body, "!efd", "=", "a / b, in floats", true),
    pointwise("floor_divide", 2, floor_divide_body, kNumbers, "=",
              "floor(a / b); ints: 0 where b is 0"),
    pointwise("remainder", 2, remainder_body, kNumbers, "=", "a - floor(a / b) * b: the sign of b"),
    pointwise("fmod", 2, fmod_body, kNumbers, "=", "a - trunc(a / b) * b: the sign of a"),
    pointwise("power", 2, power_body, kNumbers, "=", "a to the power b; ints wrap"),
    pointwise("power_scalar", 2, power_scalar_body, kFloats, "=", "a to one run-time power b"),
    pointwise("negative", 1, negative_body, kNotBool, "=", "-a", true),
    pointwise("positive", 1, positive_body, kNotBool, "=", "a", true),
    pointwise("absolute", 1, absolute_body, kAll, "=", "|a|; the least int stays", true),
    pointwise("fabs", 1, absolute_body, kFloats, "=", "|a|, in floats", true),
    pointwise("sign", 1, sign_body, kNotBool, "=", "-1, 0 or 1; NaN stays", true),
    pointwise("reciprocal", 1, reciprocal_body, kNumbers, "=", "1 / a; ints: truncated", true),
    pointwise("square", 1, square_body, kNumbers, "=", "a * a", true),
    pointwise("sqrt", 1, sqrt_body, kFloats, "=", "square root, correctly rounded"),
};

constexpr DialectRow kRows[] = {
    {"numpy.add", kBinaryParams, build_ufunc, "add"},
    {"numpy.subtract", kBinaryParams, build_ufunc, "subtract"},
    {"numpy.multiply", kBinaryParams, build_ufunc, "multiply"},
    {"numpy.divide", kBinaryParams, build_ufunc, "divide"},
    {"numpy.true_divide", kBinaryParams, build_ufunc, "divide"},
    {"numpy.floor_divide", kBinaryParams, build_ufunc, "floor_divide"},
    {"numpy.remainder", kBinaryParams, build_ufunc, "remainder"},
    {"numpy.mod", kBinaryParams, build_ufunc, "remainder"},
    {"numpy.fmod", kBinaryParams, build_ufunc, "fmod"},
    {"numpy.divmod", "x1, x2, /", build_divmod},
    {"numpy.power", kBinaryParams, build_power, "power"},
    {"numpy.pow", kBinaryParams, build_power, "power"},
    {"numpy.float_power", kBinaryParams, build_power, "power"},
    {"numpy.negative", kUnaryParams, build_ufunc, "negative"},
    {"numpy.positive", kUnaryParams, build_ufunc, "positive"},
    {"numpy.absolute", kUnaryParams, build_ufunc, "absolute"},
    {"numpy.abs", kUnaryParams, build_ufunc, "absolute"},
    {"numpy.fabs", kUnaryParams, build_ufunc, "fabs"},
    {"numpy.sign", kUnaryParams, build_ufunc, "sign"},
    {"numpy.reciprocal", kUnaryParams, build_ufunc, "reciprocal"},
    {"numpy.square", kUnaryParams, build_ufunc, "square"},
    {"numpy.sqrt", kUnaryParams, build_ufunc, "sqrt"},
    {"operator.add", "a, b, /", build_operator, "add"},
    {"operator.sub", "a, b, /", build_operator, "subtract"},
    {"operator.mul", "a, b, /", build_operator, "multiply"},
    {"operator.truediv", "a, b, /", build_operator, "divide"},
    {"operator.floordiv", "a, b, /", build_operator, "floor_divide"},
    {"operator.mod", "a, b, /", build_operator, "remainder"},
    {"operator.pow", "a, b, /", build_operator, "power"},
    {"operator.neg", "a, /", build_unary_operator, "negative"},
    {"operator.pos", "a, /", build_unary_operator, "positive"},
    {"operator.abs", "a, /", build_unary_operator, "absolute"},
    {"builtins.abs", "x, /", build_unary_operator, "absolute"},
    {"builtins.divmod", "x, y, /", build_divmod},
    {"builtins.pow", "base, exp, mod=None", build_pow_builtin, "power"},
};

}  // namespace

FamilyTable arith_table() { return {kOps, kRows}; }

}  // namespace cuvil::ops
