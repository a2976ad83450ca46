// Expressions: names, constants, attributes, conditions, displays, comprehensions, strings.
#include <cmath>

#include "frontend/interpreter.h"
#include "frontend/scope.h"

namespace cuvil::frontend {

Result<Value> Interpreter::eval(const Node& n) {
  switch (n.kind()) {
    case NodeKind::kName: return eval_name(n);
    case NodeKind::kConstant: return eval_constant(n);
    case NodeKind::kAttribute: return eval_attribute(n);
    case NodeKind::kSubscript: return eval_subscript(n);
    case NodeKind::kSlice: return eval_slice(n);
    case NodeKind::kCall: return eval_call(n);
    case NodeKind::kBinOp: return eval_bin_op(n);
    case NodeKind::kUnaryOp: return eval_unary_op(n);
    case NodeKind::kCompare: return eval_compare(n);
    case NodeKind::kBoolOp: return eval_bool_op(n);
    case NodeKind::kIfExp: return eval_if_exp(n);
    case NodeKind::kTuple:
    case NodeKind::kList:
    case NodeKind::kSet: {
      CUVIL_TRY(Values items, eval_all(n.children(CUVIL_NAME("elts"))));
      auto kind = n.kind() == NodeKind::kTuple  ? Container::Kind::kTuple
                  : n.kind() == NodeKind::kList ? Container::Kind::kList
                                                : Container::Kind::kSet;
      if (kind == Container::Kind::kSet) return make_set(std::move(items), n);
      return make_container(kind, std::move(items));
    }
    case NodeKind::kDict: return eval_dict(n);
    case NodeKind::kLambda: return eval_lambda(n);
    case NodeKind::kListComp:
    case NodeKind::kSetComp:
    case NodeKind::kDictComp:
    case NodeKind::kGeneratorExp: return eval_comprehension(n);
    case NodeKind::kJoinedStr: return eval_joined_string(n);
    case NodeKind::kNamedExpr: {
      CUVIL_TRY(Value v, eval(n.child(CUVIL_NAME("value"))));
      // Inside a comprehension `:=` binds in the function around it.
      Frame* f = &frame();
      while (f->comprehension) f = f->parent.get();
      f->locals[n.child(CUVIL_NAME("target")).text(CUVIL_NAME("id"))] = v;
      return v;
    }
    case NodeKind::kStarred:
      return unsupported("a starred expression is not compiled here", "spell the items out", n);
    default: return refused(n, loc(n));
  }
}

Result<Values> Interpreter::eval_all(const std::vector<Node>& nodes) {
  Values out;
  out.reserve(nodes.size());
  for (const Node& n : nodes) {
    if (n.kind() == NodeKind::kStarred) {
      CUVIL_TRY(Value v, eval(n.child(CUVIL_NAME("value"))));
      CUVIL_TRY(Values items, items_of(v, n));
      out.insert(out.end(), items.begin(), items.end());
      continue;
    }
    CUVIL_TRY(Value v, eval(n));
    out.push_back(std::move(v));
  }
  return out;
}

Result<Value> Interpreter::eval_name(const Node& n) { return lookup(n.text(CUVIL_NAME("id")), n); }

Result<Value> Interpreter::lookup(const std::string& name, const Node& n) {
  for (Frame* f = &frame(); f; f = f->parent.get()) {
    auto it = f->locals.find(name);
    if (it != f->locals.end()) {
      if (const Poison* p = it->second.get<Poison>()) return unsupported(p->why, p->remedy, n);
      return it->second;
    }
    if (f->local_names.count(name)) {
      bool own = f == &frame();
      return fail(own ? ErrorClass::kUnboundLocalError : ErrorClass::kNameError,
                  own ? "cannot access local variable '" + name +
                            "' where it is not associated with a value"
                      : "cannot access free variable '" + name +
                            "' where it is not associated with a value in enclosing scope",
                  "assign it on every path before this line", n);
    }
  }
  const WalkedFunction& f = *frame().function;
  PyRef freevars = CUVIL_ATTR(f.code.get(), "co_freevars");
  for (Py_ssize_t i = 0; freevars && i < PyTuple_Size(freevars.get()); ++i) {
    if (to_string(PyTuple_GetItem(freevars.get(), i)) != name) continue;
    PyRef closure = CUVIL_ATTR(f.function.get(), "__closure__");
    PyObject* cell = closure ? PyTuple_GetItem(closure.get(), i) : nullptr;
    PyRef content = cell ? attr_or_null(cell, CUVIL_NAME("cell_contents")) : PyRef();
    if (!content)
      return fail(ErrorClass::kNameError,
                  "cannot access free variable '" + name +
                      "' where it is not associated with a value in enclosing scope",
                  "assign it before the call", n);
    return load(std::move(content),
                capture_.source(Capture::Kind::kClosure, f.source, static_cast<uint32_t>(i), name),
                n);
  }
  PyRef key = to_str(name);
  PyObject* global = PyDict_GetItemWithError(f.globals.get(), key.get());
  PyRef found = PyRef::borrow(global);
  if (!found) {
    forgive();
    PyRef builtins = PyRef::steal(PyImport_ImportModule("builtins"));
    if (PyObject* own = PyDict_GetItemWithError(f.globals.get(), CUVIL_NAME("__builtins__")))
      builtins = PyRef::borrow(own);
    forgive();
    if (builtins && PyDict_Check(builtins.get()))
      found = PyRef::borrow(PyDict_GetItemWithError(builtins.get(), key.get()));
    else if (builtins)
      found = attr_or_null(builtins.get(), key.get());
    forgive();
  }
  if (!found)
    return fail(ErrorClass::kNameError, "name '" + name + "' is not defined",
                "define it before the call", n);
  return load(std::move(found), capture_.source(Capture::Kind::kGlobal, f.source, 0, name), n);
}

Result<Value> Interpreter::load(PyRef object, int32_t source, const Node& n) {
  // Numbers, strings, modules and functions are the common case: no question about arrays.
  PyObject* o = object.get();
  if (!PyLong_Check(o) && !PyFloat_Check(o) && !PyUnicode_Check(o) && !PyModule_Check(o) &&
      !PyCallable_Check(o) && PyObject_HasAttrString(o, "__array_interface__") &&
      PyObject_HasAttrString(o, "strides")) {
    PyRef numpy = loaded_module("numpy");
    PyRef generic = numpy ? attr_or_null(numpy.get(), CUVIL_NAME("generic")) : PyRef();
    if (generic && PyObject_IsInstance(o, generic.get()) != 1) return captured_array(o, source, n);
  }
  return Value(Static{std::move(object), source});
}

Result<> Interpreter::use(const Static& s, const Node&) {
  if (s.source >= 0) capture_.guard_object(s.source, s.object.get());
  return Ok{};
}

Result<> Interpreter::use_value(const Static& s, const Node& n) {
  if (s.source >= 0 && !told_by_guard(s.object.get()))
    return unsupported(
        "Python's own code would look into `" + capture_.path(s.source) + "`, the " +
            type_name(s.object.get()) + ", whose state cannot be checked again at the next call",
        "use its attributes or items, or compute the value outside and pass it in", n);
  return use(s, n);
}

Result<Value> Interpreter::captured_array(PyObject* array, int32_t source, const Node& n) {
  auto known = captured_.find(source);
  if (known != captured_.end()) {
    Tensor t;
    t.cell = known->second;
    t.source = source;
    return Value(t);
  }
  const std::string path = capture_.path(source);
  artifact::ArraySpec spec;
  int64_t shape[artifact::kMaxRank], strides[artifact::kMaxRank];
  if (!request_.tools->classify_array(array, &spec, shape, strides)) {
    PyRef dtype = attr_or_null(array, CUVIL_NAME("dtype"));
    return fail(
        ErrorClass::kDType,
        "`" + path + "` is a " + type_name(array) +
            (dtype ? " of dtype " + short_repr(dtype.get()) : std::string()) +
            ", which is not compiled",
        "use a plain numpy.ndarray of a bool, int, unsigned or float dtype in native byte order",
        n);
  }
  const auto slot = static_cast<uint32_t>(slots_.size());
  ir::Shape dims;
  artifact::Guard& guard = capture_.guard_array(source, slot);
  guard.array = spec;
  for (size_t k = 0; k < spec.rank; ++k) {
    dims.push_back(g_.dims.constant(shape[k]));
    guard.shape.push_back(g_.dims.to_expr(dims.back()));
  }
  ArraySlot info;
  info.object = PyRef::borrow(array);
  info.spec = spec;
  info.shape.assign(shape, shape + spec.rank);
  info.strides.assign(strides, strides + spec.rank);
  ir::ValueId v = ir::add_array_input(g_, spec, std::move(dims), slot, true, path,
                                      std::span<const int64_t>(strides, spec.rank));
  for (auto [a, b] : shared_)
    if (b == slot) info.cell = slots_[a].cell;
  if (info.cell < 0) {
    info.cell = new_cell(v);
    Cell& c = cells_.back();
    c.depth = 0;
    c.input = static_cast<int32_t>(g_.inputs.size() - 1);
    c.writeable = spec.writeable;
    c.name = path;
  }
  slots_.push_back(info);
  captured_[source] = info.cell;
  Tensor t;
  t.cell = info.cell;
  t.source = source;
  return Value(t);
}

Result<Value> Interpreter::eval_constant(const Node& n) {
  return static_of(n.value(CUVIL_NAME("value")));
}

Result<Value> Interpreter::eval_attribute(const Node& n) {
  CUVIL_TRY(Value base, eval(n.child(CUVIL_NAME("value"))));
  return attribute_of(base, n.text(CUVIL_NAME("attr")), n);
}

Result<Value> Interpreter::attribute_of(const Value& value, const std::string& name,
                                        const Node& n) {
  auto method = [&] { return Value(BoundMethod{std::make_shared<Value>(value), name}); };
  auto missing = [&](const std::string& type) {
    return fail(ErrorClass::kAttributeError,
                "'" + type + "' object has no attribute '" + name + "'", {}, n);
  };
  PyRef key = to_str(name);
  if (const Tensor* t = value.get<Tensor>()) {
    const ir::Type& type = type_of(*t);
    if (t->weak != ops::Weak::kNo) {
      if (name == "real" || name == "conjugate") return name == "real" ? value : method();
      return unsupported("`." + name + "` of " + describe(value),
                         "use arithmetic or math functions", n);
    }
    if (name == "ndim") return static_int(static_cast<int64_t>(type.rank()));
    if (name == "shape") {
      Values dims;
      for (ir::Dim d : type.shape) dims.push_back(dim_or_static(d));
      return make_container(Container::Kind::kTuple, std::move(dims));
    }
    if (name == "size") return dim_or_static(g_.dims.product(type.shape));
    if (name == "itemsize") return static_int(size_of(type.dtype));
    if (name == "nbytes")
      return dim_or_static(
          g_.dims.mul(g_.dims.product(type.shape), g_.dims.constant(size_of(type.dtype))));
    if (name == "dtype") {
      PyRef dtype = numpy_dtype(type.dtype);
      if (!dtype) return python_error(n);
      return static_of(std::move(dtype));
    }
    const ops::DialectRow* row = ops::find_row("ndarray." + name);
    if (row && row->is_property) return call_row(*row, &value, {}, -1, n);
    if (row || name == "item" || name == "fill" || name == "tolist") return method();
    PyRef numpy = loaded_module("numpy");
    PyRef cls = numpy ? attr_or_null(numpy.get(), CUVIL_NAME("ndarray")) : PyRef();
    if (cls && !attr_or_null(cls.get(), key.get())) return missing("numpy.ndarray");
    return unsupported("the array attribute `." + name + "` is not compiled",
                       "use an operation listed in docs/operations.md", n);
  }
  if (const Container* c = value.container()) {
    static constexpr std::pair<Container::Kind, PyTypeObject*> kTypes[] = {
        {Container::Kind::kTuple, &PyTuple_Type},
        {Container::Kind::kList, &PyList_Type},
        {Container::Kind::kDict, &PyDict_Type},
        {Container::Kind::kSet, &PySet_Type}};
    PyObject* cls = c->type.object.get();
    for (auto [kind, type] : kTypes)
      if (kind == c->kind) cls = reinterpret_cast<PyObject*>(type);
    if (c->kind == Container::Kind::kNamedTuple) {
      PyRef fields = attr_or_null(cls, CUVIL_NAME("_fields"));
      for (Py_ssize_t i = 0; fields && i < PyTuple_Size(fields.get()); ++i)
        if (to_string(PyTuple_GetItem(fields.get(), i)) == name)
          return c->items[static_cast<size_t>(i)];
    }
    if (!attr_or_null(cls, key.get())) {
      PyRef type = attr_or_null(cls, CUVIL_NAME("__name__"));
      return missing(type ? to_string(type.get()) : "object");
    }
    return method();
  }
  if (const Static* s = value.get<Static>()) {
    PyObject* o = s->object.get();
    bool builtin_container =
        is_exactly(o, &PyDict_Type) || is_exactly(o, &PyList_Type) || is_exactly(o, &PyTuple_Type);
    PyRef found = PyRef::steal(PyObject_GetAttr(o, key.get()));
    if (!found) return python_error(n);
    if (s->source >= 0 && builtin_container) return method();
    if (s->source < 0) return wrap(std::move(found));
    std::optional<artifact::Const> constant = const_of(o);
    if (constant && constant->kind != artifact::Const::Kind::kQualified) {
      CUVIL_CHECK(use(*s, n));  // a str, an int, a dtype: its attributes follow from its value
      return wrap(std::move(found));
    }
    return load(std::move(found), capture_.attribute(s->source, name), n);
  }
  if (const auto* f = value.get<std::shared_ptr<LocalFunction>>())
    if (name == "__name__") return static_of(to_str((*f)->name));
  if (value.is<ir::Dim>() && (name == "real" || name == "numerator")) return value;
  return unsupported("the attribute `." + name + "` of " + describe(value), {}, n);
}

namespace {

bool decides_its_truth(PyObject* o) {
  for (int slot : {Py_nb_bool, Py_mp_length, Py_sq_length})
    if (PyType_GetSlot(Py_TYPE(o), slot)) return true;
  return false;
}

}  // namespace

Result<bool> Interpreter::truth(const Value& v, const Node& n, const char* construct,
                                const char* advice) {
  if (const Static* s = v.get<Static>()) {
    PyObject* o = s->object.get();
    if (s->source >= 0 && !const_of(o)) {
      if (is_exactly(o, &PyList_Type) || is_exactly(o, &PyDict_Type) ||
          is_exactly(o, &PyTuple_Type))
        capture_.guard_length(s->source, o);
      else if (is_exactly(o, &PySet_Type) || PyLong_Check(o) || PyFloat_Check(o) ||
               PyUnicode_Check(o))
        CUVIL_CHECK(use(*s, n));
      else if (decides_its_truth(o))
        return unsupported(std::string(construct) + " on " + describe(v) +
                               ", whose class defines __bool__ or __len__",
                           "compare an attribute of it, or its length", n);
      else
        guard_contents_of_class(*s);
    } else {
      CUVIL_CHECK(use(*s, n));
    }
    int t = PyObject_IsTrue(o);
    if (t < 0) return python_error(n);
    return t == 1;
  }
  if (const ir::Dim* d = v.get<ir::Dim>()) {
    Result<bool> zero = equal(*d, g_.dims.constant(0), n);
    if (zero.ok()) return !*zero;
    return unsupported(std::string(construct) + " on an int that is known at run time only",
                       "use np.where, or a condition that does not depend on the loop", n);
  }
  if (const Container* c = v.container()) return !c->items.empty();
  if (const Tensor* t = v.get<Tensor>()) {
    const ir::Type& type = type_of(*t);
    std::optional<int64_t> size = g_.dims.as_constant(g_.dims.product(type.shape));
    if (type.rank() > 0 && size && *size > 1)
      return fail(ErrorClass::kValueError,
                  "The truth value of an array with more than one element is ambiguous. Use "
                  "a.any() or a.all()",
                  "choose between values element by element with np.where(condition, a, b)", n);
    return unsupported(
        std::string(construct) + " on data that is known at run time only (" + describe(v) + ")",
        advice, n);
  }
  return true;
}

Result<Value> Interpreter::eval_bool_op(const Node& n) {
  bool is_and = n.child(CUVIL_NAME("op")).kind() == NodeKind::kAnd;
  std::vector<Node> values = n.children(CUVIL_NAME("values"));
  Value v;
  for (size_t k = 0; k < values.size(); ++k) {
    CUVIL_TRY(Value next, eval(values[k]));
    v = std::move(next);
    if (k + 1 == values.size()) break;
    CUVIL_TRY(bool t, truth(v, values[k], is_and ? "`and`" : "`or`"));
    if (t != is_and) break;
  }
  return v;
}

Result<Value> Interpreter::eval_if_exp(const Node& n) {
  CUVIL_TRY(Value condition, eval(n.child(CUVIL_NAME("test"))));
  Node body = n.child(CUVIL_NAME("body")), orelse = n.child(CUVIL_NAME("orelse"));
  const Tensor* c = condition.get<Tensor>();
  if (!c || type_of(*c).rank() > 0) {
    CUVIL_TRY(bool t, truth(condition, n, "a conditional expression"));
    return eval(t ? body : orelse);
  }
  // Decided at run time: both arms, if they are scalars of one type and have no effects.
  const size_t before = g_.op_count();
  CUVIL_TRY(Value a, eval(body));
  CUVIL_TRY(Value b, eval(orelse));
  for (size_t k = before; k < g_.op_count(); ++k)
    if (g_.op(ir::OpId{static_cast<int32_t>(k)}).desc->effects)
      return unsupported("an arm of a run-time conditional expression writes or may raise",
                         "compute both values first, then choose", n);
  CUVIL_TRY(Tensor x, as_tensor(a, n));
  CUVIL_TRY(Tensor y, as_tensor(b, n));
  const ir::Type tx = type_of(x), ty = type_of(y);
  if (tx.dtype != ty.dtype || tx.rank() || ty.rank() || x.weak != y.weak || x.scalar != y.scalar)
    return unsupported(
        "a conditional expression on run-time data whose arms are not two scalars "
        "of one type (" +
            describe(a) + ", " + describe(b) + ")",
        "use np.where(condition, a, b)", n);
  const ops::DialectRow* where = ops::find_row("numpy.where");
  if (!where) return unsupported("a conditional expression on run-time data", "use np.where", n);
  ops::Weak weak = x.weak;
  bool scalar = x.scalar;
  x.weak = y.weak = ops::Weak::kNo;
  Arguments args;
  args.positional = {condition, x, y};
  CUVIL_TRY(Value r, call_row(*where, nullptr, args, -1, n));
  Tensor* t = r.get<Tensor>();
  if (!t) return unsupported("a conditional expression on run-time data", "use np.where", n);
  t->weak = weak;
  t->scalar = scalar;
  if (weak == ops::Weak::kInt) {
    CUVIL_TRY(ir::Dim d, bind_scalar(*t, n));
    return Value(d);
  }
  return r;
}

Result<Value> Interpreter::eval_dict(const Node& n) {
  std::vector<Node> keys = n.children(CUVIL_NAME("keys"));
  std::vector<Node> values = n.children(CUVIL_NAME("values"));
  Value out = make_container(Container::Kind::kDict, {});
  Container& c = *out.container();
  for (size_t k = 0; k < keys.size(); ++k) {
    CUVIL_TRY(Value v, eval(values[k]));
    if (!keys[k].present()) {  // **other
      Arguments args;
      args.positional.push_back(v);
      if (const Static* s = v.get<Static>(); s && is_exactly(s->object.get(), &PyDict_Type)) {
        CUVIL_TRY(Values names, items_of(v, n));
        for (const Value& name : names) {
          CUVIL_TRY(Value item, subscript(v, name, n));
          CUVIL_CHECK(store_subscript(out, name, item, n));
        }
        continue;
      }
      CUVIL_TRY(Value ignored, call_container_method(out, c, "update", args, n));
      continue;
    }
    CUVIL_TRY(Value key, eval(keys[k]));
    CUVIL_CHECK(store_subscript(out, key, v, n));
  }
  return out;
}

Result<Value> Interpreter::eval_lambda(const Node& n) {
  if (std::optional<Node> y = find_yield(n)) return refused(*y, loc(*y));
  auto f = std::make_shared<LocalFunction>();
  f->node = n;
  f->name = "<lambda>";
  f->scope = frames_.back();
  Node parameters = n.child(CUVIL_NAME("args"));
  CUVIL_TRY(f->defaults, eval_all(parameters.children(CUVIL_NAME("defaults"))));
  for (const Node& d : parameters.children(CUVIL_NAME("kw_defaults"))) {
    Value v;
    if (d.present()) {
      CUVIL_TRY(v, eval(d));
    }
    f->kw_defaults.push_back(std::move(v));
  }
  return Value(std::move(f));
}

Result<> Interpreter::comprehend(const std::vector<Node>& generators, size_t k,
                                 const std::function<Result<>()>& body) {
  if (k == generators.size()) return body();
  const Node& g = generators[k];
  CUVIL_TRY(Value iterable, eval(g.child(CUVIL_NAME("iter"))));
  CUVIL_TRY(Values items, items_of(iterable, g.child(CUVIL_NAME("iter"))));
  for (Value& item : items) {
    CUVIL_CHECK(assign(g.child(CUVIL_NAME("target")), std::move(item)));
    bool keep = true;
    for (const Node& test : g.children(CUVIL_NAME("ifs"))) {
      CUVIL_TRY(Value v, eval(test));
      CUVIL_TRY(bool t, truth(v, test, "a filter of a comprehension"));
      keep = keep && t;
      if (!keep) break;
    }
    if (keep) CUVIL_CHECK(comprehend(generators, k + 1, body));
  }
  return Ok{};
}

Result<Value> Interpreter::eval_comprehension(const Node& n) {
  // Its variables are its own: a scope of its own whose walrus targets would be outer names.
  auto scope = std::make_shared<Frame>();
  scope->function = frame().function;
  scope->parent = frames_.back();
  scope->comprehension = true;
  frames_.push_back(scope);
  const bool dict = n.kind() == NodeKind::kDictComp;
  Value out = make_container(dict ? Container::Kind::kDict : Container::Kind::kList, {});
  Result<> r = comprehend(n.children(CUVIL_NAME("generators")), 0, [&]() -> Result<> {
    if (dict) {
      CUVIL_TRY(Value key, eval(n.child(CUVIL_NAME("key"))));
      CUVIL_TRY(Value value, eval(n.child(CUVIL_NAME("value"))));
      return store_subscript(out, key, value, n);
    }
    CUVIL_TRY(Value v, eval(n.child(CUVIL_NAME("elt"))));
    out.container()->items.push_back(std::move(v));
    return Ok{};
  });
  frames_.pop_back();
  if (!r.ok()) return std::move(r.error());
  if (n.kind() == NodeKind::kSetComp) return make_set(std::move(out.container()->items), n);
  return out;
}

// Without duplicates, which only values that are known now can be seen to be.
Result<Value> Interpreter::make_set(Values items, const Node& n) {
  Values distinct;
  PyRef seen = PyRef::steal(PySet_New(nullptr));
  for (Value& v : items) {
    CUVIL_TRY(std::optional<PyRef> o, as_object(v, n));
    if (!o) return set_of_traced(n);
    const int known = PySet_Contains(seen.get(), o->get());
    if (known < 0 || PySet_Add(seen.get(), o->get()) < 0) return python_error(n);
    if (!known) distinct.push_back(std::move(v));
  }
  return make_container(Container::Kind::kSet, std::move(distinct));
}

Error Interpreter::set_of_traced(const Node& n) {
  return unsupported("a set of values that are known at run time only", "use a tuple or a list", n);
}

Result<Value> Interpreter::eval_joined_string(const Node& n) {
  PyRef text = to_str("");
  for (const Node& part : n.children(CUVIL_NAME("values"))) {
    if (part.kind() == NodeKind::kConstant) {
      PyRef s = part.value(CUVIL_NAME("value"));
      text = PyRef::steal(PyUnicode_Concat(text.get(), s.get()));
      continue;
    }
    Node expression = part.child(CUVIL_NAME("value"));
    CUVIL_TRY(Value v, eval(expression));
    if (const ir::Dim* d = v.get<ir::Dim>()) {
      CUVIL_TRY(v, specialise(*d, n));
    }
    CUVIL_TRY(std::optional<PyRef> object, as_object(v, n));
    if (!object) {
      if (!v.container())
        return unsupported("formatting " + describe(v) + " in an f-string",
                           "return the value and format it outside", n);
      // A shape with run-time dims: those of this call.
      Values fixed;
      for (const Value& item : v.container()->items) {
        const ir::Dim* d = item.get<ir::Dim>();
        CUVIL_TRY(Value f, d ? specialise(*d, n) : Result<Value>(item));
        fixed.push_back(std::move(f));
      }
      CUVIL_TRY(object, as_object(make_container(v.container()->kind, std::move(fixed)), n));
      if (!object)
        return unsupported("formatting " + describe(v) + " in an f-string",
                           "return the value and format it outside", n);
    }
    PyRef conversion = part.value(CUVIL_NAME("conversion"));
    long c = conversion ? PyLong_AsLong(conversion.get()) : -1;
    PyRef converted = *object;
    if (c == 'r') converted = PyRef::steal(PyObject_Repr(object->get()));
    if (c == 's') converted = PyRef::steal(PyObject_Str(object->get()));
    if (c == 'a') converted = PyRef::steal(PyObject_ASCII(object->get()));
    PyRef format = to_str("");
    if (Node spec = part.child(CUVIL_NAME("format_spec")); spec.present()) {
      CUVIL_TRY(Value f, eval(spec));
      format = f.get<Static>()->object;
    }
    PyRef s = converted ? PyRef::steal(PyObject_Format(converted.get(), format.get())) : PyRef();
    if (!s) return python_error(n);
    text = PyRef::steal(PyUnicode_Concat(text.get(), s.get()));
  }
  return static_of(std::move(text));
}

}  // namespace cuvil::frontend
