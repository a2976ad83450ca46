// The text form of CIR, shared by printer.cpp and parser.cpp.
//
//   symbol n = shape(0, 0) range [2, inf] example 7
//   symbol i = internal range [0, inf]
//   predicate n <= 9
//   host 0 = "numpy.linalg.solve" source 3 (operand 0 f64 2, operand 1 f64 1)
//   func @f(%x: f32[n, 128] input(0), %s: f64[] scalar(0)) {
//     %0 = matmul %x, %w : f32[n, 64] loc(0:8:23-8:30)
//     %1 = for %0 {symbol = 1, begin = dims[0], trip = dims[n]} : f32[n, 64] {
//       ^(%2: f32[n, 64])
//       %3 = add %2, %2 : f32[n, 64]
//       yield %3
//     }
//     return %1 array, view(0) %x array
//   }
//
// Attributes are {key = value}: 3, real 0x1p-1, f32, [1, 2], dims[n, 2], "text". An input that is not a
// plain C-ordered array says so: input(0, f), input(0, strided[other, unit] order[0, 1]), then flags
// capture, readonly, misaligned, numpy_scalar.
#pragma once

#include <array>
#include <string_view>

#include "artifact/format.h"

namespace cuvil::ir::text {

inline constexpr std::array<std::string_view, 3> kStrideNames = {"zero", "unit", "other"};
inline constexpr std::array<std::string_view, 4> kSymbolKinds = {"shape", "stride", "scalar",
                                                                 "internal"};
inline constexpr std::array<std::string_view, 4> kPredicates = {"==", "!=", "<", "<="};
inline constexpr std::array<std::string_view, 5> kForms = {"array", "numpy_scalar", "py_int",
                                                           "py_float", "py_bool"};

}  // namespace cuvil::ir::text
