// Reductions: sum to argmax as ops; mean, var, softmax and norm composed of them.
#include <algorithm>
#include <cmath>

#include "ops/layout.h"
#include "ops/movement.h"
#include "ops/python_numbers.h"
#include "ops/structural.h"

namespace cuvil::ops {
namespace {

using Relation = artifact::Predicate::Op;

struct Reduced {
  TensorArg x;
  std::vector<int64_t> axes;
  bool keepdims = false;
};

// Every row begins with (a, axis) and has out, keepdims and perhaps where, initial: looked up by name.
struct Params {
  const DialectRow& row;
  Args args;
  const ArgValue& get(std::string_view name) const {
    static const ArgValue missing;
    std::string_view rest = row.params;
    for (size_t k = 0; !rest.empty();) {
      size_t comma = rest.find(", ");
      std::string_view item = rest.substr(0, comma);
      rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 2);
      if (item == "*" || item == "/") continue;
      if (item.substr(0, item.find('=')) == name) return args[k];
      ++k;
    }
    return missing;
  }
};

Result<Reduced> read(Builder& b, const Params& p) {
  Reduced r;
  CUVIL_CHECK(refuse_out(b, p.get("out"), p.row.name));
  CUVIL_CHECK(refuse_where(b, p.get("where"), p.row.name));
  CUVIL_TRY(r.x, as_tensor(b, p.args[0]));
  CUVIL_CHECK(require_real(b, b.type(r.x.value).dtype));
  CUVIL_TRY(r.axes, normalise_axes(b, p.get("axis"), b.type(r.x.value).rank()));
  CUVIL_TRY(r.keepdims, bool_or(b, p.get("keepdims"), false, "keepdims"));
  return r;
}

ir::ValueId keep(Builder& b, const Reduced& r, ir::ValueId v) {
  return r.keepdims ? emit_expand(b, v, r.axes) : v;
}

ArgValue finish(Builder& b, const Reduced& r, ir::ValueId v) {
  return scalar_if_rank0(b, keep(b, r, v));
}

// `op` over the axes in dtype t; f16 sums and products in f32, rounded once. No axes: a copy.
ir::ValueId reduce(Builder& b, std::string_view op, ir::ValueId v, const std::vector<int64_t>& axes,
                   DType t) {
  v = b.cast(v, t);
  if (axes.empty()) return b.type(v).rank() == 0 ? v : emit_copy(b, v, layout_order(b.g, v));
  const ReduceKind kind = find_op(op)->reduction;
  const bool accumulates = kind == ReduceKind::kSum || kind == ReduceKind::kProd;
  if (t == DType::kF16 && accumulates)
    return b.cast(emit_reduce(b, op, b.cast(v, DType::kF32), axes), t);
  return emit_reduce(b, op, v, axes);
}

ir::Dim count(Builder& b, const Reduced& r) {
  ir::Dim n = b.dim(1);
  for (int64_t a : r.axes) n = b.g.dims.mul(n, b.type(r.x.value).shape[static_cast<size_t>(a)]);
  return n;
}

// v / n as NumPy divides by a count: in f64, back to v's type.
ir::ValueId divide_by(Builder& b, ir::ValueId v, ir::ValueId n_f64) {
  const ir::Type t = b.type(v);
  const ir::Type f64{DType::kF64, t.shape};
  ir::ValueId q = b.emit("divide", {b.cast(v, DType::kF64), b.broadcast_to(n_f64, t.shape)}, f64);
  return b.cast(q, t.dtype);
}

// NumPy's accumulator of sum and prod: ints grow to 64 bits.
DType sum_dtype(DType t) {
  if (is_bool(t) || is_signed(t)) return DType::kI64;
  return is_unsigned(t) ? DType::kU64 : t;
}

// ---- sum, prod ----------------------------------------
Result<ArgValue> build_sum(Builder& b, const DialectRow& row, Args args) {
  Params p{row, args};
  CUVIL_TRY(Reduced r, read(b, p));
  CUVIL_TRY(DType t, dtype_or(b, p.get("dtype"), sum_dtype(b.type(r.x.value).dtype)));
  const bool prod = row.op == "reduce_prod";
  ir::ValueId v = r.x.value;
  if (is_bool(t)) {
    // add of bools is or, multiply is and
    v = reduce(b, prod ? "reduce_all" : "reduce_any", v, r.axes, t);
  } else {
    v = reduce(b, row.op, v, r.axes, t);
  }
  const ArgValue& initial = p.get("initial");
  if (!initial.missing_or_none()) {
    CUVIL_TRY(Operand o, classify(b, initial));
    CUVIL_TRY(ir::ValueId start, materialise(b, o, t));
    CUVIL_TRY(v, emit_pointwise(b, prod ? "multiply" : "add", {v, start}, t));
  }
  return finish(b, r, v);
}

Result<ArgValue> build_nansum(Builder& b, const DialectRow& row, Args args) {
  std::vector<ArgValue> with(args.begin(), args.end());
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  const ir::Type t = b.type(x.value);
  if (is_float(t.dtype)) {
    ir::ValueId nan = b.emit("isnan", {x.value}, {DType::kBool, t.shape});
    ir::ValueId zero =
        b.broadcast_to(b.constant_int(t.dtype, row.op == "reduce_prod" ? 1 : 0), t.shape);
    with[0] = TensorArg{b.emit("where", {nan, zero, x.value}, t)};
  }
  return build_sum(b, row, with);
}

// ---- min, max, ptp, any, all, count_nonzero ----------------------------------------
Result<> refuse_empty(Builder& b, const Reduced& r, std::string message) {
  ir::Shape shape = b.type(r.x.value).shape;
  for (int64_t a : r.axes)
    CUVIL_CHECK(require(b, Relation::kLt, b.dim(0), shape[static_cast<size_t>(a)],
                        ErrorClass::kValueError, message, "", {}));
  return Ok{};
}

Result<ir::ValueId> extreme(Builder& b, const Reduced& r, std::string_view op) {
  const char* ufunc = op == "reduce_max" ? "maximum" : "minimum";
  CUVIL_CHECK(refuse_empty(
      b, r,
      std::string("zero-size array to reduction operation ") + ufunc + " which has no identity"));
  return reduce(b, op, r.x.value, r.axes, b.type(r.x.value).dtype);
}

Result<ArgValue> build_extreme(Builder& b, const DialectRow& row, Args args) {
  Params p{row, args};
  CUVIL_TRY(Reduced r, read(b, p));
  const ArgValue& initial = p.get("initial");
  const DType t = b.type(r.x.value).dtype;
  if (initial.missing_or_none()) {
    CUVIL_TRY(ir::ValueId v, extreme(b, r, row.op));
    return finish(b, r, v);
  }
  for (int64_t a : r.axes)
    CUVIL_CHECK(require(b, Relation::kLt, b.dim(0), b.type(r.x.value).shape[static_cast<size_t>(a)],
                        ErrorClass::kUnsupported, "a reduction of an empty array with initial=",
                        "test for emptiness first", {}));
  ir::ValueId v = reduce(b, row.op, r.x.value, r.axes, t);
  CUVIL_TRY(Operand o, classify(b, initial));
  CUVIL_TRY(ir::ValueId start, materialise(b, o, t));
  CUVIL_TRY(v, emit_pointwise(b, row.op == "reduce_max" ? "maximum" : "minimum", {v, start}, t));
  return finish(b, r, v);
}

Result<ArgValue> build_ptp(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(Reduced r, read(b, {row, args}));
  CUVIL_TRY(ir::ValueId hi, extreme(b, r, "reduce_max"));
  CUVIL_TRY(ir::ValueId lo, extreme(b, r, "reduce_min"));
  const ArgValue both[] = {TensorArg{keep(b, r, hi)}, TensorArg{keep(b, r, lo)}};
  return call_ufunc(b, "subtract", both);
}

Result<ArgValue> build_any_all(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(Reduced r, read(b, {row, args}));
  return finish(b, r, reduce(b, row.op, r.x.value, r.axes, DType::kBool));
}

Result<ArgValue> build_count_nonzero(Builder& b, const DialectRow& row, Args args) {
  Params p{row, args};
  CUVIL_TRY(Reduced r, read(b, p));
  ir::ValueId truth = b.cast(r.x.value, DType::kBool);
  ir::ValueId v = keep(b, r, reduce(b, "reduce_sum", truth, r.axes, DType::kI64));
  // Before NumPy 2.4 the count over all axes was a Python int; here it is a NumPy scalar on every NumPy.
  return scalar_if_rank0(b, v);
}

// ---- argmin, argmax ----------------------------------------
Result<ArgValue> build_arg(Builder& b, const DialectRow& row, Args args) {
  Params p{row, args};
  const ArgValue& axis = p.get("axis");
  if (axis.is<std::shared_ptr<ArgList>>())
    return b.error(ErrorClass::kTypeError, "'tuple' object cannot be interpreted as an integer",
                   "give one axis, or None for all");
  CUVIL_TRY(Reduced r, read(b, p));
  const ir::Shape shape = b.type(r.x.value).shape;
  const char* name = row.op == "argmax" ? "argmax" : "argmin";
  for (int64_t a : r.axes)
    CUVIL_CHECK(require(b, Relation::kLt, b.dim(0), shape[static_cast<size_t>(a)],
                        ErrorClass::kValueError,
                        std::string("attempt to get ") + name + " of an empty sequence", "", {}));
  if (shape.empty()) {
    r.x.value = emit_expand(b, r.x.value, {0});
    r.axes = {0};
    ir::ValueId v = emit_reduce(b, row.op, r.x.value, r.axes);
    return scalar_if_rank0(b, v);
  }
  return finish(b, r, emit_reduce(b, row.op, r.x.value, r.axes));
}

// ---- mean, var, std ----------------------------------------
Result<ArgValue> build_mean(Builder& b, const DialectRow& row, Args args) {
  Params p{row, args};
  CUVIL_TRY(Reduced r, read(b, p));
  const DType from = b.type(r.x.value).dtype;
  CUVIL_TRY(DType t, dtype_or(b, p.get("dtype"), is_float(from) ? from : DType::kF64));
  ir::ValueId n = b.dim_value(count(b, r), DType::kF64);
  if (t == DType::kF16 && p.get("dtype").missing_or_none()) {
    ir::ValueId sum = reduce(b, "reduce_sum", r.x.value, r.axes, DType::kF32);
    return finish(b, r, b.cast(divide_by(b, sum, n), DType::kF16));
  }
  ir::ValueId sum = is_bool(t) ? reduce(b, "reduce_any", r.x.value, r.axes, t)
                               : reduce(b, "reduce_sum", r.x.value, r.axes, t);
  return finish(b, r, divide_by(b, sum, n));
}

// Two passes, as NumPy: the mean, then the mean of squared deviations.
Result<ArgValue> build_var(Builder& b, const DialectRow& row, Args args) {
  Params p{row, args};
  CUVIL_TRY(Reduced r, read(b, p));
  if (!p.get("mean").missing_or_none())
    return b.error(ErrorClass::kUnsupported,
                   std::string(row.name) + " with mean=", "leave mean= out");
  ArgValue ddof = p.get("ddof");
  if (const ArgValue& correction = p.get("correction"); !correction.missing_or_none()) {
    if (!ddof.missing_or_none())
      return b.error(ErrorClass::kValueError,
                     "ddof and correction can't be provided simultaneously.");
    ddof = correction;
  }
  if (ddof.missing_or_none()) ddof = int64_t{0};
  const DType from = b.type(r.x.value).dtype;
  CUVIL_TRY(DType t, dtype_or(b, p.get("dtype"), is_float(from) ? from : DType::kF64));
  if (!is_float(t))
    return b.error(ErrorClass::kUnsupported, std::string(row.name) + " with an integer dtype=",
                   "leave dtype= out and convert the result");
  const ir::Shape shape = b.type(r.x.value).shape;
  ir::ValueId n = b.dim_value(count(b, r), DType::kF64);
  ir::ValueId mean = divide_by(b, reduce(b, "reduce_sum", r.x.value, r.axes, t), n);
  const DType w = promote(from, t);
  ir::ValueId x = b.cast(r.x.value, w);
  ir::ValueId centre = b.broadcast_to(emit_expand(b, b.cast(mean, w), r.axes), shape);
  ir::ValueId d = b.emit("subtract", {x, centre}, {w, shape});
  ir::ValueId sum = reduce(b, "reduce_sum", b.emit("square", {d}, {w, shape}), r.axes, t);
  CUVIL_TRY(Operand o, classify(b, ddof));
  CUVIL_TRY(ir::ValueId less, materialise(b, o, DType::kF64));
  const ir::Type f64{DType::kF64, {}};
  if (!(o.integer && *o.integer == 0)) {
    if (b.type(less).rank() != 0)
      return b.error(ErrorClass::kUnsupported,
                     std::string(row.name) + " with an array as ddof=", "use a number");
    n = b.emit("maximum", {b.emit("subtract", {n, less}, f64), b.constant(DType::kF64, 0.0)}, f64);
  }
  ir::ValueId v = divide_by(b, sum, n);
  if (row.op == "std") v = b.emit("sqrt", {v}, b.type(v));
  return finish(b, r, v);
}

Result<ArgValue> build_average(Builder& b, const DialectRow& row, Args args) {
  Params p{row, args};
  if (!p.get("weights").missing_or_none())
    return b.error(ErrorClass::kUnsupported,
                   "np.average with weights=", "use (a * w).sum(axis) / w.sum(axis)");
  CUVIL_TRY(bool returned, bool_or(b, p.get("returned"), false, "returned"));
  if (returned)
    return b.error(ErrorClass::kUnsupported, "np.average with returned=True", "use np.mean");
  return build_mean(b, row, args);
}

// ---- softmax, norm ----------------------------------------
// scipy.special.softmax(x, axis=None) and log_softmax: shifted by the largest element.
Result<ArgValue> build_softmax(Builder& b, const DialectRow& row, Args args) {
  Params p{row, args};
  CUVIL_TRY(Reduced r, read(b, p));
  const DType from = b.type(r.x.value).dtype;
  if (!is_float(from)) r.x.value = b.cast(r.x.value, DType::kF64);
  const ir::Type t = b.type(r.x.value);
  auto spread = [&](ir::ValueId v) { return b.broadcast_to(emit_expand(b, v, r.axes), t.shape); };
  CUVIL_TRY(ir::ValueId top, extreme(b, r, "reduce_max"));
  const bool log = row.name == "scipy.special.log_softmax";
  if (log) {
    const ir::Type small = b.type(top);
    ir::ValueId finite = b.emit("isfinite", {top}, {DType::kBool, small.shape});
    ir::ValueId zero = b.broadcast_to(b.constant_int(t.dtype, 0), small.shape);
    top = b.emit("where", {finite, top, zero}, small);
  }
  ir::ValueId shifted = b.emit("subtract", {r.x.value, spread(top)}, t);
  ir::ValueId e = b.emit("exp", {shifted}, t);
  ir::ValueId sum = reduce(b, "reduce_sum", e, r.axes, t.dtype);
  if (!log) return scalar_if_rank0(b, b.emit("divide", {e, spread(sum)}, t));
  ir::ValueId out = b.emit("log", {sum}, b.type(sum));
  return scalar_if_rank0(b, b.emit("subtract", {shifted, spread(out)}, t));
}

// np.linalg.norm(x, ord=None, axis=None, keepdims=False): 2-norm of everything, or vector norms.
Result<ArgValue> build_norm(Builder& b, const DialectRow& row, Args args) {
  Params p{row, args};
  CUVIL_TRY(Reduced r, read(b, p));
  const ArgValue& ord = p.get("ord");
  const DType from = b.type(r.x.value).dtype;
  if (!is_float(from)) r.x.value = b.cast(r.x.value, DType::kF64);
  const ir::Type t = b.type(r.x.value);
  double order = 2;
  if (const auto* v = ord.get<int64_t>()) order = static_cast<double>(*v);
  if (const auto* v = ord.get<double>()) order = *v;
  const auto* text = ord.get<std::string>();
  const bool frobenius = ord.missing_or_none() || (text && *text == "fro" && r.axes.size() == 2);
  if (!frobenius && r.axes.size() != 1)
    return b.error(ErrorClass::kUnsupported,
                   "np.linalg.norm of a matrix with ord=", "give one axis, or leave ord= out");
  ir::ValueId v;
  if (frobenius || order == 2) {
    ir::ValueId sum = reduce(b, "reduce_sum", b.emit("square", {r.x.value}, t), r.axes, t.dtype);
    v = b.emit("sqrt", {sum}, b.type(sum));
  } else {
    ir::ValueId size = b.emit("absolute", {r.x.value}, t);
    Reduced of_size{TensorArg{size}, r.axes, r.keepdims};
    if (order == 1) {
      v = reduce(b, "reduce_sum", size, r.axes, t.dtype);
    } else if (std::abs(order) > 1e300) {
      CUVIL_TRY(v, extreme(b, of_size, order > 0 ? "reduce_max" : "reduce_min"));
    } else {
      return b.error(ErrorClass::kUnsupported,
                     "np.linalg.norm with this ord=", "use ord 1, 2 or inf");
    }
  }
  return finish(b, r, v);
}

constexpr OpInfo reduction(std::string_view name, ReduceKind kind, std::string_view doc) {
  OpInfo r;
  r.name = name;
  r.family = Family::kReduce;
  r.arity = 1;
  r.reduction = kind;
  r.doc = doc;
  return r;
}

constexpr OpInfo kOps[] = {
    reduction("reduce_sum", ReduceKind::kSum, "sum over axes; empty: 0"),
    reduction("reduce_prod", ReduceKind::kProd, "product over axes; empty: 1"),
    reduction("reduce_min", ReduceKind::kMin, "smallest over axes; NaN if any is"),
    reduction("reduce_max", ReduceKind::kMax, "largest over axes; NaN if any is"),
    reduction("reduce_any", ReduceKind::kAny, "whether one bool is true; empty: false"),
    reduction("reduce_all", ReduceKind::kAll, "whether all bools are true; empty: true"),
    reduction("argmin", ReduceKind::kArgMin, "position of the first smallest; the first NaN wins"),
    reduction("argmax", ReduceKind::kArgMax, "position of the first largest; the first NaN wins"),
};

constexpr std::string_view
    kSum = "a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=True",
    kExtreme = "a, axis=None, out=None, keepdims=False, initial=None, where=True",
    kBool = "a, axis=None, out=None, keepdims=False, *, where=True",
    kArg = "a, axis=None, out=None, *, keepdims=False",
    kMean = "a, axis=None, dtype=None, out=None, keepdims=False, *, where=True",
    kVar =
        "a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, "
        "where=True, mean=None, correction=None";
constexpr DialectRow kRows[] = {
    {"numpy.sum", kSum, build_sum, "reduce_sum"},
    {"ndarray.sum", kSum, build_sum, "reduce_sum"},
    {"numpy.prod", kSum, build_sum, "reduce_prod"},
    {"ndarray.prod", kSum, build_sum, "reduce_prod"},
    {"numpy.nansum", kSum, build_nansum, "reduce_sum"},
    {"numpy.nanprod", kSum, build_nansum, "reduce_prod"},
    {"numpy.max", kExtreme, build_extreme, "reduce_max"},
    {"numpy.amax", kExtreme, build_extreme, "reduce_max"},
    {"ndarray.max", kExtreme, build_extreme, "reduce_max"},
    {"numpy.min", kExtreme, build_extreme, "reduce_min"},
    {"numpy.amin", kExtreme, build_extreme, "reduce_min"},
    {"ndarray.min", kExtreme, build_extreme, "reduce_min"},
    {"numpy.ptp", "a, axis=None, out=None, keepdims=False", build_ptp},
    {"numpy.any", kBool, build_any_all, "reduce_any"},
    {"ndarray.any", kBool, build_any_all, "reduce_any"},
    {"numpy.all", kBool, build_any_all, "reduce_all"},
    {"ndarray.all", kBool, build_any_all, "reduce_all"},
    {"numpy.count_nonzero", "a, axis=None, *, keepdims=False", build_count_nonzero},
    {"numpy.argmax", kArg, build_arg, "argmax"},
    {"ndarray.argmax", kArg, build_arg, "argmax"},
    {"numpy.argmin", kArg, build_arg, "argmin"},
    {"ndarray.argmin", kArg, build_arg, "argmin"},
    {"numpy.mean", kMean, build_mean},
    {"ndarray.mean", kMean, build_mean},
    {"numpy.average", "a, axis=None, weights=None, returned=False, *, keepdims=False",
     build_average},
    {"numpy.var", kVar, build_var, "var"},
    {"ndarray.var", kVar, build_var, "var"},
    {"numpy.std", kVar, build_var, "std"},
    {"ndarray.std", kVar, build_var, "std"},
    {"scipy.special.softmax", "x, axis=None", build_softmax},
    {"scipy.special.log_softmax", "x, axis=None", build_softmax},
    {"numpy.linalg.norm", "x, ord=None, axis=None, keepdims=False", build_norm},
};

}  // namespace

FamilyTable reduce_table() { return {kOps, kRows}; }

}  // namespace cuvil::ops
