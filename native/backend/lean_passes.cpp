// The lean pass pipeline. Kernels arrive vectorised, hoisted and free of dead code, so the IR-level part of
// LLVM's code generation (loop strength reduction, CodeGenPrepare and others) and the machine passes that
// clean up after compilers of ordinary code are left out; what remains is selection, register allocation,
// scheduling of instructions by need, and emission. Measured figures: docs/codegen.md.
#include "backend/lean_passes.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Scalar.h>

#include <map>

namespace cuvil::backend {
namespace {

// A context never forgets a constant or a type: it is replaced after so many compiles.
constexpr int kCompilesOfOneBackend = 200;

// addCoreISelPasses is protected; a derived class may name it.
struct Access : llvm::TargetPassConfig {
  static auto core_isel() { return &Access::addCoreISelPasses; }
};

bool add_lean_passes(llvm::TargetMachine& machine, llvm::legacy::PassManager& passes,
                     llvm::raw_pwrite_stream& out, llvm::CodeGenFileType kind) {
  auto& tm = static_cast<llvm::LLVMTargetMachine&>(machine);
  auto* info = new llvm::MachineModuleInfoWrapperPass(&tm);  // the pass manager owns both
  llvm::TargetPassConfig* config = tm.createPassConfig(passes);
  config->setDisableVerify(true);
  passes.add(config);
  passes.add(info);
  for (char* pass :
       {&llvm::EarlyTailDuplicateID, &llvm::EarlyIfConverterID, &llvm::MachineCombinerID,
        &llvm::MachineSinkingID, &llvm::PostRAMachineSinkingID, &llvm::ShrinkWrapID,
        &llvm::BranchFolderPassID, &llvm::TailDuplicateID, &llvm::PostRASchedulerID,
        &llvm::StackMapLivenessID, &llvm::LiveDebugValuesID, &llvm::FEntryInserterID,
        &llvm::XRayInstrumentationID, &llvm::PatchableFunctionID, &llvm::FuncletLayoutID,
        &llvm::RemoveRedundantDebugValuesID, &llvm::FixupStatepointCallerSavedID,
        &llvm::MachineLateInstrsCleanupID, &llvm::MachineSchedulerID})
    config->disablePass(pass);
  passes.add(llvm::createTargetTransformInfoWrapperPass(tm.getTargetIRAnalysis()));
  if ((config->*Access::core_isel())()) return false;
  config->addMachinePasses();
  config->setInitialized();
  if (tm.addAsmPrinter(passes, out, nullptr, kind, info->getMMI().getContext())) return false;
  passes.add(llvm::createFreeMachineFunctionPass());
  return true;
}

}  // namespace

bool Backend::prepare() {
  return add_lean_passes(*machine_.llvm, passes_, stream_, llvm::CodeGenFileType::ObjectFile);
}

Result<Backend*> Backend::of(const Machine& machine) {
  thread_local std::map<const Machine*, std::unique_ptr<Backend>> backends;
  std::unique_ptr<Backend>& b = backends[&machine];
  if (!b || ++b->compiles_ > kCompilesOfOneBackend) {
    b.reset(new Backend(machine));
    if (!b->prepare()) {
      b.reset();
      return make_error(ErrorClass::kInternal,
                        "LLVM cannot emit code for '" + machine.target.cpu + "'");
    }
  }
  return b.get();
}

llvm::StringRef Backend::emit_object(llvm::Module& m) {
  bytes_.clear();
  passes_.run(m);
  return {bytes_.data(), bytes_.size()};
}

Result<std::string> Backend::emit_assembly(llvm::Module& m) {
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream out(text);
  llvm::legacy::PassManager passes;
  if (!add_lean_passes(*machine_.llvm, passes, out, llvm::CodeGenFileType::AssemblyFile))
    return make_error(ErrorClass::kInternal,
                      "LLVM cannot emit assembly for '" + machine_.target.cpu + "'");
  passes.run(m);
  return std::string(text.begin(), text.end());
}

}  // namespace cuvil::backend
