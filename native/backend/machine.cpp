// The machines of a thread: see machine.h.
#include "backend/machine.h"

#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>

#include <map>
#include <mutex>

// One target's initialisers, not all that LLVM was built with.
extern "C" {
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
}

namespace cuvil::backend {
namespace {

void register_target() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
}

Result<std::unique_ptr<Machine>> make_machine(const std::string& name) {
  register_target();
  auto m = std::make_unique<Machine>();
  std::string message;
  const llvm::Target* registered = llvm::TargetRegistry::lookupTarget(codegen::kTriple, message);
  if (registered == nullptr)
    return make_error(ErrorClass::kInternal, "LLVM has no x86-64 target: " + message);
  if (name.empty()) {
    if (!codegen::host_target().ok()) return codegen::host_target().error();
    m->target = *codegen::host_target();
  } else {
    std::unique_ptr<llvm::MCSubtargetInfo> about(
        registered->createMCSubtargetInfo(codegen::kTriple, "", ""));
    // With an unknown name the next call would print.
    if (!about || !about->isCPUStringValid(name))
      return make_error(ErrorClass::kUnsupported, "unknown CPU name '" + name + "'",
                        "use a name that LLVM knows, such as x86-64-v3");
    about.reset(registered->createMCSubtargetInfo(codegen::kTriple, name, ""));
    CUVIL_TRY(m->target, codegen::describe_target(name, "", [&](const char* feature) {
                return about->checkFeatures(std::string("+") + feature);
              }));
  }
  llvm::TargetOptions options;
  m->llvm.reset(registered->createTargetMachine(codegen::kTriple, m->target.cpu, m->target.features,
                                                options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                                llvm::CodeGenOptLevel::Default, /*JIT=*/true));
  if (m->llvm->createDataLayout().getStringRepresentation() != codegen::kDataLayout)
    return make_error(ErrorClass::kInternal, "LLVM's data layout of x86-64 is another");
  return m;
}

}  // namespace

Result<const Machine*> machine_for(const std::string& cpu) {
  // A TargetMachine is not thread-safe and its first subtarget takes most of a millisecond.
  thread_local std::map<std::string, std::unique_ptr<Machine>> machines;
  auto it = machines.find(cpu);
  if (it == machines.end()) {
    CUVIL_TRY(auto made, make_machine(cpu));
    it = machines.emplace(cpu, std::move(made)).first;
  }
  return static_cast<const Machine*>(it->second.get());
}

}  // namespace cuvil::backend
