// Reading arguments of dialect rows and emitting common ops. Called by every family's build functions.
#include "ops/rows.h"

#include <algorithm>

#include "ops/interpret.h"
#include "ops/layout.h"
#include "ops/promote.h"
#include "ops/structural.h"

namespace cuvil::ops {
namespace {

std::string kind_text(const ArgValue& a) {
  struct Name {
    std::string operator()(const ArgValue::Missing&) const { return "nothing"; }
    std::string operator()(const ArgValue::None&) const { return "None"; }
    std::string operator()(const ArgValue::Ellipsis&) const { return "Ellipsis"; }
    std::string operator()(bool) const { return "a bool"; }
    std::string operator()(int64_t) const { return "an int"; }
    std::string operator()(const BigInt&) const { return "an int"; }
    std::string operator()(double) const { return "a float"; }
    std::string operator()(const std::string& s) const { return "'" + s + "'"; }
    std::string operator()(DType t) const { return "dtype " + std::string(info(t).numpy_name); }
    std::string operator()(const ir::Dim&) const { return "an int"; }
    std::string operator()(const TensorArg&) const { return "an array"; }
    std::string operator()(const std::shared_ptr<ArgList>&) const { return "a sequence"; }
    std::string operator()(const std::shared_ptr<SliceArg>&) const { return "a slice"; }
  };
  return std::visit(Name{}, a.v);
}

}  // namespace

std::string dim_text(Builder& b, ir::Dim d) {
  auto v = b.g.dims.example(d);
  return v ? std::to_string(*v) : b.g.dims.to_string(d);
}

std::string shape_text(Builder& b, const ir::Shape& shape) {
  std::string s = "(";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i) s += ",";
    s += dim_text(b, shape[i]);
  }
  return s + (shape.size() == 1 ? ",)" : ")");
}

// ---- Arrays from arguments ---------------------------------------------------------------------
Result<TensorArg> as_tensor(Builder& b, const ArgValue& a) {
  if (const auto* t = a.get<TensorArg>()) {
    TensorArg r = *t;
    r.weak = Weak::kNo;
    return r;
  }
  if (const auto* list = a.get<std::shared_ptr<ArgList>>()) {
    // A nested list: the elements are stacked along a new first axis.
    std::vector<TensorArg> items;
    std::vector<Operand> operands;
    for (const ArgValue& item : **list) {
      CUVIL_TRY(TensorArg t, as_tensor(b, item));
      Operand o;
      o.dtype = b.type(t.value).dtype;
      operands.push_back(o);
      items.push_back(t);
    }
    if (items.empty())
      return TensorArg{
          b.emit("tensor_constant", {}, {DType::kF64, {b.dim(0)}}, {{attr::kData, std::string()}})};
    const DType dtype = result_type(operands);
    const ir::Shape inner = b.type(items[0].value).shape;
    bool all_constant = true;
    for (TensorArg& t : items) {
      const ir::Shape shape = b.type(t.value).shape;
      bool same = shape.size() == inner.size();
      for (size_t i = 0; same && i < shape.size(); ++i) {
        CUVIL_TRY(same, b.equal(shape[i], inner[i]));
      }
      if (!same)
        return b.error(ErrorClass::kValueError,
                       "setting an array element with a sequence. The requested array has an "
                       "inhomogeneous shape",
                       "give all rows the same length");
      t.value = b.cast(t.value, dtype);
      const ir::Op* def = b.g.def(t.value);
      all_constant = all_constant && def &&
                     (def->desc->name == "constant" || def->desc->name == "tensor_constant");
    }
    ir::Shape shape = inner;
    shape.insert(shape.begin(), b.dim(static_cast<int64_t>(items.size())));
    if (all_constant) {
      std::string data;
      for (const TensorArg& t : items) {
        const ir::Op* def = b.g.def(t.value);
        if (def->desc->name == "tensor_constant") {
          data += def->text(attr::kData);
        } else {
          auto bits = static_cast<uint64_t>(def->integer(attr::kBits));
          data.append(reinterpret_cast<const char*>(&bits), size_of(dtype));
        }
      }
      return TensorArg{b.emit("tensor_constant", {}, {dtype, shape}, {{attr::kData, data}})};
    }
    std::vector<ir::ValueId> rows;
    for (const TensorArg& t : items) rows.push_back(emit_expand(b, t.value, {0}));
    if (rows.size() == 1) return TensorArg{rows[0]};
    return TensorArg{b.emit("concatenate", rows, {dtype, shape}, {{attr::kAxis, int64_t{0}}})};
  }
  CUVIL_TRY(Operand o, classify(b, a));
  CUVIL_TRY(ir::ValueId v, materialise(b, o, o.dtype));
  return TensorArg{v, Weak::kNo, true};
}

Result<> require_real(Builder& b, DType t) {
  if (!is_complex(t) && t != DType::kBF16) return Ok{};
  return b.error(ErrorClass::kDType,
                 "the element type " + std::string(info(t).numpy_name) + " is not computed in yet",
                 "use float32 or float64");
}

// ---- Scalars from arguments ---------------------------------------------------------------------
std::optional<DType> dtype_from_text(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(DType::kC128); ++i) {
    auto t = static_cast<DType>(i);
    const DTypeInfo& d = info(t);
    if (text == d.numpy_name) return t;
    if (text.size() == 1 && text[0] == d.numpy_char) return t;
    std::string code = std::string(1, d.kind) + std::to_string(d.size);
    if (d.kind != 'b' && t != DType::kBF16 &&
        (text == code || text == "<" + code || text == "=" + code))
      return t;
  }
  static constexpr std::pair<std::string_view, DType> kOther[] = {
      {"float", DType::kF64},  {"int", DType::kI64},    {"half", DType::kF16},
      {"single", DType::kF32}, {"double", DType::kF64}, {"intp", DType::kI64},
      {"int_", DType::kI64},   {"uint", DType::kU64},   {"uintp", DType::kU64},
      {"bool_", DType::kBool}, {"b1", DType::kBool},    {"|b1", DType::kBool},
      {"|i1", DType::kI8},     {"|u1", DType::kU8},     {"q", DType::kI64},
      {"Q", DType::kU64},      {"p", DType::kI64},      {"P", DType::kU64}};
  for (const auto& [name, t] : kOther)
    if (name == text) return t;
  return std::nullopt;
}

Result<DType> dtype_or(Builder& b, const ArgValue& a, DType otherwise) {
  if (a.missing_or_none()) return otherwise;
  DType t;
  if (const auto* d = a.get<DType>()) {
    t = *d;
  } else if (const auto* s = a.get<std::string>()) {
    auto parsed = dtype_from_text(*s);
    if (!parsed)
      return b.error(ErrorClass::kDType, "the data type '" + *s + "' is not supported",
                     "use bool, an integer type, float16, float32 or float64");
    t = *parsed;
  } else {
    return b.error(ErrorClass::kTypeError, "Cannot interpret " + kind_text(a) + " as a data type",
                   "pass a NumPy dtype such as np.float32");
  }
  CUVIL_CHECK(require_real(b, t));
  return t;
}

Result<bool> bool_or(Builder& b, const ArgValue& a, bool otherwise, std::string_view what) {
  if (a.missing_or_none()) return otherwise;
  if (const auto* v = a.get<bool>()) return *v;
  if (const auto* v = a.get<int64_t>()) return *v != 0;
  return b.error(ErrorClass::kUnsupported,
                 "the argument " + std::string(what) + " is " + kind_text(a), "pass True or False");
}

Result<int64_t> static_int(Builder& b, const ArgValue& a, std::string_view what) {
  if (const auto* v = a.get<int64_t>()) return *v;
  if (const auto* v = a.get<bool>()) return static_cast<int64_t>(*v);
  if (const auto* d = a.get<ir::Dim>()) {
    if (auto c = b.g.dims.as_constant(*d)) return *c;
    auto v = b.g.dims.example(*d);
    if (v && !b.g.dims.depends_on_internal(*d)) {
      CUVIL_TRY(bool same, b.equal(*d, b.dim(*v)));
      if (same) return *v;
    }
    return b.error(
        ErrorClass::kUnsupported,
        std::string(what) + " is known only while the code runs (" + b.g.dims.to_string(*d) + ")",
        "use a value that does not depend on a loop or on an element of an array");
  }
  if (const auto* v = a.get<BigInt>())
    return b.error(ErrorClass::kUnsupported,
                   std::string(what) + " is " + v->text + ", which does not fit 64 bits",
                   "use a smaller number, or a float");
  return b.error(ErrorClass::kTypeError,
                 std::string(what) + " must be an integer, not " + kind_text(a));
}

Result<ir::Dim> dim_of(Builder& b, const ArgValue& a, std::string_view what) {
  if (const auto* d = a.get<ir::Dim>()) return *d;
  if (const auto* t = a.get<TensorArg>()) {
    const ir::Op* def = b.g.def(t->value);
    const DType dtype = b.type(t->value).dtype;
    if (def && def->desc->name == "constant" && is_int(dtype))
      return b.dim(int_value(dtype, static_cast<uint64_t>(def->integer(attr::kBits))));
    if (def && def->desc->name == "dim_value") return def->dims(attr::kDim)[0];
  }
  CUVIL_TRY(int64_t v, static_int(b, a, what));
  return b.dim(v);
}

Result<std::vector<int64_t>> static_ints(Builder& b, const ArgValue& a, std::string_view what) {
  std::vector<int64_t> out;
  if (const auto* list = a.get<std::shared_ptr<ArgList>>()) {
    for (const ArgValue& item : **list) {
      CUVIL_TRY(int64_t v, static_int(b, item, what));
      out.push_back(v);
    }
    return out;
  }
  CUVIL_TRY(int64_t v, static_int(b, a, what));
  out.push_back(v);
  return out;
}

Result<ir::Shape> dims_of(Builder& b, const ArgValue& a, std::string_view what) {
  ir::Shape out;
  if (const auto* list = a.get<std::shared_ptr<ArgList>>()) {
    for (const ArgValue& item : **list) {
      CUVIL_TRY(ir::Dim d, dim_of(b, item, what));
      out.push_back(d);
    }
    return out;
  }
  CUVIL_TRY(ir::Dim d, dim_of(b, a, what));
  out.push_back(d);
  return out;
}

Result<int64_t> normalise_axis(Builder& b, int64_t axis, size_t rank, std::string_view prefix) {
  auto n = static_cast<int64_t>(rank);
  if (axis < -n || axis >= n) {
    std::string text = prefix.empty() ? "" : std::string(prefix) + ": ";
    return b.error(ErrorClass::kAxisError, text + "axis " + std::to_string(axis) +
                                               " is out of bounds for array of dimension " +
                                               std::to_string(n));
  }
  return axis < 0 ? axis + n : axis;
}

Result<std::vector<int64_t>> normalise_axes(Builder& b, const ArgValue& axis, size_t rank) {
  std::vector<int64_t> axes;
  if (axis.missing_or_none()) {
    for (size_t k = 0; k < rank; ++k) axes.push_back(static_cast<int64_t>(k));
    return axes;
  }
  CUVIL_TRY(auto given, static_ints(b, axis, "axis"));
  for (int64_t a : given) {
    CUVIL_TRY(int64_t k, normalise_axis(b, a, rank));
    if (std::find(axes.begin(), axes.end(), k) != axes.end())
      return b.error(ErrorClass::kValueError, "duplicate value in 'axis'");
    axes.push_back(k);
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

Result<> refuse_out(Builder& b, const ArgValue& out, std::string_view name) {
  if (out.missing_or_none()) return Ok{};
  return b.error(ErrorClass::kUnsupported, std::string(name) + " with out=",
                 "assign the result instead: y[...] = " + std::string(name) + "(...)");
}

Result<> refuse_where(Builder& b, const ArgValue& where, std::string_view name) {
  if (where.missing_or_none()) return Ok{};
  if (const auto* v = where.get<bool>(); v && *v) return Ok{};
  return b.error(ErrorClass::kUnsupported,
                 std::string(name) + " with where=", "select with np.where(mask, a, b) instead");
}

Result<> require_c_order(Builder& b, const ArgValue& order, std::string_view name) {
  if (order.missing_or_none()) return Ok{};
  const auto* s = order.get<std::string>();
  if (s && (*s == "C" || *s == "c")) return Ok{};
  return b.error(ErrorClass::kUnsupported, std::string(name) + " with order=" + kind_text(order),
                 "use order='C', transposing before or after where needed");
}

Result<> require(Builder& b, artifact::Predicate::Op op, ir::Dim lhs, ir::Dim rhs, ErrorClass cls,
                 std::string message, std::string remedy, ir::Shape payload) {
  using Relation = artifact::Predicate::Op;
  Result<bool> holds = true;
  switch (op) {
    case Relation::kEq: holds = b.equal(lhs, rhs); break;
    case Relation::kNe: holds = b.equal(lhs, rhs); break;
    case Relation::kLt: holds = b.less(lhs, rhs); break;
    case Relation::kLe: holds = b.less(rhs, lhs); break;
  }
  if (holds.ok()) {
    bool ok = op == Relation::kNe || op == Relation::kLe ? !*holds : *holds;
    if (ok) return Ok{};
    for (size_t k = 0; k < payload.size(); ++k) {
      std::string hole = "{" + std::to_string(k) + "}";
      for (std::string* text : {&message, &remedy}) {
        size_t at;
        while ((at = text->find(hole)) != std::string::npos)
          text->replace(at, hole.size(), dim_text(b, payload[k]));
      }
    }
    return b.error(cls, message, remedy);
  }
  if (!b.g.dims.depends_on_internal(lhs) && !b.g.dims.depends_on_internal(rhs))
    return std::move(holds.error());
  b.g.add_op(b.region, *find_op("check"), {}, {},
             {{attr::kOp, static_cast<int64_t>(op)},
              {attr::kLhs, ir::Shape{lhs}},
              {attr::kRhs, ir::Shape{rhs}},
              {attr::kError, static_cast<int64_t>(cls)},
              {attr::kMessage, std::move(message)},
              {attr::kRemedy, std::move(remedy)},
              {attr::kPayload, std::move(payload)}},
             b.loc);
  return Ok{};
}

// ---- Common ops -----------------------------------------------------------------------------------
ir::ValueId emit_transpose(Builder& b, ir::ValueId v, std::vector<int64_t> perm) {
  const ir::Type from = b.type(v);
  if (std::is_sorted(perm.begin(), perm.end())) return v;
  ir::Shape shape;
  for (int64_t p : perm) shape.push_back(from.shape[static_cast<size_t>(p)]);
  return b.emit("transpose", {v}, {from.dtype, shape}, {{attr::kPerm, std::move(perm)}});
}

ir::ValueId emit_reshape(Builder& b, ir::ValueId v, ir::Shape shape) {
  const ir::Type from = b.type(v);
  if (from.shape == shape) return v;
  return b.emit("reshape", {v}, {from.dtype, shape}, {{attr::kShape, shape}});
}

ir::ValueId emit_expand(Builder& b, ir::ValueId v, std::vector<int64_t> axes) {
  const ir::Type from = b.type(v);
  if (axes.empty()) return v;
  std::sort(axes.begin(), axes.end());
  ir::Shape shape = from.shape;
  for (int64_t a : axes) shape.insert(shape.begin() + a, b.dim(1));
  return b.emit("expand_dims", {v}, {from.dtype, shape}, {{attr::kAxes, std::move(axes)}});
}

ir::ValueId emit_squeeze(Builder& b, ir::ValueId v, std::vector<int64_t> axes) {
  const ir::Type from = b.type(v);
  if (axes.empty()) return v;
  std::sort(axes.begin(), axes.end());
  ir::Shape shape;
  for (size_t k = 0; k < from.rank(); ++k)
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(k)))
      shape.push_back(from.shape[k]);
  return b.emit("squeeze", {v}, {from.dtype, shape}, {{attr::kAxes, std::move(axes)}});
}

ir::ValueId emit_slice(Builder& b, ir::ValueId v, ir::Shape starts, std::vector<int64_t> steps,
                       ir::Shape sizes) {
  const ir::Type from = b.type(v);
  bool whole = from.shape == sizes;
  for (size_t k = 0; whole && k < steps.size(); ++k)
    whole = steps[k] == 1 && b.g.dims.is_constant(starts[k], 0);
  if (whole) return v;
  return b.emit("slice", {v}, {from.dtype, sizes},
                {{attr::kStarts, std::move(starts)},
                 {attr::kSteps, std::move(steps)},
                 {attr::kSizes, sizes}});
}

ir::ValueId emit_reduce(Builder& b, std::string_view op, ir::ValueId v, std::vector<int64_t> axes) {
  const ir::Type from = b.type(v);
  const ReduceKind kind = find_op(op)->reduction;
  const bool arg = kind == ReduceKind::kArgMin || kind == ReduceKind::kArgMax;
  ir::Shape shape;
  std::vector<int64_t> kept_rank(from.rank(), -1);
  for (size_t k = 0; k < from.rank(); ++k) {
    if (std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(k))) continue;
    kept_rank[k] = static_cast<int64_t>(shape.size());
    shape.push_back(from.shape[k]);
  }
  // NumPy allocates the result in the operand's K order (argmin and argmax: C order).
  std::vector<uint8_t> order;
  if (!arg && shape.size() > 1) {
    for (uint8_t axis : layout_order(b.g, v))
      if (kept_rank[axis] >= 0) order.push_back(static_cast<uint8_t>(kept_rank[axis]));
    if (std::is_sorted(order.begin(), order.end())) order.clear();
  }
  ir::ValueId r =
      b.emit(op, {v}, {arg ? DType::kI64 : from.dtype, shape}, {{attr::kAxes, std::move(axes)}});
  b.g.value(r).order = std::move(order);
  return r;
}

ir::ValueId emit_copy(Builder& b, ir::ValueId v, std::vector<uint8_t> order) {
  ir::ValueId r = b.emit("copy", {v}, b.type(v));
  b.g.value(r).order = std::move(order);
  return r;
}

ir::ValueId emit_full(Builder& b, ir::ValueId scalar, const ir::Shape& shape) {
  if (shape.empty()) return scalar;
  return emit_copy(b, b.broadcast_to(scalar, shape));
}

Result<ir::ValueId> emit_pointwise(Builder& b, std::string_view op,
                                   std::vector<ir::ValueId> operands, DType result,
                                   std::vector<ir::Attribute> attributes) {
  std::vector<ir::Shape> shapes;
  for (ir::ValueId v : operands) shapes.push_back(b.type(v).shape);
  CUVIL_TRY(ir::Shape shape, b.broadcast_shapes(shapes));
  for (ir::ValueId& v : operands) v = b.broadcast_to(v, shape);
  return b.emit(op, std::move(operands), {result, shape}, std::move(attributes));
}

}  // namespace cuvil::ops
