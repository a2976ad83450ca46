// Elementary functions as inline LLVM IR: no libm, no call that could become one, no fast-math flag.
// The x86 and NVPTX code generators call emit_math wherever a kernel body applies a function.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "ops/tape.h"

namespace cuvil::codegen {

using ops::MathFn;  // the rows of ops/math.def

struct MathOptions {
  // Whether llvm.fma is one instruction on the target. If not, none is emitted.
  bool has_fma;
};

// Emits fn(x) or fn(x, y) at b's insertion point; y is read by pow, atan2 and hypot alone.
//
// x and y have one type: float or double, or a fixed vector of either. Every lane gives the bits
// that the scalar form gives, whatever the other lanes hold. Special values follow C99 Annex F.
//
// sin, cos and tan add control flow: a block for huge arguments that is entered if any lane needs
// it. b then points into the block where both paths have met. All other functions are branch-free.
llvm::Value* emit_math(MathFn fn, llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y,
                       const MathOptions& opt);

}  // namespace cuvil::codegen
