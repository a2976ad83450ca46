// Movement ops and the rows that reorder, reshape or describe one array.
#include "ops/movement.h"

#include <algorithm>

#include "ops/layout.h"
#include "ops/promote.h"
#include "ops/structural.h"

namespace cuvil::ops {
namespace {

using Relation = artifact::Predicate::Op;

std::vector<int64_t> reversed_axes(size_t rank) {
  std::vector<int64_t> perm;
  for (size_t k = rank; k-- > 0;) perm.push_back(static_cast<int64_t>(k));
  return perm;
}

// "(2,3)", "(4)", "(4,newaxis)": NumPy's text of a requested shape, which skips leading unknowns.
std::string requested_text(Builder& b, const ir::Shape& shape) {
  std::string s = "(";
  bool first = true;
  for (ir::Dim d : shape) {
    const bool unknown = b.g.dims.is_constant(d, -1);
    if (first && unknown) continue;
    if (!first) s += ",";
    s += unknown ? "newaxis" : dim_text(b, d);
    first = false;
  }
  return s + (shape.size() == 1 ? ",)" : ")");
}

// f(*shape) and f((2, 3)) mean the same.
ArgValue unpack(const ArgValue& varargs) {
  const auto* list = varargs.get<std::shared_ptr<ArgList>>();
  if (list && (*list)->size() == 1 && !(**list)[0].is<int64_t>() && !(**list)[0].is<ir::Dim>())
    return (**list)[0];
  return varargs;
}

// A negative size other than -1 counts as unknown too, as in NumPy.
Result<ArgValue> do_reshape(Builder& b, const DialectRow& row, const ArgValue& a,
                            const ArgValue& shape, const ArgValue& order) {
  CUVIL_TRY(TensorArg x, as_tensor(b, a));
  CUVIL_CHECK(require_c_order(b, order, row.name));
  CUVIL_TRY(ir::Shape dims, dims_of(b, shape, "a size"));
  CUVIL_TRY(ir::ValueId v, reshape(b, x.value, dims));
  return array(v);
}

Result<ArgValue> build_reshape(Builder& b, const DialectRow& row, Args args) {
  const bool method = row.name == "ndarray.reshape";
  if (!args[3].missing_or_none()) {
    CUVIL_TRY(bool copy, bool_or(b, args[3], false, "copy"));
    if (copy) {
      CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
      return do_reshape(b, row, array(emit_copy(b, x.value)), method ? unpack(args[1]) : args[1],
                        args[2]);
    }
    return b.error(ErrorClass::kUnsupported, std::string(row.name) + " with copy=False",
                   "leave copy= out");
  }
  return do_reshape(b, row, args[0], method ? unpack(args[1]) : args[1], args[2]);
}

Result<ArgValue> build_ravel(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  CUVIL_CHECK(require_c_order(b, args[1], row.name));
  return array(flatten(b, x.value));
}

Result<ArgValue> build_flatten(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  CUVIL_CHECK(require_c_order(b, args[1], row.name));
  return array(flatten(b, emit_copy(b, x.value)));
}

Result<ArgValue> build_transpose(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  const size_t rank = b.type(x.value).rank();
  ArgValue axes = args.size() > 1 ? args[1] : ArgValue();
  if (row.name == "ndarray.transpose") {
    axes = unpack(axes);
    const auto* list = axes.get<std::shared_ptr<ArgList>>();
    if (list && (*list)->empty()) axes = ArgValue::None{};
  }
  if (axes.missing_or_none()) return array(emit_transpose(b, x.value, reversed_axes(rank)));
  CUVIL_TRY(auto given, static_ints(b, axes, "axis"));
  if (given.size() != rank)
    return b.error(ErrorClass::kValueError, "axes don't match array",
                   "give one entry for each of the " + std::to_string(rank) + " axes");
  std::vector<int64_t> perm;
  for (int64_t a : given) {
    CUVIL_TRY(int64_t k, normalise_axis(b, a, rank));
    if (std::find(perm.begin(), perm.end(), k) != perm.end())
      return b.error(ErrorClass::kValueError, "repeated axis in transpose");
    perm.push_back(k);
  }
  return array(emit_transpose(b, x.value, std::move(perm)));
}

Result<ArgValue> build_matrix_transpose(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  const size_t rank = b.type(x.value).rank();
  if (rank < 2)
    return b.error(ErrorClass::kValueError,
                   row.is_property ? "matrix transpose with ndim < 2 is undefined"
                                   : "Input array must be at least 2-dimensional, but it is " +
                                         std::to_string(rank));
  std::vector<int64_t> perm = reversed_axes(rank);
  std::reverse(perm.begin(), perm.end());
  std::swap(perm[rank - 1], perm[rank - 2]);
  return array(emit_transpose(b, x.value, std::move(perm)));
}

Result<ArgValue> build_swapaxes(Builder& b, const DialectRow&, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  const size_t rank = b.type(x.value).rank();
  CUVIL_TRY(int64_t first, static_int(b, args[1], "axis1"));
  CUVIL_TRY(int64_t second, static_int(b, args[2], "axis2"));
  CUVIL_TRY(first, normalise_axis(b, first, rank, "axis1"));
  CUVIL_TRY(second, normalise_axis(b, second, rank, "axis2"));
  std::vector<int64_t> perm = reversed_axes(rank);
  std::reverse(perm.begin(), perm.end());
  std::swap(perm[static_cast<size_t>(first)], perm[static_cast<size_t>(second)]);
  return array(emit_transpose(b, x.value, std::move(perm)));
}

Result<ArgValue> build_moveaxis(Builder& b, const DialectRow&, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  const size_t rank = b.type(x.value).rank();
  std::vector<int64_t> moves[2];
  for (size_t k = 0; k < 2; ++k) {
    const char* what = k == 0 ? "source" : "destination";
    CUVIL_TRY(auto given, static_ints(b, args[1 + k], what));
    for (int64_t a : given) {
      CUVIL_TRY(int64_t axis, normalise_axis(b, a, rank, what));
      if (std::find(moves[k].begin(), moves[k].end(), axis) != moves[k].end())
        return b.error(ErrorClass::kValueError,
                       std::string("repeated axis in `") + what + "` argument");
      moves[k].push_back(axis);
    }
  }
  if (moves[0].size() != moves[1].size())
    return b.error(ErrorClass::kValueError,
                   "`source` and `destination` arguments must have the same number of elements");
  std::vector<int64_t> order;
  for (size_t k = 0; k < rank; ++k)
    if (std::find(moves[0].begin(), moves[0].end(), static_cast<int64_t>(k)) == moves[0].end())
      order.push_back(static_cast<int64_t>(k));
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (size_t k = 0; k < moves[0].size(); ++k) pairs.emplace_back(moves[1][k], moves[0][k]);
  std::sort(pairs.begin(), pairs.end());
  for (const auto& [to, from] : pairs) order.insert(order.begin() + to, from);
  return array(emit_transpose(b, x.value, std::move(order)));
}

Result<ArgValue> build_expand_dims(Builder& b, const DialectRow&, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  CUVIL_TRY(auto given, static_ints(b, args[1], "axis"));
  const size_t rank = b.type(x.value).rank() + given.size();
  std::vector<int64_t> axes;
  for (int64_t a : given) {
    CUVIL_TRY(int64_t k, normalise_axis(b, a, rank));
    if (std::find(axes.begin(), axes.end(), k) != axes.end())
      return b.error(ErrorClass::kValueError, "repeated axis");
    axes.push_back(k);
  }
  return array(emit_expand(b, x.value, std::move(axes)));
}

Result<ArgValue> build_squeeze(Builder& b, const DialectRow&, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  const ir::Shape shape = b.type(x.value).shape;
  std::vector<int64_t> axes;
  if (args[1].missing_or_none()) {
    for (size_t k = 0; k < shape.size(); ++k) {
      CUVIL_TRY(bool one, b.equal(shape[k], b.dim(1)));
      if (one) axes.push_back(static_cast<int64_t>(k));
    }
  } else {
    CUVIL_TRY(axes, normalise_axes(b, args[1], shape.size()));
    for (int64_t a : axes)
      CUVIL_CHECK(require(
          b, Relation::kEq, shape[static_cast<size_t>(a)], b.dim(1), ErrorClass::kValueError,
          "cannot select an axis to squeeze out which has size not equal to one",
          "axis " + std::to_string(a) + " has size {0}", {shape[static_cast<size_t>(a)]}));
  }
  return like(b, x, emit_squeeze(b, x.value, std::move(axes)));
}

Result<ArgValue> build_broadcast_to(Builder& b, const DialectRow&, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  CUVIL_TRY(ir::Shape target, dims_of(b, args[1], "a size"));
  const ir::Shape shape = b.type(x.value).shape;
  bool fits = shape.size() <= target.size();
  if (!fits && target.empty())
    return b.error(ErrorClass::kShape, "cannot broadcast a non-scalar to a scalar array");
  if (!fits)
    return b.error(ErrorClass::kShape,
                   "input operand has more dimensions than allowed by the axis remapping",
                   "the shape " + shape_text(b, target) + " has fewer axes than the array's " +
                       shape_text(b, shape));
  for (size_t k = 0; fits && k < shape.size(); ++k) {
    ir::Dim from = shape[k], to = target[target.size() - shape.size() + k];
    if (from == to || b.g.dims.is_constant(from, 1)) continue;
    CUVIL_TRY(bool same, b.equal(from, to));
    if (same) continue;
    CUVIL_TRY(fits, b.equal(from, b.dim(1)));
  }
  if (!fits)
    return b.error(
        ErrorClass::kShape,
        "operands could not be broadcast together with remapped shapes [original->remapped]: " +
            shape_text(b, shape) + "  and requested shape " + shape_text(b, target));
  return array(b.broadcast_to(x.value, target));
}

Result<ArgValue> build_broadcast_arrays(Builder& b, const DialectRow&, Args args) {
  std::vector<TensorArg> values;
  std::vector<ir::Shape> shapes;
  for (const ArgValue& a : **args[0].get<std::shared_ptr<ArgList>>()) {
    CUVIL_TRY(TensorArg x, as_tensor(b, a));
    values.push_back(x);
    shapes.push_back(b.type(x.value).shape);
  }
  CUVIL_TRY(ir::Shape shape, b.broadcast_shapes(shapes));
  ArgList out;
  for (const TensorArg& x : values) {
    const ir::Shape from = b.type(x.value).shape;
    bool same = from.size() == shape.size();
    for (size_t k = 0; same && k < shape.size(); ++k) {
      CUVIL_TRY(same, b.equal(from[k], shape[k]));
    }
    out.push_back(array(same ? x.value : b.broadcast_to(x.value, shape)));
  }
  return ArgValue::list(std::move(out));
}

Result<ArgValue> build_flip(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  const size_t rank = b.type(x.value).rank();
  std::vector<int64_t> axes;
  if (row.name == "numpy.flip") {
    CUVIL_TRY(axes, normalise_axes(b, args[1], rank));
  } else {
    const bool horizontal = row.name == "numpy.fliplr";
    if (rank < (horizontal ? 2u : 1u))
      return b.error(ErrorClass::kValueError,
                     horizontal ? "Input must be >= 2-d." : "Input must be >= 1-d.");
    axes.push_back(horizontal ? 1 : 0);
  }
  return array(flip_axes(b, x.value, axes));
}

Result<ArgValue> build_atleast(Builder& b, const DialectRow& row, Args args) {
  const auto& list = **args[0].get<std::shared_ptr<ArgList>>();
  const int want = row.name[std::string_view("numpy.atleast_").size()] - '0';
  ArgList out;
  for (const ArgValue& a : list) {
    CUVIL_TRY(TensorArg x, as_tensor(b, a));
    const size_t rank = b.type(x.value).rank();
    std::vector<int64_t> axes;
    if (want == 3 && rank == 2)
      axes = {2};
    else if (want == 3 && rank == 1)
      axes = {0, 2};
    else
      for (size_t k = rank; k < static_cast<size_t>(want); ++k)
        axes.push_back(static_cast<int64_t>(k - rank));
    out.push_back(array(emit_expand(b, x.value, std::move(axes))));
  }
  if (out.size() == 1) return out[0];
  return ArgValue::list(std::move(out));
}

// ---- What an array says about itself -----------------------------------------------------------------
ArgValue int_or_dim(Builder& b, ir::Dim d) {
  if (auto c = b.g.dims.as_constant(d)) return *c;
  return d;
}

Result<ArgValue> build_shape(Builder& b, const DialectRow&, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  ArgList out;
  for (ir::Dim d : ir::Shape(b.type(x.value).shape)) out.push_back(int_or_dim(b, d));
  return ArgValue::list(std::move(out));
}

Result<ArgValue> build_ndim(Builder& b, const DialectRow&, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  return ArgValue(static_cast<int64_t>(b.type(x.value).rank()));
}

Result<ArgValue> build_size(Builder& b, const DialectRow&, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  const ir::Shape shape = b.type(x.value).shape;
  if (args.size() > 1 && !args[1].missing_or_none()) {
    CUVIL_TRY(auto axes, normalise_axes(b, args[1], shape.size()));
    ir::Dim n = b.dim(1);
    for (int64_t a : axes) n = b.g.dims.mul(n, shape[static_cast<size_t>(a)]);
    return int_or_dim(b, n);
  }
  return int_or_dim(b, b.g.dims.product(shape));
}

Result<ArgValue> build_nbytes(Builder& b, const DialectRow&, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  const ir::Type t = b.type(x.value);
  return int_or_dim(b, b.g.dims.mul(b.g.dims.product(t.shape), b.dim(size_of(t.dtype))));
}

Result<ArgValue> build_itemsize(Builder& b, const DialectRow&, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  return ArgValue(static_cast<int64_t>(size_of(b.type(x.value).dtype)));
}

Result<ArgValue> build_dtype(Builder& b, const DialectRow&, Args args) {
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  return ArgValue(b.type(x.value).dtype);
}

using View = bool (*)(ir::Graph&, const ir::Op&, const Access&, Access*);
constexpr OpInfo movement(std::string_view name, int8_t arity, View view, std::string_view doc) {
  OpInfo r;
  r.name = name;
  r.family = Family::kMovement;
  r.arity = arity;
  r.view = view;
  r.recompute = arity == 1;  // has a view
  r.doc = doc;
  return r;
}

constexpr OpInfo kOps[] = {
    movement("reshape", 1, reshape_view, "the same elements in C order under another shape"),
    movement("transpose", 1, transpose_view, "axes in another order"),
    movement("expand_dims", 1, expand_view, "new axes of size 1"),
    movement("squeeze", 1, squeeze_view, "without axes of size 1"),
    movement("broadcast_to", 1, broadcast_view, "repeated along new axes and axes of size 1"),
    movement("slice", 1, slice_view, "element start + k * step along every axis"),
    movement("concatenate", -1, nullptr, "one after the other along an axis"),
};

constexpr DialectRow kRows[] = {
    {"operator.getitem", "a, b, /", build_getitem},
    {"numpy.reshape", "a, /, shape, order='C', *, copy=None", build_reshape},
    {"ndarray.reshape", "self, *shape, order='C', copy=None", build_reshape},
    {"numpy.ravel", "a, order='C'", build_ravel},
    {"ndarray.ravel", "self, order='C'", build_ravel},
    {"ndarray.flatten", "self, order='C'", build_flatten},
    {"numpy.transpose", "a, axes=None", build_transpose},
    {"numpy.permute_dims", "a, axes=None", build_transpose},
    {"ndarray.transpose", "self, *axes", build_transpose},
    {"ndarray.T", "self", build_transpose, {}, true},
    {"numpy.matrix_transpose", "x, /", build_matrix_transpose},
    {"numpy.linalg.matrix_transpose", "x, /", build_matrix_transpose},
    {"ndarray.mT", "self", build_matrix_transpose, {}, true},
    {"numpy.swapaxes", "a, axis1, axis2", build_swapaxes},
    {"ndarray.swapaxes", "self, axis1, axis2, /", build_swapaxes},
    {"numpy.moveaxis", "a, source, destination", build_moveaxis},
    {"numpy.expand_dims", "a, axis", build_expand_dims},
    {"numpy.squeeze", "a, axis=None", build_squeeze},
    {"ndarray.squeeze", "self, axis=None", build_squeeze},
    {"numpy.broadcast_to", "array, shape, subok=False", build_broadcast_to},
    {"numpy.broadcast_arrays", "*args, subok=False", build_broadcast_arrays},
    {"numpy.flip", "m, axis=None", build_flip},
    {"numpy.fliplr", "m", build_flip},
    {"numpy.flipud", "m", build_flip},
    {"numpy.atleast_1d", "*arys", build_atleast},
    {"numpy.atleast_2d", "*arys", build_atleast},
    {"numpy.atleast_3d", "*arys", build_atleast},
    {"ndarray.shape", "self", build_shape, {}, true},
    {"numpy.shape", "a", build_shape},
    {"ndarray.ndim", "self", build_ndim, {}, true},
    {"numpy.ndim", "a", build_ndim},
    {"ndarray.size", "self", build_size, {}, true},
    {"numpy.size", "a, axis=None", build_size},
    {"ndarray.nbytes", "self", build_nbytes, {}, true},
    {"ndarray.itemsize", "self", build_itemsize, {}, true},
    {"ndarray.dtype", "self", build_dtype, {}, true},
};

}  // namespace

Result<ir::ValueId> reshape(Builder& b, ir::ValueId v, ir::Shape shape) {
  const ir::Shape from = b.type(v).shape;
  ir::DimTable& t = b.g.dims;
  const ir::Dim total = t.product(from);
  std::optional<size_t> unknown;
  ir::Dim known = b.dim(1);
  for (size_t k = 0; k < shape.size(); ++k) {
    bool negative = false;
    if (ir::Range r = t.range(shape[k]); r.lo < 0) {
      CUVIL_TRY(negative, b.less(shape[k], b.dim(0)));
    }
    if (!negative) {
      known = t.mul(known, shape[k]);
    } else if (unknown) {
      return b.error(ErrorClass::kValueError, "can only specify one unknown dimension");
    } else {
      unknown = k;
      shape[k] = b.dim(-1);
    }
  }
  const Error mismatch = b.error(ErrorClass::kShape,
                                 "cannot reshape array of size " + dim_text(b, total) +
                                     " into shape " + requested_text(b, shape),
                                 "the array has the shape " + shape_text(b, from));
  if (!unknown) {
    CUVIL_TRY(bool same, b.equal(total, known));
    if (!same) return mismatch;
    return emit_reshape(b, v, std::move(shape));
  }
  if (t.is_constant(known, 0)) return mismatch;
  if (auto q = exact_divide(t, total, known)) {
    shape[*unknown] = *q;
    return emit_reshape(b, v, std::move(shape));
  }
  CUVIL_TRY(bool divides, b.equal(t.mod(total, known), b.dim(0)));
  if (!divides) return mismatch;
  shape[*unknown] = t.floordiv(total, known);
  return emit_reshape(b, v, std::move(shape));
}

ir::ValueId flatten(Builder& b, ir::ValueId v) {
  return emit_reshape(b, v, {b.g.dims.product(b.type(v).shape)});
}

FamilyTable movement_table() {
  static const std::vector<DialectRow> rows = [] {
    std::vector<DialectRow> all(std::begin(kRows), std::end(kRows));
    for (const DialectRow& r : joining_rows()) all.push_back(r);
    return all;
  }();
  return {kOps, rows};
}

}  // namespace cuvil::ops
