// Structural checks of a graph, between passes in debug builds and tests.
#include "ir/graph.h"

namespace cuvil::ir {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& g) : g_(g), visible_(g.value_count(), false) {}

  cuvil::Result<> run() {
    for (const Input& in : g_.inputs)
      if (!is_param(in.value, g_.root())) return bad("an input is not a parameter of the root");
    if (g_.region(g_.root()).params.size() != g_.inputs.size())
      return bad("inputs and root parameters differ in number");
    CUVIL_CHECK(region(g_.root()));
    for (const Result& r : g_.results)
      if (!is_visible(r.value)) return bad("a result is not defined in the root region");
    return Ok{};
  }

 private:
  Error bad(std::string what, const Op* op = nullptr) const {
    if (op) what += " (op " + std::string(op->desc->name) + ")";
    return make_error(ErrorClass::kInternal, "CIR is inconsistent: " + what, {},
                      op ? op->loc : SourceLoc{});
  }
  bool in_range(ValueId v) const {
    return v.id >= 0 && static_cast<size_t>(v.id) < g_.value_count();
  }
  bool is_visible(ValueId v) const { return in_range(v) && visible_[v.id]; }
  bool is_param(ValueId v, RegionId r) const {
    return in_range(v) && !g_.value(v).def.valid() && g_.value(v).region == r;
  }

  cuvil::Result<> region(RegionId r) {
    std::vector<ValueId> introduced;
    auto introduce = [&](ValueId v) {
      visible_[v.id] = true;
      introduced.push_back(v);
    };
    for (ValueId v : g_.region(r).params) {
      if (!is_param(v, r)) return bad("a region's parameter belongs elsewhere");
      introduce(v);
    }
    for (OpId id : g_.region(r).ops) {
      const Op& op = g_.op(id);
      if (!op.desc) return bad("an op without description");
      if (op.parent != r) return bad("an op listed in a foreign region", &op);
      for (ValueId v : op.operands)
        if (!is_visible(v)) return bad("an operand is used before it is defined", &op);
      for (RegionId inner : op.regions) {
        if (g_.region(inner).owner != id) return bad("a region of another owner", &op);
        CUVIL_CHECK(region(inner));
        if (g_.region(inner).yields.size() != op.results.size())
          return bad("yields and results differ in number", &op);
        for (size_t k = 0; k < op.results.size(); ++k) {
          if (g_.type(g_.region(inner).yields[k]) != g_.type(op.results[k]))
            return bad("a yielded value and the result differ in type", &op);
        }
      }
      for (size_t k = 0; k < op.results.size(); ++k) {
        const Value& v = g_.value(op.results[k]);
        if (v.def != id || v.index != k || v.region != r)
          return bad("a result does not know its op", &op);
        if (!v.order.empty() && v.order.size() != v.type.rank())
          return bad("a memory order of the wrong length", &op);
        introduce(op.results[k]);
      }
    }
    for (ValueId v : g_.region(r).yields)
      if (!is_visible(v)) return bad("a yielded value is not defined");
    if (r != g_.root())
      for (ValueId v : introduced) visible_[v.id] = false;
    return Ok{};
  }

  const Graph& g_;
  std::vector<bool> visible_;
};

}  // namespace

cuvil::Result<> verify(const Graph& g) { return Verifier(g).run(); }

}  // namespace cuvil::ir
