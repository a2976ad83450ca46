// Graph passes. A pass is one free function in one file, and one row in passes.def; order is data.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace cuvil::passes {

#define CUVIL_PASS(name, function) cuvil::Result<> function(ir::Graph& g);
#include "passes/passes.def"
#undef CUVIL_PASS

struct PipelineOptions {
  bool verify = false;  // between passes
  std::map<std::string, std::string>* dump =
      nullptr;  // "ir.01.canonicalise" -> text after the pass
};

// Runs all passes in the order of passes.def; appends (name, ms) to `stages`.
cuvil::Result<> run_pipeline(ir::Graph& g, const PipelineOptions& options,
                             std::vector<std::pair<std::string, double>>* stages);

}  // namespace cuvil::passes
