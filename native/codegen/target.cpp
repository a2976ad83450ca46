// Host detection, the target machines of a thread, and target_text.
#include "codegen/target.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/TargetParser/Host.h>

#include <map>
#include <mutex>

#include "codegen/codegen.h"

// One target's initialisers, not all that LLVM was built with.
extern "C" {
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
}

namespace cuvil::codegen {
namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

struct Host {
  std::string cpu;
  std::string features;
};

const Host& host() {
  static const Host h = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    Host out{llvm::sys::getHostCPUName().str(), {}};
    // A hypervisor may hide what the CPU's name promises: switch off what cpuid does not report.
    for (const auto& [name, on] : llvm::sys::getHostCPUFeatures()) {
      if (!out.features.empty()) out.features += ',';
      out.features += (on ? "+" : "-") + name.str();
    }
    return out;
  }();
  return h;
}

// 512-bit vectors wherever the CPU has them.
constexpr const char* kTuning = "-prefer-256-bit";

bool has(const llvm::MCSubtargetInfo& s, const char* feature) {
  return s.checkFeatures(std::string("+") + feature);
}

Result<std::unique_ptr<Target>> make_target(const std::string& name) {
  const Host& h = host();
  auto t = std::make_unique<Target>();
  t->cpu = name.empty() ? h.cpu : name;
  t->features = name.empty() && !h.features.empty() ? h.features + "," + kTuning : kTuning;
  std::string message;
  const llvm::Target* registered = llvm::TargetRegistry::lookupTarget(kTriple, message);
  if (registered == nullptr)
    return make_error(ErrorClass::kInternal, "LLVM has no x86-64 target: " + message);
  std::unique_ptr<llvm::MCSubtargetInfo> probe(
      registered->createMCSubtargetInfo(kTriple, "", ""));  // with an unknown name it would print
  if (!probe || !probe->isCPUStringValid(t->cpu))
    return make_error(ErrorClass::kUnsupported, "unknown CPU name '" + t->cpu + "'",
                      "use a name that LLVM knows, such as x86-64-v3");
  llvm::TargetOptions options;
  t->machine.reset(registered->createTargetMachine(kTriple, t->cpu, t->features, options,
                                                   llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                                   llvm::CodeGenOptLevel::Default, /*JIT=*/true));
  const llvm::MCSubtargetInfo& s = *t->machine->getMCSubtargetInfo();
  if (!has(s, "sse4.2"))
    return make_error(ErrorClass::kUnsupported, "CPU '" + t->cpu + "' is below x86-64-v2",
                      "SSE4.2 is the least that generated code needs");
  t->has_fma = has(s, "fma");
  t->has_f16c = has(s, "f16c");
  t->has_masks =
      has(s, "avx512f") && has(s, "avx512vl") && has(s, "avx512bw") && has(s, "avx512dq");
  t->vector_bytes = t->has_masks ? 64 : has(s, "avx2") ? 32 : 16;
  t->vector_registers = t->has_masks ? 32 : 16;
  t->text = "x86_64:" + t->cpu + ":" +
            (t->has_masks            ? "avx512"
             : t->vector_bytes == 32 ? "avx2"
                                     : "sse4.2");
  if (t->has_fma) t->text += ",fma";
  if (t->has_f16c) t->text += ",f16c";
  return t;
}

}  // namespace

Result<const Target*> target_for(const std::string& cpu) {
  // A TargetMachine is not thread-safe and its first subtarget takes most of a millisecond.
  thread_local std::map<std::string, std::unique_ptr<Target>> targets;
  auto it = targets.find(cpu);
  if (it == targets.end()) {
    CUVIL_TRY(auto made, make_target(cpu));
    it = targets.emplace(cpu, std::move(made)).first;
  }
  return static_cast<const Target*>(it->second.get());
}

std::string target_text(const std::string& cpu) {
  auto t = target_for(cpu);
  return t.ok() ? (*t)->text : std::string();
}

}  // namespace cuvil::codegen
