// Cuvil's element types and NumPy's dtype objects.
#include "frontend/dtypes.h"

namespace cuvil::frontend {

std::optional<DType> dtype_of_char(const std::string& character) {
  if (character.size() != 1) return std::nullopt;
  // LP64: long long is another name of int64.
  if (character == "q") return DType::kI64;
  if (character == "Q") return DType::kU64;
  static constexpr DType kAll[] = {
#define CUVIL_DTYPE(id, name, size, chr, kind) DType::id,
#include "support/dtypes.def"
#undef CUVIL_DTYPE
  };
  for (DType t : kAll)
    if (info(t).numpy_char == character[0]) return t;
  return std::nullopt;
}

std::optional<DType> dtype_of(PyObject* object) {
  PyRef numpy = loaded_module("numpy");
  PyRef dtype =
      numpy ? PyRef::steal(PyObject_CallMethod(numpy.get(), "dtype", "O", object)) : PyRef();
  PyRef character = dtype ? attr_or_null(dtype.get(), CUVIL_NAME("char")) : PyRef();
  PyRef native = dtype ? attr_or_null(dtype.get(), CUVIL_NAME("isnative")) : PyRef();
  forgive();
  if (!character || native.get() != Py_True) return std::nullopt;
  return dtype_of_char(to_string(character.get()));
}

PyRef numpy_dtype(DType t) {
  PyRef numpy = loaded_module("numpy");
  std::string name(info(t).numpy_name);
  return numpy ? PyRef::steal(PyObject_CallMethod(numpy.get(), "dtype", "s", name.c_str()))
               : PyRef();
}

}  // namespace cuvil::frontend
