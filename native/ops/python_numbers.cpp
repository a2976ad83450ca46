// Arithmetic between Python numbers that are known only at run time. Called by operator and math rows.
#include "ops/python_numbers.h"

#include <algorithm>

#include "ops/structural.h"

namespace cuvil::ops {
namespace {

using Relation = artifact::Predicate::Op;

bool is_python_int(const ArgValue& a) {
  return a.is<int64_t>() || a.is<BigInt>() || a.is<bool>() || a.is<ir::Dim>();
}

bool is_python_bool(const ArgValue& a) {
  const auto* t = a.get<TensorArg>();
  return a.is<bool>() || (t && t->weak == Weak::kBool);
}

ArgValue int_result(Builder& b, ir::Dim d) {
  if (auto c = b.g.dims.as_constant(d)) return *c;
  return d;
}

bool from_scalar(Builder& b, ir::Dim d) {
  std::vector<ir::SymbolId> used;
  b.g.dims.collect_symbols(d, &used);
  return std::any_of(used.begin(), used.end(), [&](ir::SymbolId s) {
    return b.g.dims.info(s).kind != artifact::Symbol::Kind::kShape;
  });
}

// Python's ints don't wrap: a run-time int takes part only while the result surely fits 64 bits.
// Sizes of arrays always do.
Result<> bounded(Builder& b, ir::Dim d, int64_t limit) {
  if (!from_scalar(b, d)) return Ok{};
  const std::string message = "the integer {0} makes a result that may not fit 64 bits";
  const std::string remedy = "use smaller numbers, or floats";
  CUVIL_CHECK(
      require(b, Relation::kLe, d, b.dim(limit), ErrorClass::kUnsupported, message, remedy, {d}));
  return require(b, Relation::kLe, b.dim(-limit), d, ErrorClass::kUnsupported, message, remedy,
                 {d});
}

constexpr int64_t kSumLimit = int64_t{1} << 61, kFactorLimit = int64_t{1} << 31,
                  kExactLimit = int64_t{1} << 53;

Result<ArgValue> int_operator(Builder& b, std::string_view op, std::vector<ir::Dim> d) {
  ir::DimTable& t = b.g.dims;
  if (op == "positive") return int_result(b, d[0]);
  if (op == "negative") {
    CUVIL_CHECK(bounded(b, d[0], kSumLimit));
    return int_result(b, t.sub(b.dim(0), d[0]));
  }
  if (op == "invert") return int_result(b, t.sub(b.dim(-1), d[0]));
  if (op == "absolute") {
    CUVIL_TRY(bool negative, b.less(d[0], b.dim(0)));
    if (!negative) return int_result(b, d[0]);
    CUVIL_CHECK(bounded(b, d[0], kSumLimit));
    return int_result(b, t.sub(b.dim(0), d[0]));
  }
  const bool sum = op == "add" || op == "subtract";
  if (sum || op == "multiply") {
    for (ir::Dim x : d) CUVIL_CHECK(bounded(b, x, sum ? kSumLimit : kFactorLimit));
    return int_result(b, op == "add"        ? t.add(d[0], d[1])
                         : op == "subtract" ? t.sub(d[0], d[1])
                                            : t.mul(d[0], d[1]));
  }
  if (op == "floor_divide" || op == "remainder") {
    CUVIL_CHECK(require(b, Relation::kNe, d[1], b.dim(0), ErrorClass::kZeroDivisionError,
                        "integer division or modulo by zero", "", {}));
    CUVIL_CHECK(bounded(b, d[0], kSumLimit));
    return int_result(b, op == "remainder" ? t.mod(d[0], d[1]) : t.floordiv(d[0], d[1]));
  }
  if (op == "less") {
    CUVIL_TRY(bool r, b.less(d[0], d[1]));
    return ArgValue(r);
  }
  if (op == "greater") return int_operator(b, "less", {d[1], d[0]});
  if (op == "less_equal" || op == "greater_equal") {
    bool swap = op == "less_equal";
    CUVIL_TRY(bool r, b.less(d[swap ? 1 : 0], d[swap ? 0 : 1]));
    return ArgValue(!r);
  }
  if (op == "equal" || op == "not_equal") {
    CUVIL_TRY(bool r, b.equal(d[0], d[1]));
    return ArgValue(r == (op == "equal"));
  }
  if (op == "power") {
    // The exponent is fixed to its value in this call.
    auto e = t.as_constant(d[1]);
    if (auto fixed = e ? Result<int64_t>(*e) : static_int(b, d[1], "an exponent"); fixed.ok())
      e = *fixed;
    if (e && *e >= 0 && *e <= 4) {
      ir::Dim r = b.dim(1);
      for (int64_t k = 0; k < *e; ++k) r = t.mul(r, d[0]);
      CUVIL_CHECK(bounded(b, d[0], *e <= 2 ? kFactorLimit : int64_t{1} << 15));
      return int_result(b, r);
    }
  }
  return b.error(ErrorClass::kUnsupported,
                 "the operator " + std::string(op) + " on integers known only at run time",
                 "make them constants, or use arrays");
}

}  // namespace

ir::ValueId raise_if(Builder& b, ir::ValueId value, ir::ValueId condition, ErrorClass cls,
                     std::string message, std::string remedy) {
  const ir::Type t = b.type(value);
  return b.emit("raise_if", {value, b.broadcast_to(condition, t.shape)}, t,
                {{attr::kError, static_cast<int64_t>(cls)},
                 {attr::kMessage, std::move(message)},
                 {attr::kRemedy, std::move(remedy)}});
}

ir::ValueId fits_int64(Builder& b, ir::ValueId v, ErrorClass cls, std::string message,
                       std::string remedy) {
  const ir::Type boolean{DType::kBool, {}}, f64{DType::kF64, {}};
  v = raise_if(b, v, b.emit("isnan", {v}, boolean), ErrorClass::kValueError,
               "cannot convert float NaN to integer");
  v = raise_if(b, v, b.emit("isinf", {v}, boolean), ErrorClass::kOverflowError,
               "cannot convert float infinity to integer");
  ir::ValueId size = b.emit("absolute", {v}, f64);
  return raise_if(b, v, b.emit("greater_equal", {size, b.constant(DType::kF64, 0x1p63)}, boolean),
                  cls, std::move(message), std::move(remedy));
}

Result<ir::ValueId> python_float(Builder& b, const ArgValue& a) {
  CUVIL_TRY(Operand o, classify(b, a));
  if (!shape_of(b, o).empty())
    return b.error(ErrorClass::kTypeError,
                   "only 0-dimensional arrays can be converted to Python scalars",
                   "use the NumPy function of the same name");
  if (o.dim) CUVIL_CHECK(bounded(b, *o.dim, kExactLimit));
  return materialise(b, o, DType::kF64);
}

Result<ArgValue> python_operator(Builder& b, std::string_view op, Args args) {
  if (std::all_of(args.begin(), args.end(), is_python_int) && op != "divide") {
    std::vector<ir::Dim> d;
    for (const ArgValue& a : args) {
      CUVIL_TRY(ir::Dim x, dim_of(b, a, "operand"));
      d.push_back(x);
    }
    return int_operator(b, op, d);
  }
  const bool logic = op.starts_with("bitwise_");
  if (logic && std::all_of(args.begin(), args.end(), is_python_bool)) {
    CUVIL_TRY(ArgValue r, call_ufunc(b, op, args));
    return weak_bool(r.get<TensorArg>()->value);
  }
  std::vector<ir::ValueId> v;
  for (const ArgValue& a : args) {
    CUVIL_TRY(ir::ValueId x, python_float(b, a));
    v.push_back(x);
  }
  const ir::Type f64{DType::kF64, {}}, boolean{DType::kBool, {}};
  static constexpr std::string_view kPlain[] = {"add",      "subtract", "multiply",
                                                "negative", "positive", "absolute"};
  static constexpr std::string_view kCompare[] = {"less",          "less_equal", "greater",
                                                  "greater_equal", "equal",      "not_equal"};
  if (std::find(std::begin(kPlain), std::end(kPlain), op) != std::end(kPlain))
    return weak_float(b.emit(op, v, f64));
  if (std::find(std::begin(kCompare), std::end(kCompare), op) != std::end(kCompare))
    return weak_bool(b.emit(op, v, boolean));
  const ir::ValueId zero = b.constant(DType::kF64, 0.0);
  if (op == "divide" || op == "floor_divide" || op == "remainder") {
    const char* text = op == "divide"      ? "float division by zero"
                       : op == "remainder" ? "float modulo"
                                           : "float floor division by zero";
    v[1] = raise_if(b, v[1], b.emit("equal", {v[1], zero}, boolean), ErrorClass::kZeroDivisionError,
                    text);
    return weak_float(b.emit(op, v, f64));
  }
  if (op == "power") {
    ir::ValueId zero_base = b.emit("equal", {v[0], zero}, boolean);
    ir::ValueId down = b.emit("less", {v[1], zero}, boolean);
    ir::ValueId base =
        raise_if(b, v[0], b.emit("bitwise_and", {zero_base, down}, boolean),
                 ErrorClass::kZeroDivisionError, "0.0 cannot be raised to a negative power");
    ir::ValueId fraction = b.emit("not_equal", {v[1], b.emit("floor", {v[1]}, f64)}, boolean);
    ir::ValueId finite = b.emit("isfinite", {base}, boolean);
    ir::ValueId negative = b.emit("less", {base, zero}, boolean);
    ir::ValueId complex = b.emit(
        "bitwise_and", {b.emit("bitwise_and", {negative, fraction}, boolean), finite}, boolean);
    base = raise_if(b, base, complex, ErrorClass::kUnsupported,
                    "a negative number raised to a fractional power is complex",
                    "use abs(), or NumPy arrays, which give NaN");
    ir::ValueId r = b.emit("power", {base, v[1]}, f64);
    ir::ValueId both =
        b.emit("bitwise_and", {finite, b.emit("isfinite", {v[1]}, boolean)}, boolean);
    ir::ValueId overflow = b.emit("bitwise_and", {both, b.emit("isinf", {r}, boolean)}, boolean);
    return weak_float(raise_if(b, r, overflow, ErrorClass::kOverflowError,
                               "(34, 'Numerical result out of range')"));
  }
  return b.error(ErrorClass::kTypeError,
                 "unsupported operand type(s) for " + std::string(op) + ": 'float'",
                 "use integers or arrays");
}

Result<ArgValue> build_operator(Builder& b, const DialectRow& row, Args args) {
  if (all_python_numbers(args)) return python_operator(b, row.op, args);
  // NumPy's array ** 2 is square, which bool arrays have too.
  if (row.op == "power" && args[1].is<int64_t>() && *args[1].get<int64_t>() == 2) {
    const auto* base = args[0].get<TensorArg>();
    if (base && !base->scalar && is_bool(b.type(base->value).dtype))
      return call_ufunc(b, "square", args.first(1));
  }
  // The same choices as the NumPy function of the same op.
  static constexpr std::pair<std::string_view, std::string_view> kSpecial[] = {
      {"power", "numpy.power"},
      {"less", "numpy.less"},
      {"less_equal", "numpy.less_equal"},
      {"greater", "numpy.greater"},
      {"greater_equal", "numpy.greater_equal"},
      {"equal", "numpy.equal"},
      {"not_equal", "numpy.not_equal"}};
  for (const auto& [op, name] : kSpecial) {
    if (op != row.op) continue;
    const DialectRow* ufunc = find_row(name);
    std::vector<ArgValue> all(args.begin(), args.end());
    all.resize(all.size() + 6);  // out, where, casting, order, dtype, subok: not given
    return ufunc->build(b, *ufunc, all);
  }
  return call_ufunc(b, row.op, args);
}

}  // namespace cuvil::ops
