// Between NumPy's type numbers and Cuvil's element types.
#pragma once

#include <optional>

#include "python/py.h"
#include "support/dtype.h"

namespace cuvil::python {

// The element type of a native-endian descriptor; nullopt for anything else.
inline std::optional<DType> dtype_of(PyArray_Descr* d) {
  if (!PyArray_ISNBO(d->byteorder)) return std::nullopt;
  switch (d->type_num) {
    case NPY_BOOL: return DType::kBool;
    case NPY_BYTE: return DType::kI8;
    case NPY_SHORT: return DType::kI16;
    case NPY_INT: return DType::kI32;
    case NPY_LONG:
    case NPY_LONGLONG: return DType::kI64;
    case NPY_UBYTE: return DType::kU8;
    case NPY_USHORT: return DType::kU16;
    case NPY_UINT: return DType::kU32;
    case NPY_ULONG:
    case NPY_ULONGLONG: return DType::kU64;
    case NPY_HALF: return DType::kF16;
    case NPY_FLOAT: return DType::kF32;
    case NPY_DOUBLE: return DType::kF64;
    case NPY_CFLOAT: return DType::kC64;
    case NPY_CDOUBLE: return DType::kC128;
    default: return std::nullopt;
  }
}

// NPY_NOTYPE for bfloat16, which NumPy has not.
inline int type_num_of(DType t) {
  switch (t) {
    case DType::kBool: return NPY_BOOL;
    case DType::kI8: return NPY_BYTE;
    case DType::kI16: return NPY_SHORT;
    case DType::kI32: return NPY_INT;
    case DType::kI64: return NPY_LONG;
    case DType::kU8: return NPY_UBYTE;
    case DType::kU16: return NPY_USHORT;
    case DType::kU32: return NPY_UINT;
    case DType::kU64: return NPY_ULONG;
    case DType::kF16: return NPY_HALF;
    case DType::kBF16: return NPY_NOTYPE;
    case DType::kF32: return NPY_FLOAT;
    case DType::kF64: return NPY_DOUBLE;
    case DType::kC64: return NPY_CFLOAT;
    case DType::kC128: return NPY_CDOUBLE;
  }
  return NPY_NOTYPE;
}

// Descriptors of builtin types are never freed: borrowed. NULL for bfloat16, without an indicator.
inline PyArray_Descr* descr_of(DType t) {
  int type_num = type_num_of(t);
  if (type_num == NPY_NOTYPE) return nullptr;
  PyArray_Descr* d = PyArray_DescrFromType(type_num);
  Py_XDECREF(reinterpret_cast<PyObject*>(d));
  return d;
}

}  // namespace cuvil::python
