// What kind of argument an object is (artifact::ArgSpec), and what is fixed about an array when code
// is made for it. The compiler sees the same through HostTools, so both sides agree.
#pragma once

#include "artifact/format.h"
#include "python/py.h"

namespace cuvil::python {

// Exactly ndarray or memmap: arrays whose behaviour is NumPy's own.
bool is_plain_array(PyObject* o);
PyTypeObject* memmap_type();

// False if the array's dtype is not one of Cuvil's (no indicator set).
bool array_spec(PyArrayObject* a, artifact::ArraySpec* out);
artifact::Layout layout_of(PyArrayObject* a);
bool is_aligned(PyArrayObject* a, int64_t item_size);
// Stride classes and memory order, for kStrided.
void stride_classes(PyArrayObject* a, artifact::ArraySpec* out);

// Fills `out` but for the shape. False with the indicator set (DTypeError, UnsupportedError) for
// arrays that Cuvil does not take; `name` is the parameter, for the message.
bool classify(PyObject* o, const std::string& name, artifact::ArgSpec* out);

}  // namespace cuvil::python
