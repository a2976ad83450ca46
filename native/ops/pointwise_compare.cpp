// Comparisons: exact between any two types. Rows of numpy.* and operator.*.
#include <cmath>
#include <limits>

#include "ops/interpret.h"
#include "ops/python_numbers.h"

namespace cuvil::ops {
namespace {

enum class Order : uint8_t { kLess, kLessEqual, kEqual };

// a < b, a <= b or a == b. Operands share a type, or one is i64 and the other u64.
Ref compare(const BodyContext& c, Ref a, Ref b, Order order) {
  Tape& t = c.tape;
  const DType A = t.type(a), B = t.type(b);
  if (A != B && is_int(A) && is_int(B)) {
    // The signed one, if negative, is less than everything unsigned.
    const bool left = is_signed(A);
    Ref s = left ? a : b;
    Ref negative = t.lt(s, t.integer(t.type(s), 0));
    Ref x = left ? t.cast(B, a) : a, y = left ? b : t.cast(A, b);
    if (order == Order::kEqual) return t.band(t.bnot(negative), t.eq(x, y));
    Ref same_sign = order == Order::kLess ? t.lt(x, y) : t.le(x, y);
    return left ? t.bor(negative, same_sign) : t.band(t.bnot(negative), same_sign);
  }
  if (is_bool(A)) {
    if (order == Order::kEqual) return t.bnot(t.bxor(a, b));
    return order == Order::kLess ? t.band(t.bnot(a), b) : t.bor(t.bnot(a), b);
  }
  a = widen(t, a);
  b = widen(t, b);
  switch (order) {
    case Order::kLess: return t.lt(a, b);
    case Order::kLessEqual: return t.le(a, b);
    case Order::kEqual: return t.eq(a, b);
  }
  return {};
}

Ref less_body(const BodyContext& c) {
  return compare(c, c.operands[0], c.operands[1], Order::kLess);
}
Ref less_equal_body(const BodyContext& c) {
  return compare(c, c.operands[0], c.operands[1], Order::kLessEqual);
}
Ref greater_body(const BodyContext& c) {
  return compare(c, c.operands[1], c.operands[0], Order::kLess);
}
Ref greater_equal_body(const BodyContext& c) {
  return compare(c, c.operands[1], c.operands[0], Order::kLessEqual);
}
Ref equal_body(const BodyContext& c) {
  return compare(c, c.operands[0], c.operands[1], Order::kEqual);
}
Ref not_equal_body(const BodyContext& c) {
  Tape& t = c.tape;
  Ref a = widen(t, c.operands[0]), b = widen(t, c.operands[1]);
  if (is_float(t.type(a))) return t.ne(a, b);  // NaN differs from everything
  return t.bnot(compare(c, a, b, Order::kEqual));
}

// Whether a Python int fits an int type.
bool fits(DType t, int64_t v) {
  return int_value(t, cast_bits(t, DType::kI64, static_cast<uint64_t>(v))) == v &&
         !(t == DType::kU64 && v < 0);
}

Result<ArgValue> build_compare(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(auto dtype, read_ufunc_options(b, row, args.subspan(2)));
  if (dtype && !is_bool(*dtype))
    return b.error(ErrorClass::kTypeError,
                   "No loop matching the specified signature and casting was found for ufunc " +
                       std::string(row.op),
                   "leave dtype= out and convert the result with .astype()");
  CUVIL_TRY(Operand x, classify(b, args[0]));
  CUVIL_TRY(Operand y, classify(b, args[1]));
  const Operand both[] = {x, y};
  DType tx = result_type(both), ty = tx;
  auto is_integral = [](const Operand& o) { return is_int(o.dtype); };
  // Beyond every int of the other's type, an int compares as an infinity does.
  auto beyond = [](Operand& o, const Operand& other) {
    if (!o.big || other.weak == Weak::kInt || !is_int(other.dtype)) return false;
    if (o.big->u64 && other.dtype == DType::kU64) return false;
    o.real = std::copysign(std::numeric_limits<double>::infinity(), o.big->real);
    return true;
  };
  if (beyond(x, y) || beyond(y, x)) {
    tx = ty = DType::kF64;
  } else if (is_integral(x) && is_integral(y)) {
    // A Python int that the other's type cannot hold is compared as the number it is.
    auto wide = [](const Operand& o, const Operand& other) {
      if (o.weak != Weak::kInt || other.weak == Weak::kInt) return false;
      if (o.big) return false;
      return o.dim ? other.dtype != DType::kI64 : !fits(other.dtype, *o.integer);
    };
    const bool unsigned_pair = x.dtype == DType::kU64 || y.dtype == DType::kU64;
    const bool mixed = is_signed(x.dtype) != is_signed(y.dtype) && tx == DType::kF64;
    if (wide(x, y) || wide(y, x) || mixed) {
      auto side = [&](const Operand& o) {
        return unsigned_pair && o.dtype == DType::kU64 ? DType::kU64 : DType::kI64;
      };
      tx = side(x);
      ty = side(y);
    }
  }
  CUVIL_TRY(ir::ValueId vx, materialise(b, x, tx));
  CUVIL_TRY(ir::ValueId vy, materialise(b, y, ty));
  CUVIL_TRY(ir::ValueId r, emit_pointwise(b, row.op, {vx, vy}, DType::kBool));
  return scalar_if_rank0(b, r);
}

constexpr std::string_view kAll = "?bBhHiIlLefd";
constexpr OpInfo kOps[] = {
    pointwise("less", 2, less_body, kAll, "?", "a < b; false with NaN", true),
    pointwise("less_equal", 2, less_equal_body, kAll, "?", "a <= b; false with NaN", true),
    pointwise("greater", 2, greater_body, kAll, "?", "a > b; false with NaN", true),
    pointwise("greater_equal", 2, greater_equal_body, kAll, "?", "a >= b; false with NaN", true),
    pointwise("equal", 2, equal_body, kAll, "?", "a == b; false with NaN", true),
    pointwise("not_equal", 2, not_equal_body, kAll, "?", "a != b; true with NaN", true),
};

constexpr DialectRow kRows[] = {
    {"numpy.less", kBinaryParams, build_compare, "less"},
    {"numpy.less_equal", kBinaryParams, build_compare, "less_equal"},
    {"numpy.greater", kBinaryParams, build_compare, "greater"},
    {"numpy.greater_equal", kBinaryParams, build_compare, "greater_equal"},
    {"numpy.equal", kBinaryParams, build_compare, "equal"},
    {"numpy.not_equal", kBinaryParams, build_compare, "not_equal"},
    {"operator.lt", "a, b, /", build_operator, "less"},
    {"operator.le", "a, b, /", build_operator, "less_equal"},
    {"operator.gt", "a, b, /", build_operator, "greater"},
    {"operator.ge", "a, b, /", build_operator, "greater_equal"},
    {"operator.eq", "a, b, /", build_operator, "equal"},
    {"operator.ne", "a, b, /", build_operator, "not_equal"},
};

}  // namespace

FamilyTable compare_table() { return {kOps, kRows}; }

}  // namespace cuvil::ops
