// See interpret.h. The loop over instructions is in handlers.inc.
#include "interpret/interpret.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "codegen/entry.h"
#include "interpret/translate.h"

namespace cuvil::interpret {

namespace {

// Null if the handlers of no level do what the target's code asks for.
const Level* level_for(const codegen::Target& t) {
  if (t.has_fma && t.has_f16c && t.vector_bytes >= 32) return &kV3;
  return t.has_fma || t.has_f16c ? nullptr : &kBase;
}

}  // namespace

void Release::operator()(const Code* c) const { delete c; }

Result<Prepared> prepare(const schedule::Program& program, const codegen::Target& target) {
  llvm::LLVMContext context;
  llvm::Module module("cuvil", context);
  Prepared out;
  CUVIL_TRY(out.min_services_size, codegen::emit_module(program, target, module));
  out.instructions = module.getInstructionCount();
  if (const Level* level = level_for(target))
    out.code = CodePtr(translate(module, codegen::kEntryName, *level).release());
  return out;
}

int32_t run(const Code& code, const CuvilServices* services, CuvilCall* call) {
  void* memory =
      services->lease_scratch(call, static_cast<int64_t>(code.frame_bytes), CUVIL_SCRATCH_CALL);
  if (memory == nullptr) return CUVIL_SITE_PYTHON;
  auto* frame = static_cast<std::byte*>(memory);
  int64_t* arguments = reinterpret_cast<FrameHead*>(frame)->arguments;
  arguments[0] = reinterpret_cast<int64_t>(services);
  arguments[1] = reinterpret_cast<int64_t>(call);
  return static_cast<int32_t>(code.level->run(code.functions.front(), frame));
}

}  // namespace cuvil::interpret
