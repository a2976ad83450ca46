// Subscripts. Basic indexing of arrays (ints, slices, None, ...) becomes movement ops here, because ints
// may be loop indices that need a run-time check; index arrays and masks go to the getitem row.
#include "frontend/interpreter.h"
#include "ops/structural.h"

namespace cuvil::frontend {

namespace attr = ops::attr;

namespace {

bool is_static(const Value& v, PyObject* o) {
  const Static* s = v.get<Static>();
  return s && s->object.get() == o;
}

}  // namespace

Result<Value> Interpreter::eval_subscript(const Node& n) {
  CUVIL_TRY(Value base, eval(n.child(CUVIL_NAME("value"))));
  CUVIL_TRY(Value index, eval(n.child(CUVIL_NAME("slice"))));
  return subscript(base, index, n);
}

Result<Value> Interpreter::eval_slice(const Node& n) {
  auto s = std::make_shared<SliceValue>();
  for (PyObject* part : {CUVIL_NAME("lower"), CUVIL_NAME("upper"), CUVIL_NAME("step")}) {
    Node c = n.child(part);
    if (!c.present()) {
      s->parts.push_back(none());
      continue;
    }
    CUVIL_TRY(Value v, eval(c));
    if (const Static* part = v.get<Static>()) CUVIL_CHECK(use(*part, n));
    s->parts.push_back(std::move(v));
  }
  return Value(std::move(s));
}

Result<Value> Interpreter::subscript(const Value& base, const Value& index, const Node& n) {
  if (const Tensor* t = base.get<Tensor>()) return subscript_tensor(*t, index, false, n);
  if (const Container* c = base.container()) {
    if (c->kind == Container::Kind::kDict) {
      CUVIL_TRY(std::optional<PyRef> key, as_object(index, n));
      if (!key) return unsupported("a run-time dict key", "use a static key", n);
      for (size_t k = 0; k < c->keys.size(); ++k) {
        int r = PyObject_RichCompareBool(c->keys[k].get(), key->get(), Py_EQ);
        if (r < 0) return python_error(n);
        if (r) return c->items[k];
      }
      return fail(ErrorClass::kKeyError, short_repr(key->get()), {}, n);
    }
    const auto size = static_cast<int64_t>(c->items.size());
    if (auto* s = index.get<std::shared_ptr<SliceValue>>()) {
      Values fixed;
      for (const Value& part : (*s)->parts) {
        const ir::Dim* d = part.get<ir::Dim>();
        CUVIL_TRY(Value f, d ? specialise(*d, n) : Result<Value>(part));
        fixed.push_back(std::move(f));
      }
      auto plain = std::make_shared<SliceValue>();
      plain->parts = std::move(fixed);
      CUVIL_TRY(std::optional<PyRef> object, as_object(Value(plain), n));
      Py_ssize_t start = 0, stop = 0, step = 0;
      if (!object || PySlice_Unpack(object->get(), &start, &stop, &step) < 0)
        return python_error(n);
      Py_ssize_t length = PySlice_AdjustIndices(size, &start, &stop, step);
      Values items;
      for (Py_ssize_t k = 0; k < length; ++k)
        items.push_back(c->items[static_cast<size_t>(start + k * step)]);
      return make_container(c->kind == Container::Kind::kList ? c->kind : Container::Kind::kTuple,
                            std::move(items));
    }
    std::optional<ir::Dim> d = as_dim(index);
    if (!d)
      return fail(ErrorClass::kTypeError, describe(base) + " is indexed with " + describe(index),
                  "use an int or a slice", n);
    CUVIL_TRY(Value fixed, specialise(*d, n));
    int64_t k = to_int64(fixed.get<Static>()->object.get()).value_or(0);
    if (k < -size || k >= size)
      return fail(
          ErrorClass::kIndexError,
          std::string(c->kind == Container::Kind::kList ? "list" : "tuple") + " index out of range",
          "the sequence has " + std::to_string(size) + " items", n);
    return c->items[static_cast<size_t>(k < 0 ? k + size : k)];
  }
  if (const Static* s = base.get<Static>()) {
    Value at = index;
    if (const ir::Dim* d = index.get<ir::Dim>()) {
      CUVIL_TRY(at, specialise(*d, n));
    }
    CUVIL_TRY(std::optional<PyRef> key, as_object(at, n));
    if (!key)
      return unsupported("indexing " + describe(base) + " with " + describe(index),
                         "make it an array first", n);
    PyObject* o = s->object.get();
    PyRef item = PyRef::steal(PyObject_GetItem(o, key->get()));
    if (!item) return python_error(n);
    if (s->source < 0) return wrap(std::move(item));
    std::optional<artifact::Const> k = const_of(key->get());
    if (k && k->kind != artifact::Const::Kind::kSlice && !PyType_Check(o))
      return load(std::move(item), capture_.source(Capture::Kind::kItem, s->source, 0, {}, k), n);
    CUVIL_CHECK(use_value(*s, n));
    return wrap(std::move(item));
  }
  if (const ir::Dim* d = base.get<ir::Dim>()) {
    (void)d;
    return fail(ErrorClass::kTypeError, "'int' object is not subscriptable", {}, n);
  }
  CUVIL_TRY(Values items, items_of(base, n));
  return subscript(make_container(Container::Kind::kTuple, std::move(items)), index, n);
}

// The Python int that a rank-0 integer tensor holds when the code runs.
Result<ir::Dim> Interpreter::bind_scalar(const Tensor& t, const Node& n) {
  ops::Builder b = builder(n);
  ir::ValueId v = b.cast(read(t), DType::kI64);
  const ir::Op* def = g_.def(v);
  if (def && def->desc->name == "dim_value") return def->dims(attr::kDim)[0];
  if (def && def->desc->name == "constant") return g_.dims.constant(def->integer(attr::kBits));
  ir::Range range;
  DType dtype = type_of(t).dtype;
  if (is_unsigned(dtype) || is_bool(dtype)) range.lo = 0;
  if (size_of(dtype) < 8) {
    range.hi = (int64_t{1} << (8 * size_of(dtype))) - 1;
    if (is_signed(dtype)) range = {-(range.hi + 1) / 2, range.hi / 2};
  }
  ir::Dim d = new_symbol("v", range);
  std::vector<ir::SymbolId> symbols;
  g_.dims.collect_symbols(d, &symbols);
  g_.add_op(region_, *ops::find_desc("bind_dim"), {v}, {},
            {{attr::kSymbol, int64_t{symbols[0].id}}}, b.loc);
  return d;
}

Result<ir::Dim> Interpreter::checked_index(ir::Dim index, ir::Dim dim, size_t axis, const Node& n) {
  ir::DimTable& dims = g_.dims;
  const ir::Dim zero = dims.constant(0);
  auto out_of_bounds = [&](ir::Dim i) {
    int64_t now = dims.example(i).value_or(0), size = dims.example(dim).value_or(0);
    return fail(ErrorClass::kIndexError,
                "index " + std::to_string(now) + " is out of bounds for axis " +
                    std::to_string(axis) + " with size " + std::to_string(size),
                "use an index from " + std::to_string(-size) + " to " + std::to_string(size - 1),
                n);
  };
  if (!dims.depends_on_internal(index) && !dims.depends_on_internal(dim)) {
    CUVIL_TRY(bool negative, less(index, zero, n));
    ir::Dim i = negative ? dims.add(index, dim) : index;
    if (negative) {
      CUVIL_TRY(bool below, less(i, zero, n));
      if (below) return out_of_bounds(index);
    }
    CUVIL_TRY(bool inside, less(i, dim, n));
    if (!inside) return out_of_bounds(index);
    return i;
  }
  auto check = [&](artifact::Predicate::Op op, ir::Dim lhs, ir::Dim rhs) {
    g_.add_op(region_, *ops::find_desc("check"), {}, {},
              {{attr::kOp, int64_t{static_cast<int>(op)}},
               {attr::kLhs, ir::Shape{lhs}},
               {attr::kRhs, ir::Shape{rhs}},
               {attr::kError, int64_t{static_cast<int>(ErrorClass::kIndexError)}},
               {attr::kMessage,
                "index {0} is out of bounds for axis " + std::to_string(axis) + " with size {1}"},
               {attr::kRemedy, std::string("use an index within the axis")},
               {attr::kPayload, ir::Shape{index, dim}}},
              loc(n));
  };
  ir::Dim below_zero = dims.sub(zero, dims.constant(1));
  bool nonnegative = provably_less(below_zero, index);
  if (!provably_less(index, dim)) check(artifact::Predicate::Op::kLt, index, dim);
  if (nonnegative) return index;
  if (provably_less(index, zero)) {
    ir::Dim i = dims.add(index, dim);
    if (!provably_less(below_zero, i)) check(artifact::Predicate::Op::kLe, zero, i);
    return i;
  }
  ir::Dim lowest = dims.sub(zero, dim);
  if (!provably_less(dims.sub(lowest, dims.constant(1)), index))
    check(artifact::Predicate::Op::kLe, lowest, index);
  return dims.mod(index, dim);  // -dim <= index < dim: Python's wrap
}

Result<Value> Interpreter::subscript_tensor(const Tensor& t, const Value& index, bool for_store,
                                            const Node& n) {
  ir::DimTable& dims = g_.dims;
  const ir::Type type = type_of(t);
  if (t.weak != ops::Weak::kNo)
    return fail(ErrorClass::kTypeError, describe(Value(t)) + " is not subscriptable",
                "index an array", n);

  // The index as a list of items; static tuples and slices taken apart.
  Values items;
  if (const Container* c = index.container();
      c && (c->kind == Container::Kind::kTuple || c->kind == Container::Kind::kNamedTuple)) {
    items = c->items;
  } else if (const Static* s = index.get<Static>(); s && PyTuple_Check(s->object.get())) {
    CUVIL_TRY(items, items_of_static(*s, n));
  } else {
    items.push_back(index);
  }
  bool basic = true, ellipsis = false;
  size_t consumed = 0;
  for (Value& item : items) {
    if (is_static(item, Py_None) || is_static(item, Py_Ellipsis))
      CUVIL_CHECK(use(*item.get<Static>(), n));
    if (const Static* s = item.get<Static>(); s && is_exactly(s->object.get(), &PySlice_Type)) {
      CUVIL_CHECK(use(*s, n));
      auto slice = std::make_shared<SliceValue>();
      PyObject* o = s->object.get();
      slice->parts = {wrap(CUVIL_ATTR(o, "start")), wrap(CUVIL_ATTR(o, "stop")),
                      wrap(CUVIL_ATTR(o, "step"))};
      item = Value(std::move(slice));
    }
    if (const Tensor* i = item.get<Tensor>()) {
      const ir::Type& it = type_of(*i);
      if (it.rank() == 0 && is_int(it.dtype)) {
        CUVIL_TRY(ir::Dim d, bind_scalar(*i, n));
        item = dim_or_static(d);
      } else if (it.rank() == 0 && is_float(it.dtype)) {
        return fail(
            ErrorClass::kIndexError,
            "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer "
            "or boolean arrays are valid indices",
            "convert the index with int() or .astype(np.int64)", n);
      } else {
        basic = false;
        consumed += is_bool(it.dtype) ? it.rank() : 1;
        continue;
      }
    }
    if (is_static(item, Py_Ellipsis)) {
      if (ellipsis)
        return fail(ErrorClass::kIndexError, "an index can only have a single ellipsis ('...')", {},
                    n);
      ellipsis = true;
    } else if (is_static(item, Py_None)) {
      continue;
    } else if (item.is<std::shared_ptr<SliceValue>>()) {
      ++consumed;
    } else if (const Static* s = item.get<Static>(); s && PyBool_Check(s->object.get())) {
      basic = false;
    } else if (as_dim(item)) {
      ++consumed;
    } else if (const Container* c = item.container(); c && c->kind == Container::Kind::kList) {
      basic = false;
      ++consumed;
    } else {
      const Static* s = item.get<Static>();
      if (s && PyList_Check(s->object.get()))
        return unsupported("indexing with a list", "use a slice, or np.stack of the rows", n);
      if (s) CUVIL_CHECK(use_value(*s, n));
      return fail(
          ErrorClass::kIndexError,
          "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or "
          "boolean arrays are valid indices, not " +
              describe(item),
          "convert the index", n);
    }
  }
  if (consumed > type.rank())
    return fail(ErrorClass::kIndexError,
                "too many indices for array: array is " + std::to_string(type.rank()) +
                    "-dimensional, but " + std::to_string(consumed) + " were indexed",
                "drop an index", n);
  if (!basic) {
    if (for_store)
      return unsupported("assignment through an index array", "use a slice, a mask or np.where", n);
    Value list = make_container(Container::Kind::kTuple, items);
    return call_operator("operator.getitem", {Value(t), items.size() == 1 ? items[0] : list}, n);
  }

  ir::Shape starts, sizes, expanded;
  std::vector<int64_t> steps, squeezed, inserted;
  ir::Shape kept;  // after slice and squeeze
  bool sliced = false;
  size_t axis = 0, out_axis = 0;
  auto whole = [&](size_t count) {
    for (size_t k = 0; k < count; ++k, ++axis, ++out_axis) {
      starts.push_back(dims.constant(0));
      steps.push_back(1);
      sizes.push_back(type.shape[axis]);
      kept.push_back(type.shape[axis]);
    }
  };
  for (const Value& item : items) {
    if (is_static(item, Py_None)) {
      inserted.push_back(static_cast<int64_t>(out_axis++));
      continue;
    }
    if (is_static(item, Py_Ellipsis)) {
      whole(type.rank() - consumed);
      continue;
    }
    const ir::Dim extent = type.shape[axis];
    if (auto* s = item.get<std::shared_ptr<SliceValue>>()) {
      CUVIL_TRY(SliceDims d, slice_dims((*s)->parts, extent, n));
      sliced = sliced || d.start != dims.constant(0) || d.step != 1 || d.size != extent;
      starts.push_back(d.start);
      steps.push_back(d.step);
      sizes.push_back(d.size);
      kept.push_back(d.size);
      ++out_axis;
    } else {
      CUVIL_TRY(ir::Dim i, checked_index(*as_dim(item), extent, axis, n));
      starts.push_back(i);
      steps.push_back(1);
      sizes.push_back(dims.constant(1));
      squeezed.push_back(static_cast<int64_t>(axis));
      sliced = true;
    }
    ++axis;
  }
  whole(type.rank() - axis);

  const ir::ValueId base = read(t);
  ir::ValueId v = base;
  std::vector<ir::OpId> made;
  ops::Builder b = builder(n);
  auto emit = [&](std::string_view op, ir::Type result, std::vector<ir::Attribute> attributes) {
    v = b.emit(op, {v}, std::move(result), std::move(attributes));
    made.push_back(g_.value(v).def);
  };
  if (sliced)
    emit("slice", {type.dtype, sizes},
         {{attr::kStarts, starts}, {attr::kSteps, steps}, {attr::kSizes, sizes}});
  if (!squeezed.empty()) emit("squeeze", {type.dtype, kept}, {{attr::kAxes, squeezed}});
  if (!inserted.empty()) {
    ir::Shape shape = kept;
    for (int64_t at : inserted) shape.insert(shape.begin() + at, dims.constant(1));
    emit("expand_dims", {type.dtype, shape}, {{attr::kAxes, inserted}});
  }
  Tensor out = t;
  out.steps.insert(out.steps.end(), made.begin(), made.end());
  out.same_object = false;
  out.cached = v;
  out.cached_version = cells_[static_cast<size_t>(t.cell)].version;
  out.cached_region = region_;
  // All axes indexed: a NumPy scalar, which is a copy.
  if (!for_store && !ellipsis && type_of(out).rank() == 0 && inserted.empty())
    return Value(fresh(v, ops::Weak::kNo, true));
  if (t.scalar) return Value(fresh(v, ops::Weak::kNo, false));  // `scalar[...]` is an array
  return Value(out);
}

// start, step and size of a slice of an axis, as NumPy clamps them.
Result<Interpreter::SliceDims> Interpreter::slice_dims(const Values& parts, ir::Dim extent,
                                                       const Node& n) {
  ir::DimTable& dims = g_.dims;
  const ir::Dim zero = dims.constant(0), one = dims.constant(1);
  auto part = [&](const Value& v) -> Result<std::optional<ir::Dim>> {
    if (is_static(v, Py_None)) return std::optional<ir::Dim>();
    if (const Tensor* t = v.get<Tensor>();
        t && type_of(*t).rank() == 0 && is_int(type_of(*t).dtype)) {
      CUVIL_TRY(ir::Dim d, bind_scalar(*t, n));
      return std::optional<ir::Dim>(d);
    }
    std::optional<ir::Dim> d = as_dim(v);
    if (!d)
      return fail(
          ErrorClass::kTypeError,
          "slice indices must be integers or None or have an __index__ method, not " + describe(v),
          "use ints", n);
    return d;
  };
  CUVIL_TRY(std::optional<ir::Dim> start, part(parts[0]));
  CUVIL_TRY(std::optional<ir::Dim> stop, part(parts[1]));
  CUVIL_TRY(std::optional<ir::Dim> step_dim, part(parts[2]));
  int64_t step = 1;
  if (step_dim) {
    CUVIL_TRY(Value fixed, specialise(*step_dim, n));
    step = to_int64(fixed.get<Static>()->object.get()).value_or(1);
  }
  if (step == 0)
    return fail(ErrorClass::kValueError, "slice step cannot be zero", "use 1 or -1", n);

  // min and max that ask first: proven or decided for this call they give the plain operand.
  auto smaller = [&](ir::Dim a, ir::Dim b) -> ir::Dim {
    if (Result<bool> r = less(a, b, n); r.ok()) return *r ? a : b;
    if (Result<bool> r = less(b, a, n); r.ok()) return *r ? b : a;
    return dims.min(a, b);
  };
  auto larger = [&](ir::Dim a, ir::Dim b) -> ir::Dim {
    if (Result<bool> r = less(a, b, n); r.ok()) return *r ? b : a;
    if (Result<bool> r = less(b, a, n); r.ok()) return *r ? a : b;
    return dims.max(a, b);
  };
  const ir::Dim low = step > 0 ? zero : dims.constant(-1);
  const ir::Dim high = step > 0 ? extent : dims.sub(extent, one);
  auto clamp = [&](ir::Dim d) -> Result<ir::Dim> {
    Result<bool> negative = less(d, zero, n);
    if (!negative.ok())
      return unsupported("a slice bound that may be negative and is known at run time only",
                         "use a bound that is not negative", n);
    if (*negative) return larger(dims.add(d, extent), low);
    return smaller(d, high);
  };
  ir::Dim first = step > 0 ? zero : high, last = step > 0 ? extent : low;
  if (start) {
    CUVIL_TRY(first, clamp(*start));
  }
  if (stop) {
    CUVIL_TRY(last, clamp(*stop));
  }
  ir::Dim distance = step > 0 ? dims.sub(last, first) : dims.sub(first, last);
  ir::Dim positive = larger(distance, zero);
  int64_t magnitude = step > 0 ? step : -step;
  ir::Dim size = magnitude == 1 ? positive
                                : dims.floordiv(dims.add(positive, dims.constant(magnitude - 1)),
                                                dims.constant(magnitude));
  // An empty slice may start anywhere: keep its start inside.
  if (dims.is_constant(size, 0)) first = zero;
  return SliceDims{first, size, step};
}

Result<> Interpreter::store_subscript(const Value& base, const Value& index, const Value& v,
                                      const Node& n) {
  if (const Tensor* t = base.get<Tensor>()) {
    if (t->scalar || t->weak != ops::Weak::kNo)
      return fail(ErrorClass::kTypeError, describe(base) + " does not support item assignment",
                  "assign to an element of an array", n);
    CUVIL_CHECK(check_writable(*t, n));
    // A mask: the elements it selects become the value, the others stay.
    if (const Tensor* mask = index.get<Tensor>(); mask && is_bool(type_of(*mask).dtype)) {
      const ir::Type type = type_of(*t), mask_type = type_of(*mask);
      bool same = mask_type.rank() == type.rank();
      for (size_t k = 0; same && k < type.rank(); ++k) {
        CUVIL_TRY(same, equal(mask_type.shape[k], type.shape[k], n));
      }
      CUVIL_TRY(Tensor value, as_tensor(v, n));
      const ops::DialectRow* where = ops::find_row("numpy.where");
      if (!same || !where || type_of(value).rank() > 0)
        return unsupported("assignment through a mask with " + describe(v),
                           "use np.where(mask, value, array)", n);
      ops::Builder b = builder(n);
      Arguments args;
      args.positional = {index, Value(fresh(b.cast(read(value), type.dtype))), base};
      CUVIL_TRY(Value chosen, call_row(*where, nullptr, args, -1, n));
      return write(*t, read(*chosen.get<Tensor>()), n);
    }
    CUVIL_TRY(Value view, subscript_tensor(*t, index, true, n));
    const Tensor& target = *view.get<Tensor>();
    CUVIL_TRY(ir::ValueId value, fit(v, target, n));
    return write(target, value, n);
  }
  if (Container* c = base.container()) {
    CUVIL_CHECK(will_mutate(*c, n));
    if (c->kind == Container::Kind::kDict) {
      CUVIL_TRY(std::optional<PyRef> key, as_object(index, n));
      if (!key) return unsupported("a run-time dict key", "use a static key", n);
      if (PyObject_Hash(key->get()) == -1) return python_error(n);
      CUVIL_CHECK(check_acyclic(*c, v, n));
      for (size_t k = 0; k < c->keys.size(); ++k) {
        int r = PyObject_RichCompareBool(c->keys[k].get(), key->get(), Py_EQ);
        if (r < 0) return python_error(n);
        if (r) {
          c->items[k] = v;
          return Ok{};
        }
      }
      c->keys.push_back(std::move(*key));
      c->items.push_back(v);
      return Ok{};
    }
    std::optional<ir::Dim> d = as_dim(index);
    if (c->kind == Container::Kind::kList && d) {
      CUVIL_TRY(Value fixed, specialise(*d, n));
      int64_t k = to_int64(fixed.get<Static>()->object.get()).value_or(0);
      const auto size = static_cast<int64_t>(c->items.size());
      if (k < -size || k >= size)
        return fail(ErrorClass::kIndexError, "list assignment index out of range", {}, n);
      CUVIL_CHECK(check_acyclic(*c, v, n));
      c->items[static_cast<size_t>(k < 0 ? k + size : k)] = v;
      return Ok{};
    }
    return unsupported("item assignment to " + describe(base), "use a list, a dict or an array", n);
  }
  const Static* s = base.get<Static>();
  if (s && s->source >= 0)
    return unsupported("this changes `" + capture_.path(s->source) + "`, which is not an array",
                       "return the new value and store it outside", n);
  return fail(ErrorClass::kTypeError, describe(base) + " does not support item assignment", {}, n);
}

}  // namespace cuvil::frontend
