// fold: a pointwise op all of whose operands are constants of rank 0 becomes one. Elementary functions
// are left: the target computes them, and its rounding is what the result must have.
//
//   %1 = constant {bits = 2}  : i64[]
//   %2 = cast %1              : f32[]      ->   %2 = constant {bits = 1073741824} : f32[]
#include <array>

#include "ops/interpret.h"
#include "passes/passes.h"
#include "passes/users.h"

namespace cuvil::passes {

namespace {

std::optional<uint64_t> value_of(const ir::Graph& g, const ir::Op& op) {
  const ops::OpInfo& info = ops::info_of(op);
  if (info.family != ops::Family::kPointwise || !info.body || op.results.size() != 1 ||
      op.desc->effects != ir::kPure || g.type(op.results[0]).rank() != 0)
    return std::nullopt;
  ops::Tape tape;
  std::vector<ops::Ref> operands;
  for (ir::ValueId o : op.operands) {
    const ir::Op* def = g.def(o);
    if (!is_named(def, "constant")) return std::nullopt;
    operands.push_back(
        tape.bits(g.type(o).dtype, static_cast<uint64_t>(def->integer(ops::attr::kBits))));
  }
  ops::Ref result = info.body({tape, g, op, operands, 0});
  for (const ops::Inst& i : tape.insts)
    if (i.prim == ops::Prim::kMath || i.prim == ops::Prim::kCheck) return std::nullopt;
  return ops::interpret(tape, result, {});
}

}  // namespace

cuvil::Result<> fold_constants(ir::Graph& g) {
  const ops::OpInfo* constant = ops::find_op("constant");
  if (!constant) return make_error(ErrorClass::kInternal, "there is no op `constant`");
  for (size_t r = 0; r < g.region_count(); ++r) {
    const std::vector<ir::OpId> ops = g.region({static_cast<int32_t>(r)}).ops;
    for (ir::OpId id : ops) {
      auto bits = value_of(g, g.op(id));
      if (!bits) continue;
      ir::Op& op = g.op(id);
      op.desc = constant;
      op.operands.clear();
      op.attributes = {{ops::attr::kBits, static_cast<int64_t>(*bits)}};
    }
  }
  return Ok{};
}

}  // namespace cuvil::passes
