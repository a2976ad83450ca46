// The type of decorated functions: a callable that passes for the function it wraps.
#pragma once

#include "python/state.h"

namespace cuvil::python {

struct CompiledFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* dict;
  PyObject* weakrefs;
  State* state;  // owned
};

extern PyTypeObject CompiledFunctionType;

inline bool is_compiled_function(PyObject* o) { return Py_TYPE(o) == &CompiledFunctionType; }

// The plain function behind a compiled one (borrowed), or NULL without an indicator.
PyObject* wrapped_function(PyObject* o);

// Makes one around a plain function. NULL with the indicator set.
PyObject* new_compiled_function(std::unique_ptr<State> state);

}  // namespace cuvil::python
