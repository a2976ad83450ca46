// A module of codegen's as code of the interpreter. Called by interpret.cpp.
#pragma once

#include <llvm/IR/Module.h>

#include "interpret/code.h"

namespace cuvil::interpret {

// nullptr if the module holds what the interpreter lacks.
std::unique_ptr<Code> translate(const llvm::Module& module, llvm::StringRef entry,
                                const Level& level);

}  // namespace cuvil::interpret
