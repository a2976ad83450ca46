// Dims: canonical form, ranges, text and postfix code.
#include <gtest/gtest.h>

#include "ir/dim.h"

namespace cuvil::ir {
namespace {

struct DimTest : ::testing::Test {
  DimTable t;
  SymbolId n_id, m_id;
  Dim n, m;
  void SetUp() override {
    n_id = t.add_symbol({.name = "n",
                         .kind = artifact::Symbol::Kind::kShape,
                         .range = {2, INT64_MAX},
                         .example = 7});
    m_id = t.add_symbol({.name = "m",
                         .kind = artifact::Symbol::Kind::kScalar,
                         .array = 1,
                         .range = {-5, 5},
                         .example = -3});
    n = t.symbol(n_id);
    m = t.symbol(m_id);
  }
  Dim c(int64_t v) { return t.constant(v); }
};

TEST_F(DimTest, EqualPolynomialsAreTheSameDim) {
  EXPECT_EQ(t.add(t.sub(n, c(1)), c(1)), n);
  EXPECT_EQ(t.mul(t.add(n, m), t.sub(n, m)), t.sub(t.mul(n, n), t.mul(m, m)));
  EXPECT_EQ(t.sub(n, n), c(0));
  EXPECT_EQ(t.as_constant(t.sub(t.add(n, c(4)), n)), 4);
  EXPECT_FALSE(t.as_constant(n).has_value());
}

TEST_F(DimTest, DivisionIsPythons) {
  EXPECT_EQ(t.as_constant(t.floordiv(c(-7), c(2))), -4);
  EXPECT_EQ(t.as_constant(t.mod(c(-7), c(2))), 1);
  EXPECT_EQ(t.as_constant(t.mod(c(7), c(-2))), -1);
  EXPECT_EQ(t.floordiv(t.mul(n, c(6)), c(3)), t.mul(n, c(2)));
  EXPECT_EQ(t.mod(t.mul(n, c(6)), c(3)), c(0));
  EXPECT_EQ(t.floordiv(n, n), c(1));
  EXPECT_EQ(t.as_constant(t.floordiv(c(INT64_MIN), c(-1))), INT64_MIN);  // wraps, does not trap
}

TEST_F(DimTest, MinAndMaxFoldWhenRangesDecide) {
  EXPECT_EQ(t.min(n, c(2)), c(2));
  EXPECT_EQ(t.max(n, c(1)), n);
  Dim undecided = t.min(n, c(100));
  EXPECT_NE(undecided, n);
  EXPECT_EQ(undecided, t.min(c(100), n));
  EXPECT_EQ(t.range(undecided).lo, 2);
  EXPECT_EQ(t.range(undecided).hi, 100);
}

TEST_F(DimTest, Ranges) {
  EXPECT_EQ(t.range(t.sub(n, c(1))).lo, 1);
  EXPECT_EQ(t.range(t.mul(m, m)).lo, 0);
  EXPECT_EQ(t.range(t.mul(m, m)).hi, 25);
  EXPECT_EQ(t.range(t.mul(m, c(-2))).lo, -10);
  EXPECT_EQ(t.range(t.mod(n, c(4))), (Range{0, 3}));
  EXPECT_EQ(t.range(t.mul(n, n)).hi, INT64_MAX);
}

TEST_F(DimTest, ExamplesAndExpressionsAgree) {
  Dim e = t.add(t.mul(t.floordiv(n, c(2)), t.mod(m, c(4))), t.max(n, t.mul(m, c(-4))));
  ASSERT_TRUE(t.example(e).has_value());
  EXPECT_EQ(*t.example(e), 3 * 1 + 12);
  EXPECT_EQ(t.as_constant(t.substitute(
                e, [&](SymbolId s) { return std::optional<Dim>(c(s == n_id ? 7 : -3)); })),
            15);
  // The postfix code in the artifact evaluates to the same number.
  std::vector<int64_t> stack;
  int64_t symbols[] = {7, -3};
  for (const auto& node : t.to_expr(e)) {
    using Op = artifact::ExprNode::Op;
    if (node.op == Op::kConst) {
      stack.push_back(node.imm);
      continue;
    }
    if (node.op == Op::kSymbol) {
      stack.push_back(symbols[node.imm]);
      continue;
    }
    int64_t b = stack.back();
    stack.pop_back();
    int64_t a = stack.back();
    stack.pop_back();
    auto fd = [](int64_t x, int64_t y) { return x / y - ((x % y != 0) && ((x < 0) != (y < 0))); };
    switch (node.op) {
      case Op::kAdd: stack.push_back(a + b); break;
      case Op::kMul: stack.push_back(a * b); break;
      case Op::kFloorDiv: stack.push_back(fd(a, b)); break;
      case Op::kMod: stack.push_back(a - fd(a, b) * b); break;
      case Op::kMin: stack.push_back(std::min(a, b)); break;
      case Op::kMax: stack.push_back(std::max(a, b)); break;
      default: FAIL();
    }
  }
  ASSERT_EQ(stack.size(), 1u);
  EXPECT_EQ(stack[0], 15);
}

TEST_F(DimTest, OverflowIsSeen) {
  DimTable::SymbolInfo info;
  info.name = "k";
  info.example = 1000;
  info.range = {-1000, 1000};
  Dim k = t.symbol(t.add_symbol(info));
  Dim large = t.mul(k, t.constant(int64_t{1} << 62));
  EXPECT_FALSE(t.fits(large));
  EXPECT_FALSE(t.mul_exactly(large, t.constant(4)));
  EXPECT_FALSE(t.mul_exactly(t.constant(INT64_MIN), t.constant(-1)));
  EXPECT_FALSE(t.add_exactly(t.constant(INT64_MAX), t.constant(1)));
  EXPECT_FALSE(t.add_exactly(large, large));
  Dim square = *t.mul_exactly(k, k);
  EXPECT_TRUE(t.fits(square));
}

TEST_F(DimTest, TextRoundTrips) {
  for (Dim d : {c(0), c(-3), n, t.add(t.mul(n, c(2)), c(1)), t.sub(c(1), n),
                t.floordiv(t.sub(n, c(1)), c(2)), t.mul(t.min(n, c(9)), m),
                t.mod(t.add(n, m), c(5)), t.sub(t.mul(n, n), m)}) {
    auto back = t.parse(t.to_string(d));
    ASSERT_TRUE(back.has_value()) << t.to_string(d);
    EXPECT_EQ(*back, d) << t.to_string(d);
  }
  EXPECT_EQ(t.to_string(t.add(t.mul(n, c(2)), c(1))), "2*n + 1");
  EXPECT_FALSE(t.parse("2*q").has_value());
  EXPECT_FALSE(t.parse("n +").has_value());
  EXPECT_FALSE(t.parse("(n").has_value());
}

TEST_F(DimTest, InternalSymbolsAreSeen) {
  Dim i = t.symbol(t.add_symbol({.name = "i", .range = {0, 10}, .example = {}}));
  EXPECT_TRUE(t.depends_on_internal(t.add(n, i)));
  EXPECT_FALSE(t.depends_on_internal(t.add(n, m)));
  EXPECT_FALSE(t.example(t.add(n, i)).has_value());
}

}  // namespace
}  // namespace cuvil::ir
