// Python objects as artifact constants, and names of importable objects.
#include <algorithm>
#include <iterator>

#include "frontend/capture.h"

namespace cuvil::frontend {
namespace {

using artifact::Const;

PyObject* numpy_type(const char* name) {
  PyRef numpy = loaded_module("numpy");
  PyRef t = numpy ? PyRef::steal(PyObject_GetAttrString(numpy.get(), name)) : PyRef();
  if (!t) forgive();
  return t.release();  // lives as long as NumPy
}

bool is_instance(PyObject* o, PyObject* type) {
  int r = type ? PyObject_IsInstance(o, type) : 0;
  if (r < 0) forgive();
  return r == 1;
}

std::optional<Const> integer(PyObject* o) {
  int overflow = 0;
  long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
  Const c;
  if (!overflow) {
    c.kind = Const::Kind::kInt;
    c.integer = v;
    return c;
  }
  PyRef s = PyRef::steal(PyNumber_ToBase(o, 16));  // decimal ones are limited in number
  if (!s) {
    forgive();
    return std::nullopt;
  }
  c.kind = Const::Kind::kBigInt;
  c.text = to_string(s.get());
  return c;
}

std::optional<Const> sequence(Const::Kind kind, const std::vector<PyRef>& items) {
  Const c;
  c.kind = kind;
  for (const PyRef& i : items) {
    std::optional<Const> item = i ? const_of(i.get()) : std::nullopt;
    if (!item) return std::nullopt;
    c.items.push_back(std::move(*item));
  }
  return c;
}

std::optional<Const> numpy_scalar(PyObject* o) {
  PyRef dtype = attr_or_null(o, CUVIL_NAME("dtype"));
  PyRef str = dtype ? attr_or_null(dtype.get(), CUVIL_NAME("str")) : PyRef();
  PyRef bytes = PyRef::steal(PyObject_CallMethod(o, "tobytes", nullptr));
  char* data = nullptr;
  Py_ssize_t size = 0;
  PyRef type = dtype ? attr_or_null(dtype.get(), CUVIL_NAME("type")) : PyRef();
  if (type.get() != reinterpret_cast<PyObject*>(Py_TYPE(o))) return std::nullopt;  // a subclass
  if (!str || !bytes || PyBytes_AsStringAndSize(bytes.get(), &data, &size) < 0) {
    forgive();
    return std::nullopt;
  }
  std::string name = to_string(str.get());
  if (std::string_view("biufc").find(name.size() > 1 ? name[1] : '?') == std::string_view::npos)
    return std::nullopt;
  Const c;
  c.kind = Const::Kind::kNumpyScalar;
  c.text = name + std::string(data, static_cast<size_t>(size));
  return c;
}

}  // namespace

std::optional<Const> const_of(PyObject* o) {
  Const c;
  if (o == Py_None) return c;
  if (o == Py_Ellipsis) {
    c.kind = Const::Kind::kEllipsis;
    return c;
  }
  if (o == Py_NotImplemented) {
    c.kind = Const::Kind::kNotImplemented;
    return c;
  }
  if (PyBool_Check(o)) {
    c.kind = Const::Kind::kBool;
    c.integer = o == Py_True;
    return c;
  }
  if (is_exactly(o, &PyLong_Type)) return integer(o);
  if (is_exactly(o, &PyFloat_Type)) {
    c.kind = Const::Kind::kFloat;
    c.real = PyFloat_AsDouble(o);
    return c;
  }
  if (is_exactly(o, &PyComplex_Type)) {
    c.kind = Const::Kind::kComplex;
    c.real = PyComplex_RealAsDouble(o);
    c.imag = PyComplex_ImagAsDouble(o);
    return c;
  }
  if (is_exactly(o, &PyUnicode_Type)) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(o, &size);
    if (!text) {  // lone surrogates
      forgive();
      return std::nullopt;
    }
    c.kind = Const::Kind::kStr;
    c.text.assign(text, static_cast<size_t>(size));
    return c;
  }
  if (is_exactly(o, &PyBytes_Type)) {
    char* data = nullptr;
    Py_ssize_t size = 0;
    PyBytes_AsStringAndSize(o, &data, &size);
    c.kind = Const::Kind::kBytes;
    c.text.assign(data, static_cast<size_t>(size));
    return c;
  }
  if (is_exactly(o, &PyTuple_Type)) {
    std::vector<PyRef> items;
    for (Py_ssize_t i = 0; i < PyTuple_Size(o); ++i)
      items.push_back(PyRef::borrow(PyTuple_GetItem(o, i)));
    return sequence(Const::Kind::kTuple, items);
  }
  if (is_exactly(o, &PyFrozenSet_Type)) {
    std::vector<PyRef> items;
    PyRef list = PyRef::steal(PySequence_List(o));
    for (Py_ssize_t i = 0; list && i < PyList_Size(list.get()); ++i)
      items.push_back(PyRef::borrow(PyList_GetItem(list.get(), i)));
    forgive();
    return sequence(Const::Kind::kFrozenSet, items);
  }
  if (is_exactly(o, &PySlice_Type) || is_exactly(o, &PyRange_Type)) {
    bool slice = is_exactly(o, &PySlice_Type);
    return sequence(slice ? Const::Kind::kSlice : Const::Kind::kRange,
                    {attr_or_null(o, CUVIL_NAME("start")), attr_or_null(o, CUVIL_NAME("stop")),
                     attr_or_null(o, CUVIL_NAME("step"))});
  }
  static PyObject* const dtype_type = numpy_type("dtype");
  static PyObject* const generic_type = numpy_type("generic");
  if (is_instance(o, dtype_type)) {
    PyRef names = attr_or_null(o, CUVIL_NAME("names"));
    PyRef str = attr_or_null(o, CUVIL_NAME("str"));
    if (!str || !names || names.get() != Py_None) return std::nullopt;
    c.kind = Const::Kind::kDType;
    c.text = to_string(str.get());
    return c;
  }
  if (is_instance(o, generic_type)) return numpy_scalar(o);
  if (PyType_Check(o)) {
    if (std::optional<std::string> name = qualified_name(o)) {
      c.kind = Const::Kind::kQualified;
      c.text = std::move(*name);
      return c;
    }
  }
  return std::nullopt;
}

namespace {

// Classes of the standard library whose objects never change.
bool of_immutable_class(PyObject* o) {
  static constexpr const char* kNames[] = {
      "decimal:Decimal", "fractions:Fraction", "datetime:date",      "datetime:datetime",
      "datetime:time",   "datetime:timedelta", "datetime:timezone",  "uuid:UUID",
      "re:Pattern",      "pathlib:PosixPath",  "pathlib:WindowsPath"};
  std::optional<std::string> name = qualified_name(reinterpret_cast<PyObject*>(Py_TYPE(o)));
  return name && std::find(std::begin(kNames), std::end(kNames), *name) != std::end(kNames);
}

bool told_by_guard(PyObject* o, int depth) {
  if (const_of(o)) return true;
  if (PyLong_Check(o) || PyFloat_Check(o) || PyComplex_Check(o) || PyUnicode_Check(o) ||
      PyBytes_Check(o) || PyType_Check(o) || PyModule_Check(o))
    return true;
  // Functions and ufuncs, but not what a class written in Python makes callable.
  if (PyCallable_Check(o)) return (PyType_GetFlags(Py_TYPE(o)) & Py_TPFLAGS_HEAPTYPE) == 0;
  if (depth > 64) return false;  // it may hold itself
  PyRef enum_type;
  if (PyRef module = loaded_module("enum"))
    enum_type = attr_or_null(module.get(), CUVIL_NAME("Enum"));
  if (enum_type && is_instance(o, enum_type.get())) return true;
  if (is_exactly(o, &PyDict_Type)) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);)
      if (!told_by_guard(key, depth + 1) || !told_by_guard(value, depth + 1)) return false;
    return true;
  }
  if (PyTuple_Check(o) || is_exactly(o, &PyList_Type) || is_exactly(o, &PySet_Type) ||
      is_exactly(o, &PyFrozenSet_Type)) {
    PyRef items = PyRef::steal(PySequence_Tuple(o));
    forgive();
    for (Py_ssize_t i = 0; items && i < PyTuple_Size(items.get()); ++i)
      if (!told_by_guard(PyTuple_GetItem(items.get(), i), depth + 1)) return false;
    return static_cast<bool>(items);
  }
  return of_immutable_class(o);
}

}  // namespace

bool told_by_guard(PyObject* o) { return told_by_guard(o, 0); }

std::optional<std::string> qualified_name(PyObject* o) {
  PyRef qualname = attr_or_null(o, CUVIL_NAME("__qualname__"));
  std::string name = qualname ? to_string(qualname.get()) : std::string();
  PyRef module = attr_or_null(o, CUVIL_NAME("__module__"));
  std::string in = module ? to_string(module.get()) : std::string();
  if (name.empty()) {  // ufuncs before NumPy 2.1 have a __name__ only
    PyRef short_name = attr_or_null(o, CUVIL_NAME("__name__"));
    name = short_name ? to_string(short_name.get()) : std::string();
  }
  if (in.empty()) in = "numpy";
  if (name.empty() || name.find('<') != std::string::npos) return std::nullopt;
  PyRef at = loaded_module(in.c_str());
  size_t begin = 0;
  while (at && begin <= name.size()) {
    size_t end = name.find('.', begin);
    if (end == std::string::npos) end = name.size();
    PyRef part = to_str(std::string_view(name).substr(begin, end - begin));
    at = attr_or_null(at.get(), part.get());
    begin = end + 1;
  }
  if (at.get() != o) return std::nullopt;
  return in + ":" + name;
}

}  // namespace cuvil::frontend
