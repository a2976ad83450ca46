#include "python/sources.h"

#include "python/code_hash.h"
#include "python/compiled_function.h"
#include "python/constants.h"

namespace cuvil::python {

using artifact::Guard;
using artifact::Source;
using Kind = Source::Kind;

namespace {

PyObject* owned(PyObject* borrowed) {
  Py_XINCREF(borrowed);
  return borrowed;
}

PyObject* global(PyObject* function, PyObject* name) {
  PyObject* globals = PyFunction_GET_GLOBALS(function);
  if (PyObject* o = PyDict_GetItemWithError(globals, name)) return owned(o);
  if (PyErr_Occurred()) return nullptr;
  PyObject* builtins = PyDict_GetItemWithError(globals, CUVIL_NAME("__builtins__"));
  if (builtins && PyModule_Check(builtins)) builtins = PyModule_GetDict(builtins);
  if (!builtins || !PyDict_Check(builtins)) builtins = PyEval_GetBuiltins();
  return owned(PyDict_GetItemWithError(builtins, name));
}

PyObject* closure(PyObject* function, uint32_t index) {
  PyObject* cells = PyFunction_GET_CLOSURE(function);
  if (!cells || index >= static_cast<size_t>(PyTuple_GET_SIZE(cells))) return nullptr;
  return owned(PyCell_GET(PyTuple_GET_ITEM(cells, index)));
}

// Attributes of modules are looked up in their dict; a module's own __getattr__ comes after.
PyObject* attribute(PyObject* parent, PyObject* name) {
  if (PyModule_CheckExact(parent)) {
    if (PyObject* o = PyDict_GetItemWithError(PyModule_GetDict(parent), name)) return owned(o);
    if (PyErr_Occurred()) return nullptr;
  }
  return PyObject_GetAttr(parent, name);
}

PyObject* item(PyObject* parent, PyObject* key) {
  if (PyDict_CheckExact(parent)) return owned(PyDict_GetItemWithError(parent, key));
  return PyObject_GetItem(parent, key);
}

// "There is no such thing", as opposed to code that failed.
bool means_missing() {
  return PyErr_ExceptionMatches(PyExc_AttributeError) ||
         PyErr_ExceptionMatches(PyExc_LookupError) || PyErr_ExceptionMatches(PyExc_NameError) ||
         PyErr_ExceptionMatches(PyExc_TypeError);
}

}  // namespace

bool Captured::prepare(const artifact::Artifact& a, std::vector<PyRef> identities) {
  for (const Source& s : a.sources) {
    Step step{s.kind, s.parent, s.index, {}};
    if (s.kind == Kind::kItem) {
      step.key = to_object(s.key);
      if (!step.key) return false;
    } else if (!s.name.empty()) {
      PyObject* name = to_str(s.name).release();
      PyUnicode_InternInPlace(&name);
      step.key = PyRef::steal(name);
    }
    if (!step.key &&
        (s.kind == Kind::kGlobal || s.kind == Kind::kAttribute || s.kind == Kind::kKwDefault)) {
      PyErr_SetString(PyExc_ValueError, "not a usable artifact: a source without a name");
      return false;
    }
    steps_.push_back(std::move(step));
  }
  for (const Guard& g : a.guards) {
    Test t{g.kind, {}, {}, g.value.integer, &g};
    if (g.kind == Guard::Kind::kValue || g.kind == Guard::Kind::kKeys) {
      t.expected = to_object(g.value);
      if (!t.expected) PyErr_Clear();  // a type whose module is not loaded: holds nowhere yet
    } else if (g.kind == Guard::Kind::kIdentity) {
      if (g.slot >= identities.size()) {
        PyErr_SetString(PyExc_ValueError, "not a usable artifact: an identity is missing");
        return false;
      }
      t.expected = identities[g.slot];
    }
    tests_.push_back(std::move(t));
  }
  return true;
}

PyObject* Captured::step(const Step& s, PyObject* function, PyObject* const* args,
                         const SourceValues& values) const {
  PyObject* parent = s.parent >= 0 ? values[static_cast<size_t>(s.parent)] : function;
  if (!parent) return nullptr;
  switch (s.kind) {
    case Kind::kArgument: return owned(args[s.index]);
    case Kind::kGlobal: return PyFunction_Check(parent) ? global(parent, s.key.get()) : nullptr;
    case Kind::kClosure: return PyFunction_Check(parent) ? closure(parent, s.index) : nullptr;
    case Kind::kDefault: {
      PyObject* d = PyFunction_Check(parent) ? PyFunction_GET_DEFAULTS(parent) : nullptr;
      if (!d || s.index >= static_cast<size_t>(PyTuple_GET_SIZE(d))) return nullptr;
      return owned(PyTuple_GET_ITEM(d, s.index));
    }
    case Kind::kKwDefault: {
      PyObject* d = PyFunction_Check(parent) ? PyFunction_GET_KW_DEFAULTS(parent) : nullptr;
      return d ? owned(PyDict_GetItemWithError(d, s.key.get())) : nullptr;
    }
    case Kind::kAttribute: return attribute(parent, s.key.get());
    case Kind::kItem: return item(parent, s.key.get());
    case Kind::kType: return owned(reinterpret_cast<PyObject*>(Py_TYPE(parent)));
    case Kind::kWrapped: return owned(wrapped_function(parent));
    case Kind::kMethodFunction:
      return PyMethod_Check(parent) ? owned(PyMethod_GET_FUNCTION(parent)) : nullptr;
    case Kind::kMethodSelf:
      return PyMethod_Check(parent) ? owned(PyMethod_GET_SELF(parent)) : nullptr;
  }
  return nullptr;
}

bool Captured::evaluate(PyObject* function, PyObject* const* args, SourceValues* out) const {
  for (const Step& s : steps_) {
    PyObject* value = step(s, function, args, *out);
    if (!value && PyErr_Occurred()) {
      if (!means_missing()) return false;
      PyErr_Clear();
    }
    out->push(value);
  }
  return true;
}

Captured::Check Captured::check_code(const Test& t, PyObject* value) const {
  if (!PyFunction_Check(value)) return Check::kFails;
  PyObject* code = PyFunction_GET_CODE(value);
  if (code == t.last_good.get()) return Check::kHolds;
  if (hash_code(code) != t.guard->hash) return Check::kFails;
  t.last_good = PyRef::borrow(code);
  return Check::kHolds;
}

namespace {

bool is_container(PyObject* o, Guard::Container c) {
  switch (c) {
    case Guard::Container::kAnyTuple: return PyTuple_Check(o);
    case Guard::Container::kTuple: return PyTuple_CheckExact(o);
    case Guard::Container::kList: return PyList_CheckExact(o);
    case Guard::Container::kDict: return PyDict_CheckExact(o);
    case Guard::Container::kSet: return Py_IS_TYPE(o, &PySet_Type);
    case Guard::Container::kFrozenSet: return PyFrozenSet_CheckExact(o);
  }
  return false;
}

Py_ssize_t length_of(PyObject* container) {
  return PyTuple_Check(container)  ? PyTuple_GET_SIZE(container)
         : PyList_Check(container) ? PyList_GET_SIZE(container)
         : PyDict_Check(container) ? PyDict_GET_SIZE(container)
                                   : PySet_GET_SIZE(container);
}

}  // namespace

Captured::Check Captured::check_keys(const Test& t, PyObject* value) const {
  if (!is_container(value, t.guard->container) || !t.expected ||
      !PyTuple_CheckExact(t.expected.get()))
    return Check::kFails;
  const Py_ssize_t n = PyTuple_GET_SIZE(t.expected.get());
  if (length_of(value) != n) return Check::kFails;
  // No code of the user's runs: keys are constants, and hashes are stored.
  PyRef it = PyRef::steal(PyObject_GetIter(value));
  for (Py_ssize_t i = 0; it && i < n; ++i) {
    PyRef key = PyRef::steal(PyIter_Next(it.get()));
    if (!key) break;
    if (!same_value(key.get(), PyTuple_GET_ITEM(t.expected.get(), i))) return Check::kFails;
  }
  return PyErr_Occurred() ? Check::kError : Check::kHolds;
}

Captured::Check Captured::check(size_t k, PyObject* value) const {
  const Test& t = tests_[k];
  if (!value) return t.kind == Guard::Kind::kMissing ? Check::kHolds : Check::kFails;
  auto verdict = [](bool holds) { return holds ? Check::kHolds : Check::kFails; };
  switch (t.kind) {
    case Guard::Kind::kValue:
      if (value == t.expected.get() || value == t.last_good.get()) return Check::kHolds;
      if (!t.expected || !same_value(value, t.expected.get())) return Check::kFails;
      t.last_good = PyRef::borrow(value);
      return Check::kHolds;
    case Guard::Kind::kQualified:
      if (value == t.last_good.get()) return Check::kHolds;
      if (t.last_good) return Check::kFails;  // what the name stood for when first asked
      if (PyRef o = resolve_qualified(t.guard->value.text)) t.last_good = std::move(o);
      return verdict(t.last_good.get() == value);
    case Guard::Kind::kCode: return check_code(t, value);
    case Guard::Kind::kLength:
      return verdict(is_container(value, t.guard->container) && length_of(value) == t.length);
    case Guard::Kind::kIdentity: return verdict(value == t.expected.get());
    case Guard::Kind::kMissing: return Check::kFails;
    case Guard::Kind::kKeys: return check_keys(t, value);
    case Guard::Kind::kArray: return Check::kHolds;
  }
  return Check::kFails;
}

int Captured::traverse(visitproc visit, void* arg) const {
  for (const Test& t : tests_) {
    Py_VISIT(t.expected.get());
    Py_VISIT(t.last_good.get());
  }
  return 0;
}

}  // namespace cuvil::python
