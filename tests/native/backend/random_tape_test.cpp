// Random tapes over random accesses, generated code against the interpreter of ops: bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "harness.h"
#include "ops/interpret.h"

namespace cuvil::backend::testing {
namespace {

using ops::Prim;
using schedule::Kernel;

class RandomTape : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Levels, RandomTape, ::testing::ValuesIn(cpu_levels()), [](const auto& i) {
  std::string s = i.param.empty() ? "host" : i.param;
  for (char& c : s)
    if (c == '-') c = '_';
  return s;
});

constexpr DType kTypes[] = {DType::kBool, DType::kI8,  DType::kI16, DType::kI32,
                            DType::kI64,  DType::kU8,  DType::kU16, DType::kU32,
                            DType::kU64,  DType::kF16, DType::kF32, DType::kF64};

struct Generator {
  std::mt19937 random;
  ops::Tape& tape;
  std::vector<ops::Ref> values;

  size_t below(size_t n) { return random() % n; }
  ops::Ref any() { return values[below(values.size())]; }
  ops::Ref of(DType t) {
    for (int tries = 0; tries < 6; ++tries)
      if (ops::Ref r = any(); tape.type(r) == t) return r;
    return tape.cast(t, any());
  }

  void grow() {
    const DType t = kTypes[below(std::size(kTypes))];
    constexpr Prim kFloat[] = {Prim::kAdd,   Prim::kSub,  Prim::kMul,     Prim::kDiv,   Prim::kRem,
                               Prim::kNeg,   Prim::kAbs,  Prim::kSqrt,    Prim::kFloor, Prim::kCeil,
                               Prim::kTrunc, Prim::kRint, Prim::kCopySign};
    constexpr Prim kInt[] = {Prim::kAdd, Prim::kSub, Prim::kMul, Prim::kDiv,
                             Prim::kRem, Prim::kNeg, Prim::kAbs, Prim::kAnd,
                             Prim::kOr,  Prim::kXor, Prim::kShl, Prim::kShr};
    constexpr Prim kBool[] = {Prim::kAnd, Prim::kOr, Prim::kXor};
    constexpr Prim kCompare[] = {Prim::kEq, Prim::kNe, Prim::kLt, Prim::kLe};
    switch (below(8)) {
      case 0: values.push_back(tape.cast(t, any())); return;
      case 1: values.push_back(tape.compare(kCompare[below(4)], of(t), of(t))); return;
      case 2: values.push_back(tape.select(of(DType::kBool), of(t), of(t))); return;
      case 3: values.push_back(tape.integer(t, static_cast<int64_t>(below(9)) - 3)); return;
      default: break;
    }
    Prim p = is_float(t)  ? kFloat[below(std::size(kFloat))]
             : is_bool(t) ? kBool[below(3)]
                          : kInt[below(std::size(kInt))];
    // Signs of NaN and of what a NaN is made into are not determined.
    if (ops::prim_arity(p) == 1)
      values.push_back(tape.unary(p, of(t)));
    else
      values.push_back(tape.binary(p, of(t), of(t)));
  }
};

bool is_nan(DType t, uint64_t bits) { return is_float(t) && std::isnan(ops::float_value(t, bits)); }

TEST_P(RandomTape, AgreesWithTheInterpreter) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Runner r;
    r.cpu = GetParam();
    std::mt19937 g(seed);
    const std::vector<int64_t> shape{1 + static_cast<int64_t>(g() % 3),
                                     1 + static_cast<int64_t>(g() % 70)};
    const bool symbolic = g() % 2 && shape[0] > 1 && shape[1] > 1;
    ir::Shape extents =
        symbolic ? ir::Shape{r.symbol("n", shape[0]), r.symbol("m", shape[1])} : r.shape(shape);
    Kernel k = r.kernel(Kernel::Kind::kMap, extents);
    Generator make{std::mt19937(seed + 1000), k.tape, {}};
    std::vector<std::unique_ptr<Array>> arrays;
    std::vector<std::vector<int>> axes;
    for (int i = 0; i < 4; ++i) {
      const DType t = kTypes[g() % std::size(kTypes)];
      const int form = static_cast<int>(g() % 5);
      std::vector<int64_t> s = form == 0   ? std::vector<int64_t>{shape[1]}
                               : form == 1 ? std::vector<int64_t>{shape[0]}
                                           : shape;
      auto a = std::make_unique<Array>(
          form < 2 ? make_array(t, s, {}, {g() % 2 == 1}, 1 + g() % 2)
                   : make_array(t, s, form == 3 ? std::vector<int>{1, 0} : std::vector<int>{},
                                {g() % 4 == 0, g() % 4 == 0}));
      fill_random(*a, seed * 10 + i, -9, 9);
      BufferId id = r.argument(*a);
      axes.push_back(form == 0   ? std::vector<int>{-1, 0}
                     : form == 1 ? std::vector<int>{0, -1}
                                 : std::vector<int>{0, 1});
      k.loads.push_back(r.access(id, axes.back()));
      make.values.push_back(k.tape.load(t, static_cast<uint32_t>(i)));
      arrays.push_back(std::move(a));
    }
    make.values.push_back(k.tape.index(0));
    make.values.push_back(k.tape.index(1));
    for (int i = 0; i < 18; ++i) make.grow();
    std::vector<ops::Ref> stored;
    for (int i = 0; i < 3; ++i) {
      ops::Ref v = make.values[make.values.size() - 1 - i];
      BufferId out = r.result(k.tape.type(v), extents);
      k.stores.push_back({v, r.access(out, {0, 1})});
      stored.push_back(v);
    }
    ops::Tape tape = k.tape;
    r.push(std::move(k));
    ASSERT_EQ(r.run(), 0);
    for (int64_t i = 0; i < shape[0]; ++i)
      for (int64_t j = 0; j < shape[1]; ++j) {
        std::vector<uint64_t> loads;
        for (size_t a = 0; a < arrays.size(); ++a) {
          int64_t flat = axes[a][0] < 0 ? j : axes[a][1] < 0 ? i : i * shape[1] + j;
          uint64_t bits = 0;
          memcpy(&bits, arrays[a]->at(flat), size_of(arrays[a]->dtype));
          loads.push_back(bits);
        }
        const int64_t indices[] = {i, j};
        for (size_t s = 0; s < stored.size(); ++s) {
          auto want = ops::interpret(tape, stored[s], {loads, indices, {}, {}});
          ASSERT_TRUE(want.has_value());
          const DType t = tape.type(stored[s]);
          uint64_t got = 0;
          memcpy(&got, r.output(s).at(i * shape[1] + j), size_of(t));
          if (is_nan(t, *want)) {
            ASSERT_TRUE(is_nan(t, got));
          } else {
            ASSERT_EQ(got, *want) << "store " << s << " of type " << info(t).name << " at " << i
                                  << ", " << j;
          }
        }
      }
  }
}

}  // namespace
}  // namespace cuvil::backend::testing
