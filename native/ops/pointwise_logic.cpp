// Logic, classification of floats, and bit operations. Rows of numpy.* and operator.*.
#include <cmath>

#include "ops/python_numbers.h"

namespace cuvil::ops {
namespace {

Ref and_body(const BodyContext& c) { return c.tape.band(c.operands[0], c.operands[1]); }
Ref or_body(const BodyContext& c) { return c.tape.bor(c.operands[0], c.operands[1]); }
Ref xor_body(const BodyContext& c) { return c.tape.bxor(c.operands[0], c.operands[1]); }
Ref not_body(const BodyContext& c) { return c.tape.bnot(c.operands[0]); }
Ref left_shift_body(const BodyContext& c) {
  return c.tape.binary(Prim::kShl, c.operands[0], c.operands[1]);
}
Ref right_shift_body(const BodyContext& c) {
  return c.tape.binary(Prim::kShr, c.operands[0], c.operands[1]);
}

Ref isnan_body(const BodyContext& c) {
  Tape& t = c.tape;
  Ref a = widen(t, c.operands[0]);
  return is_float(t.type(a)) ? t.is_nan(a) : t.boolean(false);
}
Ref isinf_body(const BodyContext& c) {
  Tape& t = c.tape;
  Ref a = widen(t, c.operands[0]);
  if (!is_float(t.type(a))) return t.boolean(false);
  return t.eq(t.abs(a), t.number(t.type(a), INFINITY));
}
Ref isfinite_body(const BodyContext& c) {
  Tape& t = c.tape;
  Ref a = widen(t, c.operands[0]);
  if (!is_float(t.type(a))) return t.boolean(true);
  return t.lt(t.abs(a), t.number(t.type(a), INFINITY));
}
Ref signed_infinity(const BodyContext& c, double infinity) {
  Tape& t = c.tape;
  Ref a = widen(t, c.operands[0]);
  return is_float(t.type(a)) ? t.eq(a, t.number(t.type(a), infinity)) : t.boolean(false);
}
Ref isposinf_body(const BodyContext& c) { return signed_infinity(c, INFINITY); }
Ref isneginf_body(const BodyContext& c) { return signed_infinity(c, -INFINITY); }
Ref signbit_body(const BodyContext& c) {
  Tape& t = c.tape;
  Ref a = c.operands[0];
  static constexpr DType kInts[] = {DType::kI8, DType::kI16, DType::kI32, DType::kI32, DType::kI64};
  DType I = kInts[size_of(t.type(a)) / 2];
  return t.lt(t.bitcast(I, a), t.integer(I, 0));
}

// logical_*: every operand is first a bool.
Result<ArgValue> build_logical(Builder& b, const DialectRow& row, Args args) {
  const auto arity = static_cast<size_t>(find_op(row.op)->arity);
  CUVIL_TRY(auto dtype, read_ufunc_options(b, row, args.subspan(arity)));
  if (dtype && !is_bool(*dtype))
    return b.error(ErrorClass::kTypeError,
                   "No loop matching the specified signature and casting was found for ufunc " +
                       std::string(row.op),
                   "leave dtype= out and convert the result with .astype()");
  std::vector<ir::ValueId> values;
  for (const ArgValue& a : args.first(arity)) {
    CUVIL_TRY(Operand o, classify(b, a));
    CUVIL_TRY(ir::ValueId v, materialise(b, o, o.dtype));
    values.push_back(b.cast(v, DType::kBool));
  }
  CUVIL_TRY(ir::ValueId r, emit_pointwise(b, row.op, std::move(values), DType::kBool));
  return scalar_if_rank0(b, r);
}

// np.isposinf(x, out=None), np.isneginf
Result<ArgValue> build_signed_infinity(Builder& b, const DialectRow& row, Args args) {
  CUVIL_CHECK(refuse_out(b, args[1], row.name));
  return call_ufunc(b, row.op, args.first(1));
}

Result<ArgValue> build_invert(Builder& b, const DialectRow& row, Args args) {
  return build_operator(b, row, args.first(1));
}

constexpr std::string_view kAll = "?bBhHiIlLefd", kBits = "?bBhHiIlL", kInts = "bBhHiIlL";
constexpr OpInfo kOps[] = {
    pointwise("logical_and", 2, and_body, "?", "?", "a and b, of bools", true),
    pointwise("logical_or", 2, or_body, "?", "?", "a or b, of bools", true),
    pointwise("logical_xor", 2, xor_body, "?", "?", "a differs from b, of bools", true),
    pointwise("logical_not", 1, not_body, "?", "?", "not a, of a bool", true),
    pointwise("isnan", 1, isnan_body, kAll, "?", "is it NaN; ints: false", true),
    pointwise("isinf", 1, isinf_body, kAll, "?", "is it infinite; ints: false", true),
    pointwise("isfinite", 1, isfinite_body, kAll, "?", "is it neither NaN nor infinite", true),
    pointwise("isposinf", 1, isposinf_body, kAll, "?", "is it +infinity", true),
    pointwise("isneginf", 1, isneginf_body, kAll, "?", "is it -infinity", true),
    pointwise("signbit", 1, signbit_body, "efd", "?", "is the sign bit set (-0.0: true)", true),
    pointwise("bitwise_and", 2, and_body, kBits, "=", "a & b", true),
    pointwise("bitwise_or", 2, or_body, kBits, "=", "a | b", true),
    pointwise("bitwise_xor", 2, xor_body, kBits, "=", "a ^ b", true),
    pointwise("invert", 1, not_body, kBits, "=", "~a; bool: not", true),
    pointwise("left_shift", 2, left_shift_body, kInts, "=", "a << b; 0 from the width on", true),
    pointwise("right_shift", 2, right_shift_body, kInts, "=", "a >> b; 0 or -1 from the width on",
              true),
};

constexpr DialectRow kRows[] = {
    {"numpy.logical_and", kBinaryParams, build_logical, "logical_and"},
    {"numpy.logical_or", kBinaryParams, build_logical, "logical_or"},
    {"numpy.logical_xor", kBinaryParams, build_logical, "logical_xor"},
    {"numpy.logical_not", kUnaryParams, build_logical, "logical_not"},
    {"numpy.isnan", kUnaryParams, build_ufunc, "isnan"},
    {"numpy.isinf", kUnaryParams, build_ufunc, "isinf"},
    {"numpy.isfinite", kUnaryParams, build_ufunc, "isfinite"},
    {"numpy.isposinf", "x, out=None", build_signed_infinity, "isposinf"},
    {"numpy.isneginf", "x, out=None", build_signed_infinity, "isneginf"},
    {"numpy.signbit", kUnaryParams, build_ufunc, "signbit"},
    {"numpy.bitwise_and", kBinaryParams, build_ufunc, "bitwise_and"},
    {"numpy.bitwise_or", kBinaryParams, build_ufunc, "bitwise_or"},
    {"numpy.bitwise_xor", kBinaryParams, build_ufunc, "bitwise_xor"},
    {"numpy.invert", kUnaryParams, build_ufunc, "invert"},
    {"numpy.bitwise_not", kUnaryParams, build_ufunc, "invert"},
    {"numpy.bitwise_invert", kUnaryParams, build_ufunc, "invert"},
    {"numpy.left_shift", kBinaryParams, build_ufunc, "left_shift"},
    {"numpy.bitwise_left_shift", kBinaryParams, build_ufunc, "left_shift"},
    {"numpy.right_shift", kBinaryParams, build_ufunc, "right_shift"},
    {"numpy.bitwise_right_shift", kBinaryParams, build_ufunc, "right_shift"},
    {"operator.and_", "a, b, /", build_operator, "bitwise_and"},
    {"operator.or_", "a, b, /", build_operator, "bitwise_or"},
    {"operator.xor", "a, b, /", build_operator, "bitwise_xor"},
    {"operator.invert", "a, /", build_invert, "invert"},
    {"operator.lshift", "a, b, /", build_operator, "left_shift"},
    {"operator.rshift", "a, b, /", build_operator, "right_shift"},
};

}  // namespace

FamilyTable logic_table() { return {kOps, kRows}; }

}  // namespace cuvil::ops
