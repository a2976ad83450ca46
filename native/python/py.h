// Owned references, interned names and NumPy's C API for the extension. Included by all of python/.
#pragma once

#include <Python.h>

#define PY_ARRAY_UNIQUE_SYMBOL cuvil_numpy_api
#ifndef CUVIL_IMPORTS_NUMPY  // defined by module.cpp alone
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>

#include <string>
#include <string_view>
#include <utility>

#include "support/error.h"

namespace cuvil::python {

// An owned reference; NULL means "no object" (usually: Python's error indicator is set).
class PyRef {
 public:
  PyRef() = default;
  static PyRef steal(PyObject* o) {
    PyRef r;
    r.o_ = o;
    return r;
  }
  static PyRef borrow(PyObject* o) {
    Py_XINCREF(o);
    return steal(o);
  }
  PyRef(const PyRef& other) : o_(other.o_) { Py_XINCREF(o_); }
  PyRef(PyRef&& other) noexcept : o_(std::exchange(other.o_, nullptr)) {}
  PyRef& operator=(PyRef other) noexcept {
    std::swap(o_, other.o_);
    return *this;
  }
  ~PyRef() { Py_XDECREF(o_); }

  PyObject* get() const { return o_; }
  PyObject* release() { return std::exchange(o_, nullptr); }
  explicit operator bool() const { return o_ != nullptr; }

 private:
  PyObject* o_ = nullptr;
};

// An interned str, made once a call site: attribute names, dict keys.
#define CUVIL_NAME(text)                                            \
  ([]() -> PyObject* {                                              \
    static PyObject* const name = PyUnicode_InternFromString(text); \
    return name;                                                    \
  }())

#define CUVIL_ATTR(object, text) \
  ::cuvil::python::PyRef::steal(PyObject_GetAttr(object, CUVIL_NAME(text)))

// getattr that treats a failure as "not there" and leaves no indicator.
inline PyRef attr_or_null(PyObject* o, PyObject* name) {
  PyRef r = PyRef::steal(PyObject_GetAttr(o, name));
  if (!r) PyErr_Clear();
  return r;
}

// "" if `o` is not a str, or none that UTF-8 can hold.
inline std::string to_string(PyObject* o) {
  Py_ssize_t size = 0;
  const char* text = o && PyUnicode_Check(o) ? PyUnicode_AsUTF8AndSize(o, &size) : nullptr;
  if (!text) {
    PyErr_Clear();
    return {};
  }
  return std::string(text, static_cast<size_t>(size));
}

inline PyRef to_str(std::string_view s) {
  return PyRef::steal(PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace"));
}

// A module or one of its attributes, imported at first use. NULL with the indicator set.
inline PyRef imported(const char* module, const char* attribute = nullptr) {
  PyRef m = PyRef::steal(PyImport_ImportModule(module));
  if (!m || !attribute) return m;
  return PyRef::steal(PyObject_GetAttrString(m.get(), attribute));
}

}  // namespace cuvil::python
