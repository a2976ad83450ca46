// Scalar semantics of the primitives on the host: exactly rounded conversions, one primitive, a whole tape.
// Called by Tape::push (folding), by passes/fold and by tests, for which it is the oracle.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "ops/tape.h"

namespace cuvil::ops {

// Conversions between a float and the bits of a float type, rounded once (half to even).
uint64_t float_bits(DType t, double v);
double float_value(DType t, uint64_t bits);

// Bits of any non-complex type hold the value in their low size_of(t) bytes; what is above is zero.
uint64_t truncate_bits(DType t, uint64_t bits);
// The value of an int or bool type as a 64-bit integer (sign- or zero-extended).
int64_t int_value(DType t, uint64_t bits);
// NumPy's astype. Floats out of the range of an int type give what x86-64 gives.
uint64_t cast_bits(DType to, DType from, uint64_t bits);

// One primitive that is not a leaf. `type` is the instruction's, `operand` that of its operand `a`
// (of b for kSelect). nullopt: not computable here (leaf, check, complex).
std::optional<uint64_t> evaluate(Prim p, DType type, DType operand, uint64_t imm, uint64_t a,
                                 uint64_t b, uint64_t c);

struct TapeInputs {
  std::span<const uint64_t> loads;         // bits, by input
  std::span<const int64_t> indices;        // by axis
  std::span<const int64_t> dims;           // by Dim id
  std::span<const uint64_t> accumulators;  // bits, by reduction
};
// The bits of `result`, or nullopt if the tape needs an input that is not there, or a check fired
// before the end of the tape (then *fired is its site). kMath is libm's, in double.
std::optional<uint64_t> interpret(const Tape& tape, Ref result, const TapeInputs& inputs,
                                  std::optional<uint32_t>* fired = nullptr);

}  // namespace cuvil::ops
