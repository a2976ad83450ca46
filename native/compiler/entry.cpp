// cuvil_compile: trace -> passes -> schedule -> interpreted code, and a job that makes machine code of the
// schedule. Called by the hot side's gate on a first miss; everything after the trace runs without the GIL.
#include "compiler/entry.h"

#include <Python.h>

#include <chrono>

#include "codegen/entry.h"
#include "compiler/machine_code.h"
#include "frontend/frontend.h"
#include "interpret/interpret.h"
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

// Calls that take longer are not interpreted: by then there is machine code.
constexpr double kMostInterpreted_ms = 50;
// How many times as long a call takes interpreted, and what LLVM takes for an instruction of its own.
constexpr double kInterpretedPerCompiled = 10;
constexpr double kCompileInstruction_ms = 0.02;

class CpuJob final : public Job {
 public:
  CpuJob(std::unique_ptr<ir::Graph> graph, std::unique_ptr<schedule::Program> program)
      : graph_(std::move(graph)), program_(std::move(program)) {}

  const schedule::Program& program() const { return *program_; }
  backend::CpuOptions options;
  artifact::Artifact facts;

  // Emits and translates.
  Result<> prepare(const codegen::Target& host) {
    CUVIL_TRY(interpret::Prepared made, interpret::prepare(*program_, host));
    code_ = std::move(made.code);
    facts.min_services_size = made.min_services_size;
    facts.target = host.text;
    compile_ms = static_cast<double>(made.instructions) * kCompileInstruction_ms;
    return Ok{};
  }

  bool interpretable() const override { return static_cast<bool>(code_); }
  int32_t interpret(const CuvilServices* services, CuvilCall* call) const override {
    return interpret::run(*code_, services, call);
  }

  Result<Compiled> compile() override {
    Compiled out;
    CUVIL_TRY(backend::Code code, machine_code(*program_, options));
    program_.reset();
    graph_.reset();
    Stages stages(out.stages);
    facts.target = std::move(code.target);
    facts.min_services_size = code.min_services_size;
    facts.entry_offset = code.entry_offset;
    facts.code_symbols = std::move(code.symbols);
    facts.blob = std::move(code.blob);
    out.artifact = artifact::write_artifact(facts);
    out.stages = std::move(code.stages);
    stages.finish("artifact");
    if (options.want_llvm) out.texts["llvm"] = std::move(code.llvm_text);
    if (options.want_asm) out.texts["asm"] = std::move(code.asm_text);
    return out;
  }

 private:
  std::unique_ptr<ir::Graph> graph_;
  std::unique_ptr<schedule::Program> program_;  // refers to the graph
  interpret::CodePtr code_;
};

// Everything that needs no Python.
Result<std::unique_ptr<CpuJob>> build(const Request& request, frontend::Traced& traced,
                                      Response& response, Stages& stages) {
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
  if (!codegen::host_target().ok()) return codegen::host_target().error();
  const codegen::Target& host = *codegen::host_target();
  CUVIL_CHECK(codegen::check_supported(*program, host));
#ifndef NDEBUG
  CUVIL_CHECK(schedule::validate_plan(*program));
#endif
  fill_tables(traced.facts, g, *program);
  if (request.want & kWantDot) response.texts["dot"] = schedule::print_dot(*program);
  auto job = std::make_unique<CpuJob>(std::move(traced.graph), std::move(program));
  job->options.cpu = request.target_cpu;
  job->options.want_llvm = request.want & kWantLlvm;
  job->options.want_asm = request.want & kWantAsm;
  stages.finish("schedule");

  job->interpret_ms = static_cast<double>(traced.facts.cost_ns) * 1e-6 * kInterpretedPerCompiled;
  if (request.interpret && request.target_cpu.empty() && job->interpret_ms < kMostInterpreted_ms) {
    CUVIL_CHECK(job->prepare(host));
    stages.finish("interpreter");
  }
  return job;
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

  auto built = [&] {
    WithoutGil released;
    return build(request, *traced, response, stages);
  }();
  if (built.ok()) {
    std::unique_ptr<CpuJob> job = std::move(*built);
    artifact::Artifact& a = traced->facts;
    a.key = request.key;
    a.build_id = build_id();
    const std::vector<SourceLoc>& locs = job->program().site_locs;
    for (size_t k = 0; k < a.sites.size() && k < locs.size(); ++k)
      a.sites[k].loc = frontend::code_loc(*traced, locs[k]);
    a.target = std::move(job->facts.target);
    a.min_services_size = job->facts.min_services_size;
    job->facts = a;
    response.facts = std::move(a);
    response.job = std::move(job);
    response.identities = std::move(traced->identities);
    traced->identities.clear();
    response.ok = true;
  } else {
    frontend::raise(built.error(), traced->code_objects);
  }
  for (PyObject* o : traced->identities) Py_DECREF(o);
  for (PyObject* o : traced->code_objects) Py_DECREF(o);
}

}  // namespace
}  // namespace cuvil::compiler

const char* cuvil_compiler_build_id() { return cuvil::build_id(); }

void cuvil_compile(const cuvil::compiler::Request* request, cuvil::compiler::Response* response) {
  cuvil::compiler::compile(*request, *response);
  if (cuvil::frontend::raise_interrupt()) response->python_raises = false;
}
