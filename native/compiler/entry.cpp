// cuvil_compile: trace -> passes -> schedule -> native code -> artifact bytes. Called by the hot side's
// gate on a first miss; everything between trace and the artifact runs without the GIL.
#include "compiler/entry.h"

#include <Python.h>

#include <chrono>
#include <mutex>

#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "passes/passes.h"
#include "schedule/program.h"
#include "support/build_id.h"

namespace cuvil::compiler {
namespace {

using Clock = std::chrono::steady_clock;

// Above this estimate a call gives up the GIL while it runs.
constexpr double kReleaseGilAboveNs = 10'000;

class Stages {
 public:
  explicit Stages(std::vector<std::pair<std::string, double>>& out)
      : out_(out), last_(Clock::now()) {}
  void finish(const char* name) {
    auto now = Clock::now();
    out_.emplace_back(name, std::chrono::duration<double, std::milli>(now - last_).count());
    last_ = now;
  }
  void skip() { last_ = Clock::now(); }  // what ran since was timed by itself

 private:
  std::vector<std::pair<std::string, double>>& out_;
  Clock::time_point last_;
};

class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() { PyEval_RestoreThread(state_); }
  WithoutGil(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

double cost_of(const schedule::Program& p, const schedule::Block& block) {
  double sum = 0;
  for (const schedule::Statement& s : block) {
    if (const auto* kernel = std::get_if<schedule::Kernel>(&s.v)) sum += kernel->cost_ns;
    if (const auto* loop = std::get_if<schedule::For>(&s.v)) {
      std::optional<int64_t> trip = p.graph->dims.example(loop->trip);
      sum += cost_of(p, *loop->body) * static_cast<double>(trip.value_or(16));
    }
  }
  return sum;
}

// The tables that follow from the graph and the program; the frontend has filled the others.
void fill_tables(artifact::Artifact& a, const ir::Graph& g, const schedule::Program& p) {
  for (size_t k = 0; k < g.dims.symbol_count(); ++k) {
    const ir::DimTable::SymbolInfo& s = g.dims.info(ir::SymbolId{static_cast<int32_t>(k)});
    a.symbols.push_back({s.kind, s.array, s.axis});
  }
  for (const ir::DimPredicate& d : g.predicates)
    a.predicates.push_back({d.op, g.dims.to_expr(d.lhs), g.dims.to_expr(d.rhs)});
  for (const ir::Result& r : g.results) {
    const ir::Value& v = g.value(r.value);
    artifact::ResultSpec spec;
    spec.dtype = v.type.dtype;
    spec.rank = static_cast<uint8_t>(v.type.rank());
    spec.form = r.form;
    spec.view = r.kind != ir::Result::Kind::kFresh;
    spec.readonly = r.readonly;
    for (size_t k = 0; k < v.type.rank(); ++k)
      spec.order[k] = v.order.empty() ? static_cast<uint8_t>(k) : v.order[k];
    a.results.push_back(spec);
  }
  a.array_slots = p.array_slots;
  a.sites = p.sites;
  a.arena_bytes = p.memory.arena_bytes;
  a.schedule_text = schedule::print_schedule(p);
  a.memory_text = schedule::print_memory_plan(p);
  const double cost = cost_of(p, p.body);
  a.cost_ns = static_cast<uint64_t>(cost);
  a.releases_gil = cost > kReleaseGilAboveNs;
}

// Everything that needs no Python. One compile at a time: the code generator reuses its state.
Result<> compile_graph(const Request& request, frontend::Traced& traced, Response& response,
                       Stages& stages, std::vector<SourceLoc>* site_locs) {
  static std::mutex one_at_a_time;
  std::lock_guard<std::mutex> lock(one_at_a_time);
  stages.skip();
  ir::Graph& g = *traced.graph;
  if (request.want & kWantPasses) response.texts["ir.00.frontend"] = ir::print(g);

  passes::PipelineOptions options;
#ifndef NDEBUG
  options.verify = true;
#endif
  std::map<std::string, std::string> dumps;
  if (request.want & kWantPasses) options.dump = &dumps;
  CUVIL_CHECK(passes::run_pipeline(g, options, &response.stages));
  response.texts.merge(dumps);
  if (request.want & (kWantIr | kWantPasses)) response.texts["ir"] = ir::print(g);
  stages.skip();

  CUVIL_TRY(std::unique_ptr<schedule::Program> program, schedule::build_program(g));
#ifndef NDEBUG
  CUVIL_CHECK(schedule::validate_plan(*program));
#endif
  artifact::Artifact& a = traced.facts;
  fill_tables(a, g, *program);
  *site_locs = program->site_locs;
  if (request.want & kWantDot) response.texts["dot"] = schedule::print_dot(*program);
  stages.finish("schedule");

  codegen::CpuOptions cpu;
  cpu.cpu = request.target_cpu;
  cpu.want_llvm = request.want & kWantLlvm;
  cpu.want_asm = request.want & kWantAsm;
  CUVIL_TRY(codegen::Code code, codegen::generate_cpu(*program, cpu));
  for (auto& stage : code.stages) response.stages.push_back(std::move(stage));
  if (cpu.want_llvm) response.texts["llvm"] = std::move(code.llvm_text);
  if (cpu.want_asm) response.texts["asm"] = std::move(code.asm_text);
  a.target = std::move(code.target);
  a.min_services_size = code.min_services_size;
  a.entry_offset = code.entry_offset;
  a.blob = std::move(code.blob);
  return Ok{};
}

void compile(const Request& request, Response& response) {
  Stages stages(response.stages);
  if (request.device != "cpu") {
    frontend::raise(
        make_error(ErrorClass::kDevice, "device '" + request.device + "' has no code generator",
                   "use device='cpu' or 'auto'"),
        {});
    return;
  }
  std::optional<frontend::Traced> traced = frontend::trace(request, &response.python_raises);
  if (!traced) return;
  stages.finish("trace");

  std::vector<SourceLoc> site_locs;
  Result<> done = [&]() -> Result<> {
    WithoutGil released;
    return compile_graph(request, *traced, response, stages, &site_locs);
  }();
  if (done.ok()) {
    stages.skip();
    artifact::Artifact& a = traced->facts;
    a.key = request.key;
    a.build_id = build_id();
    for (size_t k = 0; k < a.sites.size() && k < site_locs.size(); ++k)
      a.sites[k].loc = frontend::code_loc(*traced, site_locs[k]);
    response.artifact = artifact::write_artifact(a);
    response.identities = std::move(traced->identities);
    traced->identities.clear();
    response.ok = true;
    stages.finish("artifact");
  } else {
    frontend::raise(done.error(), traced->code_objects);
  }
  for (PyObject* o : traced->identities) Py_DECREF(o);
  for (PyObject* o : traced->code_objects) Py_DECREF(o);
}

}  // namespace
}  // namespace cuvil::compiler

const char* cuvil_compiler_build_id() { return cuvil::build_id(); }

void cuvil_compile(const cuvil::compiler::Request* request, cuvil::compiler::Response* response) {
  cuvil::compiler::compile(*request, *response);
}
