// kReduce: folds of elements over some axes of an iteration space, then an epilogue.
#include "codegen/kernel.h"

namespace cuvil::codegen {

void emit_reduce(FunctionBuilder&, const schedule::Kernel&) {}

}  // namespace cuvil::codegen
