// Calls: what the callee is (row, builtin, Python function, pure function), and how a dialect row is
// called and its result becomes a value again.
#include "frontend/interpreter.h"
#include "ops/rows.h"
#include "ops/structural.h"

namespace cuvil::frontend {
namespace {

PyObject* type_in(const char* module, const char* name) {
  PyRef m = PyRef::steal(PyImport_ImportModule(module));
  PyRef t = m ? PyRef::steal(PyObject_GetAttrString(m.get(), name)) : PyRef();
  if (!t) forgive();
  return t.release();  // lives as long as the process
}

bool is_function(PyObject* o) {
  static PyObject* const type = type_in("types", "FunctionType");
  return reinterpret_cast<PyObject*>(Py_TYPE(o)) == type;
}
bool is_method(PyObject* o) {
  static PyObject* const type = type_in("types", "MethodType");
  return reinterpret_cast<PyObject*>(Py_TYPE(o)) == type;
}
bool is_builtin_method(PyObject* o) {
  static PyObject* const type = type_in("types", "BuiltinFunctionType");
  return reinterpret_cast<PyObject*>(Py_TYPE(o)) == type;
}
bool is_ufunc(PyObject* o) {
  static PyObject* const type = type_in("numpy", "ufunc");
  return reinterpret_cast<PyObject*>(Py_TYPE(o)) == type;
}
bool is_numpy_scalar_type(PyObject* o) {
  static PyObject* const type = type_in("numpy", "generic");
  return PyType_Check(o) && PyObject_IsSubclass(o, type) == 1;
}

}  // namespace

Result<Arguments> Interpreter::eval_arguments(const Node& n) {
  Arguments args;
  CUVIL_TRY(args.positional, eval_all(n.children(CUVIL_NAME("args"))));
  for (const Node& k : n.children(CUVIL_NAME("keywords"))) {
    CUVIL_TRY(Value v, eval(k.child(CUVIL_NAME("value"))));
    std::string name = k.text(CUVIL_NAME("arg"));
    if (!name.empty()) {
      args.keywords.push_back({std::move(name), std::move(v)});
      continue;
    }
    // **mapping
    CUVIL_TRY(Values keys, items_of(v, n));
    for (const Value& key : keys) {
      const Static* s = key.get<Static>();
      if (!s || !PyUnicode_Check(s->object.get()))
        return fail(ErrorClass::kTypeError, "keywords must be strings", {}, n);
      CUVIL_TRY(Value item, subscript(v, key, n));
      args.keywords.push_back({to_string(s->object.get()), std::move(item)});
    }
  }
  for (size_t i = 0; i < args.keywords.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (args.keywords[i].name == args.keywords[k].name)
        return fail(ErrorClass::kTypeError,
                    "got multiple values for keyword argument '" + args.keywords[i].name + "'", {},
                    n);
  return args;
}

Result<Value> Interpreter::eval_call(const Node& n) {
  CUVIL_TRY(Value callee, eval(n.child(CUVIL_NAME("func"))));
  CUVIL_TRY(Arguments args, eval_arguments(n));
  return call(callee, std::move(args), n);
}

Result<Value> Interpreter::call(const Value& callee, Arguments args, const Node& n) {
  if (const auto* f = callee.get<std::shared_ptr<LocalFunction>>())
    return call_local(**f, std::move(args), n);
  if (const BoundMethod* m = callee.get<BoundMethod>()) return call_method(*m, std::move(args), n);
  if (const Static* s = callee.get<Static>()) return call_static(*s, std::move(args), n);
  return fail(ErrorClass::kTypeError, describe(callee) + " is not callable", {}, n);
}

Result<Value> Interpreter::call_static(const Static& callee, Arguments args, const Node& n) {
  PyObject* o = callee.object.get();
  const std::string path = callee.source >= 0 ? capture_.path(callee.source) : short_repr(o);
  if (const Builtin* b = find_builtin(o)) {
    CUVIL_CHECK(use(callee, n));
    if (b->call) return (this->*b->call)(args, n);
    return call_pure(o, args, n);
  }
  std::string qualified;
  if (const ops::DialectRow* row = row_of(o, *request_.tools, &qualified)) {
    if (callee.source >= 0) capture_.guard_qualified(callee.source, std::move(qualified));
    // Numbers only: computed now, by NumPy itself.
    if (is_ufunc(o) || row->name.starts_with("math.")) {
      bool all_static = !args.positional.empty();
      for (const Value& v : args.positional) all_static = all_static && v.is<Static>();
      for (const Keyword& k : args.keywords) all_static = all_static && k.value.is<Static>();
      if (all_static) return call_pure(o, args, n);
    }
    return call_row(*row, nullptr, args, callee.source, n);
  }
  if (is_function(o)) {
    PyRef code = CUVIL_ATTR(o, "__code__");
    if (callee.source >= 0) capture_.guard_code(callee.source, code.get());
    return call_function(o, callee.source, std::move(args), n);
  }
  if (PyObject* wrapped = request_.tools->wrapped_function(o)) {
    int32_t source =
        callee.source < 0 ? -1 : capture_.source(Capture::Kind::kWrapped, callee.source);
    PyRef code = CUVIL_ATTR(wrapped, "__code__");
    if (source >= 0 && code) capture_.guard_code(source, code.get());
    forgive();
    return call_function(wrapped, source, std::move(args), n);
  }
  if (is_method(o)) {
    PyRef function = CUVIL_ATTR(o, "__func__"), self = CUVIL_ATTR(o, "__self__");
    int32_t fs =
        callee.source < 0 ? -1 : capture_.source(Capture::Kind::kMethodFunction, callee.source);
    int32_t ss =
        callee.source < 0 ? -1 : capture_.source(Capture::Kind::kMethodSelf, callee.source);
    CUVIL_TRY(Value bound, load(self, ss, n));
    args.positional.insert(args.positional.begin(), std::move(bound));
    return call_static(Static{function, fs}, std::move(args), n);
  }
  if (PyType_Check(o)) {
    if (PyObject_IsSubclass(o, PyExc_BaseException) == 1) {
      CUVIL_CHECK(use(callee, n));
      return call_pure(o, args, n);
    }
    if (is_numpy_scalar_type(o)) {
      CUVIL_CHECK(use(callee, n));
      if (args.positional.size() == 1 && args.keywords.empty() &&
          (args.positional[0].is<Tensor>() || args.positional[0].is<ir::Dim>())) {
        std::optional<DType> t = dtype_of(o);
        CUVIL_TRY(Tensor x, as_tensor(args.positional[0], n));
        if (t) {
          bool scalar = type_of(x).rank() == 0;
          return Value(fresh(builder(n).cast(read(x), *t), ops::Weak::kNo, scalar));
        }
      }
      return call_pure(o, args, n);
    }
    PyRef fields = attr_or_null(o, CUVIL_NAME("_fields"));
    if (fields && PyTuple_Check(fields.get()) &&
        PyObject_IsSubclass(o, reinterpret_cast<PyObject*>(&PyTuple_Type)) == 1) {
      CUVIL_CHECK(use(callee, n));
      int32_t of_defaults = -1;
      if (callee.source >= 0) {
        capture_.guard_object(capture_.attribute(callee.source, "_fields"), fields.get());
        of_defaults = capture_.attribute(callee.source, "_field_defaults");
      }
      Value made = make_container(Container::Kind::kNamedTuple, args.positional);
      Container& c = *made.container();
      c.type = callee;
      PyRef defaults = attr_or_null(o, CUVIL_NAME("_field_defaults"));
      const auto count = static_cast<size_t>(PyTuple_Size(fields.get()));
      for (size_t k = c.items.size(); k < count; ++k) {
        std::string name = to_string(PyTuple_GetItem(fields.get(), static_cast<Py_ssize_t>(k)));
        if (const Value* v = args.find(name)) {
          c.items.push_back(*v);
          continue;
        }
        PyObject* d = defaults ? PyDict_GetItemString(defaults.get(), name.c_str()) : nullptr;
        if (!d)
          return fail(ErrorClass::kTypeError,
                      path + "() missing 1 required positional argument: '" + name + "'", {}, n);
        std::optional<artifact::Const> key =
            const_of(PyTuple_GetItem(fields.get(), static_cast<Py_ssize_t>(k)));
        int32_t source =
            of_defaults < 0 ? -1 : capture_.source(Capture::Kind::kItem, of_defaults, 0, {}, key);
        CUVIL_TRY(Value value, load(PyRef::borrow(d), source, n));
        c.items.push_back(std::move(value));
      }
      if (args.positional.size() + args.keywords.size() > count)
        return fail(ErrorClass::kTypeError, path + "() got too many arguments", {}, n);
      return made;
    }
    return unsupported("making an object of class `" + path + "` is not compiled",
                       "make it outside and pass it in, or use a tuple or dict", n);
  }
  if (is_builtin_method(o) && callee.source < 0) {
    // A method of a static value: 'abc'.upper, (1, 2).index. Statics are values, so these are pure.
    PyRef self = attr_or_null(o, CUVIL_NAME("__self__"));
    if (self && !PyModule_Check(self.get())) return call_pure(o, args, n);
  }
  PyRef name = attr_or_null(o, CUVIL_NAME("__name__"));
  PyRef module = attr_or_null(o, CUVIL_NAME("__module__"));
  std::string in = module ? to_string(module.get()) : std::string();
  if (is_ufunc(o) || in.starts_with("numpy") || in.starts_with("scipy"))
    return unsupported("`" + path + "` is not compiled",
                       "call it outside and pass its result as an argument, or write it with the "
                       "operations of docs/operations.md",
                       n);
  const bool prints = in == "builtins" && name && to_string(name.get()) == "print";
  return unsupported("the call of `" + path +
                         "` is not compiled: it may have effects or give another "
                         "value at every call",
                     prints ? "print after the call, or run with CUVIL_DISABLE=1 to watch it"
                            : "call it outside and pass its result as an argument",
                     n);
}

Result<Value> Interpreter::call_pure(PyObject* callable, const Arguments& args, const Node& n) {
  PyRef list = PyRef::steal(PyList_New(0)), keywords = PyRef::steal(PyDict_New());
  auto object_of = [&](const Value& v) -> Result<PyRef> {
    Value fixed = v;
    if (const ir::Dim* d = v.get<ir::Dim>()) {
      CUVIL_TRY(fixed, specialise(*d, n));
    }
    CUVIL_TRY(std::optional<PyRef> o, as_object(fixed, n));
    if (o && PyAnySet_Check(o->get())) capture_.note_order_of(o->get());
    if (o && is_function(o->get()))
      return unsupported("`" + short_repr(callable) + "` is called with a function",
                         "write a loop or a comprehension", n);
    if (o) return std::move(*o);
    return unsupported("`" + short_repr(callable) + "` is called with " + describe(v) +
                           ", which is known at run time only",
                       "use a NumPy operation", n);
  };
  for (const Value& v : args.positional) {
    CUVIL_TRY(PyRef o, object_of(v));
    PyList_Append(list.get(), o.get());
  }
  for (const Keyword& k : args.keywords) {
    CUVIL_TRY(PyRef o, object_of(k.value));
    PyDict_SetItemString(keywords.get(), k.name.c_str(), o.get());
  }
  PyRef tuple = PyRef::steal(PyList_AsTuple(list.get()));
  PyRef r = PyRef::steal(PyObject_Call(callable, tuple.get(), keywords.get()));
  if (!r) return python_error(n);
  return wrap(std::move(r));
}

Result<Value> Interpreter::call_operator(std::string_view name, const Values& operands,
                                         const Node& n) {
  const ops::DialectRow* row = ops::find_row(name);
  if (!row)
    return unsupported(
        "`" + std::string(name) + "` on " + describe(operands[0]) + " is not compiled",
        "use a NumPy function", n);
  Arguments args;
  args.positional = operands;
  return call_row(*row, nullptr, args, -1, n);
}

Result<ops::ArgValue> Interpreter::to_arg(const Value& v, const Node& n) {
  using ops::ArgValue;
  if (const Tensor* t = v.get<Tensor>())
    return ArgValue(ops::TensorArg{read(*t), t->weak, t->scalar});
  if (const ir::Dim* d = v.get<ir::Dim>()) return ArgValue(*d);
  if (const Container* c = v.container()) {
    if (c->kind == Container::Kind::kDict || c->kind == Container::Kind::kSet)
      return fail(ErrorClass::kTypeError, describe(v) + " is not understood as an argument here",
                  "pass a list of its items", n);
    ops::ArgList items;
    for (const Value& item : c->items) {
      CUVIL_TRY(ArgValue a, to_arg(item, n));
      items.push_back(std::move(a));
    }
    return ArgValue::list(std::move(items));
  }
  if (auto* s = v.get<std::shared_ptr<SliceValue>>()) {
    auto slice = std::make_shared<ops::SliceArg>();
    CUVIL_TRY(slice->start, to_arg((*s)->parts[0], n));
    CUVIL_TRY(slice->stop, to_arg((*s)->parts[1], n));
    CUVIL_TRY(slice->step, to_arg((*s)->parts[2], n));
    return ArgValue(std::move(slice));
  }
  if (v.is<RangeValue>() || v.is<std::shared_ptr<LazySequence>>()) {
    CUVIL_TRY(Values values, items_of(v, n));
    return to_arg(make_container(Container::Kind::kTuple, std::move(values)), n);
  }
  const Static* s = v.get<Static>();
  if (!s)
    return fail(ErrorClass::kTypeError, describe(v) + " is not understood as an argument here", {},
                n);
  PyObject* o = s->object.get();
  if (PyTuple_Check(o) || PyList_Check(o) || is_exactly(o, &PyRange_Type)) {
    CUVIL_TRY(Values values, items_of_static(*s, n));
    return to_arg(make_container(Container::Kind::kTuple, std::move(values)), n);
  }
  CUVIL_CHECK(use(*s, n));
  if (o == Py_None) return ArgValue(ArgValue::None{});
  if (o == Py_Ellipsis) return ArgValue(ArgValue::Ellipsis{});
  if (PyBool_Check(o)) return ArgValue(o == Py_True);
  if (has_own_arithmetic(o))
    return unsupported(describe(v) + " is of a subclass of " + (PyLong_Check(o) ? "int" : "float") +
                           " with operators of its own",
                       "pass a plain number", n);
  if (is_strong_number(o)) {
    CUVIL_TRY(Tensor t, as_tensor(v, n));
    return to_arg(Value(t), n);
  }
  if (PyLong_Check(o)) {
    if (std::optional<int64_t> i = to_int64(o)) return ArgValue(*i);
    const double real = PyLong_AsDouble(o);
    if (real == -1.0 && PyErr_Occurred()) {
      forgive();
      return fail(ErrorClass::kOverflowError, "int too large to convert to float", {}, n);
    }
    ops::BigInt big{real, std::nullopt, to_string(PyRef::steal(PyObject_Str(o)).get())};
    const unsigned long long u64 = PyLong_AsUnsignedLongLong(o);
    if (PyErr_Occurred()) {
      forgive();
    } else {
      big.u64 = u64;
    }
    return ArgValue(std::move(big));
  }
  if (PyFloat_Check(o) && !PyObject_HasAttrString(o, "dtype")) return ArgValue(PyFloat_AsDouble(o));
  if (PyUnicode_Check(o)) return ArgValue(to_string(o));
  static PyObject* const dtype_type = type_in("numpy", "dtype");
  if (PyType_Check(o) || PyObject_IsInstance(o, dtype_type) == 1) {
    if (std::optional<DType> t = dtype_of(o)) return ArgValue(*t);
    return fail(ErrorClass::kDType, "the dtype " + short_repr(o) + " is not compiled",
                "use a bool, int, unsigned or float dtype", n);
  }
  if (PyObject_HasAttrString(o, "dtype") && PyObject_HasAttrString(o, "tobytes")) {
    CUVIL_TRY(Value c, constant_array(o, n));
    return to_arg(c, n);
  }
  if (PyComplex_Check(o))
    return fail(ErrorClass::kDType, "complex numbers are not compiled",
                "use real and imaginary parts", n);
  if (takes_part_in_arithmetic(o))
    return unsupported(describe(v) + ", which has operators of its own",
                       "pass a number or an array", n);
  return fail(ErrorClass::kTypeError, describe(v) + " is not understood as an argument here",
              "pass a number or an array", n);
}

Result<Value> Interpreter::call_row(const ops::DialectRow& row, const Value* self,
                                    const Arguments& args, int32_t source, const Node& n) {
  const std::vector<Parameter>& params = parameters(row);
  const std::string name(row.name.substr(row.name.rfind('.') + 1));
  Values bound(params.size());
  std::vector<bool> given(params.size(), false);
  Values positional;
  if (self) positional.push_back(*self);
  positional.insert(positional.end(), args.positional.begin(), args.positional.end());

  size_t at = 0;
  for (size_t k = 0; k < positional.size(); ++k) {
    while (at < params.size() && params[at].kind == Parameter::Kind::kKeyword) ++at;
    if (at >= params.size())
      return fail(ErrorClass::kTypeError,
                  name + "() takes " + std::to_string(params.size()) +
                      " positional arguments but " + std::to_string(positional.size()) +
                      " were given",
                  "see docs/operations.md for its parameters", n);
    if (params[at].kind == Parameter::Kind::kVariadic) {
      bound[at] =
          make_container(Container::Kind::kTuple,
                         Values(positional.begin() + static_cast<long>(k), positional.end()));
      given[at] = true;
      break;
    }
    bound[at] = positional[k];
    given[at++] = true;
  }
  for (const Keyword& k : args.keywords) {
    size_t i = 0;
    while (i < params.size() &&
           (params[i].name != k.name || params[i].kind == Parameter::Kind::kPositional))
      ++i;
    if (i == params.size())
      return unsupported(
          "the argument `" + k.name + "` of `" + std::string(row.name) + "` is not compiled",
          "leave it out, or do its work in a separate step", n);
    if (given[i])
      return fail(ErrorClass::kTypeError,
                  name + "() got multiple values for argument '" + k.name + "'", {}, n);
    bound[i] = k.value;
    given[i] = true;
  }

  std::vector<ops::ArgValue> arguments(params.size());
  std::vector<Tensor> operands;
  std::optional<Tensor> out;
  for (size_t i = 0; i < params.size(); ++i) {
    if (!given[i]) {
      if (!params[i].optional)
        return fail(ErrorClass::kTypeError,
                    name + "() missing required argument '" + std::string(params[i].name) + "'", {},
                    n);
      continue;
    }
    Value v = bound[i];
    if (params[i].name == "out") {
      if (const Tensor* t = v.get<Tensor>()) {
        CUVIL_CHECK(check_writable(*t, n));
        out = *t;
        continue;
      }
      if (const Container* c = v.container();
          c && c->items.size() == 1 && c->items[0].get<Tensor>()) {
        out = *c->items[0].get<Tensor>();
        CUVIL_CHECK(check_writable(*out, n));
        continue;
      }
    }
    if (wants_ints(params[i].name)) {
      CUVIL_TRY(v, plain_ints(v, params[i].name, n));
    }
    auto note = [&](const Value& operand) {
      const Tensor* t = operand.get<Tensor>();
      if (!t) return;
      read(*t);  // now, so that argument and operand are one value: from_arg looks for it
      operands.push_back(*t);
    };
    note(v);
    if (params[i].kind == Parameter::Kind::kVariadic && v.container())
      for (const Value& item : v.container()->items) note(item);
    CUVIL_TRY(arguments[i], to_arg(v, n));
  }

  const size_t host_specs = g_.host_specs.size();
  ops::Builder b = builder(n);
  Result<ops::ArgValue> built = row.build(b, row, arguments);
  if (!built.ok()) {
    if (built.error().loc.line == 0) built.error().loc = loc(n);
    return std::move(built.error());
  }
  for (size_t k = host_specs; k < g_.host_specs.size(); ++k) {
    ir::HostSpec& spec = g_.host_specs[k];
    if (spec.name != row.name || source < 0)
      return unsupported(
          "`" + spec.name + "`, which `" + std::string(row.name) + "` needs, is called in Python",
          "call it directly", n);
    spec.callable = source;
  }
  CUVIL_TRY(Value result, from_arg(*built, operands, row, n));
  if (!out) return result;
  // out=: cast as NumPy's ufuncs do, then the array itself is the result.
  Tensor* made = result.get<Tensor>();
  if (!made)
    return unsupported("`out=` of `" + std::string(row.name) + "`", "assign the result", n);
  CUVIL_CHECK(store_result(*made, *out, name, n));
  return Value(*out);
}

// A ufunc's result into an existing array: same_kind casting, no broadcasting of the output.
Result<> Interpreter::store_result(const Tensor& result, const Tensor& target,
                                   const std::string& name, const Node& n) {
  const ir::Type from = type_of(result), to = type_of(target);
  if (!can_cast_same_kind(from.dtype, to.dtype))
    return fail(ErrorClass::kTypeError,
                "Cannot cast ufunc '" + name + "' output from dtype('" +
                    std::string(info(from.dtype).numpy_name) + "') to dtype('" +
                    std::string(info(to.dtype).numpy_name) + "') with casting rule 'same_kind'",
                "make the target an array of " + std::string(info(from.dtype).numpy_name) +
                    ", or assign to a new name",
                n);
  bool fits = from.rank() <= to.rank();
  for (size_t k = 0; fits && k < from.rank(); ++k) {
    ir::Dim want = to.shape[to.rank() - from.rank() + k];
    if (g_.dims.is_constant(from.shape[k], 1)) continue;
    CUVIL_TRY(fits, equal(from.shape[k], want, n));
  }
  if (!fits)
    return fail(ErrorClass::kShape,
                "non-broadcastable output operand with shape " + describe_type(to) +
                    " doesn't match the broadcast shape " + describe_type(from),
                "assign the result to a new name", n);
  ops::Builder b = builder(n);
  return write(target, b.broadcast_to(b.cast(read(result), to.dtype), to.shape), n);
}

// NumPy's 'same_kind': within a kind, or to a "larger" one (bool < unsigned < int < float < complex).
bool Interpreter::can_cast_same_kind(DType from, DType to) {
  auto rank = [](DType t) { return std::string_view("buifc").find(info(t).kind); };
  return rank(from) <= rank(to);
}

// An argument that must be static ints (axis) or may be run-time ones (shape), NumPy ints made plain.
Result<Value> Interpreter::plain_ints(const Value& v, std::string_view parameter, const Node& n) {
  const bool symbolic = parameter == "shape" || parameter == "newshape" || parameter == "N" ||
                        parameter == "M" || parameter == "n" || parameter == "start" ||
                        parameter == "stop" || parameter == "step";
  if (const ir::Dim* d = v.get<ir::Dim>()) {
    if (symbolic) return v;
    return specialise(*d, n);
  }
  if (const Tensor* t = v.get<Tensor>();
      t && symbolic && type_of(*t).rank() == 0 && is_int(type_of(*t).dtype) && t->scalar) {
    CUVIL_TRY(ir::Dim d, bind_scalar(*t, n));
    return dim_or_static(d);
  }
  if (const Container* c = v.container()) {
    Values items;
    for (const Value& item : c->items) {
      CUVIL_TRY(Value i, plain_ints(item, parameter, n));
      items.push_back(std::move(i));
    }
    return make_container(Container::Kind::kTuple, std::move(items));
  }
  const Static* s = v.get<Static>();
  if (s && !is_exactly(s->object.get(), &PyLong_Type) && PyIndex_Check(s->object.get()) &&
      !PyBool_Check(s->object.get())) {
    CUVIL_CHECK(use(*s, n));
    if (std::optional<int64_t> i = to_int64(s->object.get())) return static_int(*i);
  }
  return v;
}

// One axis without gaps.
bool Interpreter::is_packed(const ops::Access& access, const ir::Type& type) {
  return type.rank() == 0 || g_.dims.is_constant(type.shape[0], 1) ||
         g_.dims.is_constant(type.shape[0], 0) ||
         g_.dims.is_constant(access.strides[0], size_of(type.dtype));
}

Result<Value> Interpreter::from_arg(const ops::ArgValue& a, const std::vector<Tensor>& operands,
                                    const ops::DialectRow& row, const Node& n) {
  using ops::ArgValue;
  if (const auto* t = a.get<ops::TensorArg>()) {
    const Sharing sharing = sharing_of(row.name);
    if (sharing != Sharing::kFresh && !t->scalar) {
      // Follow the movement ops back to an operand: then the result is a view of it.
      for (const Tensor& operand : operands) {
        if (operand.weak != ops::Weak::kNo || operand.scalar) continue;
        const ir::ValueId root = read(operand);
        std::vector<ir::OpId> steps;
        ir::ValueId v = t->value;
        while (v != root) {
          ir::OpId def = g_.value(v).def;
          if (!def.valid() || g_.op(def).operands.size() != 1 ||
              ops::info_of(g_.op(def)).family != ops::Family::kMovement)
            break;
          steps.insert(steps.begin(), def);
          v = g_.op(def).operands[0];
        }
        if (v != root) continue;
        Tensor view = operand;
        std::optional<ops::Access> access = replay(operand, steps);
        if (access && sharing == Sharing::kPackedView && !is_packed(*access, g_.type(t->value)))
          access.reset();
        const bool viewable = access.has_value();
        if (!viewable) {  // as NumPy: a view of a copy
          ops::Builder b = builder(n);
          view = fresh(ops::emit_copy(b, root));
        }
        view.steps.insert(view.steps.end(), steps.begin(), steps.end());
        const bool same =
            steps.empty() && (sharing == Sharing::kSelf || sharing == Sharing::kSelfOrReadOnly);
        view.same_object = view.same_object && same;
        view.readonly = view.readonly || sharing == Sharing::kReadOnlyView ||
                        (sharing == Sharing::kSelfOrReadOnly && !same);
        if (viewable) {
          view.cached = t->value;
          view.cached_version = cells_[static_cast<size_t>(operand.cell)].version;
          view.cached_region = region_;
        }
        return Value(view);
      }
    }
    return Value(fresh(t->value, t->weak, t->scalar));
  }
  if (const auto* list = a.get<std::shared_ptr<ops::ArgList>>()) {
    Values items;
    for (size_t k = 0; k < (*list)->size(); ++k) {
      // Two operands may have one value: the k-th result is of the k-th.
      std::vector<Tensor> own_first = operands;
      if (k < own_first.size()) std::swap(own_first[0], own_first[k]);
      CUVIL_TRY(Value v, from_arg((**list)[k], own_first, row, n));
      items.push_back(std::move(v));
    }
    const bool is_list = row.name.ends_with("split");
    return make_container(is_list ? Container::Kind::kList : Container::Kind::kTuple,
                          std::move(items));
  }
  if (const auto* d = a.get<ir::Dim>()) return dim_or_static(*d);
  if (const auto* i = a.get<int64_t>()) return static_int(*i);
  if (const auto* f = a.get<double>()) return static_of(PyRef::steal(PyFloat_FromDouble(*f)));
  if (const auto* f = a.get<bool>()) return static_bool(*f);
  if (const auto* s = a.get<std::string>()) return static_of(to_str(*s));
  if (const auto* t = a.get<DType>()) return static_of(numpy_dtype(*t));
  return none();
}

Result<Value> Interpreter::call_method(const BoundMethod& m, Arguments args, const Node& n) {
  if (Container* c = m.self->container())
    return call_container_method(*m.self, *c, m.name, args, n);
  if (const Tensor* t = m.self->get<Tensor>()) {
    if (m.name == "item" && args.positional.empty()) return python_scalar(*t, n);
    if (m.name == "conjugate" || m.name == "conj") return *m.self;
    if (m.name == "fill" && args.positional.size() == 1) {
      CUVIL_TRY(ir::ValueId v, fit(args.positional[0], *t, n));
      CUVIL_CHECK(write(*t, v, n));
      return none();
    }
    if (const ops::DialectRow* row = ops::find_row("ndarray." + m.name)) {
      // Shapes and axes may be spread over the arguments: x.reshape(2, 3), x.transpose(1, 0).
      if ((m.name == "reshape" || m.name == "transpose") && args.positional.size() > 1) {
        const auto& params = parameters(*row);
        if (params.size() < 2 || params[1].kind != Parameter::Kind::kVariadic)
          args.positional = {make_container(Container::Kind::kTuple, args.positional)};
      }
      return call_row(*row, m.self.get(), args, -1, n);
    }
    return unsupported("the array method `." + m.name + "` is not compiled",
                       "use an operation listed in docs/operations.md", n);
  }
  if (const Static* s = m.self->get<Static>()) {
    // Methods of a dict, list or tuple from outside.
    PyObject* o = s->object.get();
    if (is_exactly(o, &PyDict_Type) && args.keywords.empty()) {
      if (m.name == "get" && !args.positional.empty()) {
        CUVIL_TRY(bool there, contains(args.positional[0], *m.self, n));
        if (there) return subscript(*m.self, args.positional[0], n);
        return args.positional.size() > 1 ? args.positional[1] : none();
      }
      if (args.positional.empty() &&
          (m.name == "keys" || m.name == "values" || m.name == "items")) {
        CUVIL_TRY(Values keys, items_of_static(*s, n));
        if (m.name == "keys") return make_container(Container::Kind::kList, std::move(keys));
        Values out;
        for (const Value& key : keys) {
          CUVIL_TRY(Value v, subscript(*m.self, key, n));
          out.push_back(m.name == "values" ? v : make_container(Container::Kind::kTuple, {key, v}));
        }
        return make_container(Container::Kind::kList, std::move(out));
      }
    }
    if (m.name == "index" || m.name == "count") {
      CUVIL_TRY(Values items, items_of_static(*s, n));
      Value copy = make_container(Container::Kind::kTuple, std::move(items));
      return call_container_method(copy, *copy.container(), m.name, args, n);
    }
    return unsupported("`." + m.name + "` of `" + capture_.path(s->source) +
                           "`, which lies outside the "
                           "compiled function",
                       "make a new list or dict in the function, or change it outside", n);
  }
  return unsupported("the method `." + m.name + "` of " + describe(*m.self), {}, n);
}

// float, int or bool of a one-element array: what .item() gives.
Result<Value> Interpreter::python_scalar(const Tensor& t, const Node& n) {
  Tensor x = t;
  const ir::Type type = type_of(t);
  if (type.rank() > 0) {
    if (!g_.dims.is_constant(g_.dims.product(type.shape), 1))
      return fail(ErrorClass::kValueError, "can only convert an array of size 1 to a Python scalar",
                  "index one element", n);
    std::vector<int64_t> axes;
    for (size_t k = 0; k < type.rank(); ++k) axes.push_back(static_cast<int64_t>(k));
    x = fresh(builder(n).emit("squeeze", {read(t)}, {type.dtype, {}}, {{ops::attr::kAxes, axes}}));
  }
  if (is_bool(type.dtype)) return Value(fresh(read(x), ops::Weak::kBool));
  if (is_float(type.dtype))
    return Value(fresh(builder(n).cast(read(x), DType::kF64), ops::Weak::kFloat));
  if (type.dtype == DType::kU64)
    return unsupported("a Python int made of a uint64", "convert it with .astype(np.int64) first",
                       n);
  CUVIL_TRY(ir::Dim d, bind_scalar(x, n));
  return dim_or_static(d);
}

}  // namespace cuvil::frontend
