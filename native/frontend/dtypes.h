// Cuvil's element types and NumPy's dtype objects. Used by the interpreter.
#pragma once

#include <optional>
#include <string>

#include "frontend/py.h"
#include "support/dtype.h"

namespace cuvil::frontend {

// From NumPy's type character ("f", "l", "q").
std::optional<DType> dtype_of_char(const std::string& character);
// From anything np.dtype() accepts that names one of Cuvil's dtypes; nullopt without an indicator.
std::optional<DType> dtype_of(PyObject* object);
// np.dtype(t); NULL with the indicator set.
PyRef numpy_dtype(DType t);

}  // namespace cuvil::frontend
