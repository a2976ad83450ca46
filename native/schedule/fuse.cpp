// Which values get memory of their own, decided on the whole graph before lowering. Called by lower.cpp.
//
//   d = x - mean            two kernels need d, one subtraction: computed in both
//   e = exp(d)              two kernels need e, an exponential:  root
//   s = sum(e); y = e / s   y is a result:                       root
//
// Values are judged from the last to the first, each by the kernels that need it: a root is a kernel of
// its own to its operands, everything else passes the kernels of its users on.
#include <algorithm>
#include <set>

#include "schedule/lower.h"

namespace cuvil::schedule {

using ir::OpId;
using ir::ValueId;
using ops::Family;
using ops::OpInfo;

namespace {

constexpr double kCheap = 4;        // operations that cost less than a store and a load
constexpr double kCheapFactor = 3;  // of an element of a matmul operand, computed as a scalar
constexpr int32_t kMostWide = 2;    // full-size operands worth reading again

// What becomes of a value, seen through movement ops.
enum Flag : char { kSpread = 1, kFeedsReduction = 2, kNested = 4, kFactorA = 8, kFactorB = 16 };

double prim_cost(const ops::Inst& i) {
  using ops::Prim;
  switch (i.prim) {
    case Prim::kLoad:
    case Prim::kConst:
    case Prim::kIndex:
    case Prim::kDim:
    case Prim::kBitcast:
    case Prim::kAccumulator: return 0;
    case Prim::kMath: return 20;
    case Prim::kDiv:
    case Prim::kSqrt: return 3;
    case Prim::kRem: return 10;
    default: return 1;
  }
}

}  // namespace

bool is_movement(const ir::Op& op) {
  const OpInfo& i = ops::info_of(op);
  return (i.family == Family::kMovement && i.view) || is_named(&op, "copy");
}

bool repeats(const ir::Graph& g, const ir::Op& op) {
  if (!is_named(&op, "broadcast_to")) return false;
  const ir::Shape& from = g.type(op.operands[0]).shape;
  const ir::Shape& to = g.type(op.results[0]).shape;
  size_t extra = to.size() - from.size();
  for (size_t k = 0; k < to.size(); ++k) {
    if (g.dims.is_constant(to[k], 1)) continue;
    if (k < extra || from[k - extra] != to[k]) return true;
  }
  return false;
}

double op_cost(const ir::Graph& g, OpId id) {
  const ir::Op& op = g.op(id);
  const OpInfo& info = ops::info_of(op);
  if (!info.body) return 0;
  ops::Tape t;
  std::vector<ops::Ref> operands;
  for (size_t k = 0; k < op.operands.size(); ++k)
    operands.push_back(t.load(g.type(op.operands[k]).dtype, static_cast<uint32_t>(k)));
  info.body({t, g, op, operands, 0});
  double sum = 0;
  for (const ops::Inst& i : t.insts) sum += prim_cost(i);
  return sum;
}

FusionPlan::FusionPlan(const ir::Graph& g)
    : g_(g),
      users_(g.value_count()),
      root_(g.value_count(), 0),
      flags_(g.value_count(), 0),
      cost_(g.value_count(), 0),
      wide_(g.value_count(), 0) {
  for (size_t r = 0; r < g.region_count(); ++r) {
    for (OpId id : g.region({static_cast<int32_t>(r)}).ops) {
      const ir::Op& op = g.op(id);
      for (size_t k = 0; k < op.operands.size(); ++k) users_[op.operands[k].id].push_back({id, k});
    }
  }
  for (const ir::Result& r : g.results) {
    const OpInfo* info = info_of(g, r.value);
    if (r.kind == ir::Result::Kind::kFresh && info && info->family != Family::kMovement)
      root_[r.value.id] = 1;
  }
  for (size_t r = 0; r < g.region_count(); ++r) {
    ir::RegionId region{static_cast<int32_t>(r)};
    measure(region);
    choose_shared(region);
    choose_reductions(region);
    measure(region);
  }
}

bool FusionPlan::is_cheap(ValueId v) const {
  return cost_[v.id] <= kCheap && wide_[v.id] <= kMostWide;
}

// A reduction's result after pointwise ops, none of which anybody else reads.
bool FusionPlan::ends_reduction(ValueId v) const {
  const ir::Op* op = g_.def(v);
  if (!op) return false;
  for (ValueId o : op->operands) {
    const OpInfo* def = info_of(g_, o);
    if (!def || users_[o.id].size() != 1 || root_[o.id]) continue;
    const ir::Op& made = *g_.def(o);
    if (is_heavy(*def)) return true;
    bool passes = def->family == Family::kPointwise || (is_movement(made) && !repeats(g_, made));
    if (passes && ends_reduction(o)) return true;
  }
  return false;
}

void FusionPlan::measure(ir::RegionId r) {
  for (OpId id : g_.region(r).ops) {
    const ir::Op& op = g_.op(id);
    if (op.results.size() != 1) continue;
    ValueId v = op.results[0];
    const OpInfo& info = ops::info_of(op);
    cost_[v.id] = 0;
    wide_[v.id] = 1;
    if (info.family == Family::kCreate) wide_[v.id] = 0;
    if (is_movement(op)) {
      bool once = repeats(g_, op);  // computed outside of the innermost loop, or a root
      cost_[v.id] = once || root_[op.operands[0].id] ? 0 : cost_[op.operands[0].id];
      wide_[v.id] = once ? 0 : root_[op.operands[0].id] ? 1 : wide_[op.operands[0].id];
    }
    if (info.family != Family::kPointwise) continue;
    cost_[v.id] = op_cost(g_, id);
    wide_[v.id] = 0;
    std::vector<ValueId> distinct;
    for (ValueId o : op.operands) {
      if (std::find(distinct.begin(), distinct.end(), o) != distinct.end()) continue;
      distinct.push_back(o);
      const OpInfo* def = info_of(g_, o);
      bool inlined = def && !root_[o.id] && !is_heavy(*def) && def->family != Family::kStorage;
      cost_[v.id] += inlined ? cost_[o.id] : 0;
      wide_[v.id] += inlined ? wide_[o.id] : 1;
    }
    if (cost_[v.id] > kLargest) root_[v.id] = 1;
  }
}

void FusionPlan::choose_shared(ir::RegionId r) {
  std::vector<std::set<int64_t>> kernels(g_.value_count());
  auto key = [](OpId op, size_t operand) { return (int64_t{op.id} << 16 | int64_t(operand)) + 1; };
  for (size_t k = 0; k < g_.region(r).yields.size(); ++k)
    kernels[g_.region(r).yields[k].id].insert(-1 - static_cast<int64_t>(k));
  const auto& ops = g_.region(r).ops;
  for (size_t n = ops.size(); n-- > 0;) {
    const ir::Op& op = g_.op(ops[n]);
    if (op.results.size() != 1) continue;
    ValueId v = op.results[0];
    const OpInfo& info = ops::info_of(op);
    std::set<int64_t>& mine = kernels[v.id];
    char flags = 0;
    for (auto [user, operand] : users_[v.id]) {
      const ir::Op& u = g_.op(user);
      const OpInfo& ui = ops::info_of(u);
      if (u.parent != r) {
        flags |= kNested;
      } else if (is_movement(u)) {
        flags |= repeats(g_, u) ? char{kSpread} : flags_[u.results[0].id];
        const auto& k = kernels[u.results[0].id];
        mine.insert(k.begin(), k.end());
      } else if (ui.family == Family::kPointwise) {
        ValueId w = u.results[0];
        if (root_[w.id] || (u.desc->effects & ir::kMayRaise))
          mine.insert(key(user, 0));
        else
          mine.insert(kernels[w.id].begin(), kernels[w.id].end());
      } else if (ui.family == Family::kReduce) {
        flags |= kFeedsReduction;
        mine.insert(key(user, 0));
      } else if (ui.family == Family::kContract) {
        flags |= kFeedsReduction;
        flags |= operand == 0 ? kFactorA : kFactorB;
        mine.insert(key(user, 0));
      } else if (!(ui.family == Family::kStorage && operand == 1)) {
        mine.insert(key(user, operand));  // a store's value or cell, an operand of a loop or a call
        if (ui.family == Family::kHost && info.family != Family::kMovement) root_[v.id] = 1;
      }
    }
    flags_[v.id] = flags;
    if (root_[v.id] || is_movement(op)) continue;
    bool shared = mine.size() > 1 || (flags & (kSpread | kNested));
    if (is_heavy(info) && mine.size() > 1) root_[v.id] = 1;
    if (info.family != Family::kPointwise) continue;
    // What two kernels need of a reduction is best stored with what is done to it.
    if (mine.size() > 1 && ends_reduction(v)) root_[v.id] = 1;
    bool scalar = g_.type(v).rank() == 0 && !(flags & kNested);
    if (shared && !scalar && !is_cheap(v)) root_[v.id] = 1;
    if (flags & kFactorB && cost_[v.id] > 0) root_[v.id] = 1;
    if (flags & kFactorA && cost_[v.id] > kCheapFactor) root_[v.id] = 1;
  }
}

// A reduction is computed where its result is used, unless that is inside another reduction, for many
// elements, or in a loop: then what it is part of is a root.
void FusionPlan::choose_reductions(ir::RegionId r) {
  std::vector<char> holds(g_.value_count(), 0);
  for (OpId id : g_.region(r).ops) {
    const ir::Op& op = g_.op(id);
    if (op.results.size() != 1) continue;
    ValueId v = op.results[0];
    const OpInfo& info = ops::info_of(op);
    if (is_heavy(info)) holds[v.id] = 1;
    if (info.family == Family::kPointwise || is_movement(op))
      for (ValueId o : op.operands) holds[v.id] |= holds[o.id];
    if (!holds[v.id] || is_movement(op)) continue;
    if (flags_[v.id] & (kSpread | kFeedsReduction | kNested)) root_[v.id] = 1;
    if (root_[v.id]) holds[v.id] = 0;
  }
}

}  // namespace cuvil::schedule
