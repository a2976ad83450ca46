// kMap kernels: layouts, tails, broadcasting, loops, checks, threads. Each on every CPU level.
#include <gtest/gtest.h>

#include <cmath>

#include "harness.h"

namespace cuvil::backend::testing {
namespace {

using schedule::Kernel;

class Map : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Levels, Map, ::testing::ValuesIn(cpu_levels()), [](const auto& i) {
  std::string s = i.param.empty() ? "host" : i.param;
  for (char& c : s)
    if (c == '-') c = '_';
  return s;
});

// z = x * y + x, elementwise, one operation at a time.
void multiply_add(const std::string& cpu, Array x, Array y, std::vector<int64_t> shape,
                  bool symbolic) {
  Runner r;
  r.cpu = cpu;
  ir::Shape s;
  if (symbolic) {
    BufferId dummy;
    (void)dummy;
    for (size_t i = 0; i < shape.size(); ++i)
      s.push_back(r.symbol("n" + std::to_string(i), shape[i]));
  } else {
    s = r.shape(shape);
  }
  BufferId a = r.argument(x), b = r.argument(y), z = r.result(x.dtype, s);
  Kernel k = r.kernel(Kernel::Kind::kMap, s);
  k.loads = {r.broadcast(a, shape.size()), r.broadcast(b, shape.size())};
  ops::Ref u = k.tape.load(x.dtype, 0), v = k.tape.load(x.dtype, 1);
  k.stores = {{k.tape.add(k.tape.mul(u, v), u), r.broadcast(z, shape.size())}};
  r.push(std::move(k));
  ASSERT_EQ(r.run(), 0);
  Array& out = r.output();
  auto pick = [&](Array& from, int64_t flat) {
    std::vector<int64_t> index(shape.size());
    for (size_t i = shape.size(); i-- > 0;) {
      index[i] = flat % shape[i];
      flat /= shape[i];
    }
    int64_t at = 0;
    for (size_t i = 0; i < from.shape.size(); ++i) {
      int64_t k2 = index[shape.size() - from.shape.size() + i];
      at = at * from.shape[i] + (from.shape[i] == 1 ? 0 : k2);
    }
    return from.number(at);
  };
  for (int64_t i = 0; i < out.count(); ++i) {
    double p = pick(x, i), q = pick(y, i);
    double want = x.dtype == DType::kF32
                      ? static_cast<float>(static_cast<float>(p * q) + static_cast<float>(p))
                      : p * q + p;
    ASSERT_EQ(out.number(i), want) << "element " << i << " of " << out.count();
  }
}

TEST_P(Map, EveryLengthAndLayout) {
  for (DType t : {DType::kF32, DType::kF64}) {
    for (int64_t n : {1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 130, 259}) {
      Array x = make_array(t, {n}), y = make_array(t, {n});
      fill_random(x, 1);
      fill_random(y, 2);
      multiply_add(GetParam(), x, y, {n}, false);
      if (n > 1) multiply_add(GetParam(), x, y, {n}, true);
      Array strided = make_array(t, {n}, {}, {}, 3), back = make_array(t, {n}, {}, {true});
      fill_random(strided, 3);
      fill_random(back, 4);
      multiply_add(GetParam(), strided, back, {n}, false);
      if (HasFailure()) return;
    }
  }
}

TEST_P(Map, BroadcastingAndFortranOrder) {
  std::vector<int64_t> shape{3, 5, 37};
  Array c = make_array(DType::kF32, shape), f = make_array(DType::kF32, shape, {2, 1, 0});
  Array row = make_array(DType::kF32, {37}), column = make_array(DType::kF32, {5, 1});
  Array all = make_array(DType::kF32, {1}),
        mixed = make_array(DType::kF32, shape, {1, 2, 0}, {true, false, true}, 2);
  uint32_t seed = 1;
  for (Array* a : {&c, &f, &row, &column, &all, &mixed}) fill_random(*a, seed++);
  for (Array* a : {&c, &f, &mixed})
    for (Array* b : {&c, &f, &row, &column, &all, &mixed})
      for (bool symbolic : {false, true}) multiply_add(GetParam(), *a, *b, shape, symbolic);
}

TEST_P(Map, EmptyAndScalar) {
  Array e = make_array(DType::kF32, {0, 3});
  multiply_add(GetParam(), e, e, {0, 3}, false);
  Array s = make_array(DType::kF64, {});
  fill_random(s, 1);
  multiply_add(GetParam(), s, s, {}, false);
}

TEST_P(Map, IndicesAndSelect) {
  // z[i, j] = i * 1000 + j where i is even, else -j
  for (bool symbolic : {false, true}) {
    Runner r;
    r.cpu = GetParam();
    ir::Shape s = symbolic ? ir::Shape{r.symbol("n", 6), r.symbol("m", 41)} : r.shape({6, 41});
    BufferId z = r.result(DType::kI64, s);
    Kernel k = r.kernel(Kernel::Kind::kMap, s);
    ops::Tape& t = k.tape;
    ops::Ref i = t.index(0), j = t.index(1);
    ops::Ref even = t.eq(t.band(i, t.integer(DType::kI64, 1)), t.integer(DType::kI64, 0));
    ops::Ref sum = t.add(t.mul(i, t.integer(DType::kI64, 1000)), j);
    k.stores = {{t.select(even, sum, t.neg(j)), r.broadcast(z, 2)}};
    r.push(std::move(k));
    ASSERT_EQ(r.run(), 0);
    for (int64_t a = 0; a < 6; ++a)
      for (int64_t b = 0; b < 41; ++b)
        ASSERT_EQ(r.output().number(a * 41 + b), a % 2 ? -b : a * 1000 + b);
  }
}

TEST_P(Map, CarriedDependenceRunsInOrder) {
  // x[1:] += x[:-1], in place
  Runner r;
  r.cpu = GetParam();
  Array x = make_array(DType::kF32, {50});
  for (int i = 0; i < 50; ++i) x.set(i, 1);
  BufferId b = r.argument(x);
  Kernel k = r.kernel(Kernel::Kind::kMap, r.shape({49}));
  k.carries_dependence = true;
  schedule::BufferAccess low = r.access(b, {0}), high = r.access(b, {0});
  high.access.offset = r.dim(4);
  k.loads = {high, low};
  k.stores = {{k.tape.add(k.tape.load(DType::kF32, 0), k.tape.load(DType::kF32, 1)), high}};
  r.push(std::move(k));
  ASSERT_EQ(r.run(), 0);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(x.number(i), i + 1);
}

TEST_P(Map, ChecksFireAtTheLowestIteration) {
  Runner r;
  r.cpu = GetParam();
  Array x = make_array(DType::kI64, {100});
  for (int i = 0; i < 100; ++i) x.set(i, i);
  BufferId a = r.argument(x), z = r.result(DType::kI64, r.shape({100}));
  Kernel k = r.kernel(Kernel::Kind::kMap, r.shape({100}));
  k.may_raise = true;
  k.loads = {r.access(a, {0})};
  ops::Tape& t = k.tape;
  ops::Ref v = t.load(DType::kI64, 0);
  t.check(t.le(t.integer(DType::kI64, 90), v), 5);
  t.check(t.le(t.integer(DType::kI64, 40), v), 3);
  k.stores = {{v, r.access(z, {0})}};
  r.push(std::move(k));
  EXPECT_EQ(r.run(), 4);
  EXPECT_EQ(r.raised, std::vector<uint32_t>{3});
  EXPECT_EQ(r.output().number(39), 39);  // what came before has landed
  EXPECT_NE(r.output().number(40), 40);  // and nothing after
}

TEST_P(Map, ParallelForGivesTheSameBits) {
  for (int64_t split : {1, 3, 64}) {
    Runner r;
    r.cpu = GetParam();
    r.split = split;
    Array x = make_array(DType::kF32, {100003});
    fill_random(x, 7);
    BufferId a = r.argument(x), z = r.result(DType::kF32, r.shape({100003}));
    Kernel k = r.kernel(Kernel::Kind::kMap, r.shape({100003}));
    k.cost_ns = 1e6;
    k.loads = {r.access(a, {0})};
    k.stores = {{k.tape.unary(ops::Prim::kSqrt, k.tape.abs(k.tape.load(DType::kF32, 0))),
                 r.access(z, {0})}};
    r.push(std::move(k));
    ASSERT_EQ(r.run(), 0);
    EXPECT_EQ(r.parallel_calls, 1);
    EXPECT_EQ(r.pieces, split == 64 ? r.pieces : split);
    for (int64_t i = 0; i < x.count(); ++i)
      ASSERT_EQ(r.output().number(i), std::sqrt(std::abs(static_cast<float>(x.number(i)))));
  }
}

TEST_P(Map, TheLongerAxisIsDivided) {
  Runner r;
  r.cpu = GetParam();
  r.split = 5;
  Array x = make_array(DType::kF64, {3, 700}), row = make_array(DType::kF64, {700});
  fill_random(x, 1);
  fill_random(row, 2);
  BufferId a = r.argument(x), b = r.argument(row), z = r.result(DType::kF64, r.shape({3, 700}));
  Kernel k = r.kernel(Kernel::Kind::kMap, r.shape({3, 700}));
  k.cost_ns = 1e6;
  k.loads = {r.broadcast(a, 2), r.broadcast(b, 2)};
  k.stores = {
      {k.tape.add(k.tape.load(DType::kF64, 0), k.tape.load(DType::kF64, 1)), r.broadcast(z, 2)}};
  r.push(std::move(k));
  ASSERT_EQ(r.run(), 0);
  EXPECT_EQ(r.pieces, 5);
  for (int64_t i = 0; i < 2100; ++i)
    ASSERT_EQ(r.output().number(i), x.number(i) + row.number(i % 700));
}

TEST_P(Map, ForLoopCarriesABufferAndPolls) {
  // acc = 0; for i in range(2, 2 + n): acc = acc * 2 + i * c
  Runner r;
  r.cpu = GetParam();
  ir::Dim n = r.symbol("n", 10);
  ir::Dim i = r.symbol("i", 0, artifact::Symbol::Kind::kInternal);
  float c[3] = {1, 10, 100};
  std::vector<uint8_t> bytes(12);
  memcpy(bytes.data(), c, 12);
  BufferId weights = r.constant(DType::kF32, {3}, bytes);
  BufferId acc = r.result(DType::kF32, r.shape({3}));
  Kernel zero = r.kernel(Kernel::Kind::kMap, r.shape({3}));
  zero.stores = {{zero.tape.number(DType::kF32, 0), r.access(acc, {0})}};
  r.push(std::move(zero));
  schedule::For loop;
  loop.induction = ir::SymbolId{1};
  loop.begin = r.dim(2);
  loop.trip = n;
  loop.body = std::make_unique<schedule::Block>();
  Kernel k = r.kernel(Kernel::Kind::kMap, r.shape({3}));
  k.cost_ns = 500e3;
  k.loads = {r.access(acc, {0}), r.access(weights, {0})};
  ops::Tape& t = k.tape;
  ops::Ref index = t.cast(DType::kF32, t.dim(i.id));
  ops::Ref doubled = t.mul(t.load(DType::kF32, 0), t.number(DType::kF32, 2));
  k.stores = {{t.add(doubled, t.mul(index, t.load(DType::kF32, 1))), r.access(acc, {0})}};
  loop.body->push_back({std::move(k)});
  r.push(std::move(loop));
  ASSERT_EQ(r.run(), 0);
  for (int q = 0; q < 3; ++q) {
    float want = 0;
    for (int step = 2; step < 12; ++step) want = want * 2 + static_cast<float>(step) * c[q];
    EXPECT_EQ(r.output().number(q), want);
  }
  EXPECT_GE(r.polls, 3);
  EXPECT_LE(r.polls, 10);
}

TEST_P(Map, CheckRaisesWithItsPayload) {
  Runner r;
  r.cpu = GetParam();
  ir::Dim n = r.symbol("n", 7), m = r.symbol("m", -3);
  ir::DimTable& d = r.graph.dims;
  schedule::Check passes{artifact::Predicate::Op::kLt, m, n, 1, {n}};
  // 7 // -3 == -3, 7 % -3 == -2
  schedule::Check fails{
      artifact::Predicate::Op::kLe, n, m, 2, {n, m, d.floordiv(n, m), d.mod(n, m)}};
  r.push(passes);
  r.push(fails);
  EXPECT_EQ(r.run(), 3);
  EXPECT_EQ(r.raised, std::vector<uint32_t>{2});
  EXPECT_EQ(r.payload[0], 7);
  EXPECT_EQ(r.payload[1], -3);
  EXPECT_EQ(r.payload[2], -3);
  EXPECT_EQ(r.payload[3], -2);
}

TEST_P(Map, CheckOfWhatInt64Holds) {
  // n * n - m with n = 3037000499: n * n is the largest square below 2^63.
  for (auto [n_is, m_is, fails] :
       {std::tuple{3'037'000'400, int64_t{7}, false}, std::tuple{3'037'000'500, int64_t{7}, true},
        std::tuple{int64_t{-4'000'000'000}, int64_t{0}, true},
        std::tuple{int64_t{2}, INT64_MIN, true}, std::tuple{int64_t{2}, INT64_MAX / 2, false}}) {
    Runner r;
    r.cpu = GetParam();
    ir::Dim n = r.symbol("n", n_is), m = r.symbol("m", m_is);
    ir::DimTable& d = r.graph.dims;
    schedule::Check check;
    check.fits = true;
    check.lhs = d.sub(d.mul(n, n), m);
    check.site = 2;
    r.push(check);
    EXPECT_EQ(r.run() != 0, fails) << n_is << " " << m_is;
    EXPECT_EQ(r.raised.size(), fails ? 1u : 0u);
  }
}

TEST_P(Map, ArenaLeaseCopyAndHostCall) {
  Runner r;
  r.cpu = GetParam();
  ir::Dim n = r.symbol("n", 20);
  Array x = make_array(DType::kF64, {20}, {}, {true});
  fill_random(x, 3);
  BufferId a = r.argument(x);
  r.program.buffer(a).shape = {n};
  BufferId tmp = r.arena(DType::kF64, r.shape({20}));
  BufferId leased = r.arena(DType::kF64, r.shape({20}));
  r.program.buffer(leased).shape = {n};
  r.program.buffer(leased).bytes = r.graph.dims.mul(n, r.dim(8));
  r.program.buffer(leased).offset = -1;
  BufferId z = r.result(DType::kF64, r.shape({20}));
  r.push(schedule::Lease{leased});
  r.push(schedule::CopyBuffer{a, tmp});
  r.push(schedule::CopyBuffer{tmp, leased});
  schedule::HostCall call;
  call.site = 4;
  call.operands = {{leased, {r.dim(8), r.shape({16})}, r.shape({10})}};
  r.push(std::move(call));
  r.push(schedule::CopyBuffer{leased, z});
  std::vector<double> seen;
  r.host = [&](uint32_t site, const CuvilArray* o, uint32_t count) {
    EXPECT_EQ(site, 4u);
    EXPECT_EQ(count, 1u);
    for (int64_t i = 0; i < o[0].shape[0]; ++i)
      seen.push_back(
          *reinterpret_cast<double*>(static_cast<char*>(o[0].data) + i * o[0].strides[0]));
    return 0;
  };
  ASSERT_EQ(r.run(), 0);
  ASSERT_EQ(seen.size(), 10u);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(seen[i], x.number(1 + 2 * i));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(r.output().number(i), x.number(i));
}

TEST_P(Map, AFailedHostCallEndsTheCall) {
  Runner r;
  r.cpu = GetParam();
  BufferId z = r.result(DType::kF64, r.shape({1}));
  r.push(schedule::HostCall{9, {}});
  Kernel k = r.kernel(Kernel::Kind::kMap, r.shape({1}));
  k.stores = {{k.tape.number(DType::kF64, 1), r.access(z, {0})}};
  r.push(std::move(k));
  r.host = [](uint32_t, const CuvilArray*, uint32_t) { return CUVIL_SITE_PYTHON; };
  EXPECT_EQ(r.run(), CUVIL_SITE_PYTHON);
  EXPECT_NE(r.output().number(0), 1);
}

TEST_P(Map, UnsupportedTypesAreAnError) {
  Runner r;
  r.cpu = GetParam();
  Kernel k = r.kernel(Kernel::Kind::kMap, r.shape({1}));
  k.tape.number(DType::kC64, 1);
  r.push(std::move(k));
  CpuOptions o;
  o.cpu = GetParam();
  auto made = generate_cpu(r.program, o);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().cls, ErrorClass::kUnsupported);
}

TEST(Target, UnknownCpuIsAnError) {
  Runner r;
  CpuOptions o;
  o.cpu = "pentium-of-dreams";
  EXPECT_FALSE(generate_cpu(r.program, o).ok());
  o.cpu = "x86-64";
  auto old = generate_cpu(r.program, o);
  ASSERT_FALSE(old.ok());
  EXPECT_NE(old.error().found.find("x86-64-v2"), std::string::npos);
}

TEST(Blob, RunsWhereverItIsPut) {
  Runner r;
  Array x = make_array(DType::kF32, {5});
  fill_random(x, 1);
  float c[5] = {1, 2, 3, 4, 5};
  std::vector<uint8_t> bytes(20);
  memcpy(bytes.data(), c, 20);
  BufferId a = r.argument(x), b = r.constant(DType::kF32, {5}, bytes);
  BufferId z = r.result(DType::kF32, r.shape({5}));
  Kernel k = r.kernel(Kernel::Kind::kMap, r.shape({5}));
  k.loads = {r.access(a, {0}), r.access(b, {0})};
  k.stores = {
      {k.tape.mul(k.tape.load(DType::kF32, 0), k.tape.load(DType::kF32, 1)), r.access(z, {0})}};
  r.push(std::move(k));
  for (int again = 0; again < 2; ++again) {  // run() maps it anew each time
    ASSERT_EQ(r.run(), 0);
    for (int i = 0; i < 5; ++i)
      EXPECT_EQ(r.output().number(i), static_cast<float>(x.number(i)) * c[i]);
  }
  EXPECT_EQ(r.compile().blob.size() % 64, 0u);
  EXPECT_LE(r.compile().min_services_size, sizeof(CuvilServices));
}

}  // namespace
}  // namespace cuvil::backend::testing
