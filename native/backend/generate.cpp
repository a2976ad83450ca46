// generate_cpu: program -> LLVM IR -> object -> blob, with the texts and timings asked for.
#include "backend/generate.h"

#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <chrono>

#include "backend/lean_passes.h"
#include "backend/link.h"
#include "backend/machine.h"
#include "codegen/entry.h"
#include "support/build_id.h"

namespace cuvil::backend {
namespace {

class Stopwatch {
 public:
  explicit Stopwatch(std::vector<std::pair<std::string, double>>& out) : out_(out) {}
  void lap(const char* name) {
    auto now = std::chrono::steady_clock::now();
    out_.emplace_back(name, std::chrono::duration<double, std::milli>(now - last_).count());
    last_ = now;
  }

 private:
  std::vector<std::pair<std::string, double>>& out_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

Result<Code> generate_cpu(const schedule::Program& program, const CpuOptions& options) {
  Code code;
  Stopwatch watch(code.stages);
  CUVIL_TRY(const Machine* machine, machine_for(options.cpu));
  CUVIL_TRY(Backend * backend, Backend::of(*machine));
  watch.lap("target");

  llvm::Module module("cuvil", backend->context());
  CUVIL_TRY(code.min_services_size, codegen::emit_module(program, machine->target, module));
#ifdef CUVIL_VERIFY_LLVM
  std::string complaint;
  llvm::raw_string_ostream verifier(complaint);
  if (llvm::verifyModule(module, &verifier))
    return make_error(ErrorClass::kInternal, "malformed LLVM IR: " + complaint);
#endif
  watch.lap("emit");

  if (options.want_llvm) {
    llvm::raw_string_ostream out(code.llvm_text);
    module.print(out, nullptr);
  }
  if (options.want_asm) {
    // Code generation consumes the module.
    auto copy = llvm::CloneModule(module);
    CUVIL_TRY(code.asm_text, backend->emit_assembly(*copy));
  }
  llvm::StringRef object = backend->emit_object(module);
  watch.lap("codegen");

  CUVIL_TRY(Blob blob, link_blob(llvm::MemoryBufferRef(object, "cuvil"), codegen::kEntryName));
  code.blob = std::move(blob.bytes);
  code.entry_offset = blob.entry_offset;
  code.symbols = std::move(blob.symbols);
  for (artifact::CodeSymbol& s : code.symbols) s.name = program.graph->name + "::" + s.name;
  code.target = machine->target.text;
  watch.lap("link");
  return code;
}

}  // namespace cuvil::backend

const char* cuvil_backend_build_id() { return cuvil::build_id(); }

bool cuvil_backend_generate(const cuvil::schedule::Program* program,
                            const cuvil::backend::CpuOptions* options, cuvil::backend::Code* code,
                            cuvil::Error* error) {
  auto made = cuvil::backend::generate_cpu(*program, *options);
  if (made.ok())
    *code = std::move(*made);
  else
    *error = std::move(made.error());
  return made.ok();
}
