#include "python/errors.h"

#include <frameobject.h>

#include <algorithm>

namespace cuvil::python {
namespace {

PyRef code_of(PyObject* function) {
  if (!function || !PyFunction_Check(function)) return {};
  return PyRef::borrow(PyFunction_GET_CODE(function));
}

std::string text_of(PyObject* o, PyObject* attribute) {
  PyRef v = o ? attr_or_null(o, attribute) : PyRef();
  return to_string(v.get());
}

int32_t int_item(PyObject* tuple, Py_ssize_t i) {
  PyObject* v = PyTuple_GET_ITEM(tuple, i);
  return PyLong_Check(v) ? static_cast<int32_t>(PyLong_AsLong(v)) : 0;
}

// The k-th item of code.co_positions(): (line, end line, column, end column). Python 3.11 and later.
bool position(PyObject* code, int32_t instruction, SourceLoc* out) {
  PyRef positions = PyRef::steal(PyObject_CallMethod(code, "co_positions", nullptr));
  PyRef iterator = positions ? PyRef::steal(PyObject_GetIter(positions.get())) : PyRef();
  PyRef item;
  for (int32_t i = 0; iterator && i <= instruction; ++i) {
    item = PyRef::steal(PyIter_Next(iterator.get()));
    if (!item) break;
  }
  PyErr_Clear();
  if (!item || !PyTuple_Check(item.get()) || PyTuple_GET_SIZE(item.get()) != 4) return false;
  out->line = int_item(item.get(), 0);
  out->end_line = int_item(item.get(), 1);
  out->column = int_item(item.get(), 2);
  out->end_column = int_item(item.get(), 3);
  return out->line > 0;
}

std::string source_line(const std::string& file, int32_t line) {
  PyRef getline = imported("linecache", "getline");
  PyRef text = getline
                   ? PyRef::steal(PyObject_CallFunction(getline.get(), "si", file.c_str(), line))
                   : PyRef();
  if (!text) PyErr_Clear();
  std::string s = to_string(text.get());
  while (!s.empty() && (s.back() == '\n' || s.back() == '\r')) s.pop_back();
  return s;
}

// The same form as the compiler's own errors:
//
//     found
//       file:line:column
//         the line
//             ^^^^
//       help: remedy
std::string located(const std::string& found, const std::string& remedy, const SourceLoc& loc,
                    const std::string& file) {
  std::string out = found;
  if (loc.line > 0)
    out += "\n  " + file + ":" + std::to_string(loc.line) + ":" + std::to_string(loc.column + 1);
  std::string line = loc.line > 0 ? source_line(file, loc.line) : std::string();
  size_t indent = line.find_first_not_of(" \t");
  if (indent != std::string::npos) {
    size_t begin = std::max(static_cast<size_t>(std::max(loc.column, 0)), indent);
    size_t end = loc.end_line == loc.line && loc.end_column > 0
                     ? std::min(static_cast<size_t>(loc.end_column), line.size())
                     : line.size();
    if (begin >= end) begin = indent;
    // Columns are bytes; carets stand under characters.
    auto characters = [&](size_t from, size_t to) {
      return static_cast<size_t>(
          std::count_if(line.begin() + static_cast<std::ptrdiff_t>(from),
                        line.begin() + static_cast<std::ptrdiff_t>(to),
                        [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
    };
    out += "\n    " + line.substr(indent) + "\n    " + std::string(characters(indent, begin), ' ') +
           std::string(std::max<size_t>(1, begin < end ? characters(begin, end) : 1), '^');
  }
  return remedy.empty() ? out : out + "\n  help: " + remedy;
}

std::string filled(const std::string& text, const int64_t payload[4]) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    bool hole = text[i] == '{' && i + 2 < text.size() && text[i + 2] == '}' && text[i + 1] >= '0' &&
                text[i + 1] < '4';
    if (!hole) {
      out += text[i];
      continue;
    }
    out += std::to_string(payload[text[i + 1] - '0']);
    i += 2;
  }
  return out;
}

bool is_cuvil_class(ErrorClass c) {
  return std::string_view(python_class_name(c)).starts_with("cuvil.");
}

void set(ErrorClass c, const std::string& text) {
  PyRef type = exception_class(c);
  PyRef message = to_str(text);
  if (type && message) PyErr_SetObject(type.get(), message.get());
}

}  // namespace

PyRef exception_class(ErrorClass c) {
  std::string_view name = python_class_name(c);
  size_t dot = name.rfind('.');
  std::string module(name.substr(0, dot)), attribute(name.substr(dot + 1));
  if (module == "cuvil") module = "cuvil.errors";
  PyRef type = imported(module.c_str(), attribute.c_str());
  if (!type && module == "numpy.exceptions") {  // NumPy before 1.25
    PyErr_Clear();
    type = imported("numpy", attribute.c_str());
  }
  return type;
}

void raise(const Error& e) {
  if (e.cls == ErrorClass::kPython) return;
  set(e.cls, e.remedy.empty() ? e.found : e.found + "\n  help: " + e.remedy);
}

SourceLoc resolve(const artifact::CodeLoc& loc, PyObject* function) {
  SourceLoc out;
  PyRef code = code_of(function);
  if (!code) return out;
  if (loc.instruction >= 0) {
    if (position(code.get(), loc.instruction, &out)) return out;
    out = {};
    out.line = PyCode_Addr2Line(reinterpret_cast<PyCodeObject*>(code.get()), loc.instruction * 2);
    if (out.line > 0) return out;
  }
  PyRef first = attr_or_null(code.get(), CUVIL_NAME("co_firstlineno"));
  out.line = first ? static_cast<int32_t>(PyLong_AsLong(first.get())) + loc.line : 0;
  return out;
}

// A frame of an empty code object whose first line is the one to show.
void add_traceback(const artifact::CodeLoc& loc, PyObject* function) {
  // Set aside first: finding the line runs Python, which would meet, or clear, the pending exception.
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyFrameObject* frame = nullptr;
  PyRef empty;
  PyRef code = code_of(function);
  int line = resolve(loc, function).line;
  if (code && line > 0) {
    std::string file = text_of(code.get(), CUVIL_NAME("co_filename"));
    std::string name = text_of(code.get(), CUVIL_NAME("co_name"));
    auto* made = PyCode_NewEmpty(file.c_str(), name.c_str(), line);
    empty = PyRef::steal(reinterpret_cast<PyObject*>(made));
    if (made)
      frame = PyFrame_New(PyThreadState_Get(), made, PyFunction_GET_GLOBALS(function), nullptr);
  }
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
  if (frame) PyTraceBack_Here(frame);
  Py_XDECREF(reinterpret_cast<PyObject*>(frame));
}

void raise_site(const artifact::Site& site, const int64_t payload[4], PyObject* function) {
  std::string found = filled(site.message, payload);
  if (is_cuvil_class(site.cls)) {
    PyRef code = code_of(function);
    std::string file = text_of(code.get(), CUVIL_NAME("co_filename"));
    found = located(found, filled(site.remedy, payload), resolve(site.loc, function), file);
  }
  set(site.cls, found);
  add_traceback(site.loc, function);
}

bool warn_performance(const std::string& text) {
  PyRef category = imported("cuvil.errors", "CuvilPerformanceWarning");
  return category && PyErr_WarnEx(category.get(), text.c_str(), 1) == 0;
}

}  // namespace cuvil::python
