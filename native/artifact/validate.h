// Ranges of everything in an artifact that indexes something else. Called by the reader, so that
// nothing behind it has to check again.
#pragma once

#include "artifact/format.h"

namespace cuvil::artifact {

inline constexpr size_t kMaxExprDepth = 64;  // operands waiting while an Expr is evaluated
inline constexpr size_t kMaxNesting = 32;    // of constants, of the result tree
inline constexpr uint32_t kMaxSlots = 1 << 16;

// `a` as read, blob empty; `blob_size` for the entry.
Result<> validate(const Artifact& a, uint64_t blob_size);

}  // namespace cuvil::artifact
