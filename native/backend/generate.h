// Program in, machine code out. The only part of Cuvil that knows LLVM's code generators, in a library of
// its own that is opened when machine code is first asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/program.h"

namespace cuvil::backend {

struct CpuOptions {
  std::string cpu;         // "" for the host; else an LLVM CPU name ("x86-64-v3", "skylake-avx512")
  bool want_llvm = false;  // return texts
  bool want_asm = false;
};

struct Code {
  std::vector<uint8_t> blob;  // position independent, no outside symbol
  uint64_t entry_offset = 0;
  std::vector<artifact::CodeSymbol> symbols;
  uint32_t min_services_size = 0;
  std::string target;  // "x86_64:sapphirerapids:..." as it goes into the artifact
  std::string llvm_text, asm_text;
  std::vector<std::pair<std::string, double>> stages;  // "target", "emit", "codegen", "link": ms
};

Result<Code> generate_cpu(const schedule::Program& program, const CpuOptions& options);

}  // namespace cuvil::backend

// What libcuvil_backend.so exports; both libraries are of one build.
extern "C" {
__attribute__((visibility("default"))) const char* cuvil_backend_build_id();
// False: *error says why.
__attribute__((visibility("default"))) bool cuvil_backend_generate(
    const cuvil::schedule::Program* program, const cuvil::backend::CpuOptions* options,
    cuvil::backend::Code* code, cuvil::Error* error);
}
