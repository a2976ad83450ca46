// Opens libcuvil_compiler.so, once, at the first miss of the process. Used by python/dispatch.
#pragma once

#include <string>

#include "compiler/entry.h"
#include "support/error.h"

namespace cuvil::runtime {

using CompileFunction = decltype(&cuvil_compile);

// The compiler library at `path` (""; beside this shared object). An InternalError if it is missing or
// was built from other sources than this binary. Failures are tried again at the next call.
Result<CompileFunction> open_compiler(const std::string& path);

}  // namespace cuvil::runtime
