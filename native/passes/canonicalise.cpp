// canonicalise: movement ops that undo or continue one another become one or none, casts to the same
// dtype go, and loops stop carrying what they do not change. No arithmetic is touched.
//
//   %1 = transpose %x {perm = [1, 0]}            %2 -> %x
//   %2 = transpose %1 {perm = [1, 0]}
//
//   %1 = slice %x {starts = dims[2], steps = [2], sizes = dims[9]}
//   %2 = slice %1 {starts = dims[1], steps = [3], sizes = dims[3]}
//     ->  %2 = slice %x {starts = dims[4], steps = [6], sizes = dims[3]}
//
// A value that a store goes on from keeps its identity: it may be an argument's memory.
#include <algorithm>
#include <numeric>

#include "passes/passes.h"
#include "passes/users.h"

namespace cuvil::passes {

namespace {

namespace attr = ops::attr;
using ir::Dim;
using ir::Op;
using ir::OpId;
using ir::ValueId;

class Canonicaliser {
 public:
  explicit Canonicaliser(ir::Graph& g) : g_(g), roles_(find_roles(g)) {}

  void run() {
    region(g_.root());
    // A value that was replaced is not replaced by another one that was.
    for (auto& [from, to] : replaced_) g_.replace_uses(from, to);
  }

 private:
  void region(ir::RegionId r) {
    const std::vector<OpId> ops = g_.region(r).ops;
    for (OpId id : ops) {
      for (ValueId& o : g_.op(id).operands) o = latest(o);
      const std::vector<ir::RegionId> inner = g_.op(id).regions;
      for (ir::RegionId i : inner) region(i);
      if (is_named(&g_.op(id), "for")) drop_unchanged(id);
      if (g_.op(id).results.size() == 1) simplify(id);
    }
    for (ValueId& y : g_.region(r).yields) y = latest(y);
  }

  ValueId latest(ValueId v) const {
    for (auto it = now_.find(v.id); it != now_.end(); it = now_.find(v.id)) v = it->second;
    return v;
  }
  void replace(ValueId from, ValueId to) {
    now_[from.id] = to;
    replaced_.push_back({from, to});
  }

  void simplify(OpId id) {
    ValueId v = g_.op(id).results[0];
    compose(id);
    if (roles_.cell[v.id] || roles_.view[v.id] || !is_identity(g_.op(id))) return;
    ValueId from = g_.op(id).operands[0];
    if (g_.value(v).order != g_.value(from).order && roles_.result[v.id]) return;
    replace(v, from);
  }

  bool is_identity(const Op& op) const {
    if (op.operands.size() != 1 || g_.type(op.operands[0]) != g_.type(op.results[0])) return false;
    auto perm = op.integers(attr::kPerm);
    if (is_named(&op, "transpose")) {
      for (size_t k = 0; k < perm.size(); ++k)
        if (perm[k] != static_cast<int64_t>(k)) return false;
      return true;
    }
    if (is_named(&op, "slice")) {
      for (Dim d : op.dims(attr::kStarts))
        if (!g_.dims.is_constant(d, 0)) return false;
      for (int64_t s : op.integers(attr::kSteps))
        if (s != 1) return false;
      return true;
    }
    for (std::string_view name : {"cast", "reshape", "broadcast_to", "expand_dims", "squeeze"})
      if (is_named(&op, name)) return true;
    return false;
  }

  // An op on the result of the same op reads that one's operand. What is returned or stored through as a
  // view stays the chain that it is in NumPy.
  void compose(OpId id) {
    Op& op = g_.op(id);
    if (op.operands.size() != 1) return;
    const Op* inner = g_.def(op.operands[0]);
    ValueId v = op.results[0];
    if (!inner || roles_.result[v.id] || roles_.view[v.id] || roles_.cell[op.operands[0].id])
      return;
    if (is_named(&op, "squeeze") && is_named(inner, "expand_dims") &&
        g_.type(inner->operands[0]) == g_.type(v) && !roles_.cell[v.id]) {
      auto a = op.integers(attr::kAxes), b = inner->integers(attr::kAxes);
      if (std::equal(a.begin(), a.end(), b.begin(), b.end())) replace(v, inner->operands[0]);
      return;
    }
    if (op.desc != inner->desc) return;
    if (is_named(&op, "transpose")) {
      auto outer = op.integers(attr::kPerm), first = inner->integers(attr::kPerm);
      std::vector<int64_t> perm;
      for (int64_t p : outer) perm.push_back(first[static_cast<size_t>(p)]);
      set(op, attr::kPerm, std::move(perm));
    } else if (is_named(&op, "slice")) {
      auto s1 = inner->dims(attr::kStarts), s2 = op.dims(attr::kStarts);
      auto t1 = inner->integers(attr::kSteps), t2 = op.integers(attr::kSteps);
      ir::Shape starts;
      std::vector<int64_t> steps;
      for (size_t k = 0; k < s1.size(); ++k) {
        starts.push_back(g_.dims.add(s1[k], g_.dims.mul(g_.dims.constant(t1[k]), s2[k])));
        steps.push_back(t1[k] * t2[k]);
      }
      set(op, attr::kStarts, std::move(starts));
      set(op, attr::kSteps, std::move(steps));
    } else if (!is_named(&op, "reshape") && !is_named(&op, "broadcast_to")) {
      return;
    }
    op.operands[0] = inner->operands[0];
  }

  static void set(Op& op, std::string_view key, ir::Attribute::Value value) {
    for (ir::Attribute& a : op.attributes)
      if (a.key == key) a.value = std::move(value);
  }

  // A carried value that the body hands on as it got it.
  void drop_unchanged(OpId id) {
    Op& op = g_.op(id);
    ir::Region& body = g_.region(op.regions[0]);
    for (size_t k = op.operands.size(); k-- > 0;) {
      if (body.yields[k] != body.params[k]) continue;
      replace(body.params[k], op.operands[k]);
      replace(op.results[k], op.operands[k]);
      g_.replace_uses(body.params[k], op.operands[k]);
      op.operands.erase(op.operands.begin() + static_cast<int64_t>(k));
      op.results.erase(op.results.begin() + static_cast<int64_t>(k));
      body.params.erase(body.params.begin() + static_cast<int64_t>(k));
      body.yields.erase(body.yields.begin() + static_cast<int64_t>(k));
    }
    for (size_t k = 0; k < op.results.size(); ++k) {
      g_.value(op.results[k]).index = static_cast<uint32_t>(k);
      g_.value(body.params[k]).index = static_cast<uint32_t>(k);
    }
  }

  ir::Graph& g_;
  Roles roles_;
  std::vector<std::pair<ValueId, ValueId>> replaced_;
  std::unordered_map<int32_t, ValueId> now_;
};

}  // namespace

cuvil::Result<> canonicalise(ir::Graph& g) {
  Canonicaliser(g).run();
  return Ok{};
}

}  // namespace cuvil::passes
