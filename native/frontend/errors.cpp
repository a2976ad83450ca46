// The one place of the cold side that turns an Error into a Python exception: text, class, traceback.
//
//     operands could not be broadcast together with shapes (2,3) (2,4)
//       model.py:12:12
//         return a + b
//                ^^^^^
//       called from model.py:20:9
//       help: make the sizes equal, or 1, counting axes from the last one
#include "frontend/errors.h"

#include <utility>

#include "frontend/frontend.h"
#include "frontend/source.h"

namespace cuvil::frontend {
namespace {

thread_local PyObject* kept = nullptr;

std::string code_text(PyObject* code, PyObject* name) {
  PyRef v = code ? attr_or_null(code, name) : PyRef();
  return v ? to_string(v.get()) : std::string();
}

// How many characters the first `bytes` bytes of UTF-8 are.
size_t characters(std::string_view s, size_t bytes) {
  size_t n = 0;
  for (size_t i = 0; i < bytes && i < s.size(); ++i)
    n += (static_cast<unsigned char>(s[i]) & 0xc0) != 0x80;
  return n;
}

std::string place(const std::string& file, const SourceLoc& loc) {
  return file + ":" + std::to_string(loc.line) + ":" + std::to_string(loc.column + 1);
}

std::string excerpt(const std::string& file, const SourceLoc& loc) {
  std::string line = source_line(file, loc.line);
  size_t indent = line.find_first_not_of(" \t");
  if (indent == std::string::npos) return {};
  auto begin = static_cast<size_t>(std::max(loc.column, 0));
  size_t end =
      loc.end_line == loc.line ? static_cast<size_t>(std::max(loc.end_column, 0)) : line.size();
  if (begin < indent || begin >= line.size() || end <= begin) {
    begin = indent;
    end = line.size();
  }
  end = std::min(end, line.size());
  size_t skip = characters(line, begin) - characters(line, indent);
  size_t width = std::max<size_t>(1, characters(line, end) - characters(line, begin));
  return "    " + line.substr(indent) + "\n    " + std::string(skip, ' ') +
         std::string(width, '^') + "\n";
}

PyRef find_class(const char* qualified) {
  std::string s = qualified;
  size_t dot = s.rfind('.');
  if (dot == std::string::npos) return PyRef();
  PyRef module = PyRef::steal(PyImport_ImportModule(s.substr(0, dot).c_str()));
  PyRef cls = module ? attr_or_null(module.get(), to_str(s.substr(dot + 1)).get()) : PyRef();
  if (!cls && s.ends_with("AxisError")) {  // NumPy before 1.25
    forgive();
    PyRef numpy = loaded_module("numpy");
    cls = numpy ? attr_or_null(numpy.get(), CUVIL_NAME("AxisError")) : PyRef();
  }
  forgive();
  return cls ? cls : PyRef::borrow(PyExc_RuntimeError);
}

// Raises the exception in a frame that stands at the user's line, so that the traceback ends there: a
// one-statement code object whose position is the user's.
void raise_at(PyObject* exception, const std::string& file, const std::string& function,
              const SourceLoc& loc) {
  PyRef builtins = PyRef::steal(PyImport_ImportModule("builtins"));
  PyRef compile = builtins ? CUVIL_ATTR(builtins.get(), "compile") : PyRef();
  PyRef tree = compile ? PyRef::steal(PyObject_CallFunction(compile.get(), "sssi", "raise _error_",
                                                            file.c_str(), "exec", 0x400))
                       : PyRef();
  PyRef body = tree ? CUVIL_ATTR(tree.get(), "body") : PyRef();
  PyObject* statement = body ? PyList_GetItem(body.get(), 0) : nullptr;
  PyRef name = statement ? attr_or_null(statement, CUVIL_NAME("exc")) : PyRef();
  const int32_t end_line = std::max(loc.end_line, loc.line);
  for (PyObject* node : {statement, name.get()}) {
    if (!node) continue;
    const std::pair<const char*, long> fields[] = {
        {"lineno", std::max(loc.line, 1)},
        {"end_lineno", std::max(end_line, 1)},
        {"col_offset", loc.column},
        {"end_col_offset", loc.end_column > 0 ? loc.end_column : loc.column + 1}};
    for (auto [field, v] : fields) {
      PyRef number = PyRef::steal(PyLong_FromLong(v));
      PyObject_SetAttrString(node, field, number.get());
    }
  }
  PyRef code = statement ? PyRef::steal(PyObject_CallFunction(compile.get(), "Oss", tree.get(),
                                                              file.c_str(), "exec"))
                         : PyRef();
  if (code) {
    PyRef replace = attr_or_null(code.get(), CUVIL_NAME("replace"));
    PyRef args = PyRef::steal(PyTuple_New(0));
    PyRef keywords = PyRef::steal(Py_BuildValue("{ss}", "co_name", function.c_str()));
    PyRef renamed = replace && keywords
                        ? PyRef::steal(PyObject_Call(replace.get(), args.get(), keywords.get()))
                        : PyRef();
    if (renamed) code = renamed;
  }
  forgive();
  PyRef globals = PyRef::steal(PyDict_New());
  if (!code || !globals || PyDict_SetItemString(globals.get(), "_error_", exception) < 0 ||
      PyDict_SetItemString(globals.get(), "__builtins__", builtins.get()) < 0) {
    forgive();
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception);
    return;
  }
  PyRef never = PyRef::steal(PyEval_EvalCode(code.get(), globals.get(), globals.get()));
  // The traceback holds the frame, the frame these globals: break the cycle.
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyDict_Clear(globals.get());
  PyErr_Restore(type, value, traceback);
}

}  // namespace

void keep_exception() {
  drop_exception();
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  kept = value;
}

void drop_exception() { Py_XDECREF(std::exchange(kept, nullptr)); }

std::string format_error(const Error& e, std::span<PyObject* const> codes,
                         std::span<const SourceLoc> trail) {
  std::string text = e.found;
  auto code_of = [&](const SourceLoc& l) -> PyObject* {
    return l.function < codes.size() ? codes[l.function] : nullptr;
  };
  std::string file = code_text(code_of(e.loc), CUVIL_NAME("co_filename"));
  if (e.loc.line > 0 && !file.empty())
    text += "\n  " + place(file, e.loc) + "\n" + excerpt(file, e.loc);
  else
    text += "\n";
  for (size_t k = trail.size(); k-- > 0;) {
    std::string from = code_text(code_of(trail[k]), CUVIL_NAME("co_filename"));
    if (trail.size() > 8 && k >= 4 && k + 4 < trail.size()) continue;  // a deep recursion: its ends
    text += "  called from " + place(from, trail[k]) + "\n";
  }
  if (!e.remedy.empty()) text += "  help: " + e.remedy + "\n";
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

void raise_error(const Error& e, std::span<PyObject* const> codes,
                 std::span<const SourceLoc> trail) {
  PyObject* code = e.loc.function < codes.size() ? codes[e.loc.function] : nullptr;
  const std::string file = code_text(code, CUVIL_NAME("co_filename"));
  const std::string function = code_text(code, CUVIL_NAME("co_name"));
  PyRef exception;
  if (e.cls == ErrorClass::kPython) {
    exception = PyRef::steal(std::exchange(kept, nullptr));
    if (!exception)
      exception = PyRef::steal(
          PyObject_CallFunction(PyExc_RuntimeError, "s", "No active exception to reraise"));
  } else {
    forgive();
    PyRef cls = find_class(python_class_name(e.cls));
    std::string text = format_error(e, codes, trail);
    PyRef message = to_str(text);
    exception = PyRef::steal(PyObject_CallFunctionObjArgs(cls.get(), message.get(), nullptr));
  }
  if (!exception) return;  // the indicator says why
  if (file.empty() || e.loc.line <= 0) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), exception.get());
    return;
  }
  raise_at(exception.get(), file, function, e.loc);
}

bool raise_interrupt() {
  if (!kept_interrupt[0]) return false;
  PyErr_Restore(kept_interrupt[0], kept_interrupt[1], kept_interrupt[2]);
  std::fill(kept_interrupt, kept_interrupt + 3, nullptr);
  return true;
}

void raise(const Error& e, std::span<PyObject* const> code_objects) {
  raise_error(e, code_objects, {});
}

}  // namespace cuvil::frontend
