// Scalar primitives and casts of every type, vector and scalar, against C++ on the same machine.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "harness.h"

namespace cuvil::backend::testing {
namespace {

using ops::Prim;
using schedule::Kernel;

class Primitives : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Levels, Primitives, ::testing::ValuesIn(cpu_levels()), [](const auto& i) {
  std::string s = i.param.empty() ? "host" : i.param;
  for (char& c : s)
    if (c == '-') c = '_';
  return s;
});

// Interesting bit patterns of a type, then random ones; `n` in all.
std::vector<uint64_t> patterns(DType t, size_t n, uint32_t seed) {
  std::vector<uint64_t> out;
  const unsigned bits = size_of(t) * 8u;
  const uint64_t mask = bits == 64 ? ~0ull : (1ull << bits) - 1;
  auto real = [&](double v) {
    if (t == DType::kF64) out.push_back(std::bit_cast<uint64_t>(v));
    if (t == DType::kF32) out.push_back(std::bit_cast<uint32_t>(static_cast<float>(v)));
    if (t == DType::kF16) out.push_back(half_from_double(v));
  };
  if (t == DType::kBool) {
    for (size_t i = 0; i < n; ++i) out.push_back((i * 7 + seed) % 3 == 0);
    return out;
  }
  if (is_float(t)) {
    const double inf = std::numeric_limits<double>::infinity();
    for (double v : {0.0,
                     -0.0,
                     1.0,
                     -1.0,
                     0.5,
                     -0.5,
                     1.5,
                     2.5,
                     -2.5,
                     3.999,
                     255.0,
                     255.5,
                     256.0,
                     32767.5,
                     32768.0,
                     65504.0,
                     65519.0,
                     65520.0,
                     2147483647.0,
                     2147483648.0,
                     -2147483648.0,
                     -2147483649.0,
                     4294967295.0,
                     4294967296.0,
                     9223372036854775807.0,
                     -9223372036854775808.0,
                     1.8446744073709552e19,
                     1e30,
                     -1e30,
                     6e-8,
                     5.96e-8,
                     2.98e-8,
                     1e-40,
                     1e-310,
                     inf,
                     -inf,
                     std::nan("")})
      real(v);
    // Ties of f64 -> f16 that rounding through f32 gets wrong.
    if (t == DType::kF64)
      for (double v : {1.0 + 0x1p-11 + 0x1p-40, 1.0 + 0x1p-11 - 0x1p-40,
                       1.0 + 3 * 0x1p-11 - 0x1p-50, 0x1p-25 + 0x1p-70, 0x1p-25})
        for (double s : {1.0, -1.0}) real(s * v);
  } else {
    for (int64_t v : {0ll, 1ll, -1ll, 2ll, -2ll, 7ll, -7ll, 127ll, 128ll, -128ll, 255ll, 32767ll,
                      -32768ll, 2147483647ll, -2147483648ll, INT64_MAX - 0ll, INT64_MIN + 0ll})
      out.push_back(static_cast<uint64_t>(v) & mask);
  }
  std::mt19937_64 g(seed);
  while (out.size() < n) {
    uint64_t v = g();
    if (is_float(t) && out.size() % 2) {  // of ordinary size
      real(std::ldexp(static_cast<double>(static_cast<int64_t>(v)), -60 + static_cast<int>(v % 7)));
    } else {
      out.push_back((is_int(t) && out.size() % 2 ? v % 97 : v) & mask);
    }
  }
  return out;
}

Array array_of(DType t, const std::vector<uint64_t>& bits) {
  Array a = make_array(t, {static_cast<int64_t>(bits.size())});
  for (size_t i = 0; i < bits.size(); ++i)
    memcpy(a.at(static_cast<int64_t>(i)), &bits[i], size_of(t));
  return a;
}

uint64_t bits_at(Array& a, int64_t i) {
  uint64_t v = 0;
  memcpy(&v, a.at(i), size_of(a.dtype));
  return v;
}

// Applies body to arrays elementwise.
Array apply(const std::string& cpu, std::vector<Array*> in, DType out_type,
            const std::function<ops::Ref(ops::Tape&, std::vector<ops::Ref>)>& body) {
  Runner r;
  r.cpu = cpu;
  int64_t n = in[0]->shape[0];
  std::vector<BufferId> ids;
  for (Array* a : in) ids.push_back(r.argument(*a));
  BufferId out = r.result(out_type, r.shape({n}));
  Kernel k = r.kernel(Kernel::Kind::kMap, r.shape({n}));
  std::vector<ops::Ref> loads;
  for (size_t i = 0; i < ids.size(); ++i) {
    k.loads.push_back(r.access(ids[i], {0}));
    loads.push_back(k.tape.load(in[i]->dtype, static_cast<uint32_t>(i)));
  }
  k.stores = {{body(k.tape, loads), r.access(out, {0})}};
  r.push(std::move(k));
  EXPECT_EQ(r.run(), 0);
  return r.output();
}

constexpr DType kAll[] = {DType::kBool, DType::kI8,  DType::kI16, DType::kI32,
                          DType::kI64,  DType::kU8,  DType::kU16, DType::kU32,
                          DType::kU64,  DType::kF16, DType::kF32, DType::kF64};

// The value of a pattern as long double, exact for every type.
long double value_of(DType t, uint64_t bits) {
  Array one = array_of(t, {bits});
  if (t == DType::kI64) return static_cast<int64_t>(bits);
  if (t == DType::kU64) return bits;
  return one.number(0);
}

template <class I> uint64_t hardware(double v, bool is_float32) {
  if constexpr (sizeof(I) == 4) {
    if (!(v > -2147483649.0 && v < 2147483648.0)) return 0x80000000u;
    return static_cast<uint32_t>(static_cast<int32_t>(v));
  } else {
    (void)is_float32;
    if (!(v >= -0x1p63 && v < 0x1p63)) return 0x8000000000000000ull;
    return static_cast<uint64_t>(static_cast<int64_t>(v));
  }
}

uint64_t cast_expected(DType from, DType to, uint64_t bits) {
  const long double v = value_of(from, bits);
  if (to == DType::kBool) return v != 0;
  if (is_float(to)) {
    if (to == DType::kF64) return std::bit_cast<uint64_t>(static_cast<double>(v));
    if (to == DType::kF32) return std::bit_cast<uint32_t>(static_cast<float>(v));
    if (is_float(from)) return half_from_double(static_cast<double>(v));
    return half_from_double(static_cast<float>(v));
  }
  const unsigned width = size_of(to) * 8u;
  const uint64_t mask = width == 64 ? ~0ull : (1ull << width) - 1;
  if (!is_float(from)) return bits & mask & (is_signed(from) ? ~0ull : ~0ull);
  const auto d = static_cast<double>(v);
  switch (to) {
    case DType::kI64: return hardware<int64_t>(d, false);
    case DType::kU64:
      return d >= 0x1p63 ? hardware<int64_t>(d - 0x1p63, false) ^ (1ull << 63)
                         : hardware<int64_t>(d, false);
    case DType::kU32:
      return d >= 0x1p31 ? hardware<int32_t>(d - 0x1p31, false) ^ 0x80000000u
                         : hardware<int32_t>(d, false);
    default: return hardware<int32_t>(d, false) & mask;
  }
}

TEST_P(Primitives, EveryCast) {
  for (DType from : kAll)
    for (DType to : kAll) {
      Array x = array_of(from, patterns(from, 203, 1));
      Array y = apply(GetParam(), {&x}, to,
                      [&](ops::Tape& t, std::vector<ops::Ref> in) { return t.cast(to, in[0]); });
      for (int64_t i = 0; i < x.count(); ++i) {
        uint64_t bits = bits_at(x, i);
        if (is_int(from) && is_signed(from)) {
          unsigned w = size_of(from) * 8u;
          if (w < 64 && (bits >> (w - 1)) & 1) bits |= ~0ull << w;
        }
        uint64_t want = cast_expected(from, to, bits), got = bits_at(y, i);
        if (is_float(to) && std::isnan(static_cast<double>(value_of(from, bits)))) {
          ASSERT_TRUE(std::isnan(y.number(i)));
          continue;
        }
        ASSERT_EQ(got, want) << info(from).name << " " << std::hex << bits << " -> "
                             << info(to).name;
      }
    }
}

template <class T> uint64_t to_bits(T v) {
  uint64_t out = 0;
  memcpy(&out, &v, sizeof v);
  return out;
}

template <class T> uint64_t integer_op(Prim p, T a, T b) {
  using U = std::make_unsigned_t<T>;
  using W = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  constexpr int bits = sizeof(T) * 8;
  switch (p) {
    case Prim::kAdd: return to_bits(static_cast<T>(static_cast<U>(a) + static_cast<U>(b)));
    case Prim::kSub: return to_bits(static_cast<T>(static_cast<U>(a) - static_cast<U>(b)));
    case Prim::kMul:
      return to_bits(static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)));
    case Prim::kDiv:
      if (b == 0) return 0;
      if (std::is_signed_v<T> && b == static_cast<T>(-1))
        return to_bits(static_cast<T>(U{0} - static_cast<U>(a)));
      return to_bits(static_cast<T>(W{a} / W{b}));
    case Prim::kRem:
      if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return 0;
      return to_bits(static_cast<T>(W{a} % W{b}));
    case Prim::kShl:
      return static_cast<U>(b) >= bits ? 0 : to_bits(static_cast<T>(static_cast<uint64_t>(a) << b));
    case Prim::kShr:
      if (static_cast<U>(b) >= bits)
        return std::is_signed_v<T> && a < 0 ? to_bits(static_cast<T>(-1)) : 0;
      return to_bits(static_cast<T>(a >> b));
    case Prim::kAnd: return to_bits(static_cast<T>(a & b));
    case Prim::kOr: return to_bits(static_cast<T>(a | b));
    case Prim::kXor: return to_bits(static_cast<T>(a ^ b));
    default: return 0;
  }
}

uint64_t integer_op(DType t, Prim p, uint64_t a, uint64_t b) {
  switch (t) {
    case DType::kI8: return integer_op<int8_t>(p, static_cast<int8_t>(a), static_cast<int8_t>(b));
    case DType::kI16:
      return integer_op<int16_t>(p, static_cast<int16_t>(a), static_cast<int16_t>(b));
    case DType::kI32:
      return integer_op<int32_t>(p, static_cast<int32_t>(a), static_cast<int32_t>(b));
    case DType::kI64:
      return integer_op<int64_t>(p, static_cast<int64_t>(a), static_cast<int64_t>(b));
    case DType::kU8:
      return integer_op<uint8_t>(p, static_cast<uint8_t>(a), static_cast<uint8_t>(b));
    case DType::kU16:
      return integer_op<uint16_t>(p, static_cast<uint16_t>(a), static_cast<uint16_t>(b));
    case DType::kU32:
      return integer_op<uint32_t>(p, static_cast<uint32_t>(a), static_cast<uint32_t>(b));
    default: return integer_op<uint64_t>(p, a, b);
  }
}

TEST_P(Primitives, IntegerArithmetic) {
  for (DType t : kAll) {
    if (!is_int(t)) continue;
    // Every pair of the interesting ones, and random pairs.
    std::vector<uint64_t> some = patterns(t, 40, 3), a, b;
    for (uint64_t x : some)
      for (uint64_t y : some) {
        a.push_back(x);
        b.push_back(y);
      }
    a.push_back(some[2]);  // an odd count: the tail too
    b.push_back(some[1]);
    Array x = array_of(t, a), y = array_of(t, b);
    for (Prim p : {Prim::kAdd, Prim::kSub, Prim::kMul, Prim::kDiv, Prim::kRem, Prim::kShl,
                   Prim::kShr, Prim::kAnd, Prim::kOr, Prim::kXor}) {
      Array z = apply(GetParam(), {&x, &y}, t, [&](ops::Tape& tape, std::vector<ops::Ref> in) {
        return tape.binary(p, in[0], in[1]);
      });
      const uint64_t mask = size_of(t) == 8 ? ~0ull : (1ull << (size_of(t) * 8)) - 1;
      for (int64_t i = 0; i < x.count(); ++i)
        ASSERT_EQ(bits_at(z, i), integer_op(t, p, bits_at(x, i), bits_at(y, i)) & mask)
            << info(t).name << " prim " << static_cast<int>(p) << " of " << x.number(i) << ", "
            << y.number(i);
    }
    for (Prim p : {Prim::kEq, Prim::kNe, Prim::kLt, Prim::kLe}) {
      Array z = apply(
          GetParam(), {&x, &y}, DType::kBool,
          [&](ops::Tape& tape, std::vector<ops::Ref> in) { return tape.compare(p, in[0], in[1]); });
      for (int64_t i = 0; i < x.count(); ++i) {
        long double u = x.dtype == DType::kI64
                            ? static_cast<long double>(static_cast<int64_t>(bits_at(x, i)))
                            : value_of(t, bits_at(x, i));
        long double v = x.dtype == DType::kI64
                            ? static_cast<long double>(static_cast<int64_t>(bits_at(y, i)))
                            : value_of(t, bits_at(y, i));
        bool want = p == Prim::kEq   ? u == v
                    : p == Prim::kNe ? u != v
                    : p == Prim::kLt ? u < v
                                     : u <= v;
        ASSERT_EQ(z.number(i), want);
      }
    }
  }
}

void floats(const std::string& cpu, DType t) {
  std::vector<uint64_t> some = patterns(t, 60, 5), a, b;
  for (uint64_t x : some)
    for (uint64_t y : some) {
      a.push_back(x);
      b.push_back(y);
    }
  Array x = array_of(t, a), y = array_of(t, b);
  auto same = [&](Array& z, int64_t i, double want, const char* what) {
    uint64_t bits = t == DType::kF64   ? std::bit_cast<uint64_t>(want)
                    : t == DType::kF32 ? std::bit_cast<uint32_t>(static_cast<float>(want))
                                       : half_from_double(want);
    if (std::isnan(want))
      ASSERT_TRUE(std::isnan(z.number(i)))
          << what << "(" << x.number(i) << ", " << y.number(i) << ")";
    else
      ASSERT_EQ(bits_at(z, i), bits) << info(t).name << " " << what << "(" << x.number(i) << ", "
                                     << y.number(i) << ") gave " << z.number(i) << ", not " << want;
  };
  struct Binary {
    Prim p;
    const char* name;
    double (*f)(double, double);
    float (*g)(float, float);
  };
  const Binary binaries[] = {
      {Prim::kAdd, "add", [](double p, double q) { return p + q; },
       [](float p, float q) { return p + q; }},
      {Prim::kSub, "sub", [](double p, double q) { return p - q; },
       [](float p, float q) { return p - q; }},
      {Prim::kMul, "mul", [](double p, double q) { return p * q; },
       [](float p, float q) { return p * q; }},
      {Prim::kDiv, "div", [](double p, double q) { return p / q; },
       [](float p, float q) { return p / q; }},
      {Prim::kRem, "rem", [](double p, double q) { return std::fmod(p, q); },
       [](float p, float q) { return std::fmod(p, q); }},
      {Prim::kCopySign, "copysign", [](double p, double q) { return std::copysign(p, q); },
       [](float p, float q) { return std::copysign(p, q); }}};
  for (const Binary& o : binaries) {
    Array z = apply(cpu, {&x, &y}, t, [&](ops::Tape& tape, std::vector<ops::Ref> in) {
      return tape.binary(o.p, in[0], in[1]);
    });
    for (int64_t i = 0; i < x.count(); ++i) {
      double p = x.number(i), q = y.number(i);
      if (o.p == Prim::kCopySign && (std::isnan(p) || std::isnan(q))) continue;
      same(z, i,
           t == DType::kF64
               ? o.f(p, q)
               : static_cast<double>(o.g(static_cast<float>(p), static_cast<float>(q))),
           o.name);
    }
  }
  struct Unary {
    Prim p;
    const char* name;
    double (*f)(double);
    float (*g)(float);
  };
  const Unary unaries[] = {
      {Prim::kNeg, "neg", [](double v) { return -v; }, [](float v) { return -v; }},
      {Prim::kAbs, "abs", [](double v) { return std::fabs(v); },
       [](float v) { return std::fabs(v); }},
      {Prim::kSqrt, "sqrt", [](double v) { return std::sqrt(v); },
       [](float v) { return std::sqrt(v); }},
      {Prim::kFloor, "floor", [](double v) { return std::floor(v); },
       [](float v) { return std::floor(v); }},
      {Prim::kCeil, "ceil", [](double v) { return std::ceil(v); },
       [](float v) { return std::ceil(v); }},
      {Prim::kTrunc, "trunc", [](double v) { return std::trunc(v); },
       [](float v) { return std::trunc(v); }},
      {Prim::kRint, "rint", [](double v) { return std::rint(v); },
       [](float v) { return std::rint(v); }}};
  for (const Unary& o : unaries) {
    Array z = apply(cpu, {&x}, t, [&](ops::Tape& tape, std::vector<ops::Ref> in) {
      return tape.unary(o.p, in[0]);
    });
    for (int64_t i = 0; i < x.count(); ++i)
      same(z, i,
           t == DType::kF64 ? o.f(x.number(i))
                            : static_cast<double>(o.g(static_cast<float>(x.number(i)))),
           o.name);
  }
  for (Prim p : {Prim::kEq, Prim::kNe, Prim::kLt, Prim::kLe}) {
    Array z = apply(cpu, {&x, &y}, DType::kBool, [&](ops::Tape& tape, std::vector<ops::Ref> in) {
      return tape.compare(p, in[0], in[1]);
    });
    for (int64_t i = 0; i < x.count(); ++i) {
      double u = x.number(i), v = y.number(i);
      ASSERT_EQ(z.number(i), p == Prim::kEq   ? u == v
                             : p == Prim::kNe ? u != v
                             : p == Prim::kLt ? u < v
                                              : u <= v);
    }
  }
}

TEST_P(Primitives, FloatArithmeticF16) { floats(GetParam(), DType::kF16); }
TEST_P(Primitives, FloatArithmeticF32) { floats(GetParam(), DType::kF32); }
TEST_P(Primitives, FloatArithmeticF64) { floats(GetParam(), DType::kF64); }

TEST_P(Primitives, EveryHalfRoundTrips) {
  std::vector<uint64_t> all;
  for (uint64_t i = 0; i < 65536; ++i) all.push_back(i);
  Array x = array_of(DType::kF16, all);
  Array wide = apply(GetParam(), {&x}, DType::kF32, [](ops::Tape& t, std::vector<ops::Ref> in) {
    return t.cast(DType::kF32, in[0]);
  });
  Array back = apply(GetParam(), {&wide}, DType::kF16, [](ops::Tape& t, std::vector<ops::Ref> in) {
    return t.cast(DType::kF16, in[0]);
  });
  for (int64_t i = 0; i < 65536; ++i) {
    double v = double_from_half(static_cast<uint16_t>(i));
    if (std::isnan(v)) {
      ASSERT_TRUE(std::isnan(wide.number(i)) && std::isnan(back.number(i)));
    } else {
      ASSERT_EQ(wide.number(i), v);
      ASSERT_EQ(bits_at(back, i), static_cast<uint64_t>(i));
    }
  }
}

TEST_P(Primitives, FusedMultiplyAddRoundsOnce) {
  std::mt19937 g(1);
  std::vector<uint64_t> a, b, c;
  for (int i = 0; i < 5001; ++i) {
    auto draw = [&] {
      return std::ldexp(1.0f + static_cast<float>(g() >> 9) * 0x1p-23f,
                        static_cast<int>(g() % 30) - 15);
    };
    float x = draw(), y = draw(),
          z = -x * y * (i % 3 ? 1.0f : 0x1p-23f);  // cancellation and far apart
    a.push_back(std::bit_cast<uint32_t>(x));
    b.push_back(std::bit_cast<uint32_t>(y));
    c.push_back(std::bit_cast<uint32_t>(z));
  }
  Array x = array_of(DType::kF32, a), y = array_of(DType::kF32, b), z = array_of(DType::kF32, c);
  Array out =
      apply(GetParam(), {&x, &y, &z}, DType::kF32, [](ops::Tape& t, std::vector<ops::Ref> in) {
        return t.push({Prim::kFma, DType::kF32, in[0], in[1], in[2], 0});
      });
  for (int64_t i = 0; i < x.count(); ++i)
    ASSERT_EQ(out.number(i),
              std::fma(static_cast<float>(x.number(i)), static_cast<float>(y.number(i)),
                       static_cast<float>(z.number(i))));
}

TEST_P(Primitives, NoContraction) {
  // x * y - x * y rounded separately is 0; fused it would be the product's rounding error.
  std::vector<uint64_t> a = patterns(DType::kF32, 500, 9);
  for (uint64_t& v : a) v = (v & 0x807fffff) | 0x3f800000;
  Array x = array_of(DType::kF32, a);
  Array out = apply(GetParam(), {&x}, DType::kF32, [](ops::Tape& t, std::vector<ops::Ref> in) {
    ops::Ref product = t.mul(in[0], in[0]);
    ops::Ref stored = t.bitcast(DType::kF32, t.bitcast(DType::kI32, product));
    return t.sub(t.mul(in[0], in[0]), stored);
  });
  for (int64_t i = 0; i < x.count(); ++i) ASSERT_EQ(out.number(i), 0);
}

TEST_P(Primitives, ElementaryFunctionsInsideKernels) {
  // Their accuracy is math_test's matter; here: widths, tails, control flow inside a loop, f16.
  using ops::MathFn;
  struct Row {
    MathFn fn;
    double (*f)(double, double);
  };
  const Row rows[] = {{MathFn::exp, [](double a, double) { return std::exp(a); }},
                      {MathFn::log1p, [](double a, double) { return std::log1p(a); }},
                      {MathFn::sin, [](double a, double) { return std::sin(a); }},
                      {MathFn::tan, [](double a, double) { return std::tan(a); }},
                      {MathFn::tanh, [](double a, double) { return std::tanh(a); }},
                      {MathFn::erf, [](double a, double) { return std::erf(a); }},
                      {MathFn::pow, [](double a, double b) { return std::pow(a, b); }},
                      {MathFn::atan2, [](double a, double b) { return std::atan2(a, b); }}};
  for (DType t : {DType::kF16, DType::kF32, DType::kF64})
    for (int64_t n : {3, 77}) {
      Array x = make_array(t, {n}), y = make_array(t, {n});
      fill_random(x, 1, -3, 9);
      fill_random(y, 2, -3, 3);
      x.set(1, t == DType::kF16 ? 60000 : 1e9);  // the long way of sin
      for (const Row& row : rows) {
        Array z = apply(GetParam(), {&x, &y}, t, [&](ops::Tape& tape, std::vector<ops::Ref> in) {
          ops::Ref v = tape.math(row.fn, in[0], in[1]);
          return tape.select(tape.lt(in[0], in[0]), in[0], v);
        });
        const double u = t == DType::kF16 ? 0x1p-10 : t == DType::kF32 ? 0x1p-21 : 0x1p-50;
        for (int64_t i = 0; i < n; ++i) {
          double want = row.f(x.number(i), y.number(i));
          if (std::isnan(want))
            ASSERT_TRUE(std::isnan(z.number(i)));
          else if (t == DType::kF16 && std::abs(want) > 65504)
            ASSERT_TRUE(std::isinf(z.number(i)));
          else if (t == DType::kF32 && std::abs(want) > 3e38)
            ASSERT_TRUE(std::isinf(z.number(i)));
          else if (std::isinf(want))
            ASSERT_EQ(z.number(i), want);
          else
            ASSERT_NEAR(z.number(i), want, std::abs(want) * u + 1e-7 * (t == DType::kF16))
                << ops::math_name(row.fn) << " of " << x.number(i) << ", " << y.number(i);
        }
      }
    }
}

TEST_P(Primitives, BoolLogicAndBitcasts) {
  Array p = array_of(DType::kBool, patterns(DType::kBool, 70, 0)),
        q = array_of(DType::kBool, patterns(DType::kBool, 70, 1));
  for (Prim prim : {Prim::kAnd, Prim::kOr, Prim::kXor, Prim::kLt, Prim::kLe, Prim::kEq}) {
    Array z =
        apply(GetParam(), {&p, &q}, DType::kBool, [&](ops::Tape& t, std::vector<ops::Ref> in) {
          return t.push({prim, DType::kBool, in[0], in[1], {}, 0});
        });
    for (int64_t i = 0; i < 70; ++i) {
      bool a = p.number(i) != 0, b = q.number(i) != 0;
      bool want = prim == Prim::kAnd   ? a && b
                  : prim == Prim::kOr  ? a || b
                  : prim == Prim::kXor ? a != b
                  : prim == Prim::kLt  ? !a && b
                  : prim == Prim::kLe  ? !a || b
                                       : a == b;
      ASSERT_EQ(z.number(i), want);
    }
  }
  Array h = array_of(DType::kF16, patterns(DType::kF16, 70, 2));
  Array bits = apply(GetParam(), {&h}, DType::kU16, [](ops::Tape& t, std::vector<ops::Ref> in) {
    return t.bitcast(DType::kU16, in[0]);
  });
  for (int64_t i = 0; i < 70; ++i)
    if (!std::isnan(h.number(i))) {
      ASSERT_EQ(bits_at(bits, i), bits_at(h, i));
    }
}

}  // namespace
}  // namespace cuvil::backend::testing
