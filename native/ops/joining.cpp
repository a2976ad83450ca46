// Rows that join, split or repeat arrays: concatenate and stack to split, roll, tile. Part of movement.
#include <algorithm>

#include "ops/layout.h"
#include "ops/movement.h"
#include "ops/promote.h"
#include "ops/structural.h"

namespace cuvil::ops {
namespace {

using Relation = artifact::Predicate::Op;

// The sequence of arrays: a list of tensors, or the rows of one tensor.
Result<std::vector<TensorArg>> sequence(Builder& b, const ArgValue& a) {
  std::vector<TensorArg> out;
  if (const auto* list = a.get<std::shared_ptr<ArgList>>()) {
    for (const ArgValue& item : **list) {
      CUVIL_TRY(TensorArg x, as_tensor(b, item));
      CUVIL_CHECK(require_real(b, b.type(x.value).dtype));
      out.push_back(x);
    }
    return out;
  }
  const auto* x = a.get<TensorArg>();
  if (!x || b.type(x->value).rank() == 0)
    return b.error(ErrorClass::kTypeError, "a sequence of arrays is needed",
                   "pass a tuple or a list");
  const ir::Shape shape = b.type(x->value).shape;
  CUVIL_TRY(int64_t n, static_int(b, shape[0], "the number of arrays"));
  for (int64_t k = 0; k < n; ++k) {
    CUVIL_TRY(ArgValue row, index_tensor(b, *x, k));
    out.push_back(*row.get<TensorArg>());
  }
  return out;
}

Result<std::vector<ir::ValueId>> common_dtype(Builder& b, const std::vector<TensorArg>& xs,
                                              const ArgValue& dtype) {
  std::vector<Operand> operands;
  for (const TensorArg& x : xs) {
    Operand o;
    o.dtype = b.type(x.value).dtype;
    operands.push_back(o);
  }
  CUVIL_TRY(DType t, dtype_or(b, dtype, result_type(operands)));
  std::vector<ir::ValueId> out;
  for (const TensorArg& x : xs) out.push_back(b.cast(x.value, t));
  return out;
}

Result<> refuse_casting(Builder& b, const ArgValue& casting, std::string_view name) {
  const auto* s = casting.get<std::string>();
  if (casting.missing_or_none() || (s && *s == "same_kind")) return Ok{};
  return b.error(ErrorClass::kUnsupported,
                 std::string(name) + " with casting=", "convert the arrays with .astype() first");
}

// np.concatenate(arrays, /, axis=0, out=None, *, dtype=None, casting='same_kind')
Result<ArgValue> build_concatenate(Builder& b, const DialectRow& row, Args args) {
  CUVIL_CHECK(refuse_out(b, args[2], row.name));
  CUVIL_CHECK(refuse_casting(b, args[4], row.name));
  CUVIL_TRY(auto xs, sequence(b, args[0]));
  if (xs.empty()) return b.error(ErrorClass::kValueError, "need at least one array to concatenate");
  CUVIL_TRY(auto values, common_dtype(b, xs, args[3]));
  int64_t axis = 0;
  if (args[1].is<ArgValue::None>()) {
    for (ir::ValueId& v : values) v = flatten(b, v);
  } else if (!args[1].is<ArgValue::Missing>()) {
    CUVIL_TRY(axis, static_int(b, args[1], "axis"));
  }
  CUVIL_TRY(ir::ValueId r, concatenate(b, std::move(values), axis));
  return array(r);
}

Result<ir::ValueId> stack_values(Builder& b, const std::vector<TensorArg>& xs, int64_t axis,
                                 const ArgValue& dtype) {
  if (xs.empty()) return b.error(ErrorClass::kValueError, "need at least one array to stack");
  CUVIL_TRY(auto values, common_dtype(b, xs, dtype));
  const ir::Shape first = b.type(values[0]).shape;
  for (ir::ValueId v : values) {
    const ir::Shape shape = b.type(v).shape;
    bool same = shape.size() == first.size();
    for (size_t k = 0; same && k < shape.size(); ++k) {
      CUVIL_TRY(same, b.equal(shape[k], first[k]));
    }
    if (!same)
      return b.error(ErrorClass::kShape, "all input arrays must have the same shape",
                     "found the shapes " + shape_text(b, first) + " and " + shape_text(b, shape));
  }
  CUVIL_TRY(axis, normalise_axis(b, axis, first.size() + 1));
  for (ir::ValueId& v : values) v = emit_expand(b, v, {axis});
  return concatenate(b, std::move(values), axis);
}

Result<ArgValue> build_stack(Builder& b, const DialectRow& row, Args args) {
  CUVIL_CHECK(refuse_out(b, args[2], row.name));
  CUVIL_CHECK(refuse_casting(b, args[4], row.name));
  CUVIL_TRY(auto xs, sequence(b, args[0]));
  int64_t axis = 0;
  if (!args[1].is<ArgValue::Missing>()) {
    CUVIL_TRY(axis, static_int(b, args[1], "axis"));
  }
  CUVIL_TRY(ir::ValueId r, stack_values(b, xs, axis, args[3]));
  return array(r);
}

// hstack, vstack, dstack, column_stack: axes are added, then the arrays are concatenated.
Result<ArgValue> build_xstack(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(auto xs, sequence(b, args[0]));
  if (xs.empty()) return b.error(ErrorClass::kValueError, "need at least one array to concatenate");
  const bool columns = row.name == "numpy.column_stack", options = args.size() > 1;
  if (options) CUVIL_CHECK(refuse_casting(b, args[2], row.name));
  CUVIL_TRY(auto values, common_dtype(b, xs, options ? args[1] : ArgValue()));
  int64_t axis = columns ? 1 : 0;
  for (ir::ValueId& v : values) {
    const size_t rank = b.type(v).rank();
    if (row.name == "numpy.hstack") {
      if (rank == 0) v = emit_expand(b, v, {0});
    } else if (row.name == "numpy.dstack") {
      if (rank == 0)
        v = emit_expand(b, v, {0, 1, 2});
      else if (rank == 1)
        v = emit_expand(b, v, {0, 2});
      else if (rank == 2)
        v = emit_expand(b, v, {2});
      axis = 2;
    } else if (columns) {
      if (rank == 0)
        v = emit_expand(b, v, {0, 1});
      else if (rank == 1)
        v = emit_expand(b, v, {1});
    } else {
      if (rank == 0)
        v = emit_expand(b, v, {0, 1});
      else if (rank == 1)
        v = emit_expand(b, v, {0});
    }
  }
  if (row.name == "numpy.hstack") axis = b.type(values[0]).rank() == 1 ? 0 : 1;
  CUVIL_TRY(ir::ValueId r, concatenate(b, std::move(values), axis));
  return array(r);
}

Result<ArgValue> split_at(Builder& b, ir::ValueId v, int64_t axis,
                          const std::vector<ArgValue>& cuts) {
  ArgList out;
  ArgValue start = int64_t{0};
  for (size_t k = 0; k <= cuts.size(); ++k) {
    SliceArg s{start, k < cuts.size() ? cuts[k] : ArgValue(ArgValue::None{}), ArgValue::None{}};
    CUVIL_TRY(ir::ValueId piece, slice_axis(b, v, axis, s));
    out.push_back(array(piece));
    if (k < cuts.size()) start = cuts[k];
  }
  return ArgValue::list(std::move(out));
}

// split(ary, indices_or_sections, axis=0) and its relatives.
Result<ArgValue> build_split(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  const size_t rank = b.type(x.value).rank();
  int64_t axis = 0;
  const std::string_view name = row.name;
  if (name == "numpy.hsplit" || name == "numpy.vsplit" || name == "numpy.dsplit") {
    const size_t least = name == "numpy.hsplit" ? 1 : name == "numpy.vsplit" ? 2 : 3;
    if (rank < least)
      return b.error(ErrorClass::kValueError, std::string(name.substr(6)) +
                                                  " only works on arrays of " +
                                                  std::to_string(least) + " or more dimensions");
    axis = name == "numpy.vsplit" ? 0 : name == "numpy.dsplit" ? 2 : rank > 1 ? 1 : 0;
  } else if (!args[2].is<ArgValue::Missing>()) {
    CUVIL_TRY(axis, static_int(b, args[2], "axis"));
  }
  CUVIL_TRY(axis, normalise_axis(b, axis, rank));
  const ir::Dim n = b.type(x.value).shape[static_cast<size_t>(axis)];
  std::vector<ArgValue> cuts;
  if (const auto* list = args[1].get<std::shared_ptr<ArgList>>()) {
    cuts = **list;
    return split_at(b, x.value, axis, cuts);
  }
  CUVIL_TRY(int64_t sections, static_int(b, args[1], "the number of sections"));
  if (sections <= 0)
    return b.error(ErrorClass::kValueError, "number sections must be larger than 0.");
  if (name == "numpy.array_split") {
    CUVIL_TRY(int64_t size, static_int(b, n, "the size of the axis to split"));
    int64_t at = 0;
    for (int64_t k = 0; k + 1 < sections; ++k) {
      at += size / sections + (k < size % sections ? 1 : 0);
      cuts.push_back(at);
    }
    return split_at(b, x.value, axis, cuts);
  }
  CUVIL_CHECK(require(b, Relation::kEq, b.g.dims.mod(n, b.dim(sections)), b.dim(0),
                      ErrorClass::kValueError, "array split does not result in an equal division",
                      "axis " + std::to_string(axis) + " has size {0}; use np.array_split", {n}));
  auto exact = exact_divide(b.g.dims, n, b.dim(sections));
  const ir::Dim part = exact ? *exact : b.g.dims.floordiv(n, b.dim(sections));
  ArgList out;
  const ir::Type t = b.type(x.value);
  for (int64_t k = 0; k < sections; ++k) {
    ir::Shape starts(rank, b.dim(0)), sizes = t.shape;
    starts[static_cast<size_t>(axis)] = b.g.dims.mul(part, b.dim(k));
    sizes[static_cast<size_t>(axis)] = part;
    out.push_back(array(emit_slice(b, x.value, starts, std::vector<int64_t>(rank, 1), sizes)));
  }
  return ArgValue::list(std::move(out));
}

Result<ir::ValueId> roll_axis(Builder& b, ir::ValueId v, int64_t axis, const ArgValue& shift) {
  CUVIL_TRY(ir::Dim s, dim_of(b, shift, "shift"));
  const ir::Dim n = b.type(v).shape[static_cast<size_t>(axis)];
  if (b.g.dims.is_constant(n, 0)) return v;
  // Elements [n - k, n) come first. A run-time size is seen not to be smaller than the shift.
  ir::Dim k = b.g.dims.mod(s, n);
  if (!b.g.dims.as_constant(k)) {
    CUVIL_TRY(bool negative, b.less(s, b.dim(0)));
    ir::Dim distance = negative ? b.g.dims.add(s, n) : s;
    CUVIL_TRY(bool below, b.less(distance, b.dim(0)));
    CUVIL_TRY(bool inside, b.less(distance, n));
    if (!below && inside) k = distance;
  }
  if (b.g.dims.is_constant(k, 0)) return v;
  const ArgValue cut = b.g.dims.sub(n, k);
  CUVIL_TRY(ir::ValueId tail, slice_axis(b, v, axis, {cut, ArgValue::None{}, ArgValue::None{}}));
  CUVIL_TRY(ir::ValueId head, slice_axis(b, v, axis, {ArgValue::None{}, cut, ArgValue::None{}}));
  CUVIL_TRY(ir::ValueId r, concatenate(b, {tail, head}, axis));
  // n - k + k, however it is written
  return emit_reshape(b, r, b.type(v).shape);
}

Result<ArgValue> build_roll(Builder& b, const DialectRow&, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  const ir::Shape shape = b.type(x.value).shape;
  if (args[2].missing_or_none()) {
    CUVIL_TRY(ir::ValueId r, roll_axis(b, flatten(b, x.value), 0, args[1]));
    r = emit_reshape(b, r, shape);
    return array(emit_copy(b, r));
  }
  CUVIL_TRY(auto given, static_ints(b, args[2], "axis"));
  ArgList shifts;
  if (const auto* list = args[1].get<std::shared_ptr<ArgList>>())
    shifts = **list;
  else
    shifts.push_back(args[1]);
  const size_t count = std::max(shifts.size(), given.size());
  if ((shifts.size() != count && shifts.size() != 1) ||
      (given.size() != count && given.size() != 1))
    return b.error(ErrorClass::kValueError, "'shift' and 'axis' should be scalars or 1D sequences");
  ir::ValueId r = x.value;
  for (size_t k = 0; k < count; ++k) {
    CUVIL_TRY(int64_t axis, normalise_axis(b, given[given.size() == 1 ? 0 : k], shape.size()));
    CUVIL_TRY(r, roll_axis(b, r, axis, shifts[shifts.size() == 1 ? 0 : k]));
  }
  return array(emit_copy(b, r, layout_order(b.g, x.value)));
}

// np.repeat(a, repeats, axis=None), one int for all elements.
Result<ArgValue> build_repeat(Builder& b, const DialectRow&, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  ir::ValueId v = x.value;
  int64_t axis = 0;
  if (args[2].missing_or_none()) {
    v = flatten(b, v);
  } else {
    CUVIL_TRY(axis, static_int(b, args[2], "axis"));
    CUVIL_TRY(axis, normalise_axis(b, axis, b.type(v).rank()));
  }
  if (args[1].is<std::shared_ptr<ArgList>>())
    return b.error(ErrorClass::kUnsupported, "np.repeat with one count for each element",
                   "repeat all elements equally often");
  CUVIL_TRY(ir::Dim count, dim_of(b, args[1], "repeats"));
  CUVIL_CHECK(require(b, Relation::kLe, b.dim(0), count, ErrorClass::kValueError,
                      "repeats may not contain negative values.", "", {}));
  ir::Shape shape = b.type(v).shape;
  const auto k = static_cast<size_t>(axis);
  ir::Shape wide = shape;
  wide.insert(wide.begin() + axis + 1, count);
  shape[k] = b.g.dims.mul(shape[k], count);
  v = b.broadcast_to(emit_expand(b, v, {axis + 1}), wide);
  return array(emit_reshape(b, emit_copy(b, v), shape));
}

// np.tile(A, reps)
Result<ArgValue> build_tile(Builder& b, const DialectRow&, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  CUVIL_TRY(ir::Shape reps, dims_of(b, args[1], "reps"));
  ir::Shape shape = b.type(x.value).shape;
  ir::ValueId v = x.value;
  std::vector<int64_t> lead;
  while (shape.size() < reps.size()) {
    lead.push_back(static_cast<int64_t>(lead.size()));
    shape.insert(shape.begin(), b.dim(1));
  }
  v = emit_expand(b, v, lead);
  while (reps.size() < shape.size()) reps.insert(reps.begin(), b.dim(1));
  ir::Shape wide, flat;
  std::vector<int64_t> axes;
  for (size_t k = 0; k < shape.size(); ++k) {
    axes.push_back(static_cast<int64_t>(2 * k));
    wide.push_back(reps[k]);
    wide.push_back(shape[k]);
    flat.push_back(b.g.dims.mul(reps[k], shape[k]));
  }
  v = b.broadcast_to(emit_expand(b, v, axes), wide);
  return array(emit_reshape(b, emit_copy(b, v), flat));
}

constexpr DialectRow kRows[] = {
    {"numpy.concatenate", "arrays, /, axis=0, out=None, *, dtype=None, casting='same_kind'",
     build_concatenate},
    {"numpy.concat", "arrays, /, axis=0, out=None, *, dtype=None, casting='same_kind'",
     build_concatenate},
    {"numpy.stack", "arrays, axis=0, out=None, *, dtype=None, casting='same_kind'", build_stack},
    {"numpy.hstack", "tup, *, dtype=None, casting='same_kind'", build_xstack},
    {"numpy.vstack", "tup, *, dtype=None, casting='same_kind'", build_xstack},
    {"numpy.dstack", "tup", build_xstack},
    {"numpy.column_stack", "tup", build_xstack},
    {"numpy.split", "ary, indices_or_sections, axis=0", build_split},
    {"numpy.array_split", "ary, indices_or_sections, axis=0", build_split},
    {"numpy.hsplit", "ary, indices_or_sections", build_split},
    {"numpy.vsplit", "ary, indices_or_sections", build_split},
    {"numpy.dsplit", "ary, indices_or_sections", build_split},
    {"numpy.roll", "a, shift, axis=None", build_roll},
    {"numpy.repeat", "a, repeats, axis=None", build_repeat},
    {"ndarray.repeat", "self, repeats, axis=None", build_repeat},
    {"numpy.tile", "A, reps", build_tile},
};

}  // namespace

Result<ir::ValueId> concatenate(Builder& b, std::vector<ir::ValueId> values, int64_t axis) {
  const ir::Type first = b.type(values[0]);
  const size_t rank = first.rank();
  if (rank == 0)
    return b.error(ErrorClass::kValueError, "zero-dimensional arrays cannot be concatenated");
  CUVIL_TRY(axis, normalise_axis(b, axis, rank));
  const auto along = static_cast<size_t>(axis);
  ir::Shape shape = first.shape;
  for (size_t i = 1; i < values.size(); ++i) {
    const ir::Shape other = b.type(values[i]).shape;
    if (other.size() != rank)
      return b.error(ErrorClass::kShape,
                     "all the input arrays must have same number of dimensions, but the array at "
                     "index 0 has " +
                         std::to_string(rank) + " dimension(s) and the array at index " +
                         std::to_string(i) + " has " + std::to_string(other.size()) +
                         " dimension(s)");
    for (size_t k = 0; k < rank; ++k) {
      if (k == along) continue;
      CUVIL_TRY(bool same, b.equal(shape[k], other[k]));
      if (!same)
        return b.error(
            ErrorClass::kShape,
            "all the input array dimensions except for the concatenation axis must match "
            "exactly, but along dimension " +
                std::to_string(k) + ", the array at index 0 has size " +
                dim_text(b, first.shape[k]) + " and the array at index " + std::to_string(i) +
                " has size " + dim_text(b, other[k]),
            "the shapes are " + shape_text(b, first.shape) + " and " + shape_text(b, other));
      if (b.g.dims.as_constant(other[k])) shape[k] = other[k];
    }
    shape[along] = b.g.dims.add(shape[along], other[along]);
  }
  if (values.size() == 1) return emit_copy(b, values[0], layout_order(b.g, values[0]));
  auto order = keep_order(b.g, values, rank, false);
  ir::ValueId r =
      b.emit("concatenate", std::move(values), {first.dtype, shape}, {{attr::kAxis, axis}});
  b.g.value(r).order = std::move(order);
  return r;
}

std::span<const DialectRow> joining_rows() { return kRows; }

}  // namespace cuvil::ops
