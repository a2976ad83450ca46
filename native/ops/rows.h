// What build functions of dialect rows share: reading arguments, checks, common results.
#pragma once

#include <string>
#include <vector>

#include "ops/op.h"

namespace cuvil::ops {

using Args = std::span<const ArgValue>;

// "(2,3)", "(3,)": as NumPy prints shapes in its messages; symbols by their value in this call.
std::string shape_text(Builder& b, const ir::Shape& shape);
std::string dim_text(Builder& b, ir::Dim d);

// A row's result: rank 0 makes a NumPy scalar, as ufuncs and reductions do.
inline ArgValue scalar_if_rank0(Builder& b, ir::ValueId v) {
  return TensorArg{v, Weak::kNo, b.type(v).rank() == 0};
}
inline ArgValue array(ir::ValueId v) { return TensorArg{v, Weak::kNo, false}; }
// As `from` was: methods of scalars give scalars, methods of 0-d arrays give 0-d arrays.
inline ArgValue like(Builder& b, const TensorArg& from, ir::ValueId v) {
  return TensorArg{v, Weak::kNo, from.scalar && b.type(v).rank() == 0};
}

// np.asarray: a tensor, a number (bool, int64, float64) or a nested list of numbers and tensors.
Result<TensorArg> as_tensor(Builder& b, const ArgValue& a);
// DTypeError for element types that the native ops do not compute in (complex, bfloat16).
Result<> require_real(Builder& b, DType t);

// A dtype argument: DType, or a NumPy name ("float32", "f4", "d"); `otherwise` if missing or None.
Result<DType> dtype_or(Builder& b, const ArgValue& a, DType otherwise);
std::optional<DType> dtype_from_text(std::string_view text);

Result<bool> bool_or(Builder& b, const ArgValue& a, bool otherwise, std::string_view what);
// A static int; a run-time int (Dim) is fixed to its value in this call.
Result<int64_t> static_int(Builder& b, const ArgValue& a, std::string_view what);
// A static or run-time int as a Dim.
Result<ir::Dim> dim_of(Builder& b, const ArgValue& a, std::string_view what);
// An int or a tuple/list of ints.
Result<std::vector<int64_t>> static_ints(Builder& b, const ArgValue& a, std::string_view what);
Result<ir::Shape> dims_of(Builder& b, const ArgValue& a, std::string_view what);

// AxisError as NumPy's; `prefix` as NumPy's msg_prefix ("axis1").
Result<int64_t> normalise_axis(Builder& b, int64_t axis, size_t rank, std::string_view prefix = {});
// None: all axes; sorted, without repetition (ValueError).
Result<std::vector<int64_t>> normalise_axes(Builder& b, const ArgValue& axis, size_t rank);

// UnsupportedError unless `out` is missing or None and `where` missing or True.
Result<> refuse_out(Builder& b, const ArgValue& out, std::string_view name);
Result<> refuse_where(Builder& b, const ArgValue& where, std::string_view name);
// order: only 'C', 'K' and 'A' where the value allows it.
Result<> require_c_order(Builder& b, const ArgValue& order, std::string_view name);

// Holds `lhs op rhs` or raises: known facts are used; a relation of caller-bound symbols is decided for
// this call and recorded; else a `check` op is emitted. {k} in the message is payload[k].
Result<> require(Builder& b, artifact::Predicate::Op op, ir::Dim lhs, ir::Dim rhs, ErrorClass cls,
                 std::string message, std::string remedy, ir::Shape payload);

// Emits a movement op (see structural.h), or nothing where it would change nothing.
ir::ValueId emit_transpose(Builder& b, ir::ValueId v, std::vector<int64_t> perm);
ir::ValueId emit_reshape(Builder& b, ir::ValueId v, ir::Shape shape);
ir::ValueId emit_expand(Builder& b, ir::ValueId v,
                        std::vector<int64_t> axes);  // axes of the result
ir::ValueId emit_squeeze(Builder& b, ir::ValueId v, std::vector<int64_t> axes);
ir::ValueId emit_slice(Builder& b, ir::ValueId v, ir::Shape starts, std::vector<int64_t> steps,
                       ir::Shape sizes);
ir::ValueId emit_reduce(Builder& b, std::string_view op, ir::ValueId v, std::vector<int64_t> axes);
// A fresh cell with the contents of v; `order`: memory order, empty for C.
ir::ValueId emit_copy(Builder& b, ir::ValueId v, std::vector<uint8_t> order = {});
// A fresh cell of `shape` filled with `scalar`; rank 0: the scalar itself.
ir::ValueId emit_full(Builder& b, ir::ValueId scalar, const ir::Shape& shape);
// A pointwise op on operands that are cast already; broadcasts them.
Result<ir::ValueId> emit_pointwise(Builder& b, std::string_view op,
                                   std::vector<ir::ValueId> operands, DType result,
                                   std::vector<ir::Attribute> attributes = {});

}  // namespace cuvil::ops
