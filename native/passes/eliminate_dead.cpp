// dce: ops go that neither reach a result nor do anything a caller could notice: raise, call Python,
// or write into an argument.
//
//   %1 = exp %x                  (nobody reads it: goes)
//   %2 = store %a, %v, %x        %a is an argument: stays
//   check {...}                  stays
#include "passes/passes.h"
#include "passes/users.h"

namespace cuvil::passes {

namespace {

using ir::Op;
using ir::OpId;
using ir::ValueId;

class Liveness {
 public:
  explicit Liveness(const ir::Graph& g) : g_(g), live_(g.op_count(), 0) {}

  std::vector<char> run() {
    for (const ir::Result& r : g_.results) need(r.value);
    seed(g_.root());
    while (!work_.empty()) {
      OpId id = work_.back();
      work_.pop_back();
      const Op& op = g_.op(id);
      for (ValueId v : op.operands) need(v);
      OpId owner = g_.region(op.parent).owner;
      if (owner.valid()) mark(owner);
      // A live loop needs what it carries, and the symbols that are bound in it.
      for (ir::RegionId r : op.regions) {
        for (ValueId y : g_.region(r).yields) need(y);
        bind(r);
      }
    }
    return std::move(live_);
  }

 private:
  void mark(OpId id) {
    if (!id.valid() || live_[id.id]) return;
    live_[id.id] = 1;
    work_.push_back(id);
  }
  void need(ValueId v) { mark(g_.value(v).def); }

  void bind(ir::RegionId r) {
    for (OpId id : g_.region(r).ops)
      if (is_named(&g_.op(id), "bind_dim")) mark(id);
  }

  void seed(ir::RegionId r) {
    if (r == g_.root()) bind(r);
    for (OpId id : g_.region(r).ops) {
      const Op& op = g_.op(id);
      for (ir::RegionId inner : op.regions) seed(inner);
      if (!op.regions.empty()) continue;  // does what its body does
      const uint8_t noticed = ir::kMayRaise | ir::kCallsPython;
      if ((op.desc->effects & noticed) ||
          (is_named(&op, "store") && writes_argument(op.operands[0])))
        mark(id);
    }
  }

  // The cell a version belongs to is a parameter of the function.
  bool writes_argument(ValueId v) const {
    for (;;) {
      const ir::Value& value = g_.value(v);
      if (!value.def.valid()) {
        if (value.region == g_.root()) return true;
        v = g_.op(g_.region(value.region).owner).operands[value.index];
        continue;
      }
      const Op& op = g_.op(value.def);
      if (is_named(&op, "store"))
        v = op.operands[0];
      else if (is_named(&op, "for"))
        v = op.operands[value.index];
      else
        return false;
    }
  }

  const ir::Graph& g_;
  std::vector<char> live_;
  std::vector<OpId> work_;
};

}  // namespace

cuvil::Result<> eliminate_dead(ir::Graph& g) {
  std::vector<char> live = Liveness(g).run();
  for (size_t r = 0; r < g.region_count(); ++r)
    std::erase_if(g.region({static_cast<int32_t>(r)}).ops, [&](OpId id) { return !live[id.id]; });
  // The bodies of loops that went hold no uses any more.
  for (size_t r = 0; r < g.region_count(); ++r) {
    ir::Region& region = g.region({static_cast<int32_t>(r)});
    if (region.owner.valid() && !live[region.owner.id]) {
      region.ops.clear();
      region.yields.clear();
    }
  }
  return Ok{};
}

}  // namespace cuvil::passes
