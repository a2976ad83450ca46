// The function that the process calls: walks the program's statements. Called by backend/generate.cpp
// and interpret/.
#pragma once

#include "codegen/unit.h"

namespace cuvil::codegen {

inline constexpr const char* kEntryName = "cuvil_entry";

// UnsupportedError for dtypes without arithmetic (bf16, complex).
Result<> check_supported(const schedule::Program& p, const Target& t);

// Emits the whole program into an empty module and returns how many bytes of CuvilServices it needs.
// Checks it first.
Result<uint32_t> emit_module(const schedule::Program& p, const Target& t, llvm::Module& module);

}  // namespace cuvil::codegen
