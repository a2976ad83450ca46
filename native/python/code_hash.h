// The hash of a code object: what it does, not where it stands.
#pragma once

#include "artifact/hash.h"
#include "python/py.h"

namespace cuvil::python {

// Over bytecode, names, flags, constants by type and bits, and nested code; not over file names and
// line tables. Calls without an error indicator and leaves none.
artifact::Hash hash_code(PyObject* code);

}  // namespace cuvil::python
