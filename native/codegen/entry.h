// The function that the process calls: walks the program's statements. Called by codegen.cpp.
#pragma once

#include "codegen/unit.h"

namespace cuvil::codegen {

inline constexpr const char* kEntryName = "cuvil_entry";

// Emits the whole program into unit.module.
void emit_program(Unit& unit);

// Says what of a program this generator cannot compile: dtypes without arithmetic (bf16, complex).
Result<> check_supported(const schedule::Program& p, const Target& t);

}  // namespace cuvil::codegen
