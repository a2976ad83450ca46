// kMatMul kernels against exact products: shapes, layouts, batches, epilogues, dtypes, levels.
#include <gtest/gtest.h>

#include <cmath>

#include "harness.h"

namespace cuvil::backend::testing {
namespace {

using schedule::Kernel;

class Gemm : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Levels, Gemm, ::testing::ValuesIn(cpu_levels()), [](const auto& i) {
  std::string s = i.param.empty() ? "host" : i.param;
  for (char& c : s)
    if (c == '-') c = '_';
  return s;
});

struct Case {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  bool a_transposed = false, b_transposed = false, c_transposed = false;
  bool symbolic_m = false, symbolic_n = false, symbolic_k = false;
  bool bias_relu = false;  // max(acc + bias[n], 0)
  bool heavy = false;      // a long epilogue: goes through a tile buffer
  bool in_place = false;   // C += A B
  bool prologue = false;   // (A + 1) * (2 B)
  bool b_shared = false;   // one B for all batches
  DType type = DType::kF32;
  double cost_ns = 0;
};

std::ostream& operator<<(std::ostream& o, const Case& c) {
  return o << c.batch << "x" << c.m << "x" << c.n << "x" << c.k << " ta" << c.a_transposed << " tb"
           << c.b_transposed << " tc" << c.c_transposed << " sym" << c.symbolic_m << c.symbolic_n
           << c.symbolic_k << " bias" << c.bias_relu << " heavy" << c.heavy << " in_place"
           << c.in_place << " prologue" << c.prologue << " shared" << c.b_shared << " "
           << info(c.type).name;
}

void check(const std::string& cpu, Case c) {
  SCOPED_TRACE(::testing::PrintToString(c));
  Runner r;
  r.cpu = cpu;
  r.split = 3;
  auto array = [&](int64_t rows, int64_t columns, bool transposed, int64_t batch) {
    std::vector<int> order{0, 1, 2};
    if (transposed) order = {0, 2, 1};
    return make_array(c.type, {batch, rows, columns}, order);
  };
  Array a = array(c.m, c.k, c.a_transposed, c.batch),
        b = array(c.k, c.n, c.b_transposed, c.b_shared ? 1 : c.batch),
        out = array(c.m, c.n, c.c_transposed, c.batch), bias = make_array(c.type, {c.n});
  double range = is_float(c.type) ? 1 : 11;
  fill_random(a, 1, -range, range);
  fill_random(b, 2, -range, range);
  fill_random(bias, 3, -range, range);
  fill_random(out, 4, -range, range);
  Array before = out;
  BufferId ia = r.argument(a), ib = r.argument(b), ibias = r.argument(bias), iout = r.argument(out);
  ir::Dim m = c.symbolic_m ? r.symbol("m", c.m) : r.dim(c.m);
  ir::Dim n = c.symbolic_n ? r.symbol("n", c.n) : r.dim(c.n);
  ir::Dim depth = c.symbolic_k ? r.symbol("k", c.k) : r.dim(c.k);
  Kernel k = r.kernel(Kernel::Kind::kMatMul, {r.dim(c.batch), m, n, depth});
  k.cost_ns = c.cost_ns;
  k.accumulator = c.type;
  k.loads = {r.access(ia, {0, 1, -1, 2}), r.access(ib, {c.b_shared ? -1 : 0, -1, 2, 1})};
  k.lhs = k.tape.load(c.type, 0);
  k.rhs = k.tape.load(c.type, 1);
  if (c.prologue) {
    k.lhs = k.tape.add(k.lhs, k.tape.number(c.type, 1));
    k.rhs = k.tape.mul(k.tape.number(c.type, 2), k.rhs);
  }
  ops::Ref v = k.epilogue.accumulator(c.type, 0);
  if (c.bias_relu) {
    k.loads.push_back(r.access(ibias, {-1, -1, 0, -1}));
    v = k.epilogue.add(v, k.epilogue.load(c.type, 2));
    ops::Ref zero = k.epilogue.number(c.type, 0);
    v = k.epilogue.select(k.epilogue.lt(v, zero), zero, v);
  }
  if (c.in_place) {
    k.loads.push_back(r.access(iout, {0, 1, 2, -1}));
    v = k.epilogue.add(v, k.epilogue.load(c.type, static_cast<uint32_t>(k.loads.size() - 1)));
  }
  if (c.heavy)  // multiplies by 2 ten times and halves again: exact
    for (int i = 0; i < 20; ++i) v = k.epilogue.mul(v, k.epilogue.number(c.type, i < 10 ? 2 : 0.5));
  k.stores = {{v, r.access(iout, {0, 1, 2, -1})}};
  r.push(std::move(k));
  ASSERT_EQ(r.run(), 0);
  const double u = c.type == DType::kF32 ? 0x1p-24 : c.type == DType::kF16 ? 0x1p-11 : 0x1p-53;
  for (int64_t i = 0; i < out.count(); ++i) {
    int64_t z = i / (c.m * c.n), y = i / c.n % c.m, x = i % c.n;
    long double exact = 0, magnitude = 0;
    for (int64_t q = 0; q < c.k; ++q) {
      long double p = a.number((z * c.m + y) * c.k + q);
      long double w = b.number(((c.b_shared ? 0 : z) * c.k + q) * c.n + x);
      if (c.prologue) {
        p = c.type == DType::kF32 ? static_cast<float>(p + 1) : static_cast<double>(p + 1);
        w *= 2;
      }
      exact += p * w;
      magnitude += std::abs(p * w);
    }
    auto terms = static_cast<double>(c.k);
    // f16 is accumulated in f32 and rounded once.
    double bound = c.type == DType::kF16
                       ? static_cast<double>(magnitude) * terms * 0x1p-24 +
                             (std::abs(static_cast<double>(exact)) +
                              static_cast<double>(magnitude) * terms * 0x1p-24) *
                                 u
                       : terms * u / (1 - terms * u) * static_cast<double>(magnitude);
    if (c.bias_relu) exact += bias.number(x);
    if (c.in_place) exact += before.number(i);
    if (c.bias_relu || c.in_place) bound += 2 * u * (std::abs(static_cast<double>(exact)) + bound);
    if (c.bias_relu && exact < 0) exact = 0;
    if (is_float(c.type)) {
      ASSERT_LE(std::abs(static_cast<double>(out.number(i) - exact)), bound + 1e-300)
          << "element " << i;
    } else if (is_bool(c.type)) {
      ASSERT_EQ(out.number(i), exact != 0);
    } else {
      auto wrapped = static_cast<uint64_t>(static_cast<int64_t>(exact));
      uint64_t got = static_cast<uint64_t>(static_cast<int64_t>(out.number(i)));
      uint64_t mask = size_of(c.type) == 8 ? ~0ull : (1ull << (size_of(c.type) * 8)) - 1;
      ASSERT_EQ(got & mask, wrapped & mask) << "element " << i;
    }
  }
}

TEST_P(Gemm, TheExample) { check(GetParam(), {.m = 1, .n = 64, .k = 128, .bias_relu = true}); }

TEST_P(Gemm, RowVectors) {
  for (int64_t n : {1, 3, 10, 16, 64, 100, 300})
    for (int64_t k : {1, 7, 128})
      for (bool tb : {false, true}) check(GetParam(), {.m = 1, .n = n, .k = k, .b_transposed = tb});
}

TEST_P(Gemm, ColumnVectorsAndDots) {
  for (int64_t m : {1, 3, 4, 9, 65})
    for (int64_t k : {1, 5, 64, 131})
      for (bool ta : {false, true})
        check(GetParam(), {.m = m, .n = 1, .k = k, .a_transposed = ta, .type = DType::kF64});
}

TEST_P(Gemm, OddSizes) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{2, 2, 2},
                         {3, 5, 7},
                         {5, 17, 9},
                         {6, 64, 33},
                         {7, 65, 16},
                         {13, 33, 40},
                         {32, 64, 128},
                         {31, 10, 64},
                         {50, 100, 3}})
    for (bool ta : {false, true})
      for (bool tb : {false, true})
        check(GetParam(),
              {.m = m, .n = n, .k = k, .a_transposed = ta, .b_transposed = tb, .bias_relu = true});
}

TEST_P(Gemm, SymbolicSizes) {
  for (int64_t m : {2, 5, 6, 13, 40})
    for (int64_t n : {2, 17, 64, 70})
      check(GetParam(), {.m = m,
                         .n = n,
                         .k = 21,
                         .symbolic_m = true,
                         .symbolic_n = n != 64,
                         .symbolic_k = m == 13,
                         .bias_relu = true});
  check(GetParam(), {.batch = 3,
                     .m = 5,
                     .n = 9,
                     .k = 4,
                     .b_transposed = true,
                     .symbolic_m = true,
                     .symbolic_n = true,
                     .symbolic_k = true});
}

TEST_P(Gemm, BatchesAndPrologues) {
  for (bool shared : {false, true})
    check(GetParam(), {.batch = 4, .m = 9, .n = 20, .k = 11, .prologue = true, .b_shared = shared});
}

TEST_P(Gemm, EpiloguesThatMustNotRunTwice) {
  for (int64_t m : {1, 6, 7, 20})
    for (int64_t n : {1, 10, 64, 70})
      for (bool symbolic : {false, true})
        check(GetParam(),
              {.m = m, .n = n, .k = 8, .symbolic_m = symbolic && m > 1, .in_place = true});
}

TEST_P(Gemm, HeavyEpilogueAndTransposedResult) {
  for (int64_t m : {2, 13, 40}) {
    check(GetParam(), {.m = m, .n = 67, .k = 9, .bias_relu = true, .heavy = true});
    check(GetParam(), {.m = m, .n = 33, .k = 9, .c_transposed = true, .bias_relu = true});
    check(GetParam(), {.m = m,
                       .n = 33,
                       .k = 9,
                       .a_transposed = true,
                       .b_transposed = true,
                       .c_transposed = true,
                       .bias_relu = true});
  }
}

TEST_P(Gemm, PackedAndDivided) {
  check(GetParam(), {.m = 100, .n = 600, .k = 300, .bias_relu = true});
  check(GetParam(), {.m = 200, .n = 130, .k = 50, .bias_relu = true, .cost_ns = 1e6});
  check(GetParam(), {.m = 200, .n = 130, .k = 50, .b_transposed = true, .cost_ns = 1e6});
  check(GetParam(), {.batch = 5, .m = 100, .n = 30, .k = 20, .symbolic_m = true, .cost_ns = 1e6});
}

TEST_P(Gemm, OneRowAndALargeMatrix) {
  check(GetParam(), {.m = 1, .n = 300, .k = 331, .bias_relu = true});
  check(GetParam(), {.m = 1, .n = 2500, .k = 45, .in_place = true});
  check(GetParam(),
        {.m = 1, .n = 2500, .k = 45, .symbolic_n = true, .type = DType::kF64, .cost_ns = 1e6});
  check(GetParam(), {.m = 1, .n = 1000, .k = 150, .type = DType::kF16});
}

TEST_P(Gemm, EveryType) {
  for (DType t : {DType::kBool, DType::kI8, DType::kI16, DType::kI32, DType::kI64, DType::kU8,
                  DType::kU16, DType::kU32, DType::kU64, DType::kF16, DType::kF64})
    for (bool tb : {false, true})
      check(GetParam(), {.m = 7, .n = 19, .k = 23, .b_transposed = tb, .type = t});
}

TEST_P(Gemm, NothingToAdd) {
  check(GetParam(), {.m = 3, .n = 5, .k = 0});
  check(GetParam(), {.m = 3, .n = 0, .k = 4});
  check(GetParam(), {.m = 0, .n = 5, .k = 4});
}

}  // namespace
}  // namespace cuvil::backend::testing
