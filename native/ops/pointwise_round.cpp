// Rounding. Rows of numpy.* and ndarray.round.
#include <cmath>

#include "ops/layout.h"
#include "ops/promote.h"

namespace cuvil::ops {
namespace {

template <Prim p> Ref round_body(const BodyContext& c) {
  Tape& t = c.tape;
  Ref a = widen(t, c.operands[0]);
  if (!is_float(t.type(a))) return a;
  return t.cast(result_dtype(c), t.unary(p, a));
}

// np.fix(x, out=None)
Result<ArgValue> build_fix(Builder& b, const DialectRow& row, Args args) {
  CUVIL_CHECK(refuse_out(b, args[1], row.name));
  return call_ufunc(b, "trunc", args.first(1));
}

// np.round(a, decimals, out): scale, rint, scale back, as NumPy does (inexact and all).
Result<ArgValue> build_round(Builder& b, const DialectRow& row, Args args) {
  CUVIL_CHECK(refuse_out(b, args[2], row.name));
  int64_t decimals = 0;
  if (!args[1].missing_or_none()) {
    CUVIL_TRY(decimals, static_int(b, args[1], "decimals"));
  }
  CUVIL_TRY(TensorArg x, as_tensor(b, args[0]));
  const DType T = b.type(x.value).dtype;
  CUVIL_CHECK(require_real(b, T));
  if (is_int(T) && decimals >= 0) {
    if (b.type(x.value).rank() == 0) return ArgValue(TensorArg{x.value, Weak::kNo, true});
    return array(emit_copy(b, x.value, layout_order(b.g, x.value)));
  }
  const ArgValue one[] = {x};
  if (decimals == 0) return call_ufunc(b, "rint", one);
  if (is_bool(T))
    return b.error(
        ErrorClass::kTypeError,
        std::string("Cannot cast ufunc '") + (decimals > 0 ? "multiply" : "divide") +
            "' output from dtype('float64') to dtype('bool') with casting rule 'same_kind'",
        "convert to a float type first");
  const int64_t places = decimals < 0 ? -decimals : decimals;
  double scale = 1;  // NumPy's power_of_ten: exact up to 1e22, then pow
  for (int64_t k = 0; k < places && k <= 22; ++k) scale *= 10;
  if (places > 22) scale = std::pow(10.0, static_cast<double>(places));
  const ArgValue scaled_args[] = {x, scale};
  CUVIL_TRY(ArgValue scaled, call_ufunc(b, decimals > 0 ? "multiply" : "divide", scaled_args));
  CUVIL_TRY(ArgValue whole, call_ufunc(b, "rint", std::span(&scaled, 1)));
  const ArgValue back_args[] = {whole, scale};
  CUVIL_TRY(ArgValue r, call_ufunc(b, decimals > 0 ? "divide" : "multiply", back_args));
  if (!is_int(T)) return r;
  return scalar_if_rank0(b, b.cast(r.get<TensorArg>()->value, T));
}

constexpr std::string_view kAll = "?bBhHiIlLefd";
constexpr OpInfo kOps[] = {
    pointwise("floor", 1, round_body<Prim::kFloor>, kAll, "=", "towards -infinity", true),
    pointwise("ceil", 1, round_body<Prim::kCeil>, kAll, "=", "towards +infinity", true),
    pointwise("trunc", 1, round_body<Prim::kTrunc>, kAll, "=", "towards 0", true),
    pointwise("rint", 1, round_body<Prim::kRint>, "efd", "=", "to nearest, half to even", true),
};

constexpr DialectRow kRows[] = {
    {"numpy.floor", kUnaryParams, build_ufunc, "floor"},
    {"numpy.ceil", kUnaryParams, build_ufunc, "ceil"},
    {"numpy.trunc", kUnaryParams, build_ufunc, "trunc"},
    {"numpy.rint", kUnaryParams, build_ufunc, "rint"},
    {"numpy.fix", "x, out=None", build_fix},
    {"numpy.round", "a, decimals=0, out=None", build_round},
    {"numpy.around", "a, decimals=0, out=None", build_round},
    {"ndarray.round", "self, decimals=0, out=None", build_round},
};

}  // namespace

FamilyTable round_table() { return {kOps, kRows}; }

}  // namespace cuvil::ops
