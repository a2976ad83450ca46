// Statements other than assignments and loops. Control flow is a value (Flow), as in the source.
#include "frontend/interpreter.h"

namespace cuvil::frontend {

constexpr int kMostIterations = 4096;

Result<Flow> Interpreter::exec_block(const std::vector<Node>& body) {
  for (const Node& stmt : body) {
    CUVIL_TRY(Flow flow, exec(stmt));
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Result<Flow> Interpreter::exec(const Node& n) {
  switch (n.kind()) {
    case NodeKind::kAssign: return exec_assign(n);
    case NodeKind::kAugAssign: return exec_aug_assign(n);
    case NodeKind::kAnnAssign: return exec_ann_assign(n);
    case NodeKind::kReturn: return exec_return(n);
    case NodeKind::kIf: return exec_if(n);
    case NodeKind::kFor: return exec_for(n);
    case NodeKind::kWhile: return exec_while(n);
    case NodeKind::kRaise: return exec_raise(n);
    case NodeKind::kAssert: return exec_assert(n);
    case NodeKind::kDelete: return exec_delete(n);
    case NodeKind::kFunctionDef: return exec_function(n);
    case NodeKind::kPass: return Flow::kNext;
    case NodeKind::kBreak: return Flow::kBreak;
    case NodeKind::kContinue: return Flow::kContinue;
    case NodeKind::kExpr: {
      CUVIL_TRY(Value ignored, eval(n.child(CUVIL_NAME("value"))));
      return Flow::kNext;
    }
    default: return refused(n, loc(n));
  }
}

Result<Flow> Interpreter::exec_if(const Node& n) {
  Node test = n.child(CUVIL_NAME("test"));
  CUVIL_TRY(Value condition, eval(test));
  CUVIL_TRY(bool t, truth(condition, test, "`if`"));
  return exec_block(n.children(t ? CUVIL_NAME("body") : CUVIL_NAME("orelse")));
}

Result<Flow> Interpreter::exec_while(const Node& n) {
  Node test = n.child(CUVIL_NAME("test"));
  const std::vector<Node> body = n.children(CUVIL_NAME("body"));
  for (int round = 0;; ++round) {
    CUVIL_TRY(Value condition, eval(test));
    CUVIL_TRY(bool t, truth(condition, test, "`while`",
                            "loop a fixed number of times with `for`, and keep what is done with "
                            "np.where"));
    if (!t) return exec_block(n.children(CUVIL_NAME("orelse")));
    if (round == kMostIterations)
      return unsupported("a `while` that runs more than " + std::to_string(kMostIterations) +
                             " times; each turn becomes code of its own",
                         "use `for i in range(...)`, which becomes a loop", n);
    CUVIL_TRY(Flow flow, exec_block(body));
    if (flow == Flow::kBreak) return Flow::kNext;
    if (flow == Flow::kReturn) return flow;
  }
}

Result<Flow> Interpreter::exec_return(const Node& n) {
  Node value = n.child(CUVIL_NAME("value"));
  Frame* f = &frame();
  f->result = none();
  if (value.present()) {
    CUVIL_TRY(f->result, eval(value));
  }
  return Flow::kReturn;
}

Result<Flow> Interpreter::exec_raise(const Node& n) {
  Node e = n.child(CUVIL_NAME("exc"));
  if (!e.present()) return fail(ErrorClass::kPython, {}, {}, n);
  CUVIL_TRY(Value v, eval(e));
  const Static* s = v.get<Static>();
  if (!s) return fail(ErrorClass::kTypeError, "exceptions must derive from BaseException", {}, n);
  CUVIL_CHECK(use(*s, n));
  PyRef exception = s->object;
  if (PyType_Check(exception.get())) exception = PyRef::steal(PyObject_CallNoArgs(exception.get()));
  if (!exception) return python_error(n);
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(exception.get()));
  if (PyObject_IsSubclass(type, PyExc_BaseException) != 1)
    return fail(ErrorClass::kTypeError, "exceptions must derive from BaseException", {}, n);
  if (Node cause = n.child(CUVIL_NAME("cause")); cause.present()) {
    CUVIL_TRY(Value c, eval(cause));
    const Static* cs = c.get<Static>();
    PyObject* o = cs ? cs->object.get() : Py_None;
    PyException_SetCause(exception.get(), o == Py_None ? nullptr : PyRef::borrow(o).release());
  }
  PyErr_SetObject(type, exception.get());
  return python_error(n);
}

Result<Flow> Interpreter::exec_assert(const Node& n) {
  PyRef flags = PyRef::borrow(PySys_GetObject("flags"));
  PyRef optimise = flags ? attr_or_null(flags.get(), CUVIL_NAME("optimize")) : PyRef();
  if (optimise && PyObject_IsTrue(optimise.get()) == 1) return Flow::kNext;
  Node test = n.child(CUVIL_NAME("test"));
  CUVIL_TRY(Value condition, eval(test));
  CUVIL_TRY(bool t, truth(condition, test, "`assert`"));
  if (t) return Flow::kNext;
  PyRef argument;
  if (Node message = n.child(CUVIL_NAME("msg")); message.present()) {
    CUVIL_TRY(Value v, eval(message));
    CUVIL_TRY(std::optional<PyRef> o, as_object(v, message));
    if (o) argument = std::move(*o);
  }
  PyRef exception =
      PyRef::steal(PyObject_CallFunctionObjArgs(PyExc_AssertionError, argument.get(), nullptr));
  if (exception) PyErr_SetObject(PyExc_AssertionError, exception.get());
  return python_error(n);
}

Result<Flow> Interpreter::exec_delete(const Node& n) {
  for (const Node& target : n.children(CUVIL_NAME("targets"))) {
    if (target.kind() != NodeKind::kName)
      return unsupported("`del` of anything but a local variable", "leave it out", target);
    std::string name = target.text(CUVIL_NAME("id"));
    if (!frame().locals.erase(name))
      return fail(
          ErrorClass::kUnboundLocalError,
          "cannot access local variable '" + name + "' where it is not associated with a value", {},
          target);
  }
  return Flow::kNext;
}

Result<Flow> Interpreter::exec_function(const Node& n) {
  if (!n.children(CUVIL_NAME("decorator_list")).empty())
    return unsupported("a decorated function in a compiled function", "decorate it outside", n);
  CUVIL_TRY(Value v, eval_lambda(n));
  auto& f = *v.get<std::shared_ptr<LocalFunction>>();
  f->name = n.text(CUVIL_NAME("name"));
  CUVIL_CHECK(assign_name(f->name, v));
  return Flow::kNext;
}

}  // namespace cuvil::frontend
