// NumPy 2's promotion (NEP 50) and ufunc type resolution. Called by build functions of pointwise rows.
#include "ops/promote.h"

#include <algorithm>

#include "ops/python_numbers.h"
#include "ops/structural.h"

namespace cuvil::ops {
namespace {

// The smallest float type that holds every value of an int or bool type, as NumPy sees it.
DType float_for(DType t) {
  if (is_float(t)) return t;
  return size_of(t) == 1 ? DType::kF16 : size_of(t) == 2 ? DType::kF32 : DType::kF64;
}

struct IntRange {
  int64_t lo, hi;  // u64: hi is INT64_MAX; larger Python ints are BigInts
};
IntRange range_of(DType t) {
  int bits = size_of(t) * 8;
  if (is_signed(t)) return {INT64_MIN >> (64 - bits), INT64_MAX >> (64 - bits)};
  return {0, bits == 64 ? INT64_MAX : (int64_t{1} << bits) - 1};
}

std::string class_name(DType t) {
  std::string n(info(t).numpy_name);
  if (n.starts_with("uint")) n[1] = 'I';  // UInt8DType
  n[0] = static_cast<char>(n[0] - 'a' + 'A');
  return "<class 'numpy.dtypes." + n + "DType'>";
}

Error no_loop(Builder& b, std::string_view name, std::span<const Operand> operands) {
  // Exact match only: NumPy names the types; else it speaks of the casting rule.
  std::string types;
  bool all_bool = true;
  for (const Operand& o : operands) {
    types += (types.empty() ? "" : ", ") + class_name(o.dtype);
    all_bool = all_bool && is_bool(o.dtype) && o.weak == Weak::kNo;
  }
  if (all_bool) {
    if (operands.size() > 1) types = "(" + types + ")";
    return b.error(ErrorClass::kTypeError,
                   "ufunc '" + std::string(name) +
                       "' did not contain a loop with signature matching types " + types +
                       " -> None",
                   "convert to an integer or float type first");
  }
  return b.error(ErrorClass::kTypeError,
                 "ufunc '" + std::string(name) +
                     "' not supported for the input types, and the inputs could not be safely "
                     "coerced to any supported types according to the casting rule ''safe''",
                 "convert the operands with .astype() first");
}

Error no_bool(Builder& b, std::string_view name, std::span<const Operand> operands) {
  if (name == "subtract")
    return b.error(
        ErrorClass::kTypeError,
        "numpy boolean subtract, the `-` operator, is not supported, use the bitwise_xor, "
        "the `^` operator, or the logical_xor function instead.");
  if (name == "negative")
    return b.error(ErrorClass::kTypeError,
                   "The numpy boolean negative, the `-` operator, is not supported, use the `~` "
                   "operator or the logical_not function instead.");
  return no_loop(b, name, operands);
}

}  // namespace

DType from_numpy_char(char c) {
  for (int i = 0; i <= static_cast<int>(DType::kC128); ++i)
    if (info(static_cast<DType>(i)).numpy_char == c) return static_cast<DType>(i);
  return DType::kF64;
}

Result<Operand> classify(Builder& b, const ArgValue& a) {
  Operand o;
  if (const auto* t = a.get<TensorArg>()) {
    o.value = t->value;
    o.dtype = b.type(t->value).dtype;
    o.weak = t->weak == Weak::kBool ? Weak::kNo : t->weak;
    o.scalar = t->scalar || t->weak != Weak::kNo;
    if (o.weak == Weak::kComplex)
      return b.error(ErrorClass::kDType, "a complex number", "use real numbers");
    CUVIL_CHECK(require_real(b, o.dtype));
    // A Python number that is known after all.
    const ir::Op* def = o.weak == Weak::kNo ? nullptr : b.g.def(t->value);
    if (def && def->desc->name == "dim_value") {
      o.value = {};
      o.dim = def->dims(attr::kDim)[0];
    } else if (def && def->desc->name == "constant") {
      const auto bits = static_cast<uint64_t>(def->integer(attr::kBits));
      o.value = {};
      if (o.weak == Weak::kInt)
        o.integer = static_cast<int64_t>(bits);
      else
        o.real = std::bit_cast<double>(bits);
    }
    return o;
  }
  o.scalar = true;
  if (const auto* v = a.get<bool>()) {
    o.dtype = DType::kBool;  // a Python bool is not weak: it is bool's only category
    o.integer = *v;
    return o;
  }
  if (const auto* v = a.get<int64_t>()) {
    o.dtype = DType::kI64;
    o.weak = Weak::kInt;
    o.integer = *v;
    return o;
  }
  if (const auto* v = a.get<BigInt>()) {
    o.dtype = DType::kI64;
    o.weak = Weak::kInt;
    o.big = *v;
    return o;
  }
  if (const auto* v = a.get<double>()) {
    o.dtype = DType::kF64;
    o.weak = Weak::kFloat;
    o.real = *v;
    return o;
  }
  if (const auto* d = a.get<ir::Dim>()) {
    o.dtype = DType::kI64;
    o.weak = Weak::kInt;
    if (auto c = b.g.dims.as_constant(*d)) {
      o.integer = *c;
    } else {
      o.dim = *d;
    }
    return o;
  }
  if (a.is<std::shared_ptr<ArgList>>()) {
    CUVIL_TRY(TensorArg t, as_tensor(b, a));
    return classify(b, t);
  }
  return b.error(ErrorClass::kTypeError, "an argument that is neither an array nor a number",
                 "pass arrays, numbers or lists of numbers");
}

ir::Shape shape_of(const Builder& b, const Operand& o) {
  return o.value.valid() ? b.type(o.value).shape : ir::Shape{};
}

DType promote(DType a, DType b) {
  if (a == b || is_bool(b)) return a;
  if (is_bool(a)) return b;
  if (is_float(a) || is_float(b)) {
    DType x = float_for(a), y = float_for(b);
    return size_of(x) >= size_of(y) ? x : y;
  }
  if (is_signed(a) == is_signed(b)) return size_of(a) >= size_of(b) ? a : b;
  DType s = is_signed(a) ? a : b, u = is_signed(a) ? b : a;
  if (size_of(s) > size_of(u)) return s;
  switch (size_of(u)) {
    case 1: return DType::kI16;
    case 2: return DType::kI32;
    case 4: return DType::kI64;
    default: return DType::kF64;
  }
}

bool can_cast_safely(DType from, DType to) { return promote(from, to) == to; }

bool can_cast_same_kind(DType from, DType to) {
  auto rank = [](DType t) { return is_bool(t) ? 0 : is_unsigned(t) ? 1 : is_signed(t) ? 2 : 3; };
  return can_cast_safely(from, to) || rank(from) <= rank(to);
}

DType result_type(std::span<const Operand> operands) {
  std::optional<DType> strong;
  bool weak_int = false, weak_float = false;
  // Beside a float, ints don't promote among themselves first: i8, u8 and f16 are f16.
  for (const Operand& o : operands)
    if (o.weak == Weak::kNo && is_float(o.dtype))
      strong = strong ? promote(*strong, o.dtype) : o.dtype;
  for (const Operand& o : operands) {
    if (o.weak == Weak::kNo) strong = strong ? promote(*strong, o.dtype) : o.dtype;
    weak_int |= o.weak == Weak::kInt;
    weak_float |= o.weak == Weak::kFloat;
  }
  if (weak_float && (!strong || !is_float(*strong))) return DType::kF64;
  if (weak_int && (!strong || is_bool(*strong))) return DType::kI64;
  return strong ? *strong : DType::kF64;
}

Result<ir::ValueId> materialise(Builder& b, const Operand& o, DType t, bool wrap) {
  if (o.value.valid()) {
    // A Python int that was computed at run time is checked at run time.
    if (!wrap && o.weak == Weak::kInt && is_int(t) && t != o.dtype) {
      const IntRange r = range_of(t);
      const ir::Type boolean{DType::kBool, {}};
      ir::ValueId below = b.emit("less", {o.value, b.constant_int(DType::kI64, r.lo)}, boolean);
      ir::ValueId above = b.emit("less", {b.constant_int(DType::kI64, r.hi), o.value}, boolean);
      ir::ValueId fit = raise_if(
          b, o.value, b.emit("logical_or", {below, above}, boolean), ErrorClass::kOverflowError,
          "Python integer out of bounds for " + std::string(info(t).numpy_name));
      return b.cast(fit, t);
    }
    return b.cast(o.value, t);
  }
  if (o.real) return b.constant(t, *o.real);
  const bool checked = !wrap && o.weak == Weak::kInt && is_int(t);
  const std::string text = " out of bounds for " + std::string(info(t).numpy_name);
  const std::string remedy =
      "use a value that the array's type can hold, or convert the array first";
  if (o.big) {
    if (is_float(t)) return b.constant(t, o.big->real);
    if (t == DType::kU64 && o.big->u64) return b.constant_int(t, static_cast<int64_t>(*o.big->u64));
    return b.error(ErrorClass::kOverflowError, "Python integer " + o.big->text + text, remedy);
  }
  if (o.integer) {
    IntRange r = range_of(t);
    if (checked && (*o.integer < r.lo || *o.integer > r.hi))
      return b.error(ErrorClass::kOverflowError,
                     "Python integer " + std::to_string(*o.integer) + text, remedy);
    return b.constant_int(t, *o.integer);
  }
  if (checked && t != DType::kI64) {
    using Relation = artifact::Predicate::Op;
    IntRange r = range_of(t);
    const std::string message = "Python integer {0}" + text;
    CUVIL_CHECK(require(b, Relation::kLe, b.dim(r.lo), *o.dim, ErrorClass::kOverflowError, message,
                        remedy, {*o.dim}));
    if (t != DType::kU64)
      CUVIL_CHECK(require(b, Relation::kLe, *o.dim, b.dim(r.hi), ErrorClass::kOverflowError,
                          message, remedy, {*o.dim}));
  }
  return b.dim_value(*o.dim, t);
}

Result<Loop> resolve_loop(Builder& b, const OpInfo& op, std::string_view name,
                          std::span<const Operand> operands, std::optional<DType> dtype) {
  // An exact match goes before the first loop to which every input casts safely.
  auto counted = [&](const Operand& o) {
    if (o.weak == Weak::kNo) return o.dtype;
    // A Python number asks for nothing that an array of its kind has not asked for already.
    for (const Operand& other : operands)
      if (other.weak == Weak::kNo &&
          (is_float(other.dtype) || (is_int(other.dtype) && o.weak == Weak::kInt)))
        return DType::kBool;
    return o.weak == Weak::kInt ? DType::kI64 : DType::kF64;
  };
  auto output = [&](size_t i, DType input) {
    if (op.outputs == "=") return input;
    return from_numpy_char(op.outputs.size() == 1 ? op.outputs[0] : op.outputs[i]);
  };
  const DType common = result_type(operands);
  std::string_view loops = op.loops;
  if (loops.starts_with('-')) {
    loops.remove_prefix(1);
    if (is_bool(common) && !dtype) return no_bool(b, name, operands);
  }
  if (loops.starts_with('!')) {
    loops.remove_prefix(1);
    const DType last = from_numpy_char(loops.back());
    if (!is_float(common) && !dtype) return Loop{last, output(loops.size() - 1, last)};
  }
  const size_t exact = dtype ? loops.npos : loops.find(info(common).numpy_char);
  if (exact != loops.npos) return Loop{common, output(exact, common)};
  for (size_t i = 0; i < loops.size(); ++i) {
    DType input = from_numpy_char(loops[i]);
    if (dtype) {
      // dtype= picks the loop by its result type; the inputs are then cast as 'same_kind' allows.
      if (output(i, input) != *dtype) continue;
      for (size_t k = 0; k < operands.size(); ++k) {
        if (operands[k].weak != Weak::kNo ? (operands[k].weak != Weak::kFloat || is_float(input))
                                          : can_cast_same_kind(operands[k].dtype, input))
          continue;
        return b.error(ErrorClass::kTypeError,
                       "Cannot cast ufunc '" + std::string(name) + "' input " + std::to_string(k) +
                           " from dtype('" + std::string(info(operands[k].dtype).numpy_name) +
                           "') to dtype('" + std::string(info(input).numpy_name) +
                           "') with casting rule 'same_kind'",
                       "convert the operand with .astype() first");
      }
      return Loop{input, *dtype};
    }
    bool fits = true;
    for (const Operand& o : operands) fits = fits && can_cast_safely(counted(o), input);
    if (fits) return Loop{input, output(i, input)};
  }
  if (dtype)
    return b.error(ErrorClass::kTypeError,
                   "No loop matching the specified signature and casting was found for ufunc " +
                       std::string(name),
                   "leave dtype= out and convert the result with .astype()");
  return no_loop(b, name, operands);
}

Result<ArgValue> call_ufunc(Builder& b, std::string_view op, std::span<const ArgValue> args,
                            std::optional<DType> dtype) {
  const OpInfo& info = *find_op(op);
  std::vector<Operand> operands;
  for (const ArgValue& a : args) {
    CUVIL_TRY(Operand o, classify(b, a));
    operands.push_back(std::move(o));
  }
  CUVIL_TRY(Loop loop, resolve_loop(b, info, op, operands, dtype));
  std::vector<ir::ValueId> values;
  for (const Operand& o : operands) {
    CUVIL_TRY(ir::ValueId v, materialise(b, o, loop.input));
    values.push_back(v);
  }
  CUVIL_TRY(ir::ValueId r, emit_pointwise(b, op, std::move(values), loop.output));
  return scalar_if_rank0(b, r);
}

Result<std::optional<DType>> read_ufunc_options(Builder& b, const DialectRow& row, Args options) {
  // out, where, casting, order, dtype, subok
  CUVIL_CHECK(refuse_out(b, options[0], row.name));
  CUVIL_CHECK(refuse_where(b, options[1], row.name));
  const auto* casting = options[2].get<std::string>();
  if (!options[2].missing_or_none() && !(casting && *casting == "same_kind"))
    return b.error(ErrorClass::kUnsupported, std::string(row.name) + " with casting=",
                   "convert the operands with .astype() first");
  const auto* order = options[3].get<std::string>();
  if (!options[3].missing_or_none() && !(order && *order == "K"))
    return b.error(ErrorClass::kUnsupported,
                   std::string(row.name) + " with order=", "leave order= out");
  std::optional<DType> dtype;
  if (!options[4].missing_or_none()) {
    CUVIL_TRY(DType t, dtype_or(b, options[4], DType::kF64));
    dtype = t;
  }
  return dtype;
}

Result<ArgValue> build_ufunc(Builder& b, const DialectRow& row, Args args) {
  const auto arity = static_cast<size_t>(find_op(row.op)->arity);
  CUVIL_TRY(auto dtype, read_ufunc_options(b, row, args.subspan(arity)));
  return call_ufunc(b, row.op, args.first(arity), dtype);
}

bool all_python_numbers(Args args) {
  return std::all_of(args.begin(), args.end(), [](const ArgValue& a) {
    if (const auto* t = a.get<TensorArg>()) return t->weak != Weak::kNo;
    return a.is<int64_t>() || a.is<BigInt>() || a.is<double>() || a.is<bool>() || a.is<ir::Dim>();
  });
}

}  // namespace cuvil::ops
