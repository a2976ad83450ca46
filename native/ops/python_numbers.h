// Arithmetic between Python numbers that are known only at run time: ints are dims, floats are weak f64.
// Called by operator rows and math rows when no array takes part.
#pragma once

#include "ops/promote.h"

namespace cuvil::ops {

// The result of `op` (a ufunc name) on Python numbers, as Python computes it: an int (Dim or int64_t),
// a weak float or a weak bool. Raises as Python does (ZeroDivisionError, OverflowError).
Result<ArgValue> python_operator(Builder& b, std::string_view op, Args args);

// operator.* rows: Python numbers among themselves, else the ufunc row.op.
Result<ArgValue> build_operator(Builder& b, const DialectRow& row, Args args);

// A Python number or scalar as f64 of rank 0.
Result<ir::ValueId> python_float(Builder& b, const ArgValue& a);
// `value`, unless `condition` (bool) is true: then raises.
ir::ValueId raise_if(Builder& b, ir::ValueId value, ir::ValueId condition, ErrorClass cls,
                     std::string message, std::string remedy = {});
// `value`, an f64, if an int of 64 bits holds its whole part: else raises as int(value) does, and `cls` for
// what is finite but too large.
ir::ValueId fits_int64(Builder& b, ir::ValueId value, ErrorClass cls, std::string message,
                       std::string remedy = {});
inline ArgValue weak_float(ir::ValueId v) { return TensorArg{v, Weak::kFloat, true}; }
inline ArgValue weak_bool(ir::ValueId v) { return TensorArg{v, Weak::kBool, true}; }

}  // namespace cuvil::ops
