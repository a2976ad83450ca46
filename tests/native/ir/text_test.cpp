// CIR text: print -> parse -> print is the identity; errors say where; the verifier finds what is wrong.
#include <gtest/gtest.h>

#include "ir/graph.h"

namespace cuvil::ir {
namespace {

constexpr OpDesc kDescs[] = {{"add"},      {"matmul"},        {"transpose"},
                             {"constant"}, {"for", kPure, 1}, {"check", kMayRaise}};

const OpDesc* lookup(std::string_view name) {
  for (const OpDesc& d : kDescs)
    if (d.name == name) return &d;
  return nullptr;
}

constexpr std::string_view kText =
    R"(symbol n = shape(0, 0) range [2, inf] example 7
symbol y.stride0 = stride(1, 0) range [-inf, inf] example -16
symbol i = internal range [0, inf]
predicate n < 10
predicate n - 1 <= 8
host 0 = "numpy.linalg.solve" source 3 (2 arguments)
func @f(%x: f32[n, 128] input(0), %y: f32[n, 4] input(1, strided[other, unit] order[0, 1]) capture readonly, %s: f64[] scalar(0)) {
  %0 = constant {bits = 1065353216} : f32[] loc(0:3:4-3:9)
  %1 = transpose %x {perm = [1, 0]} : f32[128, n] order[1, 0]
  check {op = 2, lhs = dims[i], rhs = dims[n], message = "index {0}\x0a \x22x\x22"}
  %2 = for %1 {symbol = 2, begin = dims[0], trip = dims[min(n, 5)], factor = real 0x1.8p+1} : f32[128, n] {
    ^(%3: f32[128, n])
    %4 = add %3, %3 : f32[128, n]
    yield %4
  }
  return %2 array, view(0) %1 array, view_of_result(0) %0 numpy_scalar, view(0) %x array readonly
}
)";

TEST(Text, PrintParsePrintIsTheIdentity) {
  auto g = parse(kText, lookup);
  ASSERT_TRUE(g.ok()) << g.error().found;
  EXPECT_TRUE(verify(**g).ok());
  EXPECT_EQ(print(**g), kText);
}

TEST(Text, ErrorsNameTheLine) {
  auto g =
      parse("func @f(%x: f32[2] input(0)) {\n  %0 = nonsense %x : f32[2]\n  return\n}", lookup);
  ASSERT_FALSE(g.ok());
  EXPECT_NE(g.error().found.find("line 2"), std::string::npos) << g.error().found;
  EXPECT_NE(g.error().found.find("a known op"), std::string::npos) << g.error().found;
}

// Every truncation is either rejected or (comments, trailing space) still the whole: never a crash.
TEST(Text, TruncationsAreRejected) {
  for (size_t n = 0; n + 2 < kText.size(); ++n) {
    auto g = parse(kText.substr(0, n), lookup);
    EXPECT_FALSE(g.ok()) << n;
  }
}

TEST(Verify, FindsUseBeforeDefinition) {
  auto g = parse(
      "func @f(%x: f32[2] input(0)) {\n %0 = add %x, %x : f32[2]\n %1 = add %0, %0 : f32[2]\n"
      " return %1 array\n}",
      lookup);
  ASSERT_TRUE(g.ok()) << g.error().found;
  auto& ops = (*g)->region((*g)->root()).ops;
  std::swap(ops[0], ops[1]);
  EXPECT_FALSE(verify(**g).ok());
}

TEST(Verify, FindsYieldOfAnotherType) {
  auto g = parse(
      "func @f(%x: f32[2] input(0)) {\n"
      " %0 = for %x {} : f32[2] {\n ^(%1: f32[2])\n yield %1\n }\n return %0 array\n}",
      lookup);
  ASSERT_TRUE(g.ok()) << g.error().found;
  EXPECT_TRUE(verify(**g).ok());
  ValueId result = (*g)->results[0].value;
  (*g)->value(result).type.dtype = DType::kF64;
  EXPECT_FALSE(verify(**g).ok());
}

TEST(Graph, UsesFollowReplacement) {
  auto g = parse(
      "func @f(%x: f32[2] input(0), %y: f32[2] input(1)) {\n %0 = add %x, %x : f32[2]\n"
      " return %0 array\n}",
      lookup);
  ASSERT_TRUE(g.ok());
  Graph& graph = **g;
  ValueId x = graph.inputs[0].value, y = graph.inputs[1].value;
  EXPECT_EQ(graph.use_counts()[x.id], 2);
  graph.replace_uses(x, y);
  EXPECT_EQ(graph.use_counts()[x.id], 0);
  EXPECT_EQ(graph.use_counts()[y.id], 2);
}

TEST(Graph, FortranInputsHaveFortranStrides) {
  Graph g;
  artifact::ArraySpec spec;
  spec.dtype = DType::kF32;
  spec.rank = 3;
  spec.layout = artifact::Layout::kF;
  add_array_input(g, spec, {g.dims.constant(2), g.dims.constant(3), g.dims.constant(4)}, 0, false,
                  "x", {});
  std::vector<int64_t> strides;
  for (Dim d : g.inputs[0].strides) strides.push_back(*g.dims.as_constant(d));
  EXPECT_EQ(strides, (std::vector<int64_t>{4, 8, 24}));
  EXPECT_EQ(g.value(g.inputs[0].value).order, (std::vector<uint8_t>{2, 1, 0}));
}

}  // namespace
}  // namespace cuvil::ir
