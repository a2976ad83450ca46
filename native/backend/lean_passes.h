// LLVM IR to machine code with as few passes as good code allows. Called by generate.cpp.
#pragma once

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>

#include <memory>

#include "backend/machine.h"

namespace cuvil::backend {

// Code generation of one thread for one target. Its passes, buffer and context are made once and used for
// every compile: setting them up costs as much as compiling a small kernel.
class Backend {
 public:
  // Of the calling thread. The pointer is good until the thread's next call.
  static Result<Backend*> of(const Machine& machine);

  llvm::LLVMContext& context() { return context_; }
  // The object file; good until the next call. Consumes the module's functions.
  llvm::StringRef emit_object(llvm::Module& m);
  Result<std::string> emit_assembly(llvm::Module& m);

 private:
  explicit Backend(const Machine& m) : machine_(m), stream_(bytes_) {}
  bool prepare();

  const Machine& machine_;
  llvm::LLVMContext context_;
  llvm::SmallVector<char, 0> bytes_;
  llvm::raw_svector_ostream stream_;
  llvm::legacy::PassManager passes_;
  int compiles_ = 0;
};

}  // namespace cuvil::backend
