// Owned references and short words for the limited C API. Used by every file of the frontend.
#pragma once

#include <Python.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace cuvil::frontend {

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

// getattr(o, "name"); NULL with the indicator set.
#define CUVIL_ATTR(object, text) PyRef::steal(PyObject_GetAttr(object, CUVIL_NAME(text)))

// What is no Exception (KeyboardInterrupt, SystemExit: a signal came meanwhile), until raise_interrupt().
inline thread_local PyObject* kept_interrupt[3] = {nullptr, nullptr, nullptr};

// Clears the indicator: an expected failure.
inline void forgive() {
  if (!PyErr_Occurred()) return;
  if (kept_interrupt[0] || PyErr_ExceptionMatches(PyExc_Exception)) return PyErr_Clear();
  PyErr_Fetch(&kept_interrupt[0], &kept_interrupt[1], &kept_interrupt[2]);
}

// getattr that treats every failure as "not there" and leaves no indicator.
inline PyRef attr_or_null(PyObject* o, PyObject* name) {
  PyRef r = PyRef::steal(PyObject_GetAttr(o, name));
  if (!r) forgive();
  return r;
}

inline bool is_exactly(PyObject* o, PyTypeObject* t) { return Py_TYPE(o) == t; }

// "" if `o` is not a str.
inline std::string to_string(PyObject* o) {
  Py_ssize_t size = 0;
  const char* text = o && PyUnicode_Check(o) ? PyUnicode_AsUTF8AndSize(o, &size) : nullptr;
  if (!text) {
    forgive();
    return {};
  }
  return std::string(text, static_cast<size_t>(size));
}

inline PyRef to_str(std::string_view s) {
  return PyRef::steal(PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size())));
}

// repr(o), shortened so that it fits in a message.
inline std::string short_repr(PyObject* o) {
  PyRef r = PyRef::steal(PyObject_Repr(o));
  if (!r) forgive();
  std::string s = r ? to_string(r.get()) : std::string("<object>");
  if (s.size() > 60) s = s.substr(0, 57) + "...";
  return s;
}

inline std::string type_name(PyObject* o) {
  PyRef n = attr_or_null(reinterpret_cast<PyObject*>(Py_TYPE(o)), CUVIL_NAME("__name__"));
  return n ? to_string(n.get()) : std::string("object");
}

// The value of an int (or of an object with __index__) that fits int64.
inline std::optional<int64_t> to_int64(PyObject* o) {
  PyRef index = PyRef::steal(PyNumber_Index(o));
  if (!index) {
    forgive();
    return std::nullopt;
  }
  int overflow = 0;
  long long v = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  if (overflow) return std::nullopt;
  return static_cast<int64_t>(v);
}

// An int or float of a subclass that has operators of its own (an IntEnum has none).
inline bool has_own_arithmetic(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  PyTypeObject* base = PyLong_Check(o) ? &PyLong_Type : PyFloat_Check(o) ? &PyFloat_Type : type;
  if (type == base || PyBool_Check(o)) return false;
  if (PyRef dtype = attr_or_null(o, CUVIL_NAME("dtype"))) {  // np.float64 is a float
    PyRef scalar = attr_or_null(dtype.get(), CUVIL_NAME("type"));
    return scalar.get() != reinterpret_cast<PyObject*>(type);
  }
  for (int slot : {Py_nb_add, Py_nb_subtract, Py_nb_multiply, Py_nb_true_divide, Py_nb_floor_divide,
                   Py_nb_remainder, Py_nb_power, Py_nb_negative, Py_nb_absolute, Py_nb_bool,
                   Py_nb_and, Py_nb_or, Py_nb_xor, Py_nb_lshift, Py_nb_rshift, Py_nb_index,
                   Py_nb_float, Py_tp_richcompare})
    if (PyType_GetSlot(type, slot) != PyType_GetSlot(base, slot)) return true;
  return false;
}

// An int or float of a subclass, where NumPy takes it for a NumPy number and not for a Python one. Not all
// versions do, so NumPy is asked.
inline bool is_strong_number(PyObject* o) {
  if (is_exactly(o, &PyLong_Type) || is_exactly(o, &PyFloat_Type) || PyBool_Check(o)) return false;
  if (!PyLong_Check(o) && !PyFloat_Check(o)) return false;
  if (PyObject_HasAttrString(o, "dtype")) return false;  // np.float64
  PyObject* numpy = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy");
  PyRef half = PyRef::steal(numpy ? PyObject_GetAttrString(numpy, "float16") : nullptr);
  PyRef one = PyRef::steal(half ? PyObject_CallFunction(half.get(), "i", 1) : nullptr);
  PyRef product = PyRef::steal(one ? PyNumber_Multiply(one.get(), o) : nullptr);
  forgive();
  return product && Py_TYPE(product.get()) != Py_TYPE(one.get());
}

// An object that NumPy would ask, or whose own operators an array would give way to.
inline bool takes_part_in_arithmetic(PyObject* o) {
  for (const char* name :
       {"__array_ufunc__", "__array__", "__array_interface__", "__array_priority__"})
    if (PyObject_HasAttrString(o, name)) return true;
  for (int slot :
       {Py_nb_add, Py_nb_subtract, Py_nb_multiply, Py_nb_true_divide, Py_nb_matrix_multiply})
    if (PyType_GetSlot(Py_TYPE(o), slot)) return true;
  return false;
}

// sys.modules[name]: imported only if it was imported already. Looked up in the dict, because
// PyImport_GetModule waits for a module that is being imported, perhaps by who waits for the compiler.
inline PyRef loaded_module(const char* name) {
  return PyRef::borrow(PyDict_GetItemString(PyImport_GetModuleDict(), name));
}

}  // namespace cuvil::frontend
