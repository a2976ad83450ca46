// Runs a program without machine code: the module that LLVM would compile is interpreted as it is, so that
// both give the same bits. Preparing takes a hundredth of the time that compiling takes; running takes 3 to
// 30 times as long. For the first calls of a function, while its machine code is being made.
#pragma once

#include <memory>

#include "artifact/abi.h"
#include "codegen/target.h"
#include "schedule/program.h"

namespace cuvil::interpret {

struct Code;
struct Release {
  void operator()(const Code* c) const;
};
using CodePtr = std::unique_ptr<const Code, Release>;

struct Prepared {
  CodePtr code;  // null: the program or this CPU needs what the interpreter lacks
  uint32_t min_services_size = 0;
  size_t instructions = 0;  // of LLVM's: what compiling will cost
};

// An Error for what no code can be made of: the compiler's own refusals.
Result<Prepared> prepare(const schedule::Program& program, const codegen::Target& target);

// As an entry (artifact/abi.h).
int32_t run(const Code& code, const CuvilServices* services, CuvilCall* call);

}  // namespace cuvil::interpret
