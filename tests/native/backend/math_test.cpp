// The elementary functions against long double references: accuracy within the bounds below, equal
// bits at every vector width, no library call, with and without FMA, also on baseline x86-64.
// CUVIL_MATH_FULL=1 takes 32 times as many samples; bench/math_ulp.cpp tests floats exhaustively.
#include <gtest/gtest.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>

#include "math_harness.h"

namespace cuvil::testing {
namespace {

// The bounds that docs/math.md promises, in units in the last place.
struct Bound {
  double f32, f64;
};

const std::map<MathFn, Bound>& bounds() {
  static const std::map<MathFn, Bound> table = {
      {MathFn::exp, {1, 1}},     {MathFn::exp2, {1, 1}},   {MathFn::expm1, {1.1, 1.1}},
      {MathFn::log, {1, 1}},     {MathFn::log2, {1.2, 1}}, {MathFn::log10, {1.1, 1}},
      {MathFn::log1p, {1, 1}},   {MathFn::sin, {1.1, 1}},  {MathFn::cos, {1.1, 1}},
      {MathFn::tan, {1, 1}},     {MathFn::asin, {1, 1}},   {MathFn::acos, {1, 1}},
      {MathFn::atan, {1, 1}},    {MathFn::sinh, {1, 1}},   {MathFn::cosh, {1, 1}},
      {MathFn::tanh, {1.1, 1}},  {MathFn::asinh, {1, 1}},  {MathFn::acosh, {1, 1}},
      {MathFn::atanh, {1.1, 1}}, {MathFn::erf, {1, 1}},    {MathFn::erfc, {1, 1.5}},
      {MathFn::cbrt, {1, 1}},    {MathFn::pow, {1, 1}},    {MathFn::atan2, {1, 1}},
      {MathFn::hypot, {1, 1}},
  };
  return table;
}

size_t sample_count() { return std::getenv("CUVIL_MATH_FULL") ? size_t{1} << 22 : size_t{1} << 17; }

class MathTest : public ::testing::TestWithParam<FunctionInfo> {
 protected:
  const FunctionInfo& info() const { return GetParam(); }

  template <class T> double bound() const {
    const Bound b = bounds().at(info().fn);
    return sizeof(T) == 4 ? b.f32 : b.f64;
  }

  // Every special value, or every pair of a thinned list, then random arguments.
  template <class T> void arguments(size_t count, std::vector<T>& x, std::vector<T>& y) const {
    sample<T>(info().fn, 42, count, x, y);
    const auto special = special_values<T>();
    if (info().arity == 1) {
      x.insert(x.end(), special.begin(), special.end());
    } else {
      for (size_t i = 0; i < special.size(); i += i < 100 ? 3 : 29)
        for (size_t k = 0; k < special.size(); k += k < 100 ? 3 : 29)
          x.push_back(special[i]), y.push_back(special[k]);
      for (T a : corners<T>())
        for (T c : corners<T>()) x.push_back(a), y.push_back(c);
    }
    x.resize((x.size() + 63) / 64 * 64);
    y.resize(x.size());
  }

  template <class T> static std::vector<T> corners() {
    using L = std::numeric_limits<T>;
    std::vector<T> values = {T(0),      L::denorm_min(), L::min(),      T(0.5),
                             T(1),      T(1.5),          T(2),          T(3),
                             T(0x1p23), T(0x1p24) + 2,   T(0x1p52),     T(0x1p53) - 1,
                             T(0x1p53), L::max(),        L::infinity(), L::quiet_NaN()};
    const size_t count = values.size();
    for (size_t k = 0; k < count; k++) values.push_back(-values[k]);
    return values;
  }

  template <class T> void check_accuracy(KernelOptions options) const {
    const MapKernel<T> kernel(info().fn, options);
    ASSERT_EQ(kernel.error(), "");
    std::vector<T> x, y;
    arguments<T>(sample_count() / (options.lanes == 1 ? 8 : 1), x, y);
    std::vector<T> out(x.size());
    kernel(x.data(), y.data(), out.data(), static_cast<int64_t>(x.size()));
    double worst = -1;
    size_t at = 0;
    for (size_t k = 0; k < x.size(); k++) {
      const double error = ulp_error<T>(out[k], info().reference(x[k], y[k]));
      if (error > worst) worst = error, at = k;
    }
    RecordProperty(sizeof(T) == 4 ? "f32_ulp" : "f64_ulp", std::to_string(worst));
    EXPECT_LE(worst, bound<T>()) << std::hexfloat << "x = " << x[at] << ", y = " << y[at]
                                 << ", result " << out[at] << ", reference "
                                 << info().reference(x[at], y[at]) << std::defaultfloat
                                 << " at x = " << x[at] << ", y = " << y[at];
  }

  template <class T> void check_same_bits() const {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    const bool fma = host_has_fma();
    const MapKernel<T> scalar(info().fn, {.has_fma = fma});
    ASSERT_EQ(scalar.error(), "");
    std::vector<T> x, y;
    arguments<T>(1 << 14, x, y);
    std::vector<T> expected(x.size()), out(x.size());
    scalar(x.data(), y.data(), expected.data(), static_cast<int64_t>(x.size()));
    for (unsigned lanes : {4u, host_lanes<T>()}) {
      const MapKernel<T> kernel(info().fn, {.lanes = lanes, .has_fma = fma});
      ASSERT_EQ(kernel.error(), "");
      kernel(x.data(), y.data(), out.data(), static_cast<int64_t>(x.size()));
      for (size_t k = 0; k < x.size(); k++) {
        if (std::isnan(expected[k]) && std::isnan(out[k])) continue;
        ASSERT_EQ(std::bit_cast<Bits>(expected[k]), std::bit_cast<Bits>(out[k]))
            << lanes << " lanes, x = " << x[k] << ", y = " << y[k];
      }
    }
  }
};

TEST_P(MathTest, FloatIsWithinBound) {
  if (host_has_fma()) check_accuracy<float>({.lanes = host_lanes<float>()});
}
TEST_P(MathTest, DoubleIsWithinBound) {
  if (host_has_fma()) check_accuracy<double>({.lanes = host_lanes<double>()});
}
TEST_P(MathTest, FloatWithoutFmaIsWithinBound) {
  check_accuracy<float>({.lanes = host_lanes<float>(), .has_fma = false});
}
TEST_P(MathTest, DoubleWithoutFmaIsWithinBound) {
  check_accuracy<double>({.lanes = host_lanes<double>(), .has_fma = false});
}
TEST_P(MathTest, BaselineX86NeedsNoLibrary) {
  // Scalar code of the same functions; calls into libm would not link.
  check_accuracy<float>({.has_fma = false, .baseline = true});
  check_accuracy<double>({.has_fma = false, .baseline = true});
}
TEST_P(MathTest, FloatBitsDoNotDependOnLanes) { check_same_bits<float>(); }
TEST_P(MathTest, DoubleBitsDoNotDependOnLanes) { check_same_bits<double>(); }

INSTANTIATE_TEST_SUITE_P(All, MathTest, ::testing::ValuesIn(functions()),
                         [](const auto& test) { return std::string(test.param.name); });

template <class T> T apply(MathFn fn, T x, T y = 0) {
  const MapKernel<T> kernel(fn, {.has_fma = host_has_fma()});
  T out;
  kernel(&x, &y, &out, 1);
  return out;
}

template <class T> class MathExact : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(MathExact, Types);

TYPED_TEST(MathExact, ValuesAtZero) {
  EXPECT_EQ(apply<TypeParam>(MathFn::exp, 0), 1);
  EXPECT_EQ(apply<TypeParam>(MathFn::exp, TypeParam(-0.0)), 1);
  EXPECT_EQ(apply<TypeParam>(MathFn::cos, 0), 1);
  EXPECT_EQ(apply<TypeParam>(MathFn::cosh, 0), 1);
}

TYPED_TEST(MathExact, PowersOfTwo) {
  using Limits = std::numeric_limits<TypeParam>;
  const MapKernel<TypeParam> exp2(MathFn::exp2, {.has_fma = host_has_fma()});
  const MapKernel<TypeParam> log2(MathFn::log2, {.has_fma = host_has_fma()});
  for (int n = Limits::min_exponent - Limits::digits; n < Limits::max_exponent; n++) {
    const TypeParam x = static_cast<TypeParam>(n);
    TypeParam out, back;
    exp2(&x, &x, &out, 1);
    ASSERT_EQ(out, std::ldexp(TypeParam(1), n));
    log2(&out, &out, &back, 1);
    ASSERT_EQ(back, x);
  }
}

TYPED_TEST(MathExact, PowersOfTen) {
  const MapKernel<TypeParam> log10(MathFn::log10, {.has_fma = host_has_fma()});
  const int last =
      sizeof(TypeParam) == 4 ? 10 : 22;  // the largest that the type represents exactly
  for (int n = 0; n <= last; n++) {
    TypeParam x = 1, out;
    for (int k = 0; k < n; k++) x *= 10;
    log10(&x, &x, &out, 1);
    ASSERT_EQ(out, n);
  }
}

TYPED_TEST(MathExact, FirstPower) {
  const MapKernel<TypeParam> pow(MathFn::pow, {.has_fma = host_has_fma()});
  std::vector<TypeParam> x, y;
  sample<TypeParam>(MathFn::log, 7, 4096, x, y);
  for (TypeParam v : x) {
    const TypeParam one = 1;
    TypeParam out;
    pow(&v, &one, &out, 1);
    if (!std::isnan(v)) {
      ASSERT_EQ(out, v);
    }
  }
}

// A function with control flow, emitted in front of instructions that exist already.
TEST(MathControlFlow, SplitsTheBlockItIsEmittedInto) {
  llvm::LLVMContext context;
  llvm::Module module("split", context);
  llvm::IRBuilder<> b(context);
  auto* type = llvm::FunctionType::get(b.getFloatTy(), {b.getFloatTy()}, false);
  auto* f = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "f", module);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", f));
  auto* sum = llvm::cast<llvm::Instruction>(b.CreateFAdd(f->getArg(0), f->getArg(0)));
  b.CreateRet(sum);
  b.SetInsertPoint(sum);
  sum->setOperand(1, codegen::emit_math(MathFn::sin, b, f->getArg(0), nullptr, {.has_fma = true}));
  EXPECT_FALSE(llvm::verifyModule(module, &llvm::errs()));
}

}  // namespace
}  // namespace cuvil::testing
