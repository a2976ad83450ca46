// What the CPU that code is generated for can do, and LLVM's machine for it.
// Called by codegen.cpp once a compile; everything else reads the Target it returns.
#pragma once

#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

#include "support/error.h"

namespace cuvil::codegen {

struct Target {
  std::unique_ptr<llvm::TargetMachine> machine;
  std::string cpu;             // LLVM's name: "sapphirerapids", "x86-64-v3"
  std::string features;        // what is switched on or off beyond the CPU's own
  unsigned vector_bytes = 16;  // 64, 32 or 16
  unsigned vector_registers = 16;
  bool has_fma = false;
  bool has_f16c = false;   // float <-> half in one instruction
  bool has_masks = false;  // AVX-512 F, VL, BW, DQ: masked loads and stores of every type
  std::string text;        // "x86_64:sapphirerapids:avx512"
};

// The target of a CPU name ("" for the host), made once for each thread and name. UnsupportedError for
// a name that LLVM does not know or a CPU below x86-64-v2.
Result<const Target*> target_for(const std::string& cpu);

}  // namespace cuvil::codegen
