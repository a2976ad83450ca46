// Runs the passes of passes.def in order: times each, verifies and dumps when asked. Called by compiler/
// and the text tool.
#include <chrono>
#include <cstdio>

#include "passes/passes.h"

namespace cuvil::passes {

namespace {

struct Pass {
  const char* name;
  cuvil::Result<> (*run)(ir::Graph&);
};

constexpr Pass kPasses[] = {
#define CUVIL_PASS(name, function) {name, function},
#include "passes/passes.def"
#undef CUVIL_PASS
};

}  // namespace

cuvil::Result<> run_pipeline(ir::Graph& g, const PipelineOptions& options,
                             std::vector<std::pair<std::string, double>>* stages) {
  using Clock = std::chrono::steady_clock;
  int number = 0;
  for (const Pass& pass : kPasses) {
    auto begin = Clock::now();
    CUVIL_CHECK(pass.run(g));
    if (stages) {
      std::chrono::duration<double, std::milli> took = Clock::now() - begin;
      stages->push_back({pass.name, took.count()});
    }
    if (options.verify) {
      if (auto ok = ir::verify(g); !ok.ok())
        return make_error(ErrorClass::kInternal, std::string(pass.name) + ": " + ok.error().found,
                          {}, ok.error().loc);
    }
    if (options.dump) {
      char key[64];
      std::snprintf(key, sizeof key, "ir.%02d.%s", ++number, pass.name);
      (*options.dump)[key] = ir::print(g);
    }
  }
  return Ok{};
}

}  // namespace cuvil::passes
