// JITLink with a memory manager that lays text and constants into one block, which is copied out:
//
//     0        text (entry somewhere in it)     64-byte aligned
//     ...      read-only data                   at the alignment it asks for
//
// Code and constants address each other by distance alone, so the block works wherever it is put. The
// unwind table is dropped: generated code never unwinds.
#include "backend/link.h"

#include <llvm/ExecutionEngine/JITLink/ELF_x86_64.h>
#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/JITLink/x86_64.h>
#include <llvm/ExecutionEngine/Orc/SymbolStringPool.h>

#include <algorithm>

namespace cuvil::backend {
namespace {

namespace jitlink = llvm::jitlink;
namespace x86 = llvm::jitlink::x86_64;

// Where the block pretends to be while it is linked; distances do not depend on it.
constexpr uint64_t kBase = 0x10000000;
constexpr uint64_t kSegmentAlignment = artifact::kBlobAlignment;

class BlobMemory : public jitlink::JITLinkMemoryManager {
 public:
  explicit BlobMemory(std::vector<uint8_t>& out) : out_(out) {}

  void allocate(const jitlink::JITLinkDylib*, jitlink::LinkGraph& graph,
                OnAllocatedFunction done) override {
    jitlink::BasicLayout layout(graph);
    uint64_t size = 0;
    for (auto& [group, segment] : layout.segments()) {
      uint64_t alignment = std::max<uint64_t>(segment.Alignment.value(), kSegmentAlignment);
      size = llvm::alignTo(size, alignment);
      segment.Addr = llvm::orc::ExecutorAddr(kBase + size);
      size += segment.ContentSize + segment.ZeroFillSize;
    }
    out_.assign(llvm::alignTo(size, kSegmentAlignment), 0);
    for (auto& [group, segment] : layout.segments())
      segment.WorkingMem = reinterpret_cast<char*>(out_.data()) + (segment.Addr.getValue() - kBase);
    if (auto error = layout.apply()) return done(std::move(error));
    done(std::make_unique<InFlight>());
  }
  using JITLinkMemoryManager::allocate;
  void deallocate(std::vector<FinalizedAlloc> allocations, OnDeallocatedFunction done) override {
    for (auto& a : allocations) a.release();
    done(llvm::Error::success());
  }
  using JITLinkMemoryManager::deallocate;

 private:
  struct InFlight : InFlightAlloc {
    void abandon(OnAbandonedFunction done) override { done(llvm::Error::success()); }
    void finalize(OnFinalizedFunction done) override {
      done(FinalizedAlloc(llvm::orc::ExecutorAddr(kBase)));
    }
  };
  std::vector<uint8_t>& out_;
};

llvm::Error refuse(const llvm::Twine& what) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), what);
}

// Only distances between two places of the block may occur.
llvm::Error check_edges(jitlink::LinkGraph& graph) {
  for (jitlink::Symbol* s : graph.external_symbols())
    return refuse("outside symbol '" + s->getName() + "'");
  for (jitlink::Section& section : graph.sections()) {
    const auto writable = static_cast<uint8_t>(llvm::orc::MemProt::Write);
    if ((static_cast<uint8_t>(section.getMemProt()) & writable) != 0 && !section.empty())
      return refuse("writable section '" + section.getName() + "'");
  }
  for (jitlink::Block* block : graph.blocks()) {
    for (const jitlink::Edge& e : block->edges()) {
      switch (e.getKind()) {
        case x86::Delta32:
        case x86::Delta64:
        case x86::NegDelta32:
        case x86::PCRel32:
        case x86::BranchPCRel32:
        case jitlink::Edge::KeepAlive: break;
        default:
          return refuse("relocation " + llvm::StringRef(graph.getEdgeKindName(e.getKind())) +
                        " to '" + (e.getTarget().hasName() ? e.getTarget().getName() : "") + "'");
      }
    }
  }
  return llvm::Error::success();
}

llvm::Error drop_unwind_table(jitlink::LinkGraph& graph) {
  for (const char* name : {".eh_frame", ".note.GNU-stack", ".comment"})
    if (jitlink::Section* s = graph.findSectionByName(name)) graph.removeSection(*s);
  return llvm::Error::success();
}

class BlobContext : public jitlink::JITLinkContext {
 public:
  BlobContext(std::string entry, Blob& out, std::string& failure)
      : JITLinkContext(nullptr),
        entry_(std::move(entry)),
        out_(out),
        failure_(failure),
        memory_(out.bytes) {}

  jitlink::JITLinkMemoryManager& getMemoryManager() override { return memory_; }
  void notifyFailed(llvm::Error error) override { failure_ = llvm::toString(std::move(error)); }
  void lookup(const LookupMap& symbols,
              std::unique_ptr<jitlink::JITLinkAsyncLookupContinuation> done) override {
    std::string names;
    for (const auto& [name, flags] : symbols) names += " '" + std::string(name) + "'";
    done->run(refuse("outside symbol" + names));
  }
  llvm::Error notifyResolved(jitlink::LinkGraph& graph) override {
    bool found = false;
    for (jitlink::Symbol* s : graph.defined_symbols()) {
      if (!s->hasName() || !s->isCallable()) continue;
      const uint64_t offset = s->getAddress().getValue() - kBase;
      out_.symbols.push_back({s->getName().str(), offset, s->getSize()});
      if (s->getName() != entry_) continue;
      out_.entry_offset = offset;
      found = true;
    }
    // The graph keeps them in a hash table of pointers; equal programs make equal artifacts.
    std::sort(out_.symbols.begin(), out_.symbols.end(),
              [](const auto& a, const auto& b) { return a.offset < b.offset; });
    return found ? llvm::Error::success() : refuse("no symbol '" + entry_ + "'");
  }
  void notifyFinalized(jitlink::JITLinkMemoryManager::FinalizedAlloc allocation) override {
    allocation.release();
  }
  // None of the default passes: no GOT, no stubs, no unwind table is wanted.
  bool shouldAddDefaultTargetPasses(const llvm::Triple&) const override { return false; }
  jitlink::LinkGraphPassFunction getMarkLivePass(const llvm::Triple&) const override { return {}; }
  llvm::Error modifyPassConfig(jitlink::LinkGraph&, jitlink::PassConfiguration& passes) override {
    passes.PrePrunePasses.push_back(drop_unwind_table);
    passes.PrePrunePasses.push_back(jitlink::markAllSymbolsLive);
    passes.PostPrunePasses.push_back(check_edges);
    return llvm::Error::success();
  }

 private:
  std::string entry_;
  Blob& out_;
  std::string& failure_;
  BlobMemory memory_;
};

}  // namespace

Result<Blob> link_blob(llvm::MemoryBufferRef object, llvm::StringRef entry) {
  Blob blob;
  std::string failure;
  auto graph = jitlink::createLinkGraphFromELFObject_x86_64(object);
  if (!graph)
    failure = llvm::toString(graph.takeError());
  else
    jitlink::link(std::move(*graph), std::make_unique<BlobContext>(entry.str(), blob, failure));
  if (!failure.empty())
    return make_error(ErrorClass::kInternal, "generated code does not link: " + failure,
                      "please report this program");
  return blob;
}

}  // namespace cuvil::backend
