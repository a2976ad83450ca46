// NumPy 2's promotion (NEP 50) and ufunc type resolution. Called by build functions of pointwise rows.
#pragma once

#include <optional>
#include <span>

#include "ops/rows.h"

namespace cuvil::ops {

// An argument of an elementwise function before it has a common dtype.
struct Operand {
  ir::ValueId value;          // invalid while it is a static or run-time Python number
  DType dtype = DType::kF64;  // Python ints count as i64, floats as f64
  Weak weak = Weak::kNo;
  bool scalar = false;  // Python number or NumPy scalar
  std::optional<int64_t> integer;
  std::optional<BigInt> big;
  std::optional<double> real;
  std::optional<ir::Dim> dim;  // run-time Python int
};

Result<Operand> classify(Builder& b, const ArgValue& a);
ir::Shape shape_of(const Builder& b, const Operand& o);

DType promote(DType a, DType b);  // np.promote_types for real types
bool can_cast_safely(DType from, DType to);
bool can_cast_same_kind(DType from, DType to);
// np.result_type with weak Python numbers.
DType result_type(std::span<const Operand> operands);
DType from_numpy_char(char c);

// The operand as a value of dtype t. OverflowError if a Python int does not fit (`wrap`: wraps instead).
Result<ir::ValueId> materialise(Builder& b, const Operand& o, DType t, bool wrap = false);

struct Loop {
  DType input, output;
};
// The loop NumPy runs; TypeError with NumPy's text if there is none.
Result<Loop> resolve_loop(Builder& b, const OpInfo& op, std::string_view numpy_name,
                          std::span<const Operand> operands, std::optional<DType> dtype = {});

// A whole ufunc call: resolve, cast, broadcast, emit. The result is a scalar where its rank is 0.
Result<ArgValue> call_ufunc(Builder& b, std::string_view op, std::span<const ArgValue> operands,
                            std::optional<DType> dtype = {});

// The options of a ufunc row after its operands: out, where, casting, order, dtype, subok.
Result<std::optional<DType>> read_ufunc_options(Builder& b, const DialectRow& row, Args options);

// Build functions. Parameters of ufunc rows: operands, then out, where, casting, order, dtype, subok.
Result<ArgValue> build_ufunc(Builder& b, const DialectRow& row, Args args);
inline constexpr std::string_view kUnaryParams =
    "x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None, subok=True";
inline constexpr std::string_view kBinaryParams =
    "x1, x2, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None, subok=True";

// Python's own arithmetic, where all operands are Python numbers known only at run time.
bool all_python_numbers(Args args);

constexpr OpInfo pointwise(std::string_view name, int8_t arity, Ref (*body)(const BodyContext&),
                           std::string_view loops, std::string_view outputs, std::string_view doc,
                           bool recompute = false, uint8_t effects = ir::kPure) {
  OpInfo r;
  r.name = name;
  r.effects = effects;
  r.family = Family::kPointwise;
  r.arity = arity;
  r.body = body;
  r.loops = loops;
  r.outputs = outputs;
  r.recompute = recompute;
  r.doc = doc;
  return r;
}

// f16 and bf16 are computed in f32 and rounded once an op, as NumPy does.
inline Ref widen(Tape& t, Ref a) {
  return t.type(a) == DType::kF16 || t.type(a) == DType::kBF16 ? t.cast(DType::kF32, a) : a;
}
inline DType result_dtype(const BodyContext& c) { return c.graph.type(c.op.results[0]).dtype; }

}  // namespace cuvil::ops
