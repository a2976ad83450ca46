// Tuples, lists and dicts: those the function makes, and those it reads from outside.
#include "frontend/interpreter.h"

namespace cuvil::frontend {

constexpr int64_t kLargestUnrolled = 4096;

Value Interpreter::make_container(Container::Kind kind, Values items) {
  auto c = std::make_shared<Container>();
  c->kind = kind;
  c->items = std::move(items);
  c->depth = loop_depth_;
  return Value(std::move(c));
}

Value Interpreter::wrap(PyRef object) {
  PyObject* o = object.get();
  bool tuple = is_exactly(o, &PyTuple_Type), list = is_exactly(o, &PyList_Type);
  if (tuple || list) {
    Values items;
    Py_ssize_t n = tuple ? PyTuple_Size(o) : PyList_Size(o);
    for (Py_ssize_t i = 0; i < n; ++i)
      items.push_back(wrap(PyRef::borrow(tuple ? PyTuple_GetItem(o, i) : PyList_GetItem(o, i))));
    return make_container(tuple ? Container::Kind::kTuple : Container::Kind::kList,
                          std::move(items));
  }
  if (is_exactly(o, &PyDict_Type)) {
    Value v = make_container(Container::Kind::kDict, {});
    PyObject *key = nullptr, *item = nullptr;
    Py_ssize_t at = 0;
    while (PyDict_Next(o, &at, &key, &item)) {
      v.container()->keys.push_back(PyRef::borrow(key));
      v.container()->items.push_back(wrap(PyRef::borrow(item)));
    }
    return v;
  }
  return static_of(std::move(object));
}

Result<std::optional<PyRef>> Interpreter::as_object(const Value& v, const Node& n) {
  using Object = std::optional<PyRef>;
  if (const Static* s = v.get<Static>()) {
    CUVIL_CHECK(use_value(*s, n));
    return Object(s->object);
  }
  if (auto* s = v.get<std::shared_ptr<SliceValue>>()) {
    PyRef parts[3];
    for (size_t k = 0; k < 3; ++k) {
      CUVIL_TRY(Object part, as_object((*s)->parts[k], n));
      if (!part) return Object();
      parts[k] = std::move(*part);
    }
    return Object(PyRef::steal(PySlice_New(parts[0].get(), parts[1].get(), parts[2].get())));
  }
  const Container* c = v.container();
  if (!c) return Object();
  std::vector<PyRef> items;
  for (const Value& item : c->items) {
    CUVIL_TRY(Object o, as_object(item, n));
    if (!o) return Object();
    items.push_back(std::move(*o));
  }
  if (c->kind == Container::Kind::kDict) {
    PyRef d = PyRef::steal(PyDict_New());
    for (size_t k = 0; k < items.size(); ++k)
      if (PyDict_SetItem(d.get(), c->keys[k].get(), items[k].get()) < 0) return python_error(n);
    return Object(std::move(d));
  }
  PyRef list = PyRef::steal(PyList_New(0));
  for (const PyRef& item : items)
    if (PyList_Append(list.get(), item.get()) < 0) return python_error(n);
  switch (c->kind) {
    case Container::Kind::kList: return Object(std::move(list));
    case Container::Kind::kTuple: return Object(PyRef::steal(PyList_AsTuple(list.get())));
    case Container::Kind::kSet: return Object(PyRef::steal(PySet_New(list.get())));
    case Container::Kind::kNamedTuple: {
      PyRef args = PyRef::steal(PyList_AsTuple(list.get()));
      PyRef made = PyRef::steal(PyObject_CallObject(c->type.object.get(), args.get()));
      if (!made) return python_error(n);
      return Object(std::move(made));
    }
    case Container::Kind::kDict: break;
  }
  return Object();
}

Result<Value> Interpreter::specialise(ir::Dim d, const Node& n) {
  if (std::optional<int64_t> c = g_.dims.as_constant(d)) return static_int(*c);
  std::optional<int64_t> now = g_.dims.example(d);
  if (!now || g_.dims.depends_on_internal(d))
    return unsupported(
        "this needs an int that is known before the loop runs; here it is known only "
        "inside (" +
            g_.dims.to_string(d) + ")",
        "use a value that does not depend on the loop", n);
  CUVIL_TRY(bool same, equal(d, g_.dims.constant(*now), n));
  (void)same;
  return static_int(*now);
}

Result<Values> Interpreter::items_of_static(const Static& s, const Node& n) {
  PyObject* o = s.object.get();
  Values items;
  bool dict = PyDict_Check(o), sequence = PyTuple_Check(o) || PyList_Check(o);
  if (s.source >= 0 && (dict || sequence)) {
    bool exact =
        is_exactly(o, &PyTuple_Type) || is_exactly(o, &PyList_Type) || is_exactly(o, &PyDict_Type);
    if (!exact && !PyTuple_Check(o))
      return unsupported("iterating over a " + type_name(o) + " from outside",
                         "use a plain list, tuple or dict", n);
    if (dict) {
      if (!capture_.guard_keys(s.source, o))
        return unsupported("iterating over a dict from outside whose keys are no constants",
                           "use numbers or texts as keys", n);
      PyObject *key = nullptr, *value = nullptr;
      Py_ssize_t at = 0;
      while (PyDict_Next(o, &at, &key, &value)) items.push_back(wrap(PyRef::borrow(key)));
      return items;
    }
    if (!exact) capture_.guard_type(s.source, o);  // a named tuple
    capture_.guard_length(s.source, o);
    for (Py_ssize_t i = 0; i < PySequence_Size(o); ++i) {
      artifact::Const key;
      key.kind = artifact::Const::Kind::kInt;
      key.integer = i;
      PyRef item = PyRef::steal(PySequence_GetItem(o, i));
      if (!item) return python_error(n);
      CUVIL_TRY(Value v, load(std::move(item),
                              capture_.source(Capture::Kind::kItem, s.source, 0, {}, key), n));
      items.push_back(std::move(v));
    }
    return items;
  }
  if (s.source >= 0 && PyAnySet_Check(o)) {
    if (!(is_exactly(o, &PySet_Type) || is_exactly(o, &PyFrozenSet_Type)) ||
        !capture_.guard_keys(s.source, o))
      return unsupported("iterating over a " + type_name(o) + " from outside",
                         "use a set of numbers or texts, or a tuple", n);
  } else {
    CUVIL_CHECK(use_value(s, n));
    if (PyAnySet_Check(o)) capture_.note_order_of(o);
  }
  PyRef it = PyRef::steal(PyObject_GetIter(o));
  if (!it) return python_error(n);
  while (PyRef item = PyRef::steal(PyIter_Next(it.get()))) {
    if (static_cast<int64_t>(items.size()) > kLargestUnrolled)
      return unsupported(
          "a static sequence of more than " + std::to_string(kLargestUnrolled) + " items",
          "pass it as an array", n);
    items.push_back(wrap(std::move(item)));
  }
  if (PyErr_Occurred()) return python_error(n);
  return items;
}

Result<Values> Interpreter::items_of(const Value& v, const Node& n) {
  if (const Container* c = v.container()) {
    if (c->kind == Container::Kind::kSet) {
      // In the order of a set of this process, which may be another in another one.
      CUVIL_TRY(std::optional<PyRef> set, as_object(v, n));
      if (!set) return set_of_traced(n);
      const Static made{*set, -1};
      capture_.note_order_of(set->get());
      return items_of_static(made, n);
    }
    if (c->kind != Container::Kind::kDict) return c->items;
    Values keys;
    for (const PyRef& k : c->keys) keys.push_back(wrap(k));
    return keys;
  }
  if (const Static* s = v.get<Static>()) return items_of_static(*s, n);
  CUVIL_TRY(ir::Dim count, iteration_count(v, n));
  CUVIL_TRY(Value fixed, specialise(count, n));
  int64_t length = to_int64(fixed.get<Static>()->object.get()).value_or(0);
  if (length > kLargestUnrolled)
    return unsupported("a sequence of " + std::to_string(length) + " traced items",
                       "use array operations instead of a Python sequence", n);
  Values items;
  for (int64_t k = 0; k < length; ++k) {
    CUVIL_TRY(Value item, iteration_item(v, g_.dims.constant(k), n));
    items.push_back(std::move(item));
  }
  return items;
}

Result<ir::Dim> Interpreter::iteration_count(const Value& v, const Node& n) {
  if (const Tensor* t = v.get<Tensor>()) {
    if (type_of(*t).rank() == 0)
      return fail(ErrorClass::kTypeError, "iteration over a 0-d array",
                  "iterate over an array with axes", n);
    return type_of(*t).shape[0];
  }
  if (const RangeValue* r = v.get<RangeValue>()) return r->trip;
  if (auto* s = v.get<std::shared_ptr<LazySequence>>()) {
    std::optional<ir::Dim> count;
    for (const Value& part : (*s)->parts) {
      CUVIL_TRY(ir::Dim c, iteration_count(part, n));
      if (!count) {
        count = c;
        continue;
      }
      CUVIL_TRY(bool shorter, less(c, *count, n));
      if (shorter) count = c;
    }
    return count.value_or(g_.dims.constant(0));
  }
  if (v.is<Static>() || v.container()) {
    const Static* s = v.get<Static>();
    if (s && is_exactly(s->object.get(), &PyRange_Type)) {
      CUVIL_CHECK(use(*s, n));
      return g_.dims.constant(PyObject_Size(s->object.get()));
    }
    CUVIL_TRY(Values items, items_of(v, n));
    return g_.dims.constant(static_cast<int64_t>(items.size()));
  }
  return fail(ErrorClass::kTypeError, describe(v) + " is not iterable",
              "iterate over a sequence or an array", n);
}

Result<Value> Interpreter::iteration_item(const Value& v, ir::Dim k, const Node& n) {
  if (const Tensor* t = v.get<Tensor>()) return subscript_tensor(*t, dim_or_static(k), false, n);
  if (const RangeValue* r = v.get<RangeValue>())
    return dim_or_static(g_.dims.add(r->begin, g_.dims.mul(r->step, k)));
  if (auto* s = v.get<std::shared_ptr<LazySequence>>()) {
    Values parts;
    if ((*s)->kind == LazySequence::Kind::kReversed) {
      CUVIL_TRY(ir::Dim count, iteration_count((*s)->parts[0], n));
      return iteration_item((*s)->parts[0], g_.dims.sub(g_.dims.sub(count, g_.dims.constant(1)), k),
                            n);
    }
    if ((*s)->kind == LazySequence::Kind::kEnumerate)
      parts.push_back(dim_or_static(g_.dims.add((*s)->start, k)));
    for (const Value& part : (*s)->parts) {
      CUVIL_TRY(Value item, iteration_item(part, k, n));
      parts.push_back(std::move(item));
    }
    return make_container(Container::Kind::kTuple, std::move(parts));
  }
  const Static* s = v.get<Static>();
  if (s && is_exactly(s->object.get(), &PyRange_Type)) {
    PyRef start = CUVIL_ATTR(s->object.get(), "start"), step = CUVIL_ATTR(s->object.get(), "step");
    std::optional<int64_t> a = to_int64(start.get()), b = to_int64(step.get());
    if (!a || !b) return unsupported("a range beyond 64 bits", "use smaller bounds", n);
    return dim_or_static(g_.dims.add(g_.dims.constant(*a), g_.dims.mul(g_.dims.constant(*b), k)));
  }
  std::optional<int64_t> at = g_.dims.as_constant(k);
  if (!at)
    return unsupported(
        "a loop over " + describe(v) + " together with a run-time number of iterations",
        "use an array", n);
  CUVIL_TRY(Values items, items_of(v, n));
  if (*at < 0 || *at >= static_cast<int64_t>(items.size()))
    return fail(ErrorClass::kIndexError, "sequence index out of range", {}, n);
  return items[static_cast<size_t>(*at)];
}

Result<> Interpreter::will_mutate(const Container& c, const Node& n) {
  if (c.depth == loop_depth_) return Ok{};
  return unsupported("a list or dict made outside a compiled loop changes inside it",
                     "write into an array made before the loop", n);
}

// A list that holds itself has no finite tree.
Result<> Interpreter::check_acyclic(const Container& c, const Value& added, const Node& n) {
  const Container* inner = added.container();
  if (!inner) return Ok{};
  if (inner == &c) return unsupported("a list or dict that holds itself", "hold a copy of it", n);
  for (const Value& item : inner->items) CUVIL_CHECK(check_acyclic(c, item, n));
  return Ok{};
}

Result<Value> Interpreter::call_container_method(const Value& self, Container& c,
                                                 const std::string& name, const Arguments& args,
                                                 const Node& n) {
  const Values& a = args.positional;
  const bool list = c.kind == Container::Kind::kList, dict = c.kind == Container::Kind::kDict;
  auto find_key = [&](PyObject* key) -> Result<int64_t> {
    for (size_t k = 0; k < c.keys.size(); ++k) {
      int r = PyObject_RichCompareBool(c.keys[k].get(), key, Py_EQ);
      if (r < 0) return python_error(n);
      if (r) return static_cast<int64_t>(k);
    }
    return int64_t{-1};
  };
  if (list && name == "append" && a.size() == 1) {
    CUVIL_CHECK(will_mutate(c, n));
    CUVIL_CHECK(check_acyclic(c, a[0], n));
    c.items.push_back(a[0]);
    return none();
  }
  if (list && name == "extend" && a.size() == 1) {
    CUVIL_CHECK(will_mutate(c, n));
    CUVIL_TRY(Values more, items_of(a[0], n));
    for (const Value& item : more) CUVIL_CHECK(check_acyclic(c, item, n));
    c.items.insert(c.items.end(), more.begin(), more.end());
    return none();
  }
  if (list && name == "insert" && a.size() == 2) {
    CUVIL_CHECK(will_mutate(c, n));
    CUVIL_CHECK(check_acyclic(c, a[1], n));
    std::optional<ir::Dim> d = as_dim(a[0]);
    std::optional<int64_t> at = d ? g_.dims.as_constant(*d) : std::nullopt;
    if (!at) return unsupported("insert at a run-time position", "use a static position", n);
    auto size = static_cast<int64_t>(c.items.size());
    int64_t k = std::clamp<int64_t>(*at < 0 ? *at + size : *at, 0, size);
    c.items.insert(c.items.begin() + k, a[1]);
    return none();
  }
  if (list && name == "pop" && a.size() <= 1) {
    CUVIL_CHECK(will_mutate(c, n));
    std::optional<ir::Dim> d = a.empty() ? g_.dims.constant(-1) : as_dim(a[0]);
    std::optional<int64_t> at = d ? g_.dims.as_constant(*d) : std::nullopt;
    auto size = static_cast<int64_t>(c.items.size());
    if (!at) return unsupported("pop from a run-time position", "use a static position", n);
    int64_t k = *at < 0 ? *at + size : *at;
    if (k < 0 || k >= size)
      return fail(ErrorClass::kIndexError, size ? "pop index out of range" : "pop from empty list",
                  {}, n);
    Value v = c.items[static_cast<size_t>(k)];
    c.items.erase(c.items.begin() + k);
    return v;
  }
  if (list && name == "reverse" && a.empty()) {
    CUVIL_CHECK(will_mutate(c, n));
    std::reverse(c.items.begin(), c.items.end());
    return none();
  }
  if ((list || dict) && name == "copy" && a.empty()) {
    Value copy = make_container(c.kind, c.items);
    copy.container()->keys = c.keys;
    return copy;
  }
  if (dict && (name == "get" || name == "pop" || name == "setdefault") && !a.empty()) {
    CUVIL_TRY(std::optional<PyRef> key, as_object(a[0], n));
    if (!key) return unsupported("a run-time dict key", "use a static key", n);
    CUVIL_TRY(int64_t at, find_key(key->get()));
    if (name == "get")
      return at >= 0 ? c.items[static_cast<size_t>(at)] : a.size() > 1 ? a[1] : none();
    if (name == "setdefault") {
      if (at >= 0) return c.items[static_cast<size_t>(at)];
      CUVIL_CHECK(will_mutate(c, n));
      if (a.size() > 1) CUVIL_CHECK(check_acyclic(c, a[1], n));
      c.keys.push_back(*key);
      c.items.push_back(a.size() > 1 ? a[1] : none());
      return c.items.back();
    }
    if (at < 0 && a.size() > 1) return a[1];
    if (at < 0) return fail(ErrorClass::kKeyError, short_repr(key->get()), {}, n);
    CUVIL_CHECK(will_mutate(c, n));
    Value v = c.items[static_cast<size_t>(at)];
    c.items.erase(c.items.begin() + at);
    c.keys.erase(c.keys.begin() + at);
    return v;
  }
  if (dict && a.empty() && (name == "keys" || name == "values" || name == "items")) {
    Values out;
    for (size_t k = 0; k < c.items.size(); ++k) {
      Value key = wrap(c.keys[k]);
      if (name == "keys") out.push_back(key);
      if (name == "values") out.push_back(c.items[k]);
      if (name == "items")
        out.push_back(make_container(Container::Kind::kTuple, {key, c.items[k]}));
    }
    return make_container(Container::Kind::kList, std::move(out));
  }
  if (dict && name == "update" && a.size() <= 1) {
    CUVIL_CHECK(will_mutate(c, n));
    std::vector<std::pair<PyRef, Value>> pairs;
    if (!a.empty()) {
      const Container* other = a[0].container();
      if (!other || other->kind != Container::Kind::kDict)
        return unsupported("dict.update with " + describe(a[0]), "update from a dict", n);
      for (size_t k = 0; k < other->items.size(); ++k)
        pairs.push_back({other->keys[k], other->items[k]});
    }
    for (const Keyword& k : args.keywords) pairs.push_back({to_str(k.name), k.value});
    for (auto& [key, value] : pairs) {
      CUVIL_CHECK(check_acyclic(c, value, n));
      CUVIL_TRY(int64_t at, find_key(key.get()));
      if (at >= 0) {
        c.items[static_cast<size_t>(at)] = value;
      } else {
        c.keys.push_back(key);
        c.items.push_back(value);
      }
    }
    return none();
  }
  // Anything that does not change it, on static contents: as Python does.
  if (name == "index" || name == "count") {
    CUVIL_TRY(std::optional<PyRef> object, as_object(self, n));
    if (object) {
      PyRef method = PyRef::steal(PyObject_GetAttr(object->get(), to_str(name).get()));
      if (method) return call_pure(method.get(), args, n);
      forgive();
    }
  }
  return unsupported("`." + name + "` of " + describe(self) + " is not compiled here",
                     "use indexing, append, extend, get, keys, values or items", n);
}

}  // namespace cuvil::frontend
