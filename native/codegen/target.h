// What the CPU that code is generated for can do. Everything that emits code reads a Target; the machine
// that LLVM's code generators work with is backend/machine.h's.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

#include <string>

#include "support/error.h"

namespace cuvil::codegen {

inline constexpr const char* kTriple = "x86_64-unknown-linux-gnu";
inline constexpr const char* kDataLayout =
    "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128";

struct Target {
  std::string cpu;             // LLVM's name: "sapphirerapids", "x86-64-v3"
  std::string features;        // what is switched on or off beyond the CPU's own
  unsigned vector_bytes = 16;  // 64, 32 or 16
  unsigned vector_registers = 16;
  bool has_fma = false;
  bool has_f16c = false;   // float <-> half in one instruction
  bool has_masks = false;  // AVX-512 F, VL, BW, DQ: masked loads and stores of every type
  std::string text;        // "x86_64:sapphirerapids:avx512"
};

// A target from what `has` says of LLVM's feature names. UnsupportedError below x86-64-v2.
Result<Target> describe_target(std::string cpu, std::string features,
                               llvm::function_ref<bool(const char*)> has);

// This CPU, looked at once.
const Result<Target>& host_target();

}  // namespace cuvil::codegen
