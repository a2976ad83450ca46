// Program in, machine code out. The only part of Cuvil that knows LLVM.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/program.h"

namespace cuvil::codegen {

struct CpuOptions {
  std::string cpu;         // "" for the host; else an LLVM CPU name ("x86-64-v3", "skylake-avx512")
  bool want_llvm = false;  // return texts
  bool want_asm = false;
};

struct Code {
  std::vector<uint8_t> blob;  // position independent, no outside symbol
  uint64_t entry_offset = 0;
  uint32_t min_services_size = 0;
  std::string target;  // "x86_64:sapphirerapids:..." as it goes into the artifact and the key
  std::string llvm_text, asm_text;
  std::vector<std::pair<std::string, double>> stages;  // "emit", "passes", "codegen", "link": ms
};

Result<Code> generate_cpu(const schedule::Program& program, const CpuOptions& options);

// The text "x86_64:<cpu>:<vector features>" for the host or a named CPU.
std::string target_text(const std::string& cpu);

}  // namespace cuvil::codegen
