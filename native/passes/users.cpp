// Roles of values: see users.h.
#include "passes/users.h"

namespace cuvil::passes {

Roles find_roles(const ir::Graph& g) {
  Roles r{std::vector<char>(g.value_count(), 0), std::vector<char>(g.value_count(), 0),
          std::vector<char>(g.value_count(), 0)};
  for (size_t n = 0; n < g.region_count(); ++n) {
    const ir::Region& region = g.region({static_cast<int32_t>(n)});
    for (ir::OpId id : region.ops) {
      const ir::Op& op = g.op(id);
      if (is_named(&op, "store")) {
        r.cell[op.operands[0].id] = 1;
        r.view[op.operands[1].id] = 1;
      } else if (!op.regions.empty()) {
        for (ir::ValueId v : op.operands) r.cell[v.id] = 1;
      }
    }
    for (ir::ValueId v : region.yields) r.cell[v.id] = 1;
  }
  for (const ir::Result& x : g.results) r.result[x.value.id] = 1;
  return r;
}

}  // namespace cuvil::passes
