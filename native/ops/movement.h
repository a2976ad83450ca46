// Shared between movement files and other families: indexing and joining by value.
#pragma once

#include "ops/rows.h"

namespace cuvil::ops {

// Views (access maps) of the movement ops; in views.cpp.
bool reshape_view(ir::Graph&, const ir::Op&, const Access&, Access*);
bool transpose_view(ir::Graph&, const ir::Op&, const Access&, Access*);
bool expand_view(ir::Graph&, const ir::Op&, const Access&, Access*);
bool squeeze_view(ir::Graph&, const ir::Op&, const Access&, Access*);
bool broadcast_view(ir::Graph&, const ir::Op&, const Access&, Access*);
bool slice_view(ir::Graph&, const ir::Op&, const Access&, Access*);

// total / divisor where that is exact as polynomials.
std::optional<ir::Dim> exact_divide(ir::DimTable& dims, ir::Dim total, ir::Dim divisor);

// x[index]: basic indexing (ints, run-time ints, slices, None, Ellipsis); in indexing.cpp.
Result<ArgValue> index_tensor(Builder& b, const TensorArg& x, const ArgValue& index);
Result<ArgValue> build_getitem(Builder& b, const DialectRow& row, Args args);
// x[..., start:stop, ...] along one axis, clamped.
Result<ir::ValueId> slice_axis(Builder& b, ir::ValueId v, int64_t axis, const SliceArg& slice);
ir::ValueId flip_axes(Builder& b, ir::ValueId v, std::span<const int64_t> axes);

// reshape with at most one -1 (given as the constant -1); errors as NumPy's.
Result<ir::ValueId> reshape(Builder& b, ir::ValueId v, ir::Shape shape);
ir::ValueId flatten(Builder& b, ir::ValueId v);  // C order; a view where possible
Result<ir::ValueId> concatenate(Builder& b, std::vector<ir::ValueId> values, int64_t axis);

std::span<const DialectRow> joining_rows();  // joining.cpp: concatenate to tile

}  // namespace cuvil::ops
