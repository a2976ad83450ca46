// Target: see target.h.
#include "codegen/target.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>

namespace cuvil::codegen {

Result<Target> describe_target(std::string cpu, std::string features,
                               llvm::function_ref<bool(const char*)> has) {
  Target t;
  t.cpu = std::move(cpu);
  t.features = std::move(features);
  // 512-bit vectors wherever the CPU has them.
  t.features += t.features.empty() ? "-prefer-256-bit" : ",-prefer-256-bit";
  if (!has("sse4.2"))
    return make_error(ErrorClass::kUnsupported, "CPU '" + t.cpu + "' is below x86-64-v2",
                      "SSE4.2 is the least that generated code needs");
  t.has_fma = has("fma");
  t.has_f16c = has("f16c");
  t.has_masks = has("avx512f") && has("avx512vl") && has("avx512bw") && has("avx512dq");
  t.vector_bytes = t.has_masks ? 64 : has("avx2") ? 32 : 16;
  t.vector_registers = t.has_masks ? 32 : 16;
  t.text = "x86_64:" + t.cpu + ":" +
           (t.has_masks            ? "avx512"
            : t.vector_bytes == 32 ? "avx2"
                                   : "sse4.2");
  if (t.has_fma) t.text += ",fma";
  if (t.has_f16c) t.text += ",f16c";
  return t;
}

const Result<Target>& host_target() {
  static const Result<Target> host = [] {
    // A hypervisor may hide what the CPU's name promises: switch off what cpuid does not report.
    const llvm::StringMap<bool> reported = llvm::sys::getHostCPUFeatures();
    std::string features;
    for (const auto& [name, on] : reported) {
      if (!features.empty()) features += ',';
      features += (on ? "+" : "-") + name.str();
    }
    return describe_target(llvm::sys::getHostCPUName().str(), std::move(features),
                           [&](const char* name) { return reported.lookup(name); });
  }();
  return host;
}

}  // namespace cuvil::codegen
