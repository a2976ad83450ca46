// Who uses a value, and as what. Shared by the passes.
#pragma once

#include <vector>

#include "ops/op.h"
#include "ops/structural.h"

namespace cuvil::passes {

inline bool is_named(const ir::Op* op, std::string_view name) {
  return op && op->desc->name == name;
}

// How each value is used, besides as a plain operand.
struct Roles {
  std::vector<char> cell;    // a store or a loop goes on with its storage, or a region hands it out
  std::vector<char> view;    // where a store writes
  std::vector<char> result;  // returned
};
Roles find_roles(const ir::Graph& g);

}  // namespace cuvil::passes
