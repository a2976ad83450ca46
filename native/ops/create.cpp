// Creation: zeros to linspace, array and asarray, and conversions to scalar types.
#include <cmath>

#include "ops/layout.h"
#include "ops/python_numbers.h"
#include "ops/structural.h"

namespace cuvil::ops {
namespace {

using Relation = artifact::Predicate::Op;

Result<> check_order(Builder& b, const ArgValue& order, std::string_view name,
                     std::vector<uint8_t>* out, size_t rank) {
  if (order.missing_or_none()) return Ok{};
  const auto* s = order.get<std::string>();
  if (s && *s == "F") {
    out->clear();
    for (size_t k = rank; k-- > 0 && rank > 1;) out->push_back(static_cast<uint8_t>(k));
    return Ok{};
  }
  if (s && *s == "C") {
    out->clear();
    return Ok{};
  }
  if (s && (*s == "K" || *s == "A")) return Ok{};
  return b.error(ErrorClass::kValueError,
                 std::string(name) + ": order must be one of 'C', 'F', 'A', or 'K'");
}

Result<> check_sizes(Builder& b, const ir::Shape& shape) {
  for (ir::Dim d : shape)
    CUVIL_CHECK(require(b, Relation::kLe, b.dim(0), d, ErrorClass::kValueError,
                        "negative dimensions are not allowed", "", {}));
  return Ok{};
}

// A fresh filled cell in the given order.
ArgValue filled(Builder& b, ir::ValueId scalar, const ir::Shape& shape,
                std::vector<uint8_t> order) {
  if (shape.empty()) return array(emit_copy(b, scalar));
  return array(emit_copy(b, b.broadcast_to(scalar, shape), std::move(order)));
}

Result<ArgValue> build_filled(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(ir::Shape shape, dims_of(b, args[0], "a size"));
  CUVIL_CHECK(check_sizes(b, shape));
  std::vector<uint8_t> order;
  const bool full = row.name == "numpy.full";
  const size_t options = full ? 2 : 1;
  CUVIL_CHECK(check_order(b, args[options + 1], row.name, &order, shape.size()));
  DType otherwise = DType::kF64;
  Operand fill;
  if (full) {
    CUVIL_TRY(fill, classify(b, args[1]));
    otherwise = fill.dtype;
  }
  CUVIL_TRY(DType t, dtype_or(b, args[options], otherwise));
  if (row.name == "numpy.empty") {
    ir::ValueId v = b.emit("empty", {}, {t, shape});
    b.g.value(v).order = std::move(order);
    return array(v);
  }
  if (!full)
    return filled(b, b.constant_int(t, row.name == "numpy.ones" ? 1 : 0), shape, std::move(order));
  CUVIL_TRY(ir::ValueId v, materialise(b, fill, t));
  const ir::Shape shapes[] = {b.type(v).shape, shape};
  CUVIL_TRY(ir::Shape both, b.broadcast_shapes(shapes));
  if (both.size() != shape.size())
    return b.error(ErrorClass::kShape, "could not broadcast input array from shape " +
                                           shape_text(b, b.type(v).shape) + " into shape " +
                                           shape_text(b, shape));
  return filled(b, v, shape, std::move(order));
}

// zeros_like(a, dtype, order, subok, shape), full_like(a, fill_value, ...)
Result<ArgValue> build_like(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  const ir::Type type = b.type(x.value);
  const bool full = row.name == "numpy.full_like";
  const size_t options = full ? 2 : 1;
  CUVIL_TRY(DType t, dtype_or(b, args[options], type.dtype));
  CUVIL_CHECK(require_real(b, t));
  ir::Shape shape = type.shape;
  std::vector<uint8_t> order = layout_order(b.g, x.value);
  if (!args[options + 3].missing_or_none()) {
    CUVIL_TRY(shape, dims_of(b, args[options + 3], "a size"));
    CUVIL_CHECK(check_sizes(b, shape));
    if (shape.size() != type.rank()) order.clear();
  }
  CUVIL_CHECK(check_order(b, args[options + 1], row.name, &order, shape.size()));
  if (row.name == "numpy.empty_like") {
    ir::ValueId v = b.emit("empty", {}, {t, shape});
    b.g.value(v).order = std::move(order);
    return array(v);
  }
  if (!full)
    return filled(b, b.constant_int(t, row.name == "numpy.ones_like" ? 1 : 0), shape,
                  std::move(order));
  CUVIL_TRY(Operand fill, classify(b, args[1]));
  CUVIL_TRY(ir::ValueId v, materialise(b, fill, t));
  return filled(b, v, shape, std::move(order));
}

ir::ValueId iota(Builder& b, const ir::Shape& shape, int64_t axis) {
  return b.emit("iota", {}, {DType::kI64, shape}, {{attr::kAxis, axis}});
}

std::optional<double> static_number(const ArgValue& a) {
  if (const auto* v = a.get<int64_t>()) return static_cast<double>(*v);
  if (const auto* v = a.get<BigInt>()) return v->real;
  if (const auto* v = a.get<double>()) return *v;
  if (const auto* v = a.get<bool>()) return *v;
  return std::nullopt;
}

// np.arange(start, stop, step, dtype): start + i * delta, where delta is the difference of the first two.
Result<ArgValue> build_arange(Builder& b, const DialectRow&, Args args) {
  ArgValue start = args[0], stop = args[1], step = args[2];
  if (stop.missing_or_none()) {
    stop = start;
    start = int64_t{0};
  }
  if (step.missing_or_none()) step = int64_t{1};
  const bool ints = !start.is<double>() && !stop.is<double>() && !step.is<double>();
  CUVIL_TRY(DType t, dtype_or(b, args[3], ints ? DType::kI64 : DType::kF64));
  if (is_bool(t))
    return b.error(ErrorClass::kUnsupported, "np.arange with dtype=bool",
                   "compare a range of integers");
  if (ints) {
    CUVIL_TRY(ir::Dim lo, dim_of(b, start, "start"));
    CUVIL_TRY(ir::Dim hi, dim_of(b, stop, "stop"));
    CUVIL_TRY(ir::Dim by, dim_of(b, step, "step"));
    CUVIL_CHECK(require(b, Relation::kNe, by, b.dim(0), ErrorClass::kZeroDivisionError,
                        "division by zero", "", {}));
    ir::DimTable& d = b.g.dims;
    CUVIL_TRY(bool down, b.less(by, b.dim(0)));
    ir::Dim span = down ? d.sub(lo, hi) : d.sub(hi, lo);
    ir::Dim stride = down ? d.sub(b.dim(0), by) : by;
    CUVIL_TRY(bool some, b.less(b.dim(0), span));
    ir::Dim n = !some ? b.dim(0)
                : d.is_constant(stride, 1)
                    ? span
                    : d.floordiv(d.add(span, d.sub(stride, b.dim(1))), stride);
    const ir::Shape shape{n};
    ir::ValueId v = b.cast(iota(b, shape, 0), t);
    auto scalar = [&](ir::Dim x) { return b.broadcast_to(b.dim_value(x, t), shape); };
    if (!d.is_constant(by, 1)) v = b.emit("multiply", {v, scalar(by)}, {t, shape});
    if (!d.is_constant(lo, 0)) v = b.emit("add", {v, scalar(lo)}, {t, shape});
    return array(v);
  }
  auto lo = static_number(start), hi = static_number(stop), by = static_number(step);
  if (!lo || !hi || !by)
    return b.error(ErrorClass::kUnsupported,
                   "np.arange of run-time floats: its length depends on them",
                   "use np.arange(n) * step + start with an integer n");
  if (*by == 0) return b.error(ErrorClass::kZeroDivisionError, "division by zero");
  const double length = std::ceil((*hi - *lo) / *by);
  if (!(length < 0x1p40)) return b.error(ErrorClass::kValueError, "Maximum allowed size exceeded");
  const ir::Shape shape{b.dim(length > 0 ? static_cast<int64_t>(length) : 0)};
  // As NumPy's fill: first and second element in the type, their difference, then start + i * delta
  // (f16 in f32).
  const DType w = t == DType::kF16 ? DType::kF32 : t;
  ir::ValueId first = b.cast(b.constant(t, *lo), w), second = b.cast(b.constant(t, *lo + *by), w);
  ir::ValueId delta = b.emit("subtract", {second, first}, {w, {}});
  ir::ValueId v = b.cast(iota(b, shape, 0), w);
  v = b.emit("multiply", {v, b.broadcast_to(delta, shape)}, {w, shape});
  v = b.emit("add", {v, b.broadcast_to(first, shape)}, {w, shape});
  return array(b.cast(v, t));
}

// True where column - row compares with k.
Result<ir::ValueId> diagonal(Builder& b, const ir::Shape& shape, const ArgValue& k,
                             std::string_view op) {
  CUVIL_TRY(ir::Dim offset, k.missing_or_none() ? Result<ir::Dim>(b.dim(0)) : dim_of(b, k, "k"));
  const size_t rank = shape.size();
  ir::ValueId rows = iota(b, shape, static_cast<int64_t>(rank) - 2);
  ir::ValueId columns = iota(b, shape, static_cast<int64_t>(rank) - 1);
  if (!b.g.dims.is_constant(offset, 0))
    rows = b.emit("add", {rows, b.broadcast_to(b.dim_value(offset), shape)}, {DType::kI64, shape});
  return b.emit(op, {columns, rows}, {DType::kBool, shape});
}

// eye(N, M, k, dtype, order), identity(n, dtype), tri(N, M, k, dtype)
Result<ArgValue> build_diagonal(Builder& b, const DialectRow& row, Args args) {
  const bool identity = row.name == "numpy.identity";
  CUVIL_TRY(ir::Dim n, dim_of(b, args[0], "N"));
  ir::Dim m = n;
  if (!identity && !args[1].missing_or_none()) {
    CUVIL_TRY(m, dim_of(b, args[1], "M"));
  }
  CUVIL_CHECK(check_sizes(b, {n, m}));
  CUVIL_TRY(DType t, dtype_or(b, args[identity ? 1 : 3], DType::kF64));
  CUVIL_TRY(ir::ValueId v, diagonal(b, {n, m}, identity ? ArgValue() : args[2],
                                    row.name == "numpy.tri" ? "less_equal" : "equal"));
  return array(b.cast(v, t));
}

// tril(m, k=0), triu(m, k=0)
Result<ArgValue> build_triangle(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  ir::ValueId v = x.value;
  if (b.type(v).rank() == 1) {
    ir::Dim n = b.type(v).shape[0];
    v = b.broadcast_to(v, {n, n});
  }
  const ir::Type t = b.type(v);
  if (t.rank() < 2)
    return b.error(ErrorClass::kValueError, std::string(row.name) + " needs at least one axis");
  CUVIL_TRY(ir::ValueId keep, diagonal(b, t.shape, args[1],
                                       row.name == "numpy.tril" ? "less_equal" : "greater_equal"));
  ir::ValueId zero = b.broadcast_to(b.constant_int(t.dtype, 0), t.shape);
  return array(b.emit("where", {keep, v, zero}, t));
}

// np.linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0) of static numbers.
Result<ArgValue> build_linspace(Builder& b, const DialectRow& row, Args args) {
  auto lo = static_number(args[0]), hi = static_number(args[1]);
  if (!lo || !hi)
    return b.error(ErrorClass::kUnsupported,
                   std::string(row.name) + " between values known only at run time",
                   "use np.arange(n) * step + start");
  int64_t num = 50;
  if (!args[2].missing_or_none()) {
    CUVIL_TRY(num, static_int(b, args[2], "num"));
  }
  if (num < 0)
    return b.error(ErrorClass::kValueError,
                   "Number of samples, " + std::to_string(num) + ", must be non-negative.");
  CUVIL_TRY(bool endpoint, bool_or(b, args[3], true, "endpoint"));
  CUVIL_TRY(bool retstep, bool_or(b, args[4], false, "retstep"));
  if (retstep)
    return b.error(ErrorClass::kUnsupported, std::string(row.name) + " with retstep=True",
                   "compute the step");
  CUVIL_TRY(DType t, dtype_or(b, args[5], DType::kF64));
  const ir::Type f64{DType::kF64, {b.dim(num)}};
  const double delta = *hi - *lo;
  const double div = static_cast<double>(endpoint ? num - 1 : num);
  ir::ValueId y = b.cast(iota(b, f64.shape, 0), DType::kF64);
  auto splat = [&](double v) { return b.broadcast_to(b.constant(DType::kF64, v), f64.shape); };
  if (div > 0) {
    const double step = delta / div;
    if (step == 0) {
      y = b.emit("divide", {y, splat(div)}, f64);
      y = b.emit("multiply", {y, splat(delta)}, f64);
    } else {
      y = b.emit("multiply", {y, splat(step)}, f64);
    }
  } else {
    y = b.emit("multiply", {y, splat(delta)}, f64);
  }
  y = b.emit("add", {y, splat(*lo)}, f64);
  if (endpoint && num > 1) {
    ir::ValueId last = b.broadcast_to(b.constant_int(DType::kI64, num - 1), f64.shape);
    ir::ValueId at_end = b.emit("equal", {iota(b, f64.shape, 0), last}, {DType::kBool, f64.shape});
    y = b.emit("where", {at_end, splat(*hi), y}, f64);
  }
  if (is_int(t)) y = b.emit("floor", {y}, f64);
  return array(b.cast(y, t));
}

// array(object, dtype, *, copy, order, ...), asarray, ascontiguousarray
Result<ArgValue> build_array(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  const bool is_array = row.name == "numpy.array";
  const bool packs = row.name == "numpy.ascontiguousarray";
  bool copy = is_array, must_not = false;  // else: where it is needed
  if (const size_t at = is_array ? 2 : 4; at < args.size() && !args[at].is<ArgValue::Missing>()) {
    const bool decides = !args[at].missing_or_none();
    CUVIL_TRY(copy, bool_or(b, args[at], false, "copy"));
    must_not = decides && !copy;
  }
  if (packs) copy = must_not = false;
  if (is_array && !args[5].missing_or_none()) {
    CUVIL_TRY(int64_t least, static_int(b, args[5], "ndmin"));
    const auto rank = static_cast<int64_t>(b.type(x.value).rank());
    std::vector<int64_t> axes;
    for (int64_t k = 0; k < least - rank; ++k) axes.push_back(k);
    x.value = emit_expand(b, x.value, std::move(axes));
  }
  if (packs && b.type(x.value).rank() == 0) x.value = emit_expand(b, x.value, {0});
  const ir::Type type = b.type(x.value);
  CUVIL_TRY(DType t, dtype_or(b, args[1], type.dtype));
  if (t == type.dtype) CUVIL_CHECK(require_real(b, t));
  std::vector<uint8_t> order = layout_order(b.g, x.value);
  const ArgValue how = packs ? ArgValue(std::string("C")) : args[is_array ? 3 : 2];
  CUVIL_CHECK(check_order(b, how, row.name, &order, type.rank()));
  const auto* name = how.get<std::string>();
  if (!copy && t == type.dtype) {
    bool fits = true;
    if (name && (*name == "C" || *name == "F")) {
      CUVIL_TRY(fits, is_contiguous(b, x.value, *name == "F"));
    }
    if (fits) return array(x.value);
  }
  if (must_not)
    return b.error(ErrorClass::kValueError,
                   "Unable to avoid copy while creating an array as requested.",
                   "pass copy=None to copy where it is needed");
  if (t == type.dtype) return array(emit_copy(b, x.value, std::move(order)));
  ir::ValueId v = b.cast(x.value, t);
  b.g.value(v).order = order;
  return array(v);
}

// np.float32(x): of an array an array, of a number a scalar.
Result<ArgValue> build_scalar_type(Builder& b, const DialectRow& row, Args args) {
  DType t = *dtype_from_text(row.name.substr(std::string_view("numpy.").size()));
  CUVIL_CHECK(require_real(b, t));
  if (args[0].is<ArgValue::Missing>())
    return ArgValue(TensorArg{b.constant_int(t, 0), Weak::kNo, true});
  CUVIL_TRY(Operand o, classify(b, args[0]));
  CUVIL_TRY(ir::ValueId v, materialise(b, o, t));
  return ArgValue(TensorArg{v, Weak::kNo, b.type(v).rank() == 0});
}

// float(x), bool(x), int(x), x.item(): a Python number.
Result<ArgValue> build_python_number(Builder& b, const DialectRow& row, Args args) {
  if (args[0].is<ArgValue::Missing>()) {
    if (row.name == "builtins.float") return ArgValue(0.0);
    if (row.name == "builtins.int") return ArgValue(int64_t{0});
    return ArgValue(false);
  }
  CUVIL_TRY(Operand o, classify(b, args[0]));
  ir::Dim count = b.g.dims.product(shape_of(b, o));
  if (row.name == "ndarray.item" || !b.g.dims.is_constant(count, 1)) {
    const bool item = row.name == "ndarray.item";
    CUVIL_CHECK(require(b, Relation::kEq, count, b.dim(1),
                        item ? ErrorClass::kValueError : ErrorClass::kTypeError,
                        item ? "can only convert an array of size 1 to a Python scalar"
                             : "only 0-dimensional arrays can be converted to Python scalars",
                        "index the array first", {}));
  }
  if (o.value.valid()) o.value = emit_reshape(b, o.value, {});
  const DType t = o.dtype;
  const bool to_float = row.name == "builtins.float" || (row.name == "ndarray.item" && is_float(t));
  const bool to_bool = row.name == "builtins.bool" || (row.name == "ndarray.item" && is_bool(t));
  if (to_float) {
    CUVIL_TRY(ir::ValueId v, materialise(b, o, DType::kF64));
    return weak_float(v);
  }
  if (to_bool) {
    CUVIL_TRY(ir::ValueId v, materialise(b, o, t));
    return weak_bool(b.cast(v, DType::kBool));
  }
  if (o.dim) return ArgValue(*o.dim);
  if (o.integer) return ArgValue(*o.integer);
  CUVIL_TRY(ir::ValueId v, materialise(b, o, t));
  const ir::Type boolean{DType::kBool, {}};
  if (is_float(t)) {
    v = fits_int64(b, b.cast(v, DType::kF64), ErrorClass::kUnsupported,
                   "a float too large for a 64-bit integer", "keep it as a float");
  } else if (t == DType::kU64) {
    v = raise_if(b, v, b.emit("greater", {v, b.constant_int(DType::kU64, INT64_MAX)}, boolean),
                 ErrorClass::kUnsupported, "an unsigned integer of 2**63 or more as a Python int",
                 "keep it as an array element");
  }
  return ArgValue(TensorArg{b.cast(v, DType::kI64), Weak::kInt, true});
}

constexpr std::string_view kShapeParams = "shape, dtype=None, order='C', *, device=None, like=None",
                           kLikeParams =
                               "a, dtype=None, order='K', subok=True, shape=None, *, device=None",
                           kAsArray =
                               "a, dtype=None, order=None, *, device=None, copy=None, like=None",
                           kScalarParams = "x=0, /";
constexpr DialectRow kRows[] = {
    {"numpy.zeros", kShapeParams, build_filled},
    {"numpy.ones", kShapeParams, build_filled},
    {"numpy.empty", kShapeParams, build_filled},
    {"numpy.full", "shape, fill_value, dtype=None, order='C', *, device=None, like=None",
     build_filled},
    {"numpy.zeros_like", kLikeParams, build_like},
    {"numpy.ones_like", kLikeParams, build_like},
    {"numpy.empty_like", kLikeParams, build_like},
    {"numpy.full_like",
     "a, fill_value, dtype=None, order='K', subok=True, shape=None, *, device=None", build_like},
    {"numpy.arange", "start, stop=None, step=None, dtype=None, *, device=None, like=None",
     build_arange},
    {"numpy.eye", "N, M=None, k=0, dtype=None, order='C', *, device=None, like=None",
     build_diagonal},
    {"numpy.identity", "n, dtype=None, *, like=None", build_diagonal},
    {"numpy.tri", "N, M=None, k=0, dtype=None, *, like=None", build_diagonal},
    {"numpy.tril", "m, k=0", build_triangle},
    {"numpy.triu", "m, k=0", build_triangle},
    {"numpy.linspace",
     "start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None",
     build_linspace},
    {"numpy.array", "object, dtype=None, *, copy=True, order='K', subok=False, ndmin=0, like=None",
     build_array},
    {"numpy.asarray", kAsArray, build_array},
    {"numpy.ascontiguousarray", "a, dtype=None, *, like=None", build_array},
    {"numpy.bool", kScalarParams, build_scalar_type},
    {"numpy.int8", kScalarParams, build_scalar_type},
    {"numpy.int16", kScalarParams, build_scalar_type},
    {"numpy.int32", kScalarParams, build_scalar_type},
    {"numpy.int64", kScalarParams, build_scalar_type},
    {"numpy.uint8", kScalarParams, build_scalar_type},
    {"numpy.uint16", kScalarParams, build_scalar_type},
    {"numpy.uint32", kScalarParams, build_scalar_type},
    {"numpy.uint64", kScalarParams, build_scalar_type},
    {"numpy.float16", kScalarParams, build_scalar_type},
    {"numpy.float32", kScalarParams, build_scalar_type},
    {"numpy.float64", kScalarParams, build_scalar_type},
    {"builtins.float", "x=0, /", build_python_number},
    {"builtins.int", "x=0, /", build_python_number},
    {"builtins.bool", "x=False, /", build_python_number},
    {"ndarray.item", "self", build_python_number},
};

}  // namespace

FamilyTable create_table() { return {{}, kRows}; }

}  // namespace cuvil::ops
