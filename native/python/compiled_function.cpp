#include "python/compiled_function.h"

#include <structmember.h>

#include "python/dispatch.h"

namespace cuvil::python {
namespace {

CompiledFunction* self_of(PyObject* o) { return reinterpret_cast<CompiledFunction*>(o); }

PyObject* call(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  State& s = *self_of(callable)->state;
  PyObject* function = s.function.get();
  if (s.disabled) [[unlikely]]
    return PyObject_Vectorcall(function, args, nargsf, kwnames);
  if (!s.code_is_current() && !s.read_code()) return nullptr;
  BoundArgs bound;
  if (!s.binder.bind(function, args, static_cast<size_t>(PyVectorcall_NARGS(nargsf)), kwnames,
                     &bound))
    return PyObject_Vectorcall(function, args, nargsf, kwnames);  // raises TypeError
  if (const Specialisation* last = s.last) [[likely]] {  // user code that guards run may change it
    Frame f(*last);
    f.function = function;
    Mismatch why;
    switch (last->match(s.binder, bound, &f, &why)) {
      case Specialisation::Match::kYes: return last->run(&f);
      case Specialisation::Match::kError: return nullptr;
      case Specialisation::Match::kNo: break;
    }
  }
  return call_slow(s, bound, {args, nargsf, kwnames});
}

void dealloc(PyObject* o) {
  CompiledFunction* self = self_of(o);
  PyObject_GC_UnTrack(o);
  if (self->weakrefs) PyObject_ClearWeakRefs(o);
  Py_CLEAR(self->dict);
  delete self->state;
  PyObject_GC_Del(o);
}

int traverse(PyObject* o, visitproc visit, void* arg) {
  CompiledFunction* self = self_of(o);
  Py_VISIT(self->dict);
  return self->state->traverse(visit, arg);
}

// Cycles lead through the function's globals, closure or attributes, or through kept objects. The
// function itself stays, so that a call during finalisation finds one.
int clear(PyObject* o) {
  CompiledFunction* self = self_of(o);
  Py_CLEAR(self->dict);
  State& s = *self->state;
  s.last = nullptr;
  s.last_entry = nullptr;
  s.disabled = true;
  auto entries = std::move(s.entries), retired = std::move(s.retired);
  s.entries.clear();
  s.retired.clear();
  return 0;
}

PyObject* get(PyObject* o, PyObject* instance, PyObject*) {
  if (!instance || instance == Py_None) {
    Py_INCREF(o);
    return o;
  }
  return PyMethod_New(o, instance);
}

PyObject* repr(PyObject* o) {
  PyRef name = attr_or_null(self_of(o)->state->function.get(), CUVIL_NAME("__qualname__"));
  return PyUnicode_FromFormat("<compiled function %U at %p>", name.get(), o);
}

// ---- attributes that are the function's own

PyObject* get_forwarded(PyObject* o, void* name) {
  return PyObject_GetAttrString(self_of(o)->state->function.get(), static_cast<const char*>(name));
}

int set_forwarded(PyObject* o, PyObject* value, void* name) {
  return PyObject_SetAttrString(self_of(o)->state->function.get(), static_cast<const char*>(name),
                                value);
}

PyObject* get_wrapped(PyObject* o, void*) {
  return PyRef::borrow(self_of(o)->state->function.get()).release();
}

PyObject* get_signature(PyObject* o, void*) {
  PyRef signature = imported("inspect", "signature");
  if (!signature) return nullptr;
  return PyObject_CallOneArg(signature.get(), self_of(o)->state->function.get());
}

#define CUVIL_FORWARD(name) \
  { name, get_forwarded, set_forwarded, nullptr, const_cast<char*>(name) }
PyGetSetDef getset[] = {
    CUVIL_FORWARD("__name__"),
    CUVIL_FORWARD("__qualname__"),
    CUVIL_FORWARD("__module__"),
    CUVIL_FORWARD("__doc__"),
    CUVIL_FORWARD("__annotations__"),
    CUVIL_FORWARD("__defaults__"),
    CUVIL_FORWARD("__kwdefaults__"),
    CUVIL_FORWARD("__code__"),
    {"__globals__", get_forwarded, nullptr, nullptr, const_cast<char*>("__globals__")},
    {"__closure__", get_forwarded, nullptr, nullptr, const_cast<char*>("__closure__")},
    {"__wrapped__", get_wrapped, nullptr, "The plain Python function.", nullptr},
    {"__signature__", get_signature, nullptr, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
#undef CUVIL_FORWARD

PyObject* reduce(PyObject* o, PyObject*) {
  PyRef reduce = imported("cuvil._pickle", "reduce");
  return reduce ? PyObject_CallOneArg(reduce.get(), o) : nullptr;
}

PyObject* same(PyObject* o, PyObject*) {
  Py_INCREF(o);
  return o;
}

PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__copy__", same, METH_NOARGS, nullptr},
    {"__deepcopy__", same, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyTypeObject CompiledFunctionType = [] {
  PyTypeObject t = {PyVarObject_HEAD_INIT(nullptr, 0)};
  t.tp_name = "cuvil.CompiledFunction";
  t.tp_basicsize = sizeof(CompiledFunction);
  t.tp_dealloc = dealloc;
  t.tp_vectorcall_offset = offsetof(CompiledFunction, vectorcall);
  t.tp_call = PyVectorcall_Call;
  t.tp_repr = repr;
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
               Py_TPFLAGS_METHOD_DESCRIPTOR;
  t.tp_traverse = traverse;
  t.tp_clear = clear;
  t.tp_weaklistoffset = offsetof(CompiledFunction, weakrefs);
  t.tp_dictoffset = offsetof(CompiledFunction, dict);
  t.tp_methods = methods;
  t.tp_getset = getset;
  t.tp_descr_get = get;
  return t;
}();

PyObject* wrapped_function(PyObject* o) {
  return is_compiled_function(o) ? self_of(o)->state->function.get() : nullptr;
}

PyObject* new_compiled_function(std::unique_ptr<State> state) {
  if (!state->read_code()) return nullptr;
  // Attributes set on the function are there on the compiled one, too.
  PyRef attributes = CUVIL_ATTR(state->function.get(), "__dict__");
  PyRef dict = attributes ? PyRef::steal(PyDict_Copy(attributes.get())) : PyRef();
  if (!dict) return nullptr;
  auto* self = PyObject_GC_New(CompiledFunction, &CompiledFunctionType);
  if (!self) return nullptr;
  self->vectorcall = call;
  self->dict = dict.release();
  self->weakrefs = nullptr;
  self->state = state.release();
  PyObject_GC_Track(self);
  return reinterpret_cast<PyObject*>(self);
}

}  // namespace cuvil::python
