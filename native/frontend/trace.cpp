// The door of the frontend: runs the interpreter, and places in code objects for the site table.
#include "frontend/errors.h"
#include "frontend/frontend.h"
#include "frontend/interpreter.h"

namespace cuvil::frontend {

namespace {

// Does the class say what plain Python would have raised, rather than what Cuvil cannot do?
bool is_pythons(ErrorClass c) {
  switch (c) {
    case ErrorClass::kUnsupported:
    case ErrorClass::kDevice:
    case ErrorClass::kOutOfMemory:
    case ErrorClass::kCache:
    case ErrorClass::kInternal: return false;
    default: return true;
  }
}

}  // namespace

std::optional<Traced> trace(const compiler::Request& request, bool* python_raises) {
  // Again with arrays shared, if it turned out that arrays which are one in this call are written.
  std::vector<std::pair<uint32_t, uint32_t>> shared;
  for (;;) {
    Traced traced;
    traced.graph = std::make_unique<ir::Graph>();
    Interpreter interpreter(request, traced, shared);
    Result<> r = interpreter.run();
    auto release = [&] {
      for (PyObject* o : traced.identities) Py_DECREF(o);
      for (PyObject* o : traced.code_objects) Py_DECREF(o);
    };
    if (!r.ok()) {
      *python_raises = is_pythons(r.error().cls) && interpreter.wrote_for_caller();
      raise_error(r.error(), traced.code_objects, interpreter.call_trail());
      release();
      return std::nullopt;
    }
    drop_exception();
    if (interpreter.must_share().empty()) return traced;
    shared.insert(shared.end(), interpreter.must_share().begin(), interpreter.must_share().end());
    release();
  }
}

artifact::CodeLoc code_loc(const Traced& t, const SourceLoc& loc) {
  artifact::CodeLoc out;
  out.function = loc.function;
  if (loc.function >= t.code_objects.size() || loc.line <= 0) return out;
  PyObject* code = t.code_objects[loc.function];
  PyRef first = attr_or_null(code, CUVIL_NAME("co_firstlineno"));
  out.line = loc.line - static_cast<int32_t>(first ? PyLong_AsLong(first.get()) : 0);
  // Python 3.11 on: the last instruction with exactly this range, which is the operation itself.
  PyRef method = attr_or_null(code, CUVIL_NAME("co_positions"));
  PyRef positions = method ? PyRef::steal(PyObject_CallNoArgs(method.get())) : PyRef();
  PyRef it = positions ? PyRef::steal(PyObject_GetIter(positions.get())) : PyRef();
  for (int32_t index = 0; it; ++index) {
    PyRef p = PyRef::steal(PyIter_Next(it.get()));
    if (!p) break;
    const int32_t wanted[] = {loc.line, loc.end_line, loc.column, loc.end_column};
    bool same = true;
    for (Py_ssize_t k = 0; same && k < 4; ++k) {
      PyObject* v = PyTuple_GetItem(p.get(), k);
      same = v && PyLong_Check(v) && PyLong_AsLong(v) == wanted[k];
    }
    if (same) out.instruction = index;
  }
  forgive();
  return out;
}

}  // namespace cuvil::frontend
