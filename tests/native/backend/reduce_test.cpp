// kReduce kernels: every fold and type, layouts, NaN, positions, accuracy, division among threads.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "harness.h"

namespace cuvil::backend::testing {
namespace {

using ops::ReduceKind;
using schedule::Kernel;

class Reduce : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Levels, Reduce, ::testing::ValuesIn(cpu_levels()), [](const auto& i) {
  std::string s = i.param.empty() ? "host" : i.param;
  for (char& c : s)
    if (c == '-') c = '_';
  return s;
});

struct Options {
  std::string cpu;
  bool symbolic = false;
  double cost_ns = 0;
  int64_t split = 0;
};

// Reduces axes [kept, rank) of `x`; the axes of the kernel are x's in the order `axes`.
std::vector<double> reduce(Array& x, std::vector<int> axes, size_t kept, ReduceKind kind,
                           DType accumulator, const Options& o) {
  Runner r;
  r.cpu = o.cpu;
  r.split = o.split;
  BufferId in = r.argument(x);
  ir::Shape extents;
  std::vector<int> kept_axes;
  for (size_t i = 0; i < axes.size(); ++i)
    extents.push_back(o.symbolic ? r.symbol("n" + std::to_string(i), x.shape[axes[i]])
                                 : r.dim(x.shape[axes[i]]));
  ir::Shape out_shape(extents.begin(), extents.begin() + kept);
  bool arg = kind == ReduceKind::kArgMax || kind == ReduceKind::kArgMin;
  DType result = arg ? DType::kI64 : accumulator;
  BufferId out = r.result(result, out_shape);
  Kernel k = r.kernel(Kernel::Kind::kReduce, extents);
  k.kept = kept;
  k.cost_ns = o.cost_ns;
  k.loads = {r.access(in, axes)};
  k.reductions = {{kind, k.tape.load(x.dtype, 0), accumulator}};
  std::vector<int> to(axes.size(), -1);
  for (size_t i = 0; i < kept; ++i) to[i] = static_cast<int>(i);
  k.stores = {{k.epilogue.accumulator(result, 0), r.access(out, to)}};
  r.push(std::move(k));
  EXPECT_EQ(r.run(), 0);
  EXPECT_EQ(r.parallel_calls, o.cost_ns > 0 ? 1 : 0);
  std::vector<double> got;
  for (int64_t i = 0; i < r.output().count(); ++i) got.push_back(r.output().number(i));
  return got;
}

std::vector<double> expected(Array& x, std::vector<int> axes, size_t kept, ReduceKind kind,
                             DType accumulator) {
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < axes.size(); ++i) (i < kept ? outer : inner) *= x.shape[axes[i]];
  std::vector<double> out;
  for (int64_t a = 0; a < outer; ++a) {
    double sum = 0, product = 1, best = 0;
    bool any = false, all = true;
    int64_t at = 0;
    for (int64_t b = 0; b < inner; ++b) {
      int64_t left = a * inner + b;
      std::vector<int64_t> index(x.shape.size(), 0);
      for (size_t i = axes.size(); i-- > 0;) {
        index[axes[i]] = left % x.shape[axes[i]];
        left /= x.shape[axes[i]];
      }
      int64_t flat = 0;
      for (size_t i = 0; i < x.shape.size(); ++i) flat = flat * x.shape[i] + index[i];
      double v = x.number(flat);
      sum += v;
      product *= v;
      any = any || v != 0;
      all = all && v != 0;
      bool max = kind == ReduceKind::kMax || kind == ReduceKind::kArgMax;
      bool better = (max ? v > best : v < best) || (std::isnan(v) && !std::isnan(best));
      if (b == 0 || (!std::isnan(best) && better)) {
        best = v;
        at = b;
      }
    }
    switch (kind) {
      case ReduceKind::kSum: out.push_back(sum); break;
      case ReduceKind::kProd: out.push_back(product); break;
      case ReduceKind::kMin:
      case ReduceKind::kMax: out.push_back(best); break;
      case ReduceKind::kAny: out.push_back(any); break;
      case ReduceKind::kAll: out.push_back(all); break;
      case ReduceKind::kArgMin:
      case ReduceKind::kArgMax: out.push_back(static_cast<double>(at)); break;
    }
  }
  if (is_int(accumulator) && size_of(accumulator) < 8 && kind != ReduceKind::kArgMax &&
      kind != ReduceKind::kArgMin)
    for (double& v : out) {
      Array one = make_array(accumulator, {1});
      auto wide = static_cast<int64_t>(v);
      memcpy(one.data(), &wide, size_of(accumulator));
      v = one.number(0);
    }
  return out;
}

constexpr ReduceKind kKinds[] = {ReduceKind::kSum,    ReduceKind::kProd,  ReduceKind::kMin,
                                 ReduceKind::kMax,    ReduceKind::kAny,   ReduceKind::kAll,
                                 ReduceKind::kArgMin, ReduceKind::kArgMax};

void compare(Array& x, std::vector<int> axes, size_t kept, ReduceKind kind, const Options& o) {
  bool logical = kind == ReduceKind::kAny || kind == ReduceKind::kAll;
  DType accumulator = logical ? DType::kBool : x.dtype;
  std::vector<double> want = expected(x, axes, kept, kind, accumulator);
  std::vector<double> got = reduce(x, axes, kept, kind, accumulator, o);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i])) {
      ASSERT_TRUE(std::isnan(got[i])) << i;
    } else if (x.dtype == DType::kF16) {
      ASSERT_NEAR(got[i], want[i], std::abs(want[i]) * 0x1p-9 + 1e-3) << i;
    } else if (x.dtype == DType::kF32 && kind == ReduceKind::kProd) {
      ASSERT_NEAR(got[i], want[i], std::abs(want[i]) * 1e-4) << i;
    } else if (is_float(x.dtype)) {
      ASSERT_NEAR(got[i], want[i], std::abs(want[i]) * 1e-6 + 1e-4) << i;
    } else {
      ASSERT_EQ(got[i], want[i]) << i;
    }
  }
}

TEST_P(Reduce, EveryKindTypeAndAxis) {
  for (DType t : {DType::kBool, DType::kI8, DType::kI16, DType::kI32, DType::kI64, DType::kU8,
                  DType::kU32, DType::kF16, DType::kF32, DType::kF64}) {
    Array x = make_array(t, {3, 41});
    fill_random(x, 5, is_float(t) ? 0.5 : -2, is_float(t) ? 1.5 : 2);
    for (ReduceKind kind : kKinds) {
      SCOPED_TRACE(std::string(info(t).name) + " kind " + std::to_string(static_cast<int>(kind)));
      if (is_bool(t) && (kind == ReduceKind::kSum || kind == ReduceKind::kProd)) continue;
      compare(x, {0, 1}, 1, kind, {GetParam()});
      compare(x, {1, 0}, 1, kind, {GetParam()});
      compare(x, {0, 1}, 0, kind, {GetParam()});
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Reduce, LengthsAndLayouts) {
  for (int64_t n : {1, 2, 7, 16, 65, 130, 1025})
    for (ReduceKind kind : {ReduceKind::kSum, ReduceKind::kMax, ReduceKind::kArgMin})
      for (bool symbolic : {false, true}) {
        if (symbolic && n < 2) continue;
        SCOPED_TRACE(n);
        Array rows = make_array(DType::kF32, {2, n}), columns = make_array(DType::kF32, {n, 3}),
              gaps = make_array(DType::kF32, {2, n}, {}, {false, true}, 2);
        for (Array* a : {&rows, &columns, &gaps}) {
          fill_random(*a, 3);
          compare(*a, {0, 1}, 1, kind, {GetParam(), symbolic});
          compare(*a, {1, 0}, 1, kind, {GetParam(), symbolic});
          compare(*a, {0, 1}, 0, kind, {GetParam(), symbolic});
          if (HasFatalFailure()) return;
        }
      }
}

TEST_P(Reduce, SeveralAxes) {
  Array x = make_array(DType::kF64, {4, 5, 6, 7}, {1, 0, 2, 3});
  fill_random(x, 9);
  for (ReduceKind kind : {ReduceKind::kSum, ReduceKind::kMin, ReduceKind::kArgMax}) {
    compare(x, {1, 3, 0, 2}, 2, kind, {GetParam()});
    compare(x, {0, 2, 1, 3}, 2, kind, {GetParam()});
    compare(x, {0, 1, 2, 3}, 3, kind, {GetParam(), true});
    compare(x, {0, 1, 2, 3}, 0, kind, {GetParam(), true});
  }
}

TEST_P(Reduce, NaNInfinityAndFirstPosition) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  for (int64_t n : {5, 40, 200})
    for (std::vector<std::pair<int64_t, double>> put :
         {std::vector<std::pair<int64_t, double>>{{n / 2, nan}, {n - 1, nan}},
          {{0, inf}, {n - 1, inf}},
          {{1, -inf}, {2, inf}},
          {{n - 2, inf}}})
      for (ReduceKind kind : {ReduceKind::kSum, ReduceKind::kMin, ReduceKind::kMax,
                              ReduceKind::kArgMin, ReduceKind::kArgMax}) {
        Array x = make_array(DType::kF32, {n});
        fill_random(x, 1);
        for (auto [i, v] : put) x.set(i, v);
        std::vector<double> want = expected(x, {0}, 0, kind, DType::kF32);
        std::vector<double> got = reduce(x, {0}, 0, kind, DType::kF32, {GetParam()});
        if (std::isnan(want[0]))
          EXPECT_TRUE(std::isnan(got[0]));
        else if (kind == ReduceKind::kSum && !std::isinf(want[0]))
          EXPECT_NEAR(got[0], want[0], 1e-4);
        else
          EXPECT_EQ(got[0], want[0]);
      }
  // All equal to what a fold starts from, and all NaN: the first one.
  for (double v : {-inf, inf, nan}) {
    Array x = make_array(DType::kF64, {37});
    for (int i = 0; i < 37; ++i) x.set(i, v);
    EXPECT_EQ(reduce(x, {0}, 0, ReduceKind::kArgMax, DType::kF64, {GetParam()})[0], 0);
    EXPECT_EQ(reduce(x, {0}, 0, ReduceKind::kArgMin, DType::kF64, {GetParam()})[0], 0);
  }
}

TEST_P(Reduce, EmptyGivesTheIdentity) {
  Array x = make_array(DType::kF64, {3, 0});
  EXPECT_EQ(reduce(x, {0, 1}, 1, ReduceKind::kSum, DType::kF64, {GetParam()}),
            (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(reduce(x, {0, 1}, 0, ReduceKind::kProd, DType::kF64, {GetParam()})[0], 1);
  EXPECT_EQ(reduce(x, {0, 1}, 0, ReduceKind::kAll, DType::kBool, {GetParam()})[0], 1);
}

// NumPy's pairwise summation: blocks of 128 with 8 accumulators.
template <class T> T pairwise(const T* a, int64_t n) {
  if (n < 8) {
    T s = 0;
    for (int64_t i = 0; i < n; ++i) s += a[i];
    return s;
  }
  if (n <= 128) {
    T r[8];
    for (int k = 0; k < 8; ++k) r[k] = a[k];
    int64_t i = 8;
    for (; i < n - n % 8; i += 8)
      for (int k = 0; k < 8; ++k) r[k] += a[i + k];
    T s = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    for (; i < n; ++i) s += a[i];
    return s;
  }
  int64_t half = n / 2;
  half -= half % 8;
  return pairwise(a, half) + pairwise(a + half, n - half);
}

TEST_P(Reduce, SumsAreAsAccurateAsNumPys) {
  for (int64_t n : {100, 1000, 30000, 1000000}) {
    Array x = make_array(DType::kF32, {n});
    double ours = 0, numpys = 0, worst = 0;
    for (uint32_t seed = 1; seed <= (n > 100000 ? 3u : 20u); ++seed) {
      fill_random(x, seed, 0, 1);
      long double exact = 0;
      for (int64_t i = 0; i < n; ++i) exact += x.number(i);
      double got = reduce(x, {0}, 0, ReduceKind::kSum, DType::kF32, {GetParam()})[0];
      double theirs = pairwise(reinterpret_cast<const float*>(x.data()), n);
      double e = std::abs(static_cast<double>(got - exact)) / static_cast<double>(exact);
      worst = std::max(worst, e);
      ours += e;
      numpys += std::abs(static_cast<double>(theirs - exact)) / static_cast<double>(exact);
    }
    EXPECT_LE(worst, 18 * 0x1p-24) << n;
    EXPECT_LE(ours, numpys * 1.5 + 20 * 0x1p-25) << n;  // half an ulp is the least there is
  }
  // Column sums of a tall array: each a compensated sum too.
  Array tall = make_array(DType::kF32, {200000, 5});
  fill_random(tall, 1, 0, 1);
  std::vector<double> got = reduce(tall, {1, 0}, 1, ReduceKind::kSum, DType::kF32, {GetParam()});
  for (int64_t c = 0; c < 5; ++c) {
    double exact = 0;
    for (int64_t i = 0; i < 200000; ++i) exact += tall.number(i * 5 + c);
    EXPECT_NEAR(got[c], exact, exact * 12 * 0x1p-24);
  }
}

TEST_P(Reduce, ThreadsDoNotChangeTheResult) {
  Array x = make_array(DType::kF32, {500000});
  fill_random(x, 4);
  for (ReduceKind kind : {ReduceKind::kSum, ReduceKind::kArgMax, ReduceKind::kMin}) {
    double one = reduce(x, {0}, 0, kind, DType::kF32, {GetParam(), false, 400e3, 1})[0];
    double many = reduce(x, {0}, 0, kind, DType::kF32, {GetParam(), false, 400e3, 7})[0];
    EXPECT_EQ(one, many);
    double alone = reduce(x, {0}, 0, kind, DType::kF32, {GetParam()})[0];
    EXPECT_NEAR(one, alone, 1e-2);
    if (kind != ReduceKind::kSum) {
      EXPECT_EQ(one, alone);
    }
  }
  Array rows = make_array(DType::kF64, {300, 40});
  fill_random(rows, 4);
  compare(rows, {0, 1}, 1, ReduceKind::kSum, {GetParam(), true, 400e3, 5});
  compare(rows, {1, 0}, 1, ReduceKind::kSum, {GetParam(), false, 400e3, 5});
}

TEST_P(Reduce, SeveralFoldsAndAnEpilogue) {
  // variance-like: sum, sum of squares, max -> (sum + squares) / n where max > 0
  Runner r;
  r.cpu = GetParam();
  Array x = make_array(DType::kF64, {9, 50});
  fill_random(x, 8);
  BufferId in = r.argument(x), out = r.result(DType::kF64, r.shape({9})),
           top = r.result(DType::kF32, r.shape({9}));
  Kernel k = r.kernel(Kernel::Kind::kReduce, r.shape({9, 50}));
  k.kept = 1;
  k.loads = {r.access(in, {0, 1})};
  ops::Ref v = k.tape.load(DType::kF64, 0);
  k.reductions = {{ReduceKind::kSum, v, DType::kF64},
                  {ReduceKind::kSum, k.tape.mul(v, v), DType::kF64},
                  {ReduceKind::kMax, v, DType::kF64}};
  ops::Tape& e = k.epilogue;
  ops::Ref sum = e.add(e.accumulator(DType::kF64, 0), e.accumulator(DType::kF64, 1));
  k.stores = {{e.div(sum, e.number(DType::kF64, 50)), r.access(out, {0, -1})},
              {e.cast(DType::kF32, e.accumulator(DType::kF64, 2)), r.access(top, {0, -1})}};
  r.push(std::move(k));
  ASSERT_EQ(r.run(), 0);
  for (int64_t i = 0; i < 9; ++i) {
    double s = 0, best = -100;
    for (int64_t j = 0; j < 50; ++j) {
      double w = x.number(i * 50 + j);
      s += w + w * w;
      best = std::max(best, w);
    }
    EXPECT_NEAR(r.output(0).number(i), s / 50, 1e-12);
    EXPECT_EQ(r.output(1).number(i), static_cast<float>(best));
  }
}

}  // namespace
}  // namespace cuvil::backend::testing
