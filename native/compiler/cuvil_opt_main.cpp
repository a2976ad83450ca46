// cuvil_opt: CIR text in, text of a later stage out; no Python. For text tests, fuzzing and a look.
//
//   cuvil_opt [--stage=ir|schedule|memory|dot|llvm|asm] [--no-passes] [--verify] [--cpu=NAME] [FILE]
//
// Reads standard input when FILE is absent. Exit status 1 and a message on standard error on bad input.
#include <cstdio>
#include <cstring>
#include <string>

#include "backend/generate.h"
#include "ops/op.h"
#include "passes/passes.h"
#include "schedule/program.h"

namespace {

using namespace cuvil;

struct Arguments {
  std::string stage = "ir", file, cpu;
  bool passes = true, verify = false;
};

int fail(const Error& e) {
  std::fprintf(stderr, "cuvil_opt: %s\n", e.found.c_str());
  return 1;
}

bool read_all(const std::string& path, std::string* out) {
  std::FILE* f = path.empty() ? stdin : std::fopen(path.c_str(), "rb");
  if (!f) return false;
  char buffer[1 << 16];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, f)) > 0;) out->append(buffer, n);
  if (f != stdin) std::fclose(f);
  return true;
}

int run(const Arguments& a) {
  std::string text;
  if (!read_all(a.file, &text)) {
    std::fprintf(stderr, "cuvil_opt: cannot read %s\n", a.file.c_str());
    return 1;
  }
  auto graph = ir::parse(text, ops::find_desc);
  if (!graph.ok()) return fail(graph.error());
  if (auto ok = ir::verify(**graph); !ok.ok()) return fail(ok.error());
  if (a.passes) {
    passes::PipelineOptions options;
    options.verify = a.verify;
    std::vector<std::pair<std::string, double>> stages;
    if (auto ok = passes::run_pipeline(**graph, options, &stages); !ok.ok())
      return fail(ok.error());
  }
  if (a.stage == "ir") {
    std::fputs(ir::print(**graph).c_str(), stdout);
    return 0;
  }
  auto program = schedule::build_program(**graph);
  if (!program.ok()) return fail(program.error());
  if (auto ok = schedule::validate_plan(**program); !ok.ok()) return fail(ok.error());
  if (a.stage == "schedule") std::fputs(schedule::print_schedule(**program).c_str(), stdout);
  if (a.stage == "memory") std::fputs(schedule::print_memory_plan(**program).c_str(), stdout);
  if (a.stage == "dot") std::fputs(schedule::print_dot(**program).c_str(), stdout);
  if (a.stage != "llvm" && a.stage != "asm") return 0;
  backend::CpuOptions options;
  options.cpu = a.cpu;
  options.want_llvm = a.stage == "llvm";
  options.want_asm = a.stage == "asm";
  auto code = backend::generate_cpu(**program, options);
  if (!code.ok()) return fail(code.error());
  std::fputs(options.want_llvm ? code->llvm_text.c_str() : code->asm_text.c_str(), stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    std::string arg = argv[i];
    if (arg.rfind("--stage=", 0) == 0)
      a.stage = arg.substr(8);
    else if (arg.rfind("--cpu=", 0) == 0)
      a.cpu = arg.substr(6);
    else if (arg == "--no-passes")
      a.passes = false;
    else if (arg == "--verify")
      a.verify = true;
    else if (arg.rfind("--", 0) == 0) {
      std::fprintf(stderr, "cuvil_opt: unknown option %s\n", arg.c_str());
      return 2;
    } else {
      a.file = arg;
    }
  }
  for (const char* stage : {"ir", "schedule", "memory", "dot", "llvm", "asm"})
    if (a.stage == stage) return run(a);
  std::fprintf(stderr, "cuvil_opt: unknown stage %s\n", a.stage.c_str());
  return 2;
}
