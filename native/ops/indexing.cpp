// Basic indexing: x[i, a:b:c, None, ...] as slice, squeeze and expand_dims. Called by operator.getitem
// and by the splitting rows.
#include <algorithm>

#include "ops/interpret.h"
#include "ops/movement.h"
#include "ops/structural.h"

namespace cuvil::ops {
namespace {

using Relation = artifact::Predicate::Op;

// The smaller of two dims: decided for this call where the caller binds them, else an expression.
ir::Dim smaller(Builder& b, ir::Dim x, ir::Dim y) {
  ir::Dim m = b.g.dims.min(x, y);
  if (m == x || m == y) return m;
  auto less = b.less(x, y);
  return less.ok() ? (*less ? x : y) : m;
}
ir::Dim larger(Builder& b, ir::Dim x, ir::Dim y) {
  ir::Dim m = b.g.dims.max(x, y);
  if (m == x || m == y) return m;
  auto less = b.less(x, y);
  return less.ok() ? (*less ? y : x) : m;
}

// The number an index argument stands for; an element of an array becomes an internal symbol.
Result<ir::Dim> index_dim(Builder& b, const ArgValue& a) {
  const auto* t = a.get<TensorArg>();
  if (!t) return dim_of(b, a, "an index");
  const ir::Type type = b.type(t->value);
  if (is_bool(type.dtype))
    return b.error(ErrorClass::kUnsupported, "a boolean mask as an index is not compiled",
                   "use np.where(mask, a, b), which has a fixed shape");
  if (!is_int(type.dtype))
    return b.error(
        ErrorClass::kIndexError,
        "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer "
        "or boolean arrays are valid indices");
  if (type.rank() != 0)
    return b.error(ErrorClass::kUnsupported, "an array of integers as an index is not compiled",
                   "index with single integers or slices, in a loop where needed");
  const ir::Op* def = b.g.def(t->value);
  if (def && (def->desc->name == "constant" || def->desc->name == "dim_value"))
    return dim_of(b, a, "an index");
  ir::DimTable::SymbolInfo info;
  info.name = "index" + std::to_string(b.g.dims.symbol_count());
  info.kind = artifact::Symbol::Kind::kInternal;
  if (size_of(type.dtype) < 8) {
    const int bits = size_of(type.dtype) * 8;
    info.range = is_signed(type.dtype)
                     ? ir::Range{INT64_MIN >> (64 - bits), INT64_MAX >> (64 - bits)}
                     : ir::Range{0, (int64_t{1} << bits) - 1};
  }
  ir::SymbolId s = b.g.dims.add_symbol(std::move(info));
  b.g.add_op(b.region, *find_op("bind_dim"), {b.cast(t->value, DType::kI64)}, {},
             {{attr::kSymbol, static_cast<int64_t>(s.id)}}, b.loc);
  return b.g.dims.symbol(s);
}

// Counts a negative index from the end, with NumPy's IndexError.
Result<ir::Dim> wrap_index(Builder& b, ir::Dim i, ir::Dim n, size_t axis) {
  const std::string message =
      "index {0} is out of bounds for axis " + std::to_string(axis) + " with size {1}";
  const std::string remedy = "use an index from -{1} to {1} - 1";
  const ir::Range r = b.g.dims.range(i);
  bool negative = false, known = true;
  if (r.hi < 0 || r.lo >= 0) {
    negative = r.hi < 0;
  } else if (auto less = b.less(i, b.dim(0)); less.ok()) {
    negative = *less;
  } else {
    known = false;
  }
  if (!known || negative)
    CUVIL_CHECK(require(b, Relation::kLe, b.g.dims.sub(b.dim(0), n), i, ErrorClass::kIndexError,
                        message, remedy, {i, n}));
  if (!known || !negative)
    CUVIL_CHECK(require(b, Relation::kLt, i, n, ErrorClass::kIndexError, message, remedy, {i, n}));
  if (!known) return b.g.dims.mod(i, n);
  return negative ? b.g.dims.add(i, n) : i;
}

struct Bounds {
  ir::Dim start, size;
  int64_t step;
};

// Python's slice.indices.
Result<Bounds> slice_bounds(Builder& b, const SliceArg& s, ir::Dim n) {
  ir::DimTable& t = b.g.dims;
  int64_t step = 1;
  if (!s.step.missing_or_none()) {
    CUVIL_TRY(step, static_int(b, s.step, "a slice step"));
    if (step == 0) return b.error(ErrorClass::kValueError, "slice step cannot be zero");
  }
  const ir::Dim zero = b.dim(0), minus_one = b.dim(-1), last = t.sub(n, b.dim(1));
  auto bound = [&](const ArgValue& a, ir::Dim otherwise) -> Result<ir::Dim> {
    if (a.missing_or_none()) return otherwise;
    CUVIL_TRY(ir::Dim d, index_dim(b, a));
    const ir::Range r = t.range(d);
    bool negative = r.hi < 0;
    if (r.lo < 0 && r.hi >= 0) {
      CUVIL_TRY(negative, b.less(d, zero));
    }
    if (negative) return larger(b, t.add(d, n), step > 0 ? zero : minus_one);
    return smaller(b, d, step > 0 ? n : last);
  };
  CUVIL_TRY(ir::Dim start, bound(s.start, step > 0 ? zero : last));
  CUVIL_TRY(ir::Dim stop, bound(s.stop, step > 0 ? n : minus_one));
  ir::Dim span = step > 0 ? t.sub(stop, start) : t.sub(start, stop);
  span = larger(b, span, zero);
  const int64_t stride = step > 0 ? step : -step;
  ir::Dim size = stride == 1 ? span : t.floordiv(t.add(span, b.dim(stride - 1)), b.dim(stride));
  if (t.is_constant(size, 0)) start = zero;  // an empty slice stays inside the buffer
  return Bounds{start, size, step};
}

bool is_index_list(const ArgValue& a) { return a.is<std::shared_ptr<ArgList>>(); }

}  // namespace

Result<ir::ValueId> slice_axis(Builder& b, ir::ValueId v, int64_t axis, const SliceArg& slice) {
  const ir::Type t = b.type(v);
  CUVIL_TRY(Bounds r, slice_bounds(b, slice, t.shape[static_cast<size_t>(axis)]));
  ir::Shape starts(t.rank(), b.dim(0)), sizes = t.shape;
  std::vector<int64_t> steps(t.rank(), 1);
  starts[static_cast<size_t>(axis)] = r.start;
  sizes[static_cast<size_t>(axis)] = r.size;
  steps[static_cast<size_t>(axis)] = r.step;
  return emit_slice(b, v, std::move(starts), std::move(steps), std::move(sizes));
}

ir::ValueId flip_axes(Builder& b, ir::ValueId v, std::span<const int64_t> axes) {
  const ir::Type t = b.type(v);
  if (axes.empty()) return v;
  ir::Shape starts(t.rank(), b.dim(0));
  std::vector<int64_t> steps(t.rank(), 1);
  for (int64_t a : axes) {
    auto k = static_cast<size_t>(a);
    if (b.g.dims.is_constant(t.shape[k], 0)) continue;
    starts[k] = b.g.dims.sub(t.shape[k], b.dim(1));
    steps[k] = -1;
  }
  return emit_slice(b, v, std::move(starts), std::move(steps), t.shape);
}

Result<ArgValue> index_tensor(Builder& b, const TensorArg& x, const ArgValue& index) {
  // A tuple indexes axes in turn; a list of ints would be an array of indices.
  ArgList items;
  if (is_index_list(index)) {
    items = **index.get<std::shared_ptr<ArgList>>();
  } else {
    items.push_back(index);
  }
  const ir::Type type = b.type(x.value);
  size_t used = 0, ellipses = 0;
  for (const ArgValue& item : items) {
    if (item.is<bool>())
      return b.error(ErrorClass::kUnsupported, "a Python bool as an index",
                     "use 0 or 1, or None for a new axis");
    if (is_index_list(item))
      return b.error(ErrorClass::kUnsupported, "a list as an index",
                     "index with single integers or slices");
    if (item.is<double>() || item.is<std::string>() || item.is<DType>())
      return b.error(ErrorClass::kIndexError,
                     "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and "
                     "integer or boolean arrays are valid indices");
    if (item.is<ArgValue::Ellipsis>()) {
      ++ellipses;
    } else if (!item.is<ArgValue::None>()) {
      ++used;
    }
  }
  if (ellipses > 1)
    return b.error(ErrorClass::kIndexError, "an index can only have a single ellipsis ('...')");
  if (used > type.rank()) {
    if (x.scalar) return b.error(ErrorClass::kIndexError, "invalid index to scalar variable.");
    return b.error(ErrorClass::kIndexError, "too many indices for array: array is " +
                                                std::to_string(type.rank()) + "-dimensional, but " +
                                                std::to_string(used) + " were indexed");
  }
  ir::Shape starts(type.rank(), b.dim(0)), sizes = type.shape;
  std::vector<int64_t> steps(type.rank(), 1), dropped, added;
  size_t axis = 0;
  int64_t result_axis = 0;
  for (const ArgValue& item : items) {
    if (item.is<ArgValue::None>()) {
      added.push_back(result_axis++);
    } else if (item.is<ArgValue::Ellipsis>()) {
      const size_t rest = type.rank() - used;
      axis += rest;
      result_axis += static_cast<int64_t>(rest);
    } else if (const auto* s = item.get<std::shared_ptr<SliceArg>>()) {
      CUVIL_TRY(Bounds r, slice_bounds(b, **s, type.shape[axis]));
      starts[axis] = r.start;
      sizes[axis] = r.size;
      steps[axis] = r.step;
      ++axis;
      ++result_axis;
    } else {
      CUVIL_TRY(ir::Dim i, index_dim(b, item));
      CUVIL_TRY(starts[axis], wrap_index(b, i, type.shape[axis], axis));
      sizes[axis] = b.dim(1);
      dropped.push_back(static_cast<int64_t>(axis));
      ++axis;
    }
  }
  ir::ValueId v = emit_slice(b, x.value, std::move(starts), std::move(steps), std::move(sizes));
  v = emit_squeeze(b, v, std::move(dropped));
  v = emit_expand(b, v, std::move(added));
  // Only an index without `...` takes an element out as a scalar.
  return ArgValue(TensorArg{v, Weak::kNo, b.type(v).rank() == 0 && ellipses == 0});
}

Result<ArgValue> build_getitem(Builder& b, const DialectRow&, Args args) {
  const auto* x = args[0].get<TensorArg>();
  if (!x)
    return b.error(ErrorClass::kTypeError, "an object that cannot be indexed", "index an array");
  return index_tensor(b, *x, args[1]);
}

}  // namespace cuvil::ops
