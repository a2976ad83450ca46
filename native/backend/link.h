// Object file in, blob out: links with ORC's JITLink into one position-independent block of bytes.
#pragma once

#include <llvm/ADT/StringRef.h>
#include <llvm/Support/MemoryBuffer.h>

#include <cstdint>
#include <vector>

#include "artifact/format.h"
#include "support/error.h"

namespace cuvil::backend {

struct Blob {
  std::vector<uint8_t> bytes;
  uint64_t entry_offset = 0;
  std::vector<artifact::CodeSymbol> symbols;  // its functions
};

// InternalError naming the symbol if the object refers to anything outside itself, or in a way that
// depends on where it is loaded.
Result<Blob> link_blob(llvm::MemoryBufferRef object, llvm::StringRef entry);

}  // namespace cuvil::backend
