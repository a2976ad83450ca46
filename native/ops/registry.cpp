// The registry: every op and every dialect row by name. Called by frontend, the IR parser and passes.
#include <unordered_map>
#include <vector>

#include "ops/op.h"

namespace cuvil::ops {
namespace {

struct Registry {
  std::vector<const OpInfo*> ops;
  std::vector<const DialectRow*> rows;
  std::unordered_map<std::string_view, const OpInfo*> op_index;
  std::unordered_map<std::string_view, const DialectRow*> row_index;

  Registry() {
    const FamilyTable tables[] = {
        arith_table(),    compare_table(), logic_table(),   math_table(),
        round_table(),    select_table(),  reduce_table(),  contract_table(),
        movement_table(), create_table(),  control_table(), linalg_table(),
    };
    op_index.reserve(256);
    row_index.reserve(512);
    for (const FamilyTable& t : tables) {
      for (const OpInfo& op : t.ops) {
        ops.push_back(&op);
        op_index.emplace(op.name, &op);
      }
      for (const DialectRow& row : t.rows) {
        rows.push_back(&row);
        row_index.emplace(row.name, &row);
      }
    }
  }
};

const Registry& registry() {
  static const Registry r;
  return r;
}

}  // namespace

const OpInfo* find_op(std::string_view name) {
  const auto& index = registry().op_index;
  auto it = index.find(name);
  return it == index.end() ? nullptr : it->second;
}

const OpInfo& info_of(const ir::Op& op) { return static_cast<const OpInfo&>(*op.desc); }

std::span<const OpInfo* const> all_ops() { return registry().ops; }
std::span<const DialectRow* const> all_rows() { return registry().rows; }

const DialectRow* find_row(std::string_view name) {
  const auto& index = registry().row_index;
  auto it = index.find(name);
  return it == index.end() ? nullptr : it->second;
}

}  // namespace cuvil::ops
