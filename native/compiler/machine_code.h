// Opens the backend library and has machine code made. Called by entry.cpp.
#pragma once

#include "backend/generate.h"

namespace cuvil::compiler {

// InternalError if the library beside this one cannot be opened or is of another build.
Result<backend::Code> machine_code(const schedule::Program& program,
                                   const backend::CpuOptions& options);

}  // namespace cuvil::compiler
