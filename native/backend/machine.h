// LLVM's machine for a CPU, and what it can do. Called by generate.cpp once a compile.
#pragma once

#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

#include "codegen/target.h"

namespace cuvil::backend {

struct Machine {
  codegen::Target target;
  std::unique_ptr<llvm::TargetMachine> llvm;
};

// The machine of a CPU name ("" for the host), made once for each thread and name. UnsupportedError for
// a name that LLVM does not know or a CPU below x86-64-v2.
Result<const Machine*> machine_for(const std::string& cpu);

}  // namespace cuvil::backend
