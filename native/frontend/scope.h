// Names of a function: parameters and the locals that assignments make. Used by inline.cpp.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontend/ast.h"

namespace cuvil::frontend {

// Of an `ast.arguments`: positional-only, ordinary, keyword-only, then *args and **kwargs.
std::vector<std::string> parameter_names(const Node& arguments);
// The `yield` or `await` that makes a function a generator or a coroutine.
std::optional<Node> find_yield(const Node& function);
// Of a FunctionDef or Lambda, parameters included; nested functions keep theirs.
std::set<std::string> local_names(const Node& function);

}  // namespace cuvil::frontend
