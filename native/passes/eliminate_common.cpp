// cse: of pure ops that are equal in every respect, the first in the region is kept.
//
//   %1 = exp %x                  %1 = exp %x
//   %2 = exp %x                  %3 = add %1, %1
//   %3 = add %1, %2
//
// Ops that make storage of their own (copy, empty) are never equal, nor are values that a store goes on
// from: two arrays that start out the same are two arrays.
#include <unordered_map>

#include "passes/passes.h"
#include "passes/users.h"

namespace cuvil::passes {

namespace {

using ir::Op;
using ir::OpId;
using ir::ValueId;

size_t hash_of(const Op& op) {
  size_t h = std::hash<const void*>()(op.desc);
  for (ValueId v : op.operands) h = h * 1000003 + static_cast<size_t>(v.id) + 1;
  return h;
}

bool equal(const ir::Graph& g, const Op& a, const Op& b) {
  if (a.desc != b.desc || a.operands != b.operands || a.attributes != b.attributes) return false;
  return g.type(a.results[0]) == g.type(b.results[0]) &&
         g.value(a.results[0]).order == g.value(b.results[0]).order;
}

}  // namespace

cuvil::Result<> eliminate_common(ir::Graph& g) {
  Roles roles = find_roles(g);
  std::vector<ValueId> same(g.value_count());
  for (size_t i = 0; i < same.size(); ++i) same[i] = ValueId{static_cast<int32_t>(i)};
  bool changed = false;
  for (size_t r = 0; r < g.region_count(); ++r) {
    std::unordered_multimap<size_t, OpId> known;
    for (OpId id : g.region({static_cast<int32_t>(r)}).ops) {
      Op& op = g.op(id);
      for (ValueId& v : op.operands) v = same[v.id];
      if (op.desc->effects != ir::kPure || op.results.size() != 1 || !op.regions.empty() ||
          ops::info_of(op).family == ops::Family::kStorage || roles.cell[op.results[0].id] ||
          roles.result[op.results[0].id])
        continue;
      auto [first, last] = known.equal_range(hash_of(op));
      bool found = false;
      for (auto it = first; it != last && !found; ++it) {
        if (!equal(g, g.op(it->second), op)) continue;
        same[op.results[0].id] = g.op(it->second).results[0];
        found = changed = true;
      }
      if (!found) known.emplace(hash_of(op), id);
    }
  }
  if (!changed) return Ok{};
  for (size_t r = 0; r < g.region_count(); ++r) {
    ir::Region& region = g.region({static_cast<int32_t>(r)});
    for (OpId id : region.ops)
      for (ValueId& v : g.op(id).operands) v = same[v.id];
    for (ValueId& v : region.yields) v = same[v.id];
  }
  for (ir::Result& x : g.results) x.value = same[x.value.id];
  return Ok{};
}

}  // namespace cuvil::passes
