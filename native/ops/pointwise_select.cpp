// Choosing between values: maximum to clip, where, sign copying, NaN replacement; cast and raise_if.
#include <cmath>
#include <limits>

#include "ops/layout.h"
#include "ops/python_numbers.h"
#include "ops/structural.h"

namespace cuvil::ops {
namespace {

Ref operand(const BodyContext& c, size_t k) { return widen(c.tape, c.operands[k]); }
Ref narrow(const BodyContext& c, Ref r) { return c.tape.cast(result_dtype(c), r); }

// The larger (or smaller) of two. Between zeros of either sign f32 and f64 give the second, as NumPy's
// vector loops do, f16 the first, as its scalar loop does.
Ref extreme(const BodyContext& c, bool maximum, bool skip_nan) {
  Tape& t = c.tape;
  Ref a = c.operands[0], b = c.operands[1];
  const DType T = t.type(a);
  if (is_bool(T)) return maximum ? t.bor(a, b) : t.band(a, b);
  if (is_int(T)) return maximum ? t.select(t.lt(a, b), b, a) : t.select(t.lt(b, a), b, a);
  Ref x = operand(c, 0), y = operand(c, 1);
  const bool first_wins = size_of(T) == 2;
  Ref lo = maximum ? y : x, hi = maximum ? x : y;  // a is taken where lo < hi (or <=)
  Ref take = first_wins ? t.le(lo, hi) : t.lt(lo, hi);
  Ref nan = t.is_nan(skip_nan ? y : x);
  Ref r = t.select(t.bor(take, nan), a, b);
  return r;
}
Ref maximum_body(const BodyContext& c) { return extreme(c, true, false); }
Ref minimum_body(const BodyContext& c) { return extreme(c, false, false); }
Ref fmax_body(const BodyContext& c) { return extreme(c, true, true); }
Ref fmin_body(const BodyContext& c) { return extreme(c, false, true); }

// min(max(x, lo), hi); any NaN gives NaN; a zero stays as it is.
Ref clip_body(const BodyContext& c) {
  Tape& t = c.tape;
  Ref x = c.operands[0], lo = c.operands[1], hi = c.operands[2];
  const DType T = t.type(x);
  if (is_bool(T)) return t.band(t.bor(x, lo), hi);
  auto less = [&](Ref a, Ref b) { return t.lt(widen(t, a), widen(t, b)); };
  Ref r = t.select(less(x, lo), lo, x);
  r = t.select(less(hi, r), hi, r);
  if (!is_float(T)) return r;
  r = t.select(t.is_nan(widen(t, lo)), lo, t.select(t.is_nan(widen(t, hi)), hi, r));
  return t.select(t.is_nan(widen(t, x)), x, r);
}

Ref where_body(const BodyContext& c) {
  return c.tape.select(c.operands[0], c.operands[1], c.operands[2]);
}
Ref copysign_body(const BodyContext& c) {
  return c.tape.binary(Prim::kCopySign, c.operands[0], c.operands[1]);
}
Ref heaviside_body(const BodyContext& c) {
  Tape& t = c.tape;
  Ref a = operand(c, 0), h = operand(c, 1);
  DType T = t.type(a);
  Ref zero = t.number(T, 0);
  Ref r = t.select(t.lt(a, zero), zero, t.select(t.eq(a, zero), h, t.number(T, 1)));
  return narrow(c, t.select(t.is_nan(a), a, r));
}

// One step of the bit pattern, which orders floats of a sign.
Ref nextafter_body(const BodyContext& c) {
  Tape& t = c.tape;
  Ref a = c.operands[0], b = c.operands[1];
  const DType T = t.type(a);
  const DType I = size_of(T) == 8 ? DType::kI64 : size_of(T) == 4 ? DType::kI32 : DType::kI16;
  Ref x = operand(c, 0), y = operand(c, 1);
  DType W = t.type(x);
  Ref zero = t.number(W, 0);
  Ref bits = t.bitcast(I, a);
  Ref away = t.bnot(t.bxor(t.lt(x, y), t.lt(zero, x)));  // |a| grows
  Ref step = t.select(away, t.add(bits, t.integer(I, 1)), t.sub(bits, t.integer(I, 1)));
  Ref least = t.binary(Prim::kCopySign, t.bitcast(T, t.integer(I, 1)), b);
  Ref r = t.select(t.eq(x, zero), least, t.bitcast(T, step));
  r = t.select(t.eq(x, y), b, r);  // zeros differ in sign; NumPy's f16 gave a before 2.5
  return t.select(t.bor(t.is_nan(x), t.is_nan(y)), t.cast(T, t.add(x, y)), r);
}

// From a to the float next to it: away from 0, in NumPy's f16 upwards.
Ref spacing_body(const BodyContext& c) {
  Tape& t = c.tape;
  Ref a = c.operands[0], x = operand(c, 0);
  const DType T = t.type(a);
  const DType I = size_of(T) == 8 ? DType::kI64 : size_of(T) == 4 ? DType::kI32 : DType::kI16;
  const DType W = t.type(x);
  Ref zero = t.number(W, 0), one = t.integer(I, 1), bits = t.bitcast(I, a);
  Ref next = t.add(bits, one);
  if (size_of(T) == 2) next = t.select(t.lt(x, zero), t.sub(bits, one), next);
  next = t.bitcast(T, t.select(t.eq(x, zero), one, next));
  Ref r = t.sub(widen(t, next), x);
  Ref infinite = t.eq(t.abs(x), t.number(W, INFINITY));
  return narrow(c, t.select(infinite, t.number(W, NAN), r));
}

Ref nan_to_num_body(const BodyContext& c) {
  Tape& t = c.tape;
  Ref a = c.operands[0], x = operand(c, 0);
  DType W = t.type(x);
  Ref r = t.select(t.is_nan(x), c.operands[1], a);
  r = t.select(t.eq(x, t.number(W, INFINITY)), c.operands[2], r);
  return t.select(t.eq(x, t.number(W, -INFINITY)), c.operands[3], r);
}

Ref cast_body(const BodyContext& c) { return c.tape.cast(result_dtype(c), c.operands[0]); }
Ref raise_if_body(const BodyContext& c) {
  c.tape.check(c.operands[1], c.site);
  return c.operands[0];
}

// ---- Build functions ------------------------------------------------------------------------------------
// np.where(condition, x, y): a 0-d array where nothing has axes; Python ints wrap into the result type.
Result<ArgValue> build_where(Builder& b, const DialectRow&, Args args) {
  if (args[1].is<ArgValue::Missing>() || args[2].is<ArgValue::Missing>())
    return b.error(ErrorClass::kUnsupported,
                   "np.where with one argument: the shape of its result depends on the values",
                   "use np.where(condition, x, y)");
  CUVIL_TRY(TensorArg condition, as_tensor(b, args[0]));
  CUVIL_TRY(Operand x, classify(b, args[1]));
  CUVIL_TRY(Operand y, classify(b, args[2]));
  CUVIL_CHECK(require_real(b, b.type(condition.value).dtype));
  const Operand both[] = {x, y};
  const DType T = result_type(both);
  CUVIL_TRY(ir::ValueId vx, materialise(b, x, T, true));
  CUVIL_TRY(ir::ValueId vy, materialise(b, y, T, true));
  CUVIL_TRY(ir::ValueId r,
            emit_pointwise(b, "where", {b.cast(condition.value, DType::kBool), vx, vy}, T));
  return array(r);
}

// np.clip(a, min, max) and a.clip(min, max): bounds that are None are left out.
Result<ArgValue> build_clip(Builder& b, const DialectRow& row, Args args) {
  ArgValue lo = args[1], hi = args[2];
  CUVIL_CHECK(refuse_out(b, args[3], row.name));
  // numpy.clip also takes the array API's min= and max=.
  for (size_t k = 4; k < args.size(); ++k) {
    ArgValue& bound = k == 4 ? lo : hi;
    if (args[k].is<ArgValue::Missing>()) continue;
    if (!bound.is<ArgValue::Missing>())
      return b.error(
          ErrorClass::kValueError,
          "Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided "
          "is forbidden.");
    bound = args[k];
  }
  ArgValue x = args[0];
  if (!x.is<TensorArg>()) {
    CUVIL_TRY(TensorArg t, as_tensor(b, x));
    x = t;
  }
  const DType T = b.type(x.get<TensorArg>()->value).dtype;
  if (is_int(T)) {
    // A Python int beyond the type's range bounds nothing.
    const int bits = size_of(T) * 8;
    const int64_t least = is_signed(T) ? INT64_MIN >> (64 - bits) : 0;
    const int64_t most = is_signed(T) ? INT64_MAX >> (64 - bits)
                         : bits == 64 ? INT64_MAX
                                      : (int64_t{1} << bits) - 1;
    const auto* l = lo.get<int64_t>();
    const auto* h = hi.get<int64_t>();
    if (l && *l <= least) lo = ArgValue::None{};
    if (h && *h >= most && T != DType::kU64) hi = ArgValue::None{};
    const auto* below = lo.get<BigInt>();
    const auto* above = hi.get<BigInt>();
    if (below && below->real < 0) lo = ArgValue::None{};
    if (above && above->real > 0 && !(T == DType::kU64 && above->u64)) hi = ArgValue::None{};
  }
  if (lo.missing_or_none() && hi.missing_or_none()) {
    const ArgValue one[] = {x};
    return call_ufunc(b, "positive", one);
  }
  if (lo.missing_or_none() || hi.missing_or_none()) {
    const ArgValue two[] = {x, lo.missing_or_none() ? hi : lo};
    return call_ufunc(b, lo.missing_or_none() ? "minimum" : "maximum", two);
  }
  const ArgValue three[] = {x, lo, hi};
  return call_ufunc(b, "clip", three);
}

Result<ArgValue> build_nan_to_num(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(bool copy, bool_or(b, args[1], true, "copy"));
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  const DType T = b.type(x.value).dtype;
  CUVIL_CHECK(require_real(b, T));
  if (!copy)
    return b.error(ErrorClass::kUnsupported, std::string(row.name) + " with copy=False",
                   "assign the result: x[...] = np.nan_to_num(x)");
  const bool rank0 = b.type(x.value).rank() == 0;
  if (!is_float(T)) {
    if (rank0) return ArgValue(TensorArg{x.value, Weak::kNo, true});
    return array(emit_copy(b, x.value, layout_order(b.g, x.value)));
  }
  const double largest = T == DType::kF64   ? std::numeric_limits<double>::max()
                         : T == DType::kF32 ? std::numeric_limits<float>::max()
                                            : 65504.0;
  std::vector<ir::ValueId> values = {x.value};
  const double defaults[] = {0.0, largest, -largest};
  for (size_t k = 0; k < 3; ++k) {
    if (args[2 + k].missing_or_none()) {
      values.push_back(b.constant(T, defaults[k]));
      continue;
    }
    CUVIL_TRY(Operand o, classify(b, args[2 + k]));
    if (!shape_of(b, o).empty())
      return b.error(ErrorClass::kUnsupported,
                     std::string(row.name) + " with an array of replacements",
                     "use np.where(np.isnan(x), replacements, x)");
    CUVIL_TRY(ir::ValueId v, materialise(b, o, T));
    values.push_back(v);
  }
  CUVIL_TRY(ir::ValueId r, emit_pointwise(b, "nan_to_num", std::move(values), T));
  return scalar_if_rank0(b, r);
}

// a.astype(dtype, order, casting, subok, copy)
Result<ArgValue> build_astype(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  const DType from = b.type(x.value).dtype;
  CUVIL_TRY(DType to, dtype_or(b, args[1], DType::kF64));
  CUVIL_CHECK(require_real(b, from));
  const auto* order = args[2].get<std::string>();
  if (!args[2].missing_or_none() && !(order && (*order == "K" || *order == "C")))
    return b.error(ErrorClass::kUnsupported,
                   std::string(row.name) + " with order=", "use order='C' or 'K'");
  const auto* casting = args[3].get<std::string>();
  if (casting && *casting != "unsafe") {
    bool ok = *casting == "safe"        ? can_cast_safely(from, to)
              : *casting == "same_kind" ? can_cast_same_kind(from, to)
                                        : from == to;
    if (!ok)
      return b.error(ErrorClass::kTypeError,
                     "Cannot cast array data from dtype('" + std::string(info(from).numpy_name) +
                         "') to dtype('" + std::string(info(to).numpy_name) +
                         "') according to the rule '" + *casting + "'");
  }
  CUVIL_TRY(bool copy, bool_or(b, args[5], true, "copy"));
  const bool c_order = order && *order == "C";
  if (from != to) {
    ir::ValueId r = b.cast(x.value, to);
    if (c_order) b.g.value(r).order.clear();
    return like(b, x, r);
  }
  bool same = x.scalar || (!copy && !c_order);
  if (!copy && !same) {
    CUVIL_TRY(same, is_contiguous(b, x.value, false));
  }
  if (same) return ArgValue(x);
  return array(
      emit_copy(b, x.value, c_order ? std::vector<uint8_t>{} : layout_order(b.g, x.value)));
}

// a.copy(order='C'), np.copy(a, order='K')
Result<ArgValue> build_copy(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  const auto* order = args[1].get<std::string>();
  std::string o = order ? *order : row.name == "numpy.copy" ? "K" : "C";
  if (o != "C" && o != "K" && o != "F" && o != "A")
    return b.error(ErrorClass::kValueError,
                   "order must be one of 'C', 'F', 'A', or 'K' (got '" + o + "')");
  if (x.scalar && row.name != "numpy.copy") return ArgValue(x);
  std::vector<uint8_t> wanted;
  const size_t rank = b.type(x.value).rank();
  if (o == "K" || o == "A") wanted = layout_order(b.g, x.value);
  if (o == "F" || (o == "A" && !wanted.empty())) {
    std::vector<uint8_t> fortran;
    for (size_t k = rank; k-- > 0;) fortran.push_back(static_cast<uint8_t>(k));
    wanted = o == "F" || wanted == fortran ? fortran : std::vector<uint8_t>{};
    if (rank < 2) wanted.clear();
  }
  return array(emit_copy(b, x.value, std::move(wanted)));
}

// np.conjugate(x) and x.real of real numbers: x itself. A property and a method.
Result<ArgValue> build_identity(Builder& b, const DialectRow&, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  CUVIL_CHECK(require_real(b, b.type(x.value).dtype));
  return ArgValue(x);
}

Result<ArgValue> build_conjugate(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(auto dtype, read_ufunc_options(b, row, args.subspan(1)));
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  if (is_bool(b.type(x.value).dtype)) {
    const ArgValue as_int[] = {TensorArg{b.cast(x.value, DType::kI8)}};
    return call_ufunc(b, "positive", as_int, dtype);
  }
  return call_ufunc(b, "positive", args.first(1), dtype);
}

constexpr std::string_view kAll = "?bBhHiIlLefd";
constexpr OpInfo raising() {
  return pointwise("raise_if", 2, raise_if_body, {}, "=",
                   "a, unless b is true: then the error of the op", false, ir::kMayRaise);
}
constexpr OpInfo kOps[] = {
    pointwise("maximum", 2, maximum_body, kAll, "=", "the larger; NaN if either is", true),
    pointwise("minimum", 2, minimum_body, kAll, "=", "the smaller; NaN if either is", true),
    pointwise("fmax", 2, fmax_body, kAll, "=", "the larger; NaN only if both are", true),
    pointwise("fmin", 2, fmin_body, kAll, "=", "the smaller; NaN only if both are", true),
    pointwise("clip", 3, clip_body, kAll, "=", "a within [b, c]", true),
    pointwise("where", 3, where_body, {}, "=", "b where a is true, else c", true),
    pointwise("copysign", 2, copysign_body, "efd", "=", "a with the sign of b", true),
    pointwise("heaviside", 2, heaviside_body, "efd", "=", "0, b or 1 by the sign of a", true),
    pointwise("nextafter", 2, nextafter_body, "efd", "=", "the float next to a towards b", true),
    pointwise("spacing", 1, spacing_body, "efd", "=", "from a to the float next to it", true),
    pointwise("nan_to_num", 4, nan_to_num_body, {}, "=", "a with NaN, inf and -inf replaced", true),
    pointwise("cast", 1, cast_body, {}, "=", "a in the result's type", true),
    raising(),
};

constexpr DialectRow kRows[] = {
    {"numpy.maximum", kBinaryParams, build_ufunc, "maximum"},
    {"numpy.minimum", kBinaryParams, build_ufunc, "minimum"},
    {"numpy.fmax", kBinaryParams, build_ufunc, "fmax"},
    {"numpy.fmin", kBinaryParams, build_ufunc, "fmin"},
    {"numpy.clip", "a, a_min=None, a_max=None, out=None, *, min=None, max=None", build_clip},
    {"ndarray.clip", "self, min=None, max=None, out=None", build_clip},
    {"numpy.where", "condition, x=None, y=None, /", build_where},
    {"numpy.copysign", kBinaryParams, build_ufunc, "copysign"},
    {"numpy.heaviside", kBinaryParams, build_ufunc, "heaviside"},
    {"numpy.nextafter", kBinaryParams, build_ufunc, "nextafter"},
    {"numpy.spacing", kUnaryParams, build_ufunc, "spacing"},
    {"numpy.nan_to_num", "x, copy=True, nan=0.0, posinf=None, neginf=None", build_nan_to_num},
    {"ndarray.astype", "self, dtype, order='K', casting='unsafe', subok=True, copy=True",
     build_astype},
    {"ndarray.copy", "self, order='C'", build_copy},
    {"numpy.copy", "a, order='K', subok=False", build_copy},
    {"numpy.conjugate", kUnaryParams, build_conjugate},
    {"numpy.conj", kUnaryParams, build_conjugate},
    {"ndarray.conj", "self", build_identity},
    {"ndarray.conjugate", "self", build_identity},
    {"numpy.real", "val", build_identity},
    {"ndarray.real", "self", build_identity, {}, true},
};

}  // namespace

FamilyTable select_table() { return {kOps, kRows}; }

}  // namespace cuvil::ops
