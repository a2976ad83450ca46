// Where the elements of a value lie in memory, as far as the graph decides it. Called by Builder (NumPy's
// order='K'), by the frontend for results and by tests.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/op.h"

namespace cuvil::ops {

// Byte strides of a densely packed buffer. `order`: axes from slow to fast; empty: C order.
ir::Shape dense_strides(ir::DimTable& dims, const ir::Shape& shape, DType dtype,
                        std::span<const uint8_t> order);

// The access of a value relative to the start of its buffer: strides of the input it is or views,
// or of the buffer it will be stored in (Value::order).
Access layout_access(ir::Graph& g, ir::ValueId v);

// Whether a value lies densely packed in C order, or with `fortran` in that of Fortran; what depends on sizes
// and strides becomes a predicate.
Result<bool> is_contiguous(Builder& b, ir::ValueId v, bool fortran);

// Axes of a value from slow to fast, as NumPy's K order sees them; empty: C order.
std::vector<uint8_t> layout_order(ir::Graph& g, ir::ValueId v);

// K order over several operands of rank <= rank(result), aligned at the last axis: an axis is moved out
// of C order only where the strides of the operands agree that it should be. `zero_is_free`: a zero
// stride says nothing (nditer); else only an axis of size 1 does (concatenate).
std::vector<uint8_t> keep_order(ir::Graph& g, std::span<const ir::ValueId> operands, size_t rank,
                                bool zero_is_free = true);

}  // namespace cuvil::ops
