#include "python/constants.h"

#include <algorithm>
#include <bit>

#include "python/dtypes.h"

namespace cuvil::python {

using artifact::Const;
using Kind = Const::Kind;

namespace {

Const make(Kind kind, std::string text = {}) {
  Const c;
  c.kind = kind;
  c.text = std::move(text);
  return c;
}

std::optional<Const> int_const(PyObject* o) {
  int overflow = 0;
  long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (!overflow) {
    Const c = make(Kind::kInt);
    c.integer = v;
    return c;
  }
  PyRef digits = PyRef::steal(PyNumber_ToBase(o, 16));  // decimal ones are limited in number
  if (!digits) {
    PyErr_Clear();
    return std::nullopt;
  }
  return make(Kind::kBigInt, to_string(digits.get()));
}

std::optional<Const> items_const(Kind kind, PyObject* const* items, Py_ssize_t n) {
  Const c = make(kind);
  for (Py_ssize_t i = 0; i < n; ++i) {
    std::optional<Const> item = to_const(items[i]);
    if (!item) return std::nullopt;
    c.items.push_back(std::move(*item));
  }
  return c;
}

std::optional<Const> fields_const(Kind kind, PyObject* o) {
  PyRef parts[] = {attr_or_null(o, CUVIL_NAME("start")), attr_or_null(o, CUVIL_NAME("stop")),
                   attr_or_null(o, CUVIL_NAME("step"))};
  PyObject* items[] = {parts[0].get(), parts[1].get(), parts[2].get()};
  if (!items[0] || !items[1] || !items[2]) return std::nullopt;
  return items_const(kind, items, 3);
}

std::optional<Const> dtype_const(PyObject* o) {
  auto* d = reinterpret_cast<PyArray_Descr*>(o);
  if (d->type_num >= NPY_OBJECT) return std::nullopt;  // strings, records, datetimes, user types
  PyRef str = attr_or_null(o, CUVIL_NAME("str"));
  return make(Kind::kDType, to_string(str.get()));
}

std::optional<Const> scalar_const(PyObject* o) {
  PyRef descr = PyRef::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromScalar(o)));
  if (!descr || !dtype_of(reinterpret_cast<PyArray_Descr*>(descr.get()))) {
    PyErr_Clear();
    return std::nullopt;
  }
  PyRef str = attr_or_null(descr.get(), CUVIL_NAME("str"));
  char bytes[16] = {};
  PyArray_ScalarAsCtype(o, bytes);
  auto size = static_cast<size_t>(PyDataType_ELSIZE(reinterpret_cast<PyArray_Descr*>(descr.get())));
  return make(Kind::kNumpyScalar, to_string(str.get()) + std::string(bytes, size));
}

// "module:qualname", if that leads back to this very object.
std::optional<Const> qualified_const(PyObject* o) {
  PyRef module = attr_or_null(o, CUVIL_NAME("__module__"));
  PyRef name = attr_or_null(o, CUVIL_NAME("__qualname__"));
  std::string text = to_string(module.get()) + ":" + to_string(name.get());
  if (resolve_qualified(text).get() != o) return std::nullopt;
  return make(Kind::kQualified, std::move(text));
}

}  // namespace

std::optional<Const> to_const(PyObject* o) {
  if (o == Py_None) return make(Kind::kNone);
  if (o == Py_Ellipsis) return make(Kind::kEllipsis);
  if (o == Py_NotImplemented) return make(Kind::kNotImplemented);
  if (PyBool_Check(o)) {
    Const c = make(Kind::kBool);
    c.integer = o == Py_True;
    return c;
  }
  if (PyLong_CheckExact(o)) return int_const(o);
  if (PyFloat_CheckExact(o)) {
    Const c = make(Kind::kFloat);
    c.real = PyFloat_AS_DOUBLE(o);
    return c;
  }
  if (PyComplex_CheckExact(o)) {
    Const c = make(Kind::kComplex);
    c.real = PyComplex_RealAsDouble(o);
    c.imag = PyComplex_ImagAsDouble(o);
    return c;
  }
  if (PyUnicode_CheckExact(o)) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(o, &size);
    if (!text) {  // lone surrogates
      PyErr_Clear();
      return std::nullopt;
    }
    return make(Kind::kStr, std::string(text, static_cast<size_t>(size)));
  }
  if (PyBytes_CheckExact(o))
    return make(Kind::kBytes,
                std::string(PyBytes_AS_STRING(o), static_cast<size_t>(PyBytes_GET_SIZE(o))));
  if (PyTuple_CheckExact(o))
    return items_const(Kind::kTuple, &PyTuple_GET_ITEM(o, 0), PyTuple_GET_SIZE(o));
  if (PyFrozenSet_CheckExact(o)) {
    PyRef list = PyRef::steal(PySequence_List(o));
    if (!list) {
      PyErr_Clear();
      return std::nullopt;
    }
    return items_const(Kind::kFrozenSet, PySequence_Fast_ITEMS(list.get()),
                       PyList_GET_SIZE(list.get()));
  }
  if (PySlice_Check(o)) return fields_const(Kind::kSlice, o);
  if (PyRange_Check(o)) return fields_const(Kind::kRange, o);
  if (PyArray_DescrCheck(o)) return dtype_const(o);
  if (PyArray_CheckScalar(o) && !PyArray_Check(o)) return scalar_const(o);
  if (PyType_Check(o)) return qualified_const(o);
  return std::nullopt;
}

PyRef resolve_qualified(std::string_view name) {
  size_t colon = name.find(':');
  if (colon == std::string_view::npos) return {};
  PyRef module_name = to_str(name.substr(0, colon));
  PyObject* modules = PyImport_GetModuleDict();
  PyRef at = PyRef::borrow(PyDict_GetItemWithError(modules, module_name.get()));
  for (size_t begin = colon + 1; at && begin <= name.size();) {
    size_t end = std::min(name.find('.', begin), name.size());
    at = attr_or_null(at.get(), to_str(name.substr(begin, end - begin)).get());
    begin = end + 1;
  }
  PyErr_Clear();
  if (at && !is_original(at.get(), name)) return {};
  return at;
}

bool is_original(PyObject* o, std::string_view name) {
  const std::string_view module = name.substr(0, name.find(':'));
  const std::string_view last = name.substr(name.find_last_of(":.") + 1);
  auto ends = [&](PyObject* attribute) {
    PyRef own = attr_or_null(o, attribute);
    const std::string text = to_string(own.get());
    return text.empty() ? std::string() : text.substr(text.find_last_of('.') + 1);
  };
  const std::string own = ends(CUVIL_NAME("__name__"));
  if (!own.empty() && own != last && ends(CUVIL_NAME("__qualname__")) != last) return false;
  auto package = [](std::string_view m) { return m.substr(0, m.find('.')); };
  PyRef owner;
  if (PyFunction_Check(o)) {
    // functools.wraps copies __module__, but not the globals.
    PyObject* globals = PyFunction_GET_GLOBALS(o);
    owner = PyRef::borrow(PyDict_GetItemString(globals, "__name__"));
    // NumPy before 1.25 makes its functions in a namespace that has no name.
    if (!owner) return PyDict_GetItemString(globals, "implement_array_function") != nullptr;
  } else {
    owner = attr_or_null(o, CUVIL_NAME("__module__"));
    // An object of a class of the user's may copy all that functions say about themselves.
    auto* type = reinterpret_cast<PyObject*>(Py_TYPE(o));
    PyRef made_by = attr_or_null(type, CUVIL_NAME("__module__"));
    PyRef call = attr_or_null(type, CUVIL_NAME("__call__"));
    const std::string by = to_string(made_by.get());
    const bool known = by == "builtins" || package(by) == "numpy" || by.starts_with("_cython") ||
                       package(by) == package(module);
    if (!PyType_Check(o) && (!known || !call || PyFunction_Check(call.get()))) return false;
  }
  std::string in = to_string(owner.get());
  if (in.empty()) return true;       // ufuncs before NumPy 2.1, and SciPy's
  if (in[0] == '_') in.erase(0, 1);  // _operator
  return package(in) == package(module) || in == module || "_" + in == module;
}

PyRef to_object(const Const& c) {
  auto items = [&]() -> PyRef {
    PyRef t = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(c.items.size())));
    for (size_t i = 0; t && i < c.items.size(); ++i) {
      PyRef item = to_object(c.items[i]);
      if (!item) return {};
      PyTuple_SET_ITEM(t.get(), static_cast<Py_ssize_t>(i), item.release());
    }
    return t;
  };
  auto call = [&](PyObject* type) -> PyRef {
    PyRef args = items();
    return args ? PyRef::steal(PyObject_CallObject(type, args.get())) : PyRef();
  };
  auto size = static_cast<Py_ssize_t>(c.text.size());
  switch (c.kind) {
    case Kind::kNone: return PyRef::borrow(Py_None);
    case Kind::kEllipsis: return PyRef::borrow(Py_Ellipsis);
    case Kind::kNotImplemented: return PyRef::borrow(Py_NotImplemented);
    case Kind::kBool: return PyRef::borrow(c.integer ? Py_True : Py_False);
    case Kind::kInt: return PyRef::steal(PyLong_FromLongLong(c.integer));
    case Kind::kBigInt: return PyRef::steal(PyLong_FromString(c.text.c_str(), nullptr, 16));
    case Kind::kFloat: return PyRef::steal(PyFloat_FromDouble(c.real));
    case Kind::kComplex: return PyRef::steal(PyComplex_FromDoubles(c.real, c.imag));
    case Kind::kStr: return PyRef::steal(PyUnicode_DecodeUTF8(c.text.data(), size, nullptr));
    case Kind::kBytes: return PyRef::steal(PyBytes_FromStringAndSize(c.text.data(), size));
    case Kind::kTuple: return items();
    case Kind::kFrozenSet: {
      PyRef t = items();
      return t ? PyRef::steal(PyFrozenSet_New(t.get())) : PyRef();
    }
    case Kind::kSlice: return call(reinterpret_cast<PyObject*>(&PySlice_Type));
    case Kind::kRange: return call(reinterpret_cast<PyObject*>(&PyRange_Type));
    case Kind::kDType: {
      PyRef text = to_str(c.text);
      return PyRef::steal(
          PyObject_CallOneArg(reinterpret_cast<PyObject*>(&PyArrayDescr_Type), text.get()));
    }
    case Kind::kNumpyScalar: {
      // dtype.str of a number has three characters up to 8 bytes and four for complex128.
      for (size_t head : {size_t{3}, size_t{4}}) {
        if (c.text.size() <= head) break;
        PyRef text = to_str(std::string_view(c.text).substr(0, head));
        PyRef descr = PyRef::steal(
            PyObject_CallOneArg(reinterpret_cast<PyObject*>(&PyArrayDescr_Type), text.get()));
        if (!descr) {
          PyErr_Clear();
          continue;
        }
        auto* d = reinterpret_cast<PyArray_Descr*>(descr.get());
        if (!dtype_of(d) || static_cast<size_t>(PyDataType_ELSIZE(d)) != c.text.size() - head)
          continue;
        std::string bytes = c.text.substr(head);
        return PyRef::steal(PyArray_Scalar(bytes.data(), d, nullptr));
      }
      PyErr_SetString(PyExc_ValueError, "not a NumPy scalar");
      return {};
    }
    case Kind::kQualified: {
      PyRef o = resolve_qualified(c.text);
      if (!o) PyErr_Format(PyExc_LookupError, "%s is not loaded", c.text.c_str());
      return o;
    }
  }
  return {};
}

namespace {

bool same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

bool same_fields(PyObject* a, PyObject* b) {
  for (PyObject* name : {CUVIL_NAME("start"), CUVIL_NAME("stop"), CUVIL_NAME("step")}) {
    PyRef x = attr_or_null(a, name), y = attr_or_null(b, name);
    if (!x || !y || !same_value(x.get(), y.get())) return false;
  }
  return true;
}

bool rich_equal(PyObject* a, PyObject* b) {
  int r = PyObject_RichCompareBool(a, b, Py_EQ);
  if (r < 0) PyErr_Clear();
  return r == 1;
}

bool same_sets(PyObject* a, PyObject* b) {
  std::optional<Const> x = to_const(a), y = to_const(b);
  if (!x || !y || x->items.size() != y->items.size()) return false;
  for (const Const& item : x->items) {
    bool found = false;
    for (const Const& other : y->items) found = found || item == other;
    if (!found) return false;
  }
  return true;
}

}  // namespace

bool same_value(PyObject* a, PyObject* b) {
  if (a == b) return true;
  PyTypeObject* t = Py_TYPE(a);
  if (t != Py_TYPE(b)) return false;
  if (t == &PyLong_Type || t == &PyUnicode_Type || t == &PyBytes_Type) return rich_equal(a, b);
  if (t == &PyFloat_Type) return same_bits(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b));
  if (t == &PyComplex_Type)
    return same_bits(PyComplex_RealAsDouble(a), PyComplex_RealAsDouble(b)) &&
           same_bits(PyComplex_ImagAsDouble(a), PyComplex_ImagAsDouble(b));
  if (t == &PyTuple_Type) {
    Py_ssize_t n = PyTuple_GET_SIZE(a);
    if (n != PyTuple_GET_SIZE(b)) return false;
    for (Py_ssize_t i = 0; i < n; ++i)
      if (!same_value(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
    return true;
  }
  if (t == &PyFrozenSet_Type) return same_sets(a, b);
  if (t == &PySlice_Type || t == &PyRange_Type) return same_fields(a, b);
  if (PyArray_DescrCheck(a)) return rich_equal(a, b);
  if (PyArray_CheckScalar(a) && !PyArray_Check(a)) {
    std::optional<Const> x = scalar_const(a), y = scalar_const(b);
    return x && y && *x == *y;
  }
  return false;
}

std::string short_repr(PyObject* o) {
  constexpr size_t kLongest = 60;
  PyRef r = PyRef::steal(PyObject_Repr(o));
  if (!r) PyErr_Clear();
  std::string text = to_string(r.get());
  if (text.size() > kLongest) {
    size_t cut = kLongest;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;
    text = text.substr(0, cut) + "...";
  }
  return text;
}

}  // namespace cuvil::python
