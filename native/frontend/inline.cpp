// Walking a function's body in a frame of its own: the compiled function, helpers from outside, and
// functions and lambdas defined in the body.
#include "frontend/interpreter.h"
#include "frontend/scope.h"

namespace cuvil::frontend {

constexpr size_t kDeepestCall = 64;

SourceLoc Interpreter::loc(const Node& n) const {
  SourceLoc l = n.loc();
  if (frames_.empty() || !frames_.back()->function) return l;
  const WalkedFunction& f = *frames_.back()->function;
  l.function = f.index;
  l.line += f.line_offset;
  l.end_line += f.line_offset;
  return l;
}

Result<WalkedFunction*> Interpreter::walked(PyObject* function, int32_t source) {
  for (const auto& f : walked_)
    if (f->function.get() == function && f->source == source) return f.get();
  auto f = std::make_unique<WalkedFunction>();
  f->function = PyRef::borrow(function);
  f->source = source;
  f->globals = CUVIL_ATTR(function, "__globals__");
  PyRef name = attr_or_null(function, CUVIL_NAME("__name__"));
  f->name = name ? to_string(name.get()) : "function";
  f->code = recall_file(function) ? CUVIL_ATTR(function, "__code__") : PyRef();
  if (!f->code || !f->globals) {
    keep_exception();
    return make_error(ErrorClass::kPython, {});
  }
  f->index = static_cast<uint32_t>(traced_.facts.functions.size());
  traced_.facts.functions.push_back(source);
  traced_.code_objects.push_back(PyRef(f->code).release());
  CUVIL_CHECK(find_source(*f));
  walked_.push_back(std::move(f));
  return walked_.back().get();
}

Result<Value> Interpreter::call_function(PyObject* function, int32_t source, Arguments args,
                                         const Node& n) {
  // A function the body did not define and no source leads to (made by a pure call): the first one's
  // index would be wrong for its guards.
  if (source < 0)
    return unsupported(
        "a call of " + short_repr(function) + ", which is made while the function runs",
        "define it outside", n);
  CUVIL_TRY(WalkedFunction * f, walked(function, source));
  Error refusal;
  if (!check_callable_code(*f, n, &refusal)) return refusal;
  auto frame = std::make_shared<Frame>();
  frame->function = f;
  frame->local_names = local_names(f->node);

  // Defaults are values from outside.
  Values defaults, kw_defaults;
  PyRef tuple = attr_or_null(function, CUVIL_NAME("__defaults__"));
  for (Py_ssize_t i = 0; tuple && PyTuple_Check(tuple.get()) && i < PyTuple_Size(tuple.get());
       ++i) {
    int32_t s =
        capture_.source(Capture::Kind::kDefault, source, static_cast<uint32_t>(i), "default");
    CUVIL_TRY(Value v, load(PyRef::borrow(PyTuple_GetItem(tuple.get(), i)), s, n));
    defaults.push_back(std::move(v));
  }
  PyRef dict = attr_or_null(function, CUVIL_NAME("__kwdefaults__"));
  Node parameters = f->node.child(CUVIL_NAME("args"));
  for (const Node& p : parameters.children(CUVIL_NAME("kwonlyargs"))) {
    std::string name = p.text(CUVIL_NAME("arg"));
    PyObject* d =
        dict && PyDict_Check(dict.get()) ? PyDict_GetItemString(dict.get(), name.c_str()) : nullptr;
    Value v;
    if (d) {
      CUVIL_TRY(v, load(PyRef::borrow(d),
                        capture_.source(Capture::Kind::kKwDefault, source, 0, name), n));
    }
    kw_defaults.push_back(std::move(v));
  }
  CUVIL_CHECK(
      bind_parameters(*frame, parameters, f->name, std::move(args), defaults, kw_defaults, n));
  trail_.push_back(loc(n));
  Result<Value> r = run_body(std::move(frame), f->node);
  if (r.ok()) trail_.pop_back();
  return r;
}

Result<Value> Interpreter::call_local(const LocalFunction& f, Arguments args, const Node& n) {
  auto frame = std::make_shared<Frame>();
  frame->function = f.scope->function;
  frame->parent = f.scope;
  frame->local_names = local_names(f.node);
  CUVIL_CHECK(bind_parameters(*frame, f.node.child(CUVIL_NAME("args")), f.name, std::move(args),
                              f.defaults, f.kw_defaults, n));
  trail_.push_back(loc(n));
  Result<Value> r = run_body(std::move(frame), f.node);
  if (r.ok()) trail_.pop_back();
  return r;
}

bool Interpreter::check_callable_code(const WalkedFunction& f, const Node& n, Error* e) {
  PyRef flags = CUVIL_ATTR(f.code.get(), "co_flags");
  long bits = flags ? PyLong_AsLong(flags.get()) : 0;
  constexpr long kGenerator = 0x20, kCoroutine = 0x80, kAsyncGenerator = 0x200;
  if (!(bits & (kGenerator | kCoroutine | kAsyncGenerator))) return true;
  *e = unsupported("`" + f.name + "` is a generator or a coroutine, which is not compiled",
                   "return a tuple or an array", n);
  return false;
}

Result<Value> Interpreter::run_body(std::shared_ptr<Frame> frame, const Node& function) {
  if (frames_.size() >= kDeepestCall)
    return make_error(ErrorClass::kRecursionError,
                      "calls are inlined, and here they are nested more than " +
                          std::to_string(kDeepestCall) + " deep",
                      "stop the recursion by a static condition, or use a loop",
                      trail_.empty() ? SourceLoc{} : trail_.back());
  frames_.push_back(frame);
  Result<Value> result = none();
  if (function.kind() == NodeKind::kLambda) {
    result = eval(function.child(CUVIL_NAME("body")));
  } else {
    Result<Flow> flow = exec_block(function.children(CUVIL_NAME("body")));
    if (!flow.ok())
      result = std::move(flow.error());
    else if (*flow == Flow::kReturn)
      result = frame->result;
  }
  frames_.pop_back();
  return result;
}

Result<> Interpreter::bind_parameters(Frame& frame, const Node& parameters, const std::string& name,
                                      Arguments args, const Values& defaults,
                                      const Values& kw_defaults, const Node& n) {
  auto type_error = [&](std::string what) {
    return fail(ErrorClass::kTypeError, name + "() " + std::move(what), {}, n);
  };
  std::vector<Node> positional = parameters.children(CUVIL_NAME("posonlyargs"));
  const size_t only = positional.size();
  for (Node& p : parameters.children(CUVIL_NAME("args"))) positional.push_back(std::move(p));
  std::vector<Node> keyword_only = parameters.children(CUVIL_NAME("kwonlyargs"));
  Node vararg = parameters.child(CUVIL_NAME("vararg")),
       kwarg = parameters.child(CUVIL_NAME("kwarg"));

  const size_t count = positional.size(), passed = args.positional.size();
  for (size_t k = 0; k < std::min(count, passed); ++k)
    frame.locals[positional[k].text(CUVIL_NAME("arg"))] = args.positional[k];
  if (passed > count && !vararg.present())
    return type_error("takes " + std::to_string(count) + " positional argument" +
                      (count == 1 ? "" : "s") + " but " + std::to_string(passed) +
                      (passed == 1 ? " was given" : " were given"));
  if (vararg.present()) {
    Values rest;
    for (size_t k = count; k < passed; ++k) rest.push_back(args.positional[k]);
    frame.locals[vararg.text(CUVIL_NAME("arg"))] =
        make_container(Container::Kind::kTuple, std::move(rest));
  }
  Value extra = make_container(Container::Kind::kDict, {});
  for (Keyword& k : args.keywords) {
    bool known = false;
    for (size_t i = only; i < count && !known; ++i)
      known = positional[i].text(CUVIL_NAME("arg")) == k.name;
    for (size_t i = 0; i < keyword_only.size() && !known; ++i)
      known = keyword_only[i].text(CUVIL_NAME("arg")) == k.name;
    if (known) {
      if (frame.locals.count(k.name))
        return type_error("got multiple values for argument '" + k.name + "'");
      frame.locals[k.name] = std::move(k.value);
    } else if (kwarg.present()) {
      extra.container()->keys.push_back(to_str(k.name));
      extra.container()->items.push_back(std::move(k.value));
    } else {
      return type_error("got an unexpected keyword argument '" + k.name + "'");
    }
  }
  if (kwarg.present()) frame.locals[kwarg.text(CUVIL_NAME("arg"))] = std::move(extra);
  std::string missing;
  for (size_t k = 0; k < count; ++k) {
    std::string p = positional[k].text(CUVIL_NAME("arg"));
    if (frame.locals.count(p)) continue;
    if (k + defaults.size() >= count) {
      frame.locals[p] = defaults[k + defaults.size() - count];
    } else if (missing.empty()) {
      missing = "missing 1 required positional argument: '" + p + "'";
    }
  }
  for (size_t k = 0; k < keyword_only.size(); ++k) {
    std::string p = keyword_only[k].text(CUVIL_NAME("arg"));
    if (frame.locals.count(p)) continue;
    if (k < kw_defaults.size() && !kw_defaults[k].is<Value::Unset>())
      frame.locals[p] = kw_defaults[k];
    else if (missing.empty())
      missing = "missing 1 required keyword-only argument: '" + p + "'";
  }
  if (!missing.empty()) return type_error(missing);
  return Ok{};
}

}  // namespace cuvil::frontend
