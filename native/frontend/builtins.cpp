// Builtins that understand traced values; the table is pure.def.
#include <algorithm>
#include <unordered_map>

#include "frontend/interpreter.h"
#include "frontend/resolve.h"
#include "ops/structural.h"

namespace cuvil::frontend {

const Interpreter::Builtin* Interpreter::find_builtin(PyObject* object) {
  static constexpr Builtin kTable[] = {
#define CUVIL_BUILTIN(name, method) {name, &Interpreter::method},
#define CUVIL_PURE(name) {name, nullptr},
#include "frontend/pure.def"
#undef CUVIL_BUILTIN
#undef CUVIL_PURE
  };
  static const auto by_name = [] {
    std::unordered_map<std::string_view, const Builtin*> out;
    for (const Builtin& b : kTable) out.emplace(b.name, &b);
    return out;
  }();
  static const std::vector<std::string> places = [] {
    std::vector<std::string> out;
    for (const Builtin& b : kTable) {
      const std::string_view name = b.name;
      std::string place(name.substr(0, name.rfind('.')));
      if (std::find(out.begin(), out.end(), place) == out.end()) out.push_back(place);
    }
    return out;
  }();
  static std::unordered_map<PyObject*, const Builtin*> found;
  auto it = found.find(object);
  if (it == found.end()) {
    std::string name = own_name(object, places, *request_.tools,
                                [](std::string_view dotted) { return by_name.count(dotted) > 0; });
    if (name.empty()) return nullptr;
    name[name.find(':')] = '.';
    Py_INCREF(object);  // kept for ever: identity must not be reused
    it = found.emplace(object, by_name.at(name)).first;
  }
  // A function of math on a run-time float is a row's.
  if (!it->second->call && std::string_view(it->second->name).starts_with("math.") &&
      ops::find_row(it->second->name))
    return nullptr;
  return it->second;
}

#define CUVIL_EXPECT(condition, text) \
  if (!(condition)) return fail(ErrorClass::kTypeError, text, {}, n)

Result<Value> Interpreter::builtin_len(const Arguments& args, const Node& n) {
  CUVIL_EXPECT(args.positional.size() == 1 && args.keywords.empty(),
               "len() takes exactly one argument");
  const Value& v = args.positional[0];
  if (const Static* s = v.get<Static>()) {
    PyObject* o = s->object.get();
    if (s->source >= 0 &&
        (is_exactly(o, &PyList_Type) || is_exactly(o, &PyDict_Type) || PyTuple_Check(o)))
      capture_.guard_length(s->source, o);
    else if (s->source < 0 || const_of(o) || PyAnySet_Check(o))
      CUVIL_CHECK(use(*s, n));
    else
      return unsupported("len() of " + describe(v) + ", whose class defines __len__",
                         "pass the length, or a list or tuple", n);
    Py_ssize_t size = PyObject_Size(o);
    if (size < 0) return python_error(n);
    return static_int(size);
  }
  if (const Tensor* t = v.get<Tensor>(); t && type_of(*t).rank() == 0)
    return fail(ErrorClass::kTypeError, "len() of unsized object", {}, n);
  CUVIL_TRY(ir::Dim d, iteration_count(v, n));
  return dim_or_static(d);
}

Result<Value> Interpreter::builtin_range(const Arguments& args, const Node& n) {
  const Values& a = args.positional;
  CUVIL_EXPECT(!a.empty() && a.size() <= 3 && args.keywords.empty(),
               "range expected from 1 to 3 positional arguments");
  std::vector<ir::Dim> parts;
  bool all_static = true;
  for (const Value& v : a) {
    std::optional<ir::Dim> d = as_dim(v);
    if (const Tensor* t = v.get<Tensor>(); !d && t && type_of(*t).rank() == 0 &&
                                           is_int(type_of(*t).dtype) &&
                                           t->weak != ops::Weak::kFloat) {
      CUVIL_TRY(d, bind_scalar(*t, n));
    }
    if (!d)
      return fail(ErrorClass::kTypeError, describe(v) + " cannot be interpreted as an integer", {},
                  n);
    all_static = all_static && g_.dims.as_constant(*d);
    parts.push_back(*d);
  }
  if (all_static) {
    PyObject* type = reinterpret_cast<PyObject*>(&PyRange_Type);
    return call_pure(type, args, n);
  }
  ir::DimTable& dims = g_.dims;
  ir::Dim begin = a.size() > 1 ? parts[0] : dims.constant(0);
  ir::Dim end = a.size() > 1 ? parts[1] : parts[0];
  int64_t step = 1;
  if (a.size() == 3) {
    CUVIL_TRY(Value fixed, specialise(parts[2], n));
    step = to_int64(fixed.get<Static>()->object.get()).value_or(1);
  }
  if (step == 0) return fail(ErrorClass::kValueError, "range() arg 3 must not be zero", {}, n);
  ir::Dim distance = step > 0 ? dims.sub(end, begin) : dims.sub(begin, end);
  Result<bool> some = less(dims.constant(0), distance, n);
  if (some.ok())
    distance = *some ? distance : dims.constant(0);
  else
    distance = dims.max(distance, dims.constant(0));
  int64_t magnitude = step > 0 ? step : -step;
  ir::Dim trip = magnitude == 1 ? distance
                                : dims.floordiv(dims.add(distance, dims.constant(magnitude - 1)),
                                                dims.constant(magnitude));
  return Value(RangeValue{begin, dims.constant(step), trip});
}

Result<Value> Interpreter::builtin_int(const Arguments& args, const Node& n) {
  if (args.positional.size() == 1) {
    const Value& v = args.positional[0];
    if (v.is<ir::Dim>()) return v;
    if (const Tensor* t = v.get<Tensor>()) {
      CUVIL_TRY(Value s, python_scalar(*t, n));
      const Tensor* u = s.get<Tensor>();
      if (!u) return s;
      if (u->weak == ops::Weak::kFloat)
        return unsupported("int() of a run-time float",
                           "use np.floor / np.trunc, or .astype(np.int64) on an array", n);
      CUVIL_TRY(ir::Dim d, bind_scalar(*u, n));
      return Value(d);
    }
  }
  return call_pure(reinterpret_cast<PyObject*>(&PyLong_Type), args, n);
}

Result<Value> Interpreter::builtin_float(const Arguments& args, const Node& n) {
  if (args.positional.size() == 1) {
    const Value& v = args.positional[0];
    ops::Builder b = builder(n);
    if (const ir::Dim* d = v.get<ir::Dim>())
      return Value(fresh(b.dim_value(*d, DType::kF64), ops::Weak::kFloat));
    if (const Tensor* t = v.get<Tensor>()) {
      const ir::Type type = type_of(*t);
      if (type.rank() > 0 && !g_.dims.is_constant(g_.dims.product(type.shape), 1))
        return fail(ErrorClass::kTypeError,
                    "only length-1 arrays can be converted to Python scalars", "index one element",
                    n);
      ir::ValueId x = read(*t);
      if (type.rank() > 0) {
        std::vector<int64_t> axes;
        for (size_t k = 0; k < type.rank(); ++k) axes.push_back(static_cast<int64_t>(k));
        x = b.emit("squeeze", {x}, {type.dtype, {}}, {{ops::attr::kAxes, axes}});
      }
      return Value(fresh(b.cast(x, DType::kF64), ops::Weak::kFloat));
    }
  }
  return call_pure(reinterpret_cast<PyObject*>(&PyFloat_Type), args, n);
}

Result<Value> Interpreter::builtin_bool(const Arguments& args, const Node& n) {
  if (args.positional.size() != 1) return static_bool(false);
  CUVIL_TRY(bool t, truth(args.positional[0], n, "bool()"));
  return static_bool(t);
}

Result<Value> Interpreter::builtin_abs(const Arguments& args, const Node& n) {
  CUVIL_EXPECT(args.positional.size() == 1 && args.keywords.empty(),
               "abs() takes exactly one argument");
  const Value& v = args.positional[0];
  if (const ir::Dim* d = v.get<ir::Dim>()) {
    CUVIL_TRY(Value negative, unary(NodeKind::kUSub, v, n));
    if (std::optional<ir::Dim> m = negative.get<ir::Dim>() ? as_dim(negative) : std::nullopt)
      return dim_or_static(g_.dims.max(*d, *m));
    CUVIL_TRY(Value fixed, specialise(*d, n));
    Arguments again;
    again.positional = {fixed};
    return builtin_abs(again, n);
  }
  if (v.is<Tensor>()) {
    for (const char* name : {"operator.abs", "builtins.abs", "numpy.absolute"})
      if (ops::find_row(name)) return call_operator(name, {v}, n);
  }
  CUVIL_TRY(std::optional<PyRef> o, as_object(v, n));
  PyRef r = o ? PyRef::steal(PyNumber_Absolute(o->get())) : PyRef();
  if (!r)
    return o ? python_error(n) : fail(ErrorClass::kTypeError, "bad operand type for abs()", {}, n);
  return static_of(std::move(r));
}

// min and max: statics as Python does, run-time ints as dims, run-time floats by comparing in order.
Result<Value> Interpreter::extreme(const Arguments& args, bool largest, const Node& n) {
  const char* name = largest ? "max" : "min";
  PyRef builtins = PyRef::steal(PyImport_ImportModule("builtins"));
  PyRef function = PyRef::steal(PyObject_GetAttrString(builtins.get(), name));
  Values items = args.positional;
  if (items.size() == 1) {
    if (const Tensor* t = items[0].get<Tensor>(); t && type_of(*t).rank() != 1)
      return unsupported(std::string(name) + "() of an array with several axes",
                         std::string("use np.") + name, n);
    CUVIL_TRY(items, items_of(items[0], n));
  }
  bool all_static = true, all_ints = true;
  for (const Value& v : items) {
    CUVIL_TRY(std::optional<PyRef> o, v.is<Tensor>() || v.is<ir::Dim>()
                                          ? Result<std::optional<PyRef>>(std::optional<PyRef>())
                                          : as_object(v, n));
    all_static = all_static && o;
    all_ints = all_ints && as_dim(v);
  }
  if (all_static) return call_pure(function.get(), args, n);
  if (!args.keywords.empty())
    return unsupported(std::string(name) + "() with keywords on run-time values",
                       "use np." + std::string(name), n);
  Value best = items[0];
  for (size_t k = 1; k < items.size(); ++k) {
    std::optional<ir::Dim> a = as_dim(best), b = as_dim(items[k]);
    if (a && b) {
      Result<bool> r = less(*a, *b, n);
      if (r.ok())
        best = dim_or_static(*r == largest ? *b : *a);
      else
        best = dim_or_static(largest ? g_.dims.max(*a, *b) : g_.dims.min(*a, *b));
      continue;
    }
    // Python keeps the first unless the next one compares greater (less).
    CUVIL_TRY(Value c, compare(largest ? NodeKind::kGt : NodeKind::kLt, items[k], best, n));
    const Static* s = c.get<Static>();
    if (s) {
      best = s->object.get() == Py_True ? items[k] : best;
      continue;
    }
    CUVIL_TRY(Tensor x, as_tensor(items[k], n));
    CUVIL_TRY(Tensor y, as_tensor(best, n));
    const ir::Type tx = type_of(x), ty = type_of(y);
    if (tx.rank() || ty.rank())
      return fail(ErrorClass::kValueError,
                  "The truth value of an array with more than one element is ambiguous. Use "
                  "a.any() or a.all()",
                  std::string("use np.") + (largest ? "maximum" : "minimum"), n);
    if (tx.dtype != ty.dtype || x.weak != y.weak)
      return unsupported(std::string(name) + "() of run-time values of different types",
                         std::string("use np.") + (largest ? "maximum" : "minimum"), n);
    Arguments where;
    ops::Weak weak = x.weak;
    bool scalar = x.scalar;
    x.weak = y.weak = ops::Weak::kNo;
    where.positional = {c, x, y};
    const ops::DialectRow* row = ops::find_row("numpy.where");
    if (!row) return unsupported(std::string(name) + "() of run-time values", "use np.maximum", n);
    CUVIL_TRY(best, call_row(*row, nullptr, where, -1, n));
    best.get<Tensor>()->weak = weak;
    best.get<Tensor>()->scalar = scalar;
  }
  return best;
}

Result<Value> Interpreter::builtin_min(const Arguments& args, const Node& n) {
  return extreme(args, false, n);
}
Result<Value> Interpreter::builtin_max(const Arguments& args, const Node& n) {
  return extreme(args, true, n);
}

Result<Value> Interpreter::builtin_sum(const Arguments& args, const Node& n) {
  CUVIL_EXPECT(!args.positional.empty() && args.positional.size() <= 2,
               "sum() takes one or two arguments");
  Value total = static_int(0);
  if (args.positional.size() == 2) total = args.positional[1];
  if (const Value* start = args.find("start")) total = *start;
  CUVIL_TRY(Values items, items_of(args.positional[0], n));
  for (const Value& v : items) {
    CUVIL_TRY(total, binary(NodeKind::kAdd, total, v, n));
  }
  return total;
}

Result<Value> Interpreter::builtin_round(const Arguments& args, const Node& n) {
  if (args.positional.size() == 1 && args.positional[0].is<ir::Dim>()) return args.positional[0];
  if (!args.positional.empty() && args.positional[0].is<Tensor>())
    return unsupported("round() of " + describe(args.positional[0]), "use np.round", n);
  PyRef builtins = PyRef::steal(PyImport_ImportModule("builtins"));
  PyRef function = PyRef::steal(PyObject_GetAttrString(builtins.get(), "round"));
  return call_pure(function.get(), args, n);
}

Result<Value> Interpreter::builtin_pow(const Arguments& args, const Node& n) {
  if (args.positional.size() == 2)
    return binary(NodeKind::kPow, args.positional[0], args.positional[1], n);
  PyRef builtins = PyRef::steal(PyImport_ImportModule("builtins"));
  PyRef function = PyRef::steal(PyObject_GetAttrString(builtins.get(), "pow"));
  return call_pure(function.get(), args, n);
}

Result<Value> Interpreter::builtin_divmod(const Arguments& args, const Node& n) {
  CUVIL_EXPECT(args.positional.size() == 2, "divmod expected 2 arguments");
  CUVIL_TRY(Value q, binary(NodeKind::kFloorDiv, args.positional[0], args.positional[1], n));
  CUVIL_TRY(Value r, binary(NodeKind::kMod, args.positional[0], args.positional[1], n));
  return make_container(Container::Kind::kTuple, {q, r});
}

Result<Value> Interpreter::builtin_zip(const Arguments& args, const Node& n) {
  bool lazy = false;
  for (const Value& v : args.positional)
    lazy = lazy || v.is<Tensor>() || v.is<RangeValue>() || v.is<std::shared_ptr<LazySequence>>();
  bool long_static = true;  // zip(range(1000), x): the shortest decides
  for (const Value& v : args.positional) long_static = long_static && (!v.container());
  if (lazy && long_static) {
    auto s = std::make_shared<LazySequence>();
    s->kind = LazySequence::Kind::kZip;
    s->parts = args.positional;
    return Value(std::move(s));
  }
  std::vector<Values> columns;
  size_t shortest = SIZE_MAX;
  for (const Value& v : args.positional) {
    CUVIL_TRY(Values items, items_of(v, n));
    shortest = std::min(shortest, items.size());
    columns.push_back(std::move(items));
  }
  if (const Value* strict = args.find("strict")) {
    CUVIL_TRY(bool t, truth(*strict, n, "zip(strict=)"));
    for (const Values& c : columns)
      if (t && c.size() != shortest)
        return fail(ErrorClass::kValueError, "zip() arguments have different lengths", {}, n);
  }
  Values rows;
  for (size_t k = 0; !columns.empty() && k < shortest; ++k) {
    Values row;
    for (const Values& c : columns) row.push_back(c[k]);
    rows.push_back(make_container(Container::Kind::kTuple, std::move(row)));
  }
  return make_container(Container::Kind::kList, std::move(rows));
}

Result<Value> Interpreter::builtin_enumerate(const Arguments& args, const Node& n) {
  CUVIL_EXPECT(!args.positional.empty() && args.positional.size() <= 2,
               "enumerate() takes one or two arguments");
  const Value& v = args.positional[0];
  ir::Dim start = g_.dims.constant(0);
  const Value* given = args.positional.size() == 2 ? &args.positional[1] : args.find("start");
  if (given) {
    std::optional<ir::Dim> d = as_dim(*given);
    CUVIL_EXPECT(d, "enumerate() start must be an int");
    start = *d;
  }
  if (v.is<Tensor>() || v.is<RangeValue>() || v.is<std::shared_ptr<LazySequence>>()) {
    auto s = std::make_shared<LazySequence>();
    s->kind = LazySequence::Kind::kEnumerate;
    s->parts = {v};
    s->start = start;
    return Value(std::move(s));
  }
  CUVIL_TRY(Values items, items_of(v, n));
  Values rows;
  for (size_t k = 0; k < items.size(); ++k)
    rows.push_back(make_container(
        Container::Kind::kTuple,
        {dim_or_static(g_.dims.add(start, g_.dims.constant(static_cast<int64_t>(k)))), items[k]}));
  return make_container(Container::Kind::kList, std::move(rows));
}

Result<Value> Interpreter::builtin_reversed(const Arguments& args, const Node& n) {
  CUVIL_EXPECT(args.positional.size() == 1, "reversed expected 1 argument");
  const Value& v = args.positional[0];
  const Static* r = v.get<Static>();
  if (v.is<Tensor>() || v.is<RangeValue>() || (r && is_exactly(r->object.get(), &PyRange_Type))) {
    auto s = std::make_shared<LazySequence>();
    s->kind = LazySequence::Kind::kReversed;
    s->parts = {v};
    return Value(std::move(s));
  }
  CUVIL_TRY(Values items, items_of(v, n));
  return make_container(Container::Kind::kList, Values(items.rbegin(), items.rend()));
}

Result<Value> Interpreter::builtin_map(const Arguments& args, const Node& n) {
  CUVIL_EXPECT(args.positional.size() >= 2, "map() must have at least two arguments.");
  std::vector<Values> columns;
  size_t shortest = SIZE_MAX;
  for (size_t k = 1; k < args.positional.size(); ++k) {
    CUVIL_TRY(Values items, items_of(args.positional[k], n));
    shortest = std::min(shortest, items.size());
    columns.push_back(std::move(items));
  }
  Values out;
  for (size_t k = 0; k < shortest; ++k) {
    Arguments row;
    for (const Values& c : columns) row.positional.push_back(c[k]);
    CUVIL_TRY(Value v, call(args.positional[0], std::move(row), n));
    out.push_back(std::move(v));
  }
  return make_container(Container::Kind::kList, std::move(out));
}

Result<Value> Interpreter::any_all(const Arguments& args, bool any, const Node& n) {
  CUVIL_EXPECT(args.positional.size() == 1, "any() and all() take exactly one argument");
  CUVIL_TRY(Values items, items_of(args.positional[0], n));
  for (const Value& v : items) {
    CUVIL_TRY(bool t, truth(v, n, any ? "any()" : "all()"));
    if (t == any) return static_bool(any);
  }
  return static_bool(!any);
}
Result<Value> Interpreter::builtin_any(const Arguments& args, const Node& n) {
  return any_all(args, true, n);
}
Result<Value> Interpreter::builtin_all(const Arguments& args, const Node& n) {
  return any_all(args, false, n);
}

// The class of a value; NULL for values that have none here.
PyRef Interpreter::class_of(const Value& v) {
  auto type = [](PyTypeObject* t) { return PyRef::borrow(reinterpret_cast<PyObject*>(t)); };
  if (const Tensor* t = v.get<Tensor>()) {
    if (t->weak == ops::Weak::kFloat) return type(&PyFloat_Type);
    if (t->weak == ops::Weak::kBool) return type(&PyBool_Type);
    if (t->weak == ops::Weak::kInt) return type(&PyLong_Type);
    PyRef numpy = loaded_module("numpy");
    if (!t->scalar) return numpy ? attr_or_null(numpy.get(), CUVIL_NAME("ndarray")) : PyRef();
    PyRef dtype = numpy_dtype(type_of(*t).dtype);
    return dtype ? attr_or_null(dtype.get(), CUVIL_NAME("type")) : PyRef();
  }
  if (v.is<ir::Dim>()) return type(&PyLong_Type);
  if (const Static* s = v.get<Static>()) return type(Py_TYPE(s->object.get()));
  if (const Container* c = v.container()) {
    switch (c->kind) {
      case Container::Kind::kTuple: return type(&PyTuple_Type);
      case Container::Kind::kList: return type(&PyList_Type);
      case Container::Kind::kDict: return type(&PyDict_Type);
      case Container::Kind::kSet: return type(&PySet_Type);
      case Container::Kind::kNamedTuple: return c->type.object;
    }
  }
  if (v.is<RangeValue>()) return type(&PyRange_Type);
  return PyRef();
}

Result<Value> Interpreter::builtin_isinstance(const Arguments& args, const Node& n) {
  CUVIL_EXPECT(args.positional.size() == 2, "isinstance expected 2 arguments");
  const Value& v = args.positional[0];
  CUVIL_TRY(std::optional<PyRef> classes, as_object(args.positional[1], n));
  PyRef cls = class_of(v);
  if (!classes || !cls) return unsupported("isinstance() of " + describe(v), {}, n);
  if (const Static* s = v.get<Static>()) {
    guard_class_of(*s);
    int r = PyObject_IsInstance(s->object.get(), classes->get());
    if (r < 0) return python_error(n);
    return static_bool(r == 1);
  }
  if (const Container* c = v.container(); c && c->kind == Container::Kind::kNamedTuple)
    capture_.guard_bases(c->type.source, cls.get());
  int r = PyObject_IsSubclass(cls.get(), classes->get());
  if (r < 0) return python_error(n);
  return static_bool(r == 1);
}

Result<Value> Interpreter::builtin_issubclass(const Arguments& args, const Node& n) {
  CUVIL_EXPECT(args.positional.size() == 2, "issubclass expected 2 arguments");
  CUVIL_TRY(std::optional<PyRef> cls, as_object(args.positional[0], n));
  CUVIL_TRY(std::optional<PyRef> classes, as_object(args.positional[1], n));
  if (!cls || !classes)
    return unsupported("issubclass() of " + describe(args.positional[0]), {}, n);
  int r = PyObject_IsSubclass(cls->get(), classes->get());
  if (r < 0) return python_error(n);
  if (const Static* s = args.positional[0].get<Static>(); s && PyType_Check(cls->get()))
    capture_.guard_bases(s->source, cls->get());
  return static_bool(r == 1);
}

void Interpreter::guard_class_of(const Static& s) {
  if (s.source < 0) return;
  capture_.guard_bases(capture_.source(Capture::Kind::kType, s.source),
                       reinterpret_cast<PyObject*>(Py_TYPE(s.object.get())));
}

// For what a class defines: one that Python code made may be another in another process.
void Interpreter::guard_contents_of_class(const Static& s) {
  if (s.source < 0) return;
  PyTypeObject* type = Py_TYPE(s.object.get());
  capture_.guard_type(s.source, s.object.get());
  if (PyType_GetFlags(type) & Py_TPFLAGS_HEAPTYPE)
    capture_.guard_identity(capture_.source(Capture::Kind::kType, s.source),
                            reinterpret_cast<PyObject*>(type));
}

Result<Value> Interpreter::builtin_type(const Arguments& args, const Node& n) {
  CUVIL_EXPECT(args.positional.size() == 1, "type() takes one argument in a compiled function");
  if (const Static* s = args.positional[0].get<Static>(); s && s->source >= 0)
    capture_.guard_type(s->source, s->object.get());
  PyRef cls = class_of(args.positional[0]);
  if (!cls) return unsupported("type() of " + describe(args.positional[0]), {}, n);
  if (const Static* s = args.positional[0].get<Static>(); s && s->source >= 0)
    return Value(Static{std::move(cls), capture_.source(Capture::Kind::kType, s->source)});
  return static_of(std::move(cls));
}

Result<Value> Interpreter::builtin_hasattr(const Arguments& args, const Node& n) {
  CUVIL_EXPECT(args.positional.size() == 2, "hasattr expected 2 arguments");
  CUVIL_TRY(std::optional<PyRef> name, as_object(args.positional[1], n));
  if (!name) return unsupported("hasattr() with a run-time name", {}, n);
  const Value& v = args.positional[0];
  if (const Static* s = v.get<Static>()) {
    PyRef found = attr_or_null(s->object.get(), name->get());
    if (s->source >= 0) {
      int32_t source = capture_.attribute(s->source, to_string(name->get()));
      if (found)
        capture_.guard_type(source, found.get());
      else
        capture_.guard_missing(source);
    }
    return static_bool(static_cast<bool>(found));
  }
  PyRef cls = class_of(v);
  return static_bool(cls && attr_or_null(cls.get(), name->get()));
}

Result<Value> Interpreter::builtin_getattr(const Arguments& args, const Node& n) {
  CUVIL_EXPECT(args.positional.size() == 2 || args.positional.size() == 3,
               "getattr expected 2 or 3 arguments");
  CUVIL_TRY(std::optional<PyRef> name, as_object(args.positional[1], n));
  if (!name) return unsupported("getattr() with a run-time name", {}, n);
  if (args.positional.size() == 3) {
    Arguments two;
    two.positional = {args.positional[0], args.positional[1]};
    CUVIL_TRY(Value has, builtin_hasattr(two, n));
    if (has.get<Static>()->object.get() == Py_False) return args.positional[2];
  }
  return attribute_of(args.positional[0], to_string(name->get()), n);
}

Result<Value> Interpreter::builtin_callable(const Arguments& args, const Node& n) {
  CUVIL_EXPECT(args.positional.size() == 1, "callable() takes exactly one argument");
  const Value& v = args.positional[0];
  if (const Static* s = v.get<Static>()) {
    guard_contents_of_class(*s);
    return static_bool(PyCallable_Check(s->object.get()));
  }
  return static_bool(v.is<std::shared_ptr<LocalFunction>>() || v.is<BoundMethod>());
}

Result<Value> Interpreter::to_sequence(const Value& v, Container::Kind kind, const Node& n) {
  CUVIL_TRY(Values items, items_of(v, n));
  return make_container(kind, std::move(items));
}

Result<Value> Interpreter::builtin_tuple(const Arguments& args, const Node& n) {
  if (args.positional.empty()) return make_container(Container::Kind::kTuple, {});
  return to_sequence(args.positional[0], Container::Kind::kTuple, n);
}

Result<Value> Interpreter::builtin_list(const Arguments& args, const Node& n) {
  if (args.positional.empty()) return make_container(Container::Kind::kList, {});
  return to_sequence(args.positional[0], Container::Kind::kList, n);
}

Result<Value> Interpreter::builtin_dict(const Arguments& args, const Node& n) {
  Value out = make_container(Container::Kind::kDict, {});
  if (!args.positional.empty()) {
    const Value& v = args.positional[0];
    const Static* s = v.get<Static>();
    bool mapping = (s && is_exactly(s->object.get(), &PyDict_Type)) ||
                   (v.container() && v.container()->kind == Container::Kind::kDict);
    CUVIL_TRY(Values items, items_of(v, n));
    for (const Value& item : items) {
      Value key = item, value;
      if (mapping) {
        CUVIL_TRY(value, subscript(v, key, n));
      } else {
        CUVIL_TRY(Values pair, items_of(item, n));
        CUVIL_EXPECT(pair.size() == 2, "dictionary update sequence element has the wrong length");
        key = pair[0];
        value = pair[1];
      }
      CUVIL_CHECK(store_subscript(out, key, value, n));
    }
  }
  for (const Keyword& k : args.keywords)
    CUVIL_CHECK(store_subscript(out, static_of(to_str(k.name)), k.value, n));
  return out;
}

Result<Value> Interpreter::builtin_slice(const Arguments& args, const Node& n) {
  const Values& a = args.positional;
  CUVIL_EXPECT(!a.empty() && a.size() <= 3, "slice expected from 1 to 3 arguments");
  auto s = std::make_shared<SliceValue>();
  s->parts = {a.size() > 1 ? a[0] : none(), a.size() > 1 ? a[1] : a[0],
              a.size() > 2 ? a[2] : none()};
  return Value(std::move(s));
}

Result<Value> Interpreter::builtin_shape(const Arguments& args, const Node& n) {
  CUVIL_EXPECT(args.positional.size() == 1, "shape() takes one argument");
  CUVIL_TRY(Tensor t, as_tensor(args.positional[0], n));
  t.weak = ops::Weak::kNo;
  return attribute_of(Value(t), "shape", n);
}

Result<Value> Interpreter::builtin_ndim(const Arguments& args, const Node& n) {
  CUVIL_EXPECT(args.positional.size() == 1, "ndim() takes one argument");
  CUVIL_TRY(Tensor t, as_tensor(args.positional[0], n));
  return static_int(static_cast<int64_t>(type_of(t).rank()));
}

Result<Value> Interpreter::builtin_size(const Arguments& args, const Node& n) {
  CUVIL_EXPECT(!args.positional.empty(), "size() takes one or two arguments");
  CUVIL_TRY(Tensor t, as_tensor(args.positional[0], n));
  t.weak = ops::Weak::kNo;
  const Value* axis = args.positional.size() > 1 ? &args.positional[1] : args.find("axis");
  if (!axis) return attribute_of(Value(t), "size", n);
  CUVIL_TRY(Value shape, attribute_of(Value(t), "shape", n));
  return subscript(shape, *axis, n);
}

// np.prod(x.shape): an int64 of ints, wanted as a size; everything else is the row's.
Result<Value> Interpreter::builtin_numpy_prod(const Arguments& args, const Node& n) {
  const Container* c = args.positional.size() == 1 && args.keywords.empty()
                           ? args.positional[0].container()
                           : nullptr;
  bool ints = c && (c->kind == Container::Kind::kTuple || c->kind == Container::Kind::kList) &&
              !c->items.empty();
  ir::Dim product = g_.dims.constant(1);
  for (size_t k = 0; ints && k < c->items.size(); ++k) {
    std::optional<ir::Dim> d = as_dim(c->items[k]);
    ints = d.has_value();
    if (d) product = g_.dims.mul(product, *d);
  }
  if (ints && !g_.dims.as_constant(product))
    return Value(fresh(builder(n).dim_value(product), ops::Weak::kNo, true));
  PyRef numpy = loaded_module("numpy");
  PyRef prod = PyRef::steal(PyObject_GetAttrString(numpy.get(), "prod"));
  if (ints) return call_pure(prod.get(), args, n);
  if (const ops::DialectRow* row = ops::find_row("numpy.prod"))
    return call_row(*row, nullptr, args, -1, n);
  return call_pure(prod.get(), args, n);
}

}  // namespace cuvil::frontend
