// Runs the compiler on a thread of its own. Used by dispatch and for the texts of a specialisation.
#pragma once

#include "compiler/entry.h"
#include "python/py.h"

namespace cuvil::python {

// Opens the compiler library and runs it while the calling thread waits without the GIL. False with
// the indicator set.
bool run_compiler(const compiler::Request& request, compiler::Response* response);

// True on the thread that run_compiler made: code that it calls must not wait for a compile.
bool on_compile_thread();

}  // namespace cuvil::python
