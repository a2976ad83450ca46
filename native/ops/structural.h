// The structural ops, which frontend, passes and schedule know by name. Rows in control.cpp, create.cpp,
// movement.cpp. Attribute types in braces: i int64, D Shape (list of Dim), L list of int64, s string.
//
//   constant {bits: i}                        -> rank 0; bits of the dtype of its result
//   tensor_constant {data: s}                 -> raw bytes in C order
//   dim_value {dim: D[1]}                     -> rank 0, i64
//   iota {axis: i}                            -> i64: position along an axis of its result's shape
//   empty                                     -> a new cell, contents undefined
//   copy %x                                   -> a new cell with the contents of x
//   store %cell, %view, %value                -> next version of the cell; %view derived from %cell by
//                                                movement ops; value has the view's shape and dtype
//   reshape {shape: D}  transpose {perm: L}   expand_dims {axes: L}  squeeze {axes: L}
//   broadcast_to {shape: D}
//   slice {starts: D, steps: L, sizes: D}     -> one entry an axis; element k is start + k * step
//   concatenate %a, %b, ... {axis: i}
//   reduce_* %x {axes: L}                     -> reduced axes dropped
//   argmax/argmin %x {axes: L}                -> i64; axes has one entry, or all (flattened order)
//   matmul %a, %b                             -> [..., m, k] x [..., k, n], equal batch dims
//   cast %x                                   -> to its result's dtype
//   for %init... {symbol: i, begin: D[1], trip: D[1]} region(params: carried values; yields: next)
//   bind_dim %scalar {symbol: i}              -> no result; gives the internal symbol its value (rank 0, i64)
//   check {op: i (Predicate::Op), lhs: D[1], rhs: D[1], error: i (ErrorClass), message: s, remedy: s,
//          payload: D}                        -> no result; raises unless lhs op rhs
//   host_call %operands... {spec: i}          -> results as declared
//
// A pointwise op that may raise (Effect::kMayRaise, its body has a check) carries what it raises:
// {error: i (ErrorClass), message: s, remedy: s}.
#pragma once

#include "ir/graph.h"

namespace cuvil::ops::attr {
// Attribute keys, so that a typing mistake does not compile.
inline constexpr std::string_view kBits = "bits", kData = "data", kDim = "dim", kAxis = "axis",
                                  kShape = "shape", kPerm = "perm", kAxes = "axes",
                                  kStarts = "starts", kSteps = "steps", kSizes = "sizes",
                                  kSymbol = "symbol", kBegin = "begin", kTrip = "trip", kOp = "op",
                                  kLhs = "lhs", kRhs = "rhs", kError = "error",
                                  kMessage = "message", kRemedy = "remedy", kPayload = "payload",
                                  kSpec = "spec";
}  // namespace cuvil::ops::attr
