// Calls of Python functions from generated code: the service call_host, and the other services that
// need Python (signals, warnings).
#pragma once

#include "runtime/services.h"

namespace cuvil::python {

// Everything that runtime/ needs from Python.
runtime::PythonHooks python_hooks();

}  // namespace cuvil::python
