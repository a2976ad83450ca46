// Scalar primitives (ops/scalar.def) as LLVM values at any vector width, and elements in memory.
// Used by every kernel emitter; NumPy's semantics to the letter, no instruction that may trap, no poison.
//
// In registers: bool is i1; f16 is a float that holds a value of f16 (each operation rounds to f16); all
// other types are themselves. A width of 1 is a scalar, not a vector of one element.
// In memory: bool is a byte 0 or 1, f16 its 16 bits.
#pragma once

#include "codegen/unit.h"
#include "ops/tape.h"

namespace cuvil::codegen {

class Expr {
 public:
  Expr(FunctionBuilder& f) : f_(f), u_(f.unit) {}

  llvm::Type* type(DType t, unsigned width) const;
  llvm::Value* constant(DType t, uint64_t bits, unsigned width);
  // Every primitive that is not a leaf (kLoad, kIndex, kDim, kAccumulator) or kCheck.
  // `operand` is the type of a (of b for kSelect).
  llvm::Value* emit(const ops::Inst& inst, DType operand, llvm::Value* a, llvm::Value* b,
                    llvm::Value* c, unsigned width);
  llvm::Value* cast(llvm::Value* v, DType from, DType to, unsigned width);
  llvm::Value* splat(llvm::Value* scalar, unsigned width);
  // 0, 1, ..., width - 1 plus `first`, as i64.
  llvm::Value* iota(llvm::Value* first, unsigned width);

  // combine() of all lanes, by halves.
  llvm::Value* fold(llvm::Value* v, unsigned width,
                    llvm::function_ref<llvm::Value*(llvm::Value*, llvm::Value*)> combine);
  // Lanes [first, first + count).
  llvm::Value* lanes(llvm::Value* v, unsigned first, unsigned count);

  // `width` adjacent elements; no alignment is assumed. With a mask, lanes that are off are neither read
  // nor written and are 0 in the result.
  llvm::Value* load(llvm::Value* address, DType t, unsigned width, llvm::Value* mask = nullptr);
  void store(llvm::Value* v, llvm::Value* address, DType t, unsigned width,
             llvm::Value* mask = nullptr);
  // Memory image of a register value, and back.
  llvm::Value* to_memory(llvm::Value* v, DType t, unsigned width);
  llvm::Value* from_memory(llvm::Value* v, DType t, unsigned width);
  llvm::Type* memory_type(DType t, unsigned width) const;

  llvm::Value* fma(llvm::Value* a, llvm::Value* b, llvm::Value* c);  // one rounding; target.has_fma
  // f32 -> the nearest f16, as a float.
  llvm::Value* round_f16(llvm::Value* v, unsigned width);

 private:
  llvm::Value* binary(const ops::Inst& inst, llvm::Value* a, llvm::Value* b, unsigned width);
  llvm::Value* divide(DType t, llvm::Value* a, llvm::Value* b, unsigned width, bool remainder);
  llvm::Value* shift(const ops::Inst& inst, llvm::Value* a, llvm::Value* b, unsigned width);
  llvm::Value* fmod(DType t, llvm::Value* a, llvm::Value* b, unsigned width);
  llvm::Function* fmod_function(bool is_double);
  llvm::Value* half_bits(llvm::Value* v, unsigned width);      // float -> i16
  llvm::Value* half_value(llvm::Value* bits, unsigned width);  // i16 -> float
  llvm::Value* float_to_int(llvm::Value* v, DType from, DType to, unsigned width);
  llvm::Value* truncate_checked(llvm::Value* v, bool is_double, unsigned bits, unsigned width);
  llvm::Value* double_to_half(llvm::Value* v, unsigned width);
  llvm::Value* fma_without_hardware(llvm::Value* a, llvm::Value* b, llvm::Value* c, unsigned width);
  llvm::Type* widen(llvm::Type* t, unsigned width) const;
  llvm::Value* integer(llvm::Type* t, uint64_t v) const;
  llvm::Value* real(llvm::Type* t, double v) const;

  FunctionBuilder& f_;
  Unit& u_;
};

// Instructions that one application of a tape comes to, roughly; a math function counts 30.
unsigned tape_weight(const ops::Tape& t);

}  // namespace cuvil::codegen
