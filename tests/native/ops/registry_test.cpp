// Every op and row is well-formed, and what is built verifies and prints.
#include <set>

#include "harness.h"

namespace cuvil::ops::testing {
namespace {

TEST(Registry, NamesAreUniqueAndRowsBuild) {
  std::set<std::string_view> ops, rows;
  for (const OpInfo* op : all_ops()) {
    EXPECT_TRUE(ops.insert(op->name).second) << op->name;
    EXPECT_FALSE(op->doc.empty()) << op->name;
    EXPECT_EQ(find_op(op->name), op);
    EXPECT_EQ(op->family == Family::kPointwise && !op->body, false) << op->name;
  }
  for (const DialectRow* row : all_rows()) {
    EXPECT_TRUE(rows.insert(row->name).second) << row->name;
    EXPECT_TRUE(row->build) << row->name;
    EXPECT_EQ(find_row(row->name), row);
  }
  EXPECT_EQ(find_op("no such op"), nullptr);
  EXPECT_EQ(find_row("numpy.no_such_function"), nullptr);
}

TEST(Registry, BodiesMakeTapesOfTheirResultType) {
  // For each loop of each ufunc, the body's result has the type that the loop promises.
  for (const OpInfo* op : all_ops()) {
    if (op->family != Family::kPointwise || op->loops.empty()) continue;
    std::string_view loops = op->loops;
    if (loops[0] == '-' || loops[0] == '!') loops.remove_prefix(1);
    for (size_t i = 0; i < loops.size(); ++i) {
      DType in = DType::kF64;
      for (int t = 0; t <= static_cast<int>(DType::kF64); ++t)
        if (info(static_cast<DType>(t)).numpy_char == loops[i]) in = static_cast<DType>(t);
      DType out = op->outputs == "=" ? in : DType::kBool;
      ir::Graph g;
      Tape tape;
      std::vector<ir::ValueId> operands;
      std::vector<Ref> refs;
      for (int k = 0; k < op->arity; ++k) {
        operands.push_back(g.add_param(g.root(), {in, {}}));
        refs.push_back(tape.load(in, static_cast<uint32_t>(k)));
      }
      ir::OpId id = g.add_op(g.root(), *op, operands, {{out, {}}});
      Ref r = op->body({tape, g, g.op(id), refs, 0});
      ASSERT_TRUE(r.valid()) << op->name;
      EXPECT_EQ(tape.type(r), out) << op->name << " of " << info(in).name;
      for (const Inst& inst : tape.insts) {
        // Operands of one instruction share a type, except where the primitive says otherwise.
        if (prim_arity(inst.prim) != 2 || inst.prim == Prim::kMath || !inst.b.valid()) continue;
        EXPECT_EQ(tape.type(inst.a), tape.type(inst.b)) << op->name << " " << prim_name(inst.prim);
      }
    }
  }
}

TEST(Registry, TheExample) {
  Harness h;
  ArgValue x = h.input(DType::kF32, {1, 128}), w = h.input(DType::kF32, {128, 64});
  auto product = h.call("operator.matmul", {x, w});
  ASSERT_TRUE(product.ok());
  auto r = h.call("numpy.maximum", {*product, 0.0});
  EXPECT_EQ(h.show(r), "f32[1, 64]");
  h.g.results.push_back({.value = r->get<TensorArg>()->value});
  ASSERT_TRUE(ir::verify(h.g).ok());
  std::string text = ir::print(h.g);
  EXPECT_NE(text.find("matmul"), std::string::npos) << text;
  EXPECT_NE(text.find("maximum"), std::string::npos) << text;
  auto again = ir::parse(text, find_desc);
  ASSERT_TRUE(again.ok()) << again.error().found;
  EXPECT_EQ(ir::print(**again), text);
}

}  // namespace
}  // namespace cuvil::ops::testing
