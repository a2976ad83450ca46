// Python objects as artifact constants and back, and equality by type and bits.
#pragma once

#include <optional>

#include "artifact/format.h"
#include "python/py.h"

namespace cuvil::python {

// The constant that an object is; nullopt if it is none (a list, an array, an instance).
std::optional<artifact::Const> to_const(PyObject* o);
// The object, a new one where it is not a singleton. NULL with the indicator set; a kQualified whose
// module is not loaded is a LookupError.
PyRef to_object(const artifact::Const& c);
// "module:qualname" through sys.modules, without importing. NULL without an indicator if not there.
PyRef resolve_qualified(std::string_view name);
// Whether the object is what "module:qualname" says by its own account: its name, and the package of its
// module (of a Python function: of its code). False for what was put in the place of another.
bool is_original(PyObject* o, std::string_view name);
// Same type and bits: True is not 1, -0.0 is not 0.0, NaN is NaN. Other objects: identity.
bool same_value(PyObject* a, PyObject* b);
// For messages: repr, at most about 60 characters.
std::string short_repr(PyObject* o);

}  // namespace cuvil::python
