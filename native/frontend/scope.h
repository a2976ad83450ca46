// Names of a function: parameters and the locals that assignments make. Used by inline.cpp.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "frontend/ast.h"

namespace cuvil::frontend {

// Of an `ast.arguments`: positional-only, ordinary, keyword-only, then *args and **kwargs.
std::vector<std::string> parameter_names(const Node& arguments);
// Of a FunctionDef or Lambda, parameters included; nested functions keep theirs.
std::set<std::string> local_names(const Node& function);

}  // namespace cuvil::frontend
