// LLVM IR to machine code with as few passes as good code allows. Called by codegen.cpp.
#pragma once

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>

#include <memory>

#include "codegen/target.h"

namespace cuvil::codegen {

// Code generation of one thread for one target. Its passes, buffer and context are made once and used for
// every compile: setting them up costs as much as compiling a small kernel.
class Backend {
 public:
  // Of the calling thread. The pointer is good until the thread's next call.
  static Result<Backend*> of(const Target& target);

  llvm::LLVMContext& context() { return context_; }
  // The object file; good until the next call. Consumes the module's functions.
  llvm::StringRef emit_object(llvm::Module& m);
  Result<std::string> emit_assembly(llvm::Module& m);

 private:
  explicit Backend(const Target& t) : target_(t), stream_(bytes_) {}
  bool prepare();

  const Target& target_;
  llvm::LLVMContext context_;
  llvm::SmallVector<char, 0> bytes_;
  llvm::raw_svector_ostream stream_;
  llvm::legacy::PassManager passes_;
  int compiles_ = 0;
};

}  // namespace cuvil::codegen
