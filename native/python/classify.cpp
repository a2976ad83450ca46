#include "python/classify.h"

#include <cstdlib>

#include "python/constants.h"
#include "python/dtypes.h"
#include "python/errors.h"

namespace cuvil::python {

using artifact::ArgSpec;
using artifact::ArraySpec;
using artifact::Layout;
using artifact::StrideClass;

PyTypeObject* memmap_type() {
  static PyTypeObject* const type = [] {
    PyRef t = imported("numpy", "memmap");
    if (!t) PyErr_Clear();
    return reinterpret_cast<PyTypeObject*>(t.release());  // lives as long as NumPy
  }();
  return type;
}

bool is_plain_array(PyObject* o) {
  return Py_TYPE(o) == &PyArray_Type || (PyArray_Check(o) && Py_TYPE(o) == memmap_type());
}

Layout layout_of(PyArrayObject* a) {
  int flags = PyArray_FLAGS(a);
  if (flags & NPY_ARRAY_C_CONTIGUOUS) return Layout::kC;
  return flags & NPY_ARRAY_F_CONTIGUOUS ? Layout::kF : Layout::kStrided;
}

bool is_aligned(PyArrayObject* a, int64_t item_size) {
  // Item sizes are powers of two, so one bit below it anywhere is misaligned.
  auto bits = reinterpret_cast<uintptr_t>(PyArray_DATA(a));
  for (int i = 0; i < PyArray_NDIM(a); ++i)
    if (PyArray_DIM(a, i) > 1) bits |= static_cast<uintptr_t>(PyArray_STRIDE(a, i));
  return (bits & static_cast<uintptr_t>(item_size - 1)) == 0;
}

void stride_classes(PyArrayObject* a, ArraySpec* out) {
  int rank = PyArray_NDIM(a);
  const npy_intp *shape = PyArray_DIMS(a), *strides = PyArray_STRIDES(a);
  npy_intp item = PyArray_ITEMSIZE(a);
  for (int i = 0; i < rank; ++i)
    out->stride_class[i] = shape[i] == 1 || strides[i] == 0 ? StrideClass::kZero
                           : strides[i] == item             ? StrideClass::kUnit
                                                            : StrideClass::kOther;
  // Insertion sort from slow to fast. Axes without a stride have no place of their own: they stay
  // where they are, as in NumPy's order='K'.
  auto& order = out->order;
  for (int i = 0; i < rank; ++i) {
    auto axis = static_cast<uint8_t>(i);
    int place = i;
    for (int k = i - 1; k >= 0; --k) {
      uint8_t other = order[k];
      if (out->stride_class[axis] == StrideClass::kZero ||
          out->stride_class[other] == StrideClass::kZero)
        continue;
      if (std::labs(strides[axis]) <= std::labs(strides[other])) break;
      place = k;
    }
    for (int k = i; k > place; --k) order[k] = order[k - 1];
    order[place] = axis;
  }
}

bool array_spec(PyArrayObject* a, ArraySpec* out) {
  std::optional<DType> t = dtype_of(PyArray_DESCR(a));
  if (!t || PyArray_NDIM(a) > static_cast<int>(artifact::kMaxRank)) return false;
  *out = {};
  out->dtype = *t;
  out->rank = static_cast<uint8_t>(PyArray_NDIM(a));
  out->layout = layout_of(a);
  out->aligned = is_aligned(a, size_of(*t));
  out->writeable = PyArray_ISWRITEABLE(a);
  if (out->layout == Layout::kStrided) stride_classes(a, out);
  return true;
}

namespace {

std::string dtype_text(PyObject* descr) {
  PyRef s = PyRef::steal(PyObject_Str(descr));
  if (!s) PyErr_Clear();
  return to_string(s.get());
}

// The dtype is not one that Cuvil computes with: says which it is and what would do.
bool refuse_dtype(PyArray_Descr* d, const char* what, const std::string& name) {
  std::string text = dtype_text(reinterpret_cast<PyObject*>(d));
  std::string found = "argument '" + name + "' is " + what + " of dtype " + text;
  if (!PyArray_ISNBO(d->byteorder))
    raise(
        make_error(ErrorClass::kDType, found + ", which is not in this machine's byte order",
                   "convert it first: " + name + ".astype(" + name + ".dtype.newbyteorder('='))"));
  else
    raise(make_error(ErrorClass::kDType, found,
                     "use a dtype of bool, int8 to int64, uint8 to uint64, float16, float32 or "
                     "float64"));
  return false;
}

bool refuse_complex(DType t, const std::string& name) {
  if (!is_complex(t)) return true;
  raise(make_error(ErrorClass::kUnsupported,
                   "argument '" + name + "' is of dtype " + std::string(info(t).numpy_name) +
                       "; complex numbers are not compiled yet",
                   "pass the real and imaginary parts as two arrays"));
  return false;
}

bool classify_array(PyObject* o, const std::string& name, ArgSpec* out) {
  auto* a = reinterpret_cast<PyArrayObject*>(o);
  if (!is_plain_array(o)) {
    raise(make_error(ErrorClass::kUnsupported,
                     "argument '" + name + "' is a " + Py_TYPE(o)->tp_name +
                         ", a subclass of numpy.ndarray with rules of its own",
                     "pass numpy.asarray(" + name + ")"));
    return false;
  }
  if (!dtype_of(PyArray_DESCR(a))) return refuse_dtype(PyArray_DESCR(a), "an array", name);
  if (!array_spec(a, &out->array)) {
    raise(
        make_error(ErrorClass::kUnsupported,
                   "argument '" + name + "' has " + std::to_string(PyArray_NDIM(a)) + " dimensions",
                   "arrays may have up to " + std::to_string(artifact::kMaxRank)));
    return false;
  }
  out->kind = ArgSpec::Kind::kArray;
  return refuse_complex(out->array.dtype, name);
}

bool classify_scalar(PyObject* o, const std::string& name, ArgSpec* out) {
  PyRef descr = PyRef::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromScalar(o)));
  if (!descr) return false;
  auto* d = reinterpret_cast<PyArray_Descr*>(descr.get());
  std::optional<DType> t = dtype_of(d);
  if (!t) return refuse_dtype(d, "a NumPy scalar", name);
  if (Py_TYPE(o) != d->typeobj) {
    raise(make_error(ErrorClass::kUnsupported,
                     "argument '" + name + "' is a " + Py_TYPE(o)->tp_name + ", a subclass of " +
                         d->typeobj->tp_name + " with rules of its own",
                     "pass " + std::string(d->typeobj->tp_name) + "(" + name + ")"));
    return false;
  }
  out->kind = ArgSpec::Kind::kArray;
  out->array = {.dtype = *t, .writeable = false, .numpy_scalar = true};
  return refuse_complex(*t, name);
}

}  // namespace

bool classify(PyObject* o, const std::string& name, ArgSpec* out) {
  *out = {};
  if (PyArray_Check(o)) return classify_array(o, name, out);
  if (PyLong_CheckExact(o)) {
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(o, &overflow);
    if (!overflow) {
      out->kind = ArgSpec::Kind::kInt;
      return true;
    }
  } else if (PyFloat_CheckExact(o)) {
    out->kind = ArgSpec::Kind::kFloat;
    return true;
  } else if (PyArray_IsScalar(o, Generic)) {
    return classify_scalar(o, name, out);
  }
  if (std::optional<artifact::Const> c = to_const(o)) {
    out->kind = ArgSpec::Kind::kStatic;
    out->value = std::move(*c);
  }
  return true;  // else kObject
}

}  // namespace cuvil::python
