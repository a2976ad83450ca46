// generate_cpu: program -> LLVM IR -> object -> blob, with the texts and timings asked for.
#include "codegen/codegen.h"

#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <chrono>

#include "codegen/backend.h"
#include "codegen/entry.h"
#include "codegen/link.h"
#include "codegen/target.h"

namespace cuvil::codegen {
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
  CUVIL_TRY(const Target* target, target_for(options.cpu));
  CUVIL_CHECK(check_supported(program, *target));
  CUVIL_TRY(Backend * backend, Backend::of(*target));
  watch.lap("target");

  llvm::Module module("cuvil", backend->context());
  module.setTargetTriple(target->machine->getTargetTriple().str());
  module.setDataLayout(target->machine->createDataLayout());
  Unit unit(program, *target, module);
  emit_program(unit);
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

  CUVIL_TRY(Blob blob, link_blob(llvm::MemoryBufferRef(object, "cuvil"), kEntryName));
  code.blob = std::move(blob.bytes);
  code.entry_offset = blob.entry_offset;
  code.min_services_size = unit.services_size;
  code.target = target->text;
  watch.lap("link");
  return code;
}

}  // namespace cuvil::codegen
