// Scalar semantics of the primitives on the host. Called by Tape::push, passes and tests.
#include "ops/interpret.h"

#include <cmath>
#include <type_traits>

namespace cuvil::ops {
namespace {

// A float format that fits in 16 bits: e exponent bits, m mantissa bits.
struct Small {
  int exponent, mantissa;
};
constexpr Small kHalf{5, 10}, kBrain{8, 7};

uint64_t to_small(Small f, double v) {
  uint64_t d = std::bit_cast<uint64_t>(v);
  uint64_t sign = (d >> 63) << (f.exponent + f.mantissa);
  uint64_t infinity = ((uint64_t{1} << f.exponent) - 1) << f.mantissa;
  int exp = static_cast<int>((d >> 52) & 0x7ff);
  uint64_t frac = d & ((uint64_t{1} << 52) - 1);
  if (exp == 0x7ff) {
    if (frac == 0) return sign | infinity;
    uint64_t payload = frac >> (52 - f.mantissa);
    return sign | infinity | (payload ? payload : 1);
  }
  if (exp == 0) return sign;  // zero, or a double's subnormal: far below half the least subnormal
  int bias = (1 << (f.exponent - 1)) - 1;
  int e = exp - 1023 + bias;
  uint64_t significand = frac | (uint64_t{1} << 52);
  int shift = 52 - f.mantissa;
  if (e <= 0) shift += 1 - e;  // subnormal result
  if (shift > 54) return sign;
  uint64_t kept = significand >> shift;
  uint64_t rest = significand & ((uint64_t{1} << shift) - 1);
  uint64_t half = uint64_t{1} << (shift - 1);
  if (rest > half || (rest == half && (kept & 1))) ++kept;
  // A carry out of the mantissa moves into the exponent by itself.
  uint64_t bits = e <= 0 ? kept : kept + (static_cast<uint64_t>(e - 1) << f.mantissa);
  return sign | (bits >= infinity ? infinity : bits);
}

double from_small(Small f, uint64_t bits) {
  uint64_t sign = (bits >> (f.exponent + f.mantissa)) & 1;
  int exp = static_cast<int>((bits >> f.mantissa) & ((1u << f.exponent) - 1));
  uint64_t frac = bits & ((uint64_t{1} << f.mantissa) - 1);
  int bias = (1 << (f.exponent - 1)) - 1;
  double v;
  if (exp == (1 << f.exponent) - 1) {
    uint64_t d = (uint64_t{0x7ff} << 52) | (frac << (52 - f.mantissa));
    v = std::bit_cast<double>(d);
  } else if (exp == 0) {
    v = std::ldexp(static_cast<double>(frac), 1 - bias - f.mantissa);
  } else {
    v = std::ldexp(static_cast<double>(frac | (uint64_t{1} << f.mantissa)),
                   exp - bias - f.mantissa);
  }
  return std::bit_cast<double>(std::bit_cast<uint64_t>(v) | (sign << 63));
}

float as_f32(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
double as_f64(uint64_t bits) { return std::bit_cast<double>(bits); }
uint64_t of(float v) { return std::bit_cast<uint32_t>(v); }
uint64_t of(double v) { return std::bit_cast<uint64_t>(v); }

// cvttsd2si: NaN and everything out of range give the least integer.
int64_t to_i64(double v) {
  return v >= -0x1p63 && v < 0x1p63 ? static_cast<int64_t>(v) : INT64_MIN;
}
int64_t to_i32(double v) {
  return v > -0x1p31 - 1 && v < 0x1p31 ? static_cast<int64_t>(v) : INT32_MIN;
}

uint64_t float_to_int(DType t, double v) {
  switch (size_of(t)) {
    case 1:
    case 2: return truncate_bits(t, static_cast<uint64_t>(to_i32(v)));
    case 4: return truncate_bits(t, static_cast<uint64_t>(is_signed(t) ? to_i32(v) : to_i64(v)));
    default:
      if (is_signed(t) || !(v >= 0x1p63)) return static_cast<uint64_t>(to_i64(v));
      return static_cast<uint64_t>(to_i64(v - 0x1p63)) ^ (uint64_t{1} << 63);
  }
}

template <class F> std::optional<uint64_t> float_op(Prim p, F a, F b, F c) {
  using U = std::conditional_t<sizeof(F) == 4, uint32_t, uint64_t>;
  constexpr U kSign = U{1} << (sizeof(F) * 8 - 1);
  switch (p) {
    case Prim::kAdd: return of(a + b);
    case Prim::kSub: return of(a - b);
    case Prim::kMul: return of(a * b);
    case Prim::kDiv: return of(a / b);
    case Prim::kRem: return of(std::fmod(a, b));
    case Prim::kNeg: return static_cast<U>(std::bit_cast<U>(a) ^ kSign);
    case Prim::kAbs: return static_cast<U>(std::bit_cast<U>(a) & ~kSign);
    case Prim::kSqrt: return of(std::sqrt(a));
    case Prim::kFloor: return of(std::floor(a));
    case Prim::kCeil: return of(std::ceil(a));
    case Prim::kTrunc: return of(std::trunc(a));
    case Prim::kRint: return of(std::nearbyint(a));
    case Prim::kCopySign:
      return static_cast<U>((std::bit_cast<U>(a) & ~kSign) | (std::bit_cast<U>(b) & kSign));
    case Prim::kFma: return of(std::fma(a, b, c));
    default: return std::nullopt;
  }
}

bool float_compare(Prim p, double a, double b) {
  switch (p) {
    case Prim::kEq: return a == b;
    case Prim::kNe: return a != b;
    case Prim::kLt: return a < b;
    default: return a <= b;
  }
}

bool int_compare(Prim p, DType t, uint64_t a, uint64_t b) {
  bool sign = is_signed(t);
  int64_t x = int_value(t, a), y = int_value(t, b);
  bool less = sign ? x < y : static_cast<uint64_t>(x) < static_cast<uint64_t>(y);
  switch (p) {
    case Prim::kEq: return x == y;
    case Prim::kNe: return x != y;
    case Prim::kLt: return less;
    default: return less || x == y;
  }
}

std::optional<uint64_t> int_op(Prim p, DType t, uint64_t a, uint64_t b) {
  const int width = is_bool(t) ? 1 : size_of(t) * 8;
  const bool sign = is_signed(t);
  const int64_t x = int_value(t, a), y = int_value(t, b);
  const auto ux = static_cast<uint64_t>(x), uy = static_cast<uint64_t>(y);
  auto fit = [&](uint64_t v) { return truncate_bits(t, v); };
  switch (p) {
    case Prim::kAdd: return fit(ux + uy);
    case Prim::kSub: return fit(ux - uy);
    case Prim::kMul: return fit(ux * uy);
    case Prim::kDiv:
      if (y == 0) return 0;
      if (!sign) return fit(ux / uy);
      return fit(y == -1 ? 0 - ux : static_cast<uint64_t>(x / y));
    case Prim::kRem:
      if (y == 0 || (sign && y == -1)) return 0;
      return fit(sign ? static_cast<uint64_t>(x % y) : ux % uy);
    case Prim::kNeg: return fit(0 - ux);
    case Prim::kAbs: return fit(sign && x < 0 ? 0 - ux : ux);
    case Prim::kAnd: return fit(ux & uy);
    case Prim::kOr: return fit(ux | uy);
    case Prim::kXor: return fit(ux ^ uy);
    case Prim::kShl: return uy >= static_cast<uint64_t>(width) ? 0 : fit(ux << uy);
    case Prim::kShr:
      if (uy >= static_cast<uint64_t>(width)) return fit(sign && x < 0 ? ~uint64_t{0} : 0);
      return fit(sign ? static_cast<uint64_t>(x >> uy) : ux >> uy);
    case Prim::kFloor:
    case Prim::kCeil:
    case Prim::kTrunc:
    case Prim::kRint: return a;
    default: return std::nullopt;
  }
}

double math(MathFn f, double x, double y) {
  switch (f) {
#define CUVIL_UNARY(name) \
  case MathFn::name: return std::name(x);
    CUVIL_UNARY(exp)
    CUVIL_UNARY(exp2)
    CUVIL_UNARY(expm1)
    CUVIL_UNARY(log)
    CUVIL_UNARY(log2)
    CUVIL_UNARY(log10)
    CUVIL_UNARY(log1p)
    CUVIL_UNARY(sin)
    CUVIL_UNARY(cos)
    CUVIL_UNARY(tan)
    CUVIL_UNARY(asin)
    CUVIL_UNARY(acos)
    CUVIL_UNARY(atan)
    CUVIL_UNARY(sinh)
    CUVIL_UNARY(cosh)
    CUVIL_UNARY(tanh)
    CUVIL_UNARY(asinh)
    CUVIL_UNARY(acosh)
    CUVIL_UNARY(atanh)
    CUVIL_UNARY(erf)
    CUVIL_UNARY(erfc)
    CUVIL_UNARY(cbrt)
#undef CUVIL_UNARY
    case MathFn::pow: return std::pow(x, y);
    case MathFn::atan2: return std::atan2(x, y);
    case MathFn::hypot: return std::hypot(x, y);
  }
  return 0;
}

}  // namespace

uint64_t float_bits(DType t, double v) {
  switch (t) {
    case DType::kF16: return to_small(kHalf, v);
    case DType::kBF16: return to_small(kBrain, v);
    case DType::kF32: return of(static_cast<float>(v));
    default: return of(v);
  }
}

double float_value(DType t, uint64_t bits) {
  switch (t) {
    case DType::kF16: return from_small(kHalf, bits);
    case DType::kBF16: return from_small(kBrain, bits);
    case DType::kF32: return as_f32(bits);
    default: return as_f64(bits);
  }
}

uint64_t truncate_bits(DType t, uint64_t bits) {
  if (is_bool(t)) return bits & 1;
  int width = size_of(t) * 8;
  return width >= 64 ? bits : bits & ((uint64_t{1} << width) - 1);
}

int64_t int_value(DType t, uint64_t bits) {
  int width = size_of(t) * 8;
  if (!is_signed(t) || width >= 64) return static_cast<int64_t>(truncate_bits(t, bits));
  int shift = 64 - width;
  return static_cast<int64_t>(bits << shift) >> shift;
}

uint64_t cast_bits(DType to, DType from, uint64_t bits) {
  if (to == from) return bits;
  if (is_float(from)) {
    double v = float_value(from, bits);
    if (is_bool(to)) return v != 0;
    if (is_float(to)) return float_bits(to, v);
    return float_to_int(to, v);
  }
  int64_t v = int_value(from, bits);
  if (is_bool(to)) return v != 0;
  if (!is_float(to)) return truncate_bits(to, static_cast<uint64_t>(v));
  bool negative_free = from == DType::kU64;
  if (to == DType::kF64)
    return of(negative_free ? static_cast<double>(static_cast<uint64_t>(v))
                            : static_cast<double>(v));
  float f = negative_free ? static_cast<float>(static_cast<uint64_t>(v)) : static_cast<float>(v);
  // To 16 bits through f32, as NumPy does; the first step is exact for everything finite there.
  return to == DType::kF32 ? of(f) : float_bits(to, f);
}

std::optional<uint64_t> evaluate(Prim p, DType type, DType operand, uint64_t imm, uint64_t a,
                                 uint64_t b, uint64_t c) {
  if (is_complex(type) || is_complex(operand)) return std::nullopt;
  switch (p) {
    case Prim::kLoad:
    case Prim::kIndex:
    case Prim::kDim:
    case Prim::kAccumulator:
    case Prim::kCheck: return std::nullopt;
    case Prim::kConst: return imm;
    case Prim::kSelect: return (a & 1) ? b : c;
    case Prim::kCast: return cast_bits(type, operand, a);
    case Prim::kBitcast: return a;
    case Prim::kEq:
    case Prim::kNe:
    case Prim::kLt:
    case Prim::kLe:
      if (is_float(operand))
        return float_compare(p, float_value(operand, a), float_value(operand, b));
      return int_compare(p, operand, a, b);
    case Prim::kMath:
      if (!is_float(type)) return std::nullopt;
      return float_bits(type,
                        math(static_cast<MathFn>(imm), float_value(type, a), float_value(type, b)));
    default: break;
  }
  if (!is_float(type)) return int_op(p, type, a, b);
  if (type == DType::kF64) return float_op<double>(p, as_f64(a), as_f64(b), as_f64(c));
  if (type == DType::kF32) return float_op<float>(p, as_f32(a), as_f32(b), as_f32(c));
  // 16 bits: the sign operations on bits (NaN keeps its payload), the rest in f32, rounded once more,
  // which is exact (24 >= 2 * 11 + 2).
  const uint64_t sign = 0x8000;
  if (p == Prim::kNeg) return a ^ sign;
  if (p == Prim::kAbs) return a & ~sign;
  if (p == Prim::kCopySign) return (a & ~sign) | (b & sign);
  if (p == Prim::kFma)
    return float_bits(type,
                      std::fma(float_value(type, a), float_value(type, b), float_value(type, c)));
  auto r = float_op<float>(p, static_cast<float>(float_value(type, a)),
                           static_cast<float>(float_value(type, b)), 0.0f);
  if (!r) return r;
  return float_bits(type, as_f32(*r));
}

std::optional<uint64_t> interpret(const Tape& tape, Ref result, const TapeInputs& inputs,
                                  std::optional<uint32_t>* fired) {
  std::vector<uint64_t> bits(tape.insts.size(), 0);
  auto arg = [&](Ref r) { return r.valid() ? bits[r.id] : 0; };
  for (size_t i = 0; i < tape.insts.size(); ++i) {
    const Inst& in = tape.insts[i];
    auto leaf = [&](auto span) -> std::optional<uint64_t> {
      if (in.imm >= span.size()) return std::nullopt;
      return static_cast<uint64_t>(span[in.imm]);
    };
    std::optional<uint64_t> v;
    switch (in.prim) {
      case Prim::kLoad: v = leaf(inputs.loads); break;
      case Prim::kIndex: v = leaf(inputs.indices); break;
      case Prim::kDim: v = leaf(inputs.dims); break;
      case Prim::kAccumulator: v = leaf(inputs.accumulators); break;
      case Prim::kCheck:
        if (arg(in.a) & 1) {
          if (fired) *fired = static_cast<uint32_t>(in.imm);
          return std::nullopt;
        }
        v = 0;
        break;
      default: {
        Ref typed = in.prim == Prim::kSelect ? in.b : in.a;
        v = evaluate(in.prim, in.type, typed.valid() ? tape.type(typed) : in.type, in.imm,
                     arg(in.a), arg(in.b), arg(in.c));
      }
    }
    if (!v) return std::nullopt;
    bits[i] = *v;
  }
  return bits[result.id];
}

}  // namespace cuvil::ops
