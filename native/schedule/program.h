// The schedule: kernels over buffers, in order, with a static memory plan. What codegen consumes.
//
// A Program is a tree of statements in execution order. Every value that survives a kernel has a
// Buffer; a kernel reads and writes buffers through affine accesses in bytes (ops::Access), so views,
// broadcasts, transposes, slices and run-time strides are all the same thing here.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ir/graph.h"
#include "ops/op.h"

namespace cuvil::schedule {

struct BufferId {
  int32_t id = -1;
  bool valid() const { return id >= 0; }
  bool operator==(const BufferId&) const = default;
};

enum class MemoryScope : uint8_t {
  kArgument,  // call->arrays[index].data (arguments and captures)
  kScalar,    // &call->scalars[index], rank 0
  kHost,      // call->arrays[index].data after a host call; strides are run-time symbols or C order
  kResult,    // what alloc_result(index) returned
  kArena,     // call->arena + offset (static), or leased (size symbolic)
  kConstant,  // bytes in the blob
};

struct Buffer {
  std::string name;  // "x", "%7", for dumps
  MemoryScope scope = MemoryScope::kArena;
  uint32_t index = 0;  // slot (kArgument, kScalar, kHost, kResult)
  DType dtype = DType::kF32;
  ir::Shape shape;      // logical shape
  ir::Shape strides;    // bytes
  ir::Dim bytes;        // size to allocate (kArena, kResult)
  int64_t offset = -1;  // kArena with constant size: from the arena's base. -1: leased at run time
  std::vector<uint8_t> data;  // kConstant
  // Lifetime over statement positions in a depth-first walk, half open; filled by lifetime analysis.
  int32_t start = 0, end = 0;
};

struct BufferAccess {
  BufferId buffer;
  ops::Access access;  // one stride per axis of the kernel's iteration space
  DType dtype = DType::kF32;
};

struct Store {
  ops::Ref value;  // in the tape (Map) or epilogue (Reduce, MatMul)
  BufferAccess to;
};

struct Reduction {
  ops::ReduceKind kind = ops::ReduceKind::kSum;
  ops::Ref value;                   // in `tape`
  DType accumulator = DType::kF32;  // kArgMin/kArgMax: dtype of the values; the result is i64
};

// One loop nest. Iteration axes run from slow to fast.
//
//   kMap:     for axes: tape; stores (refs in `tape`)
//   kReduce:  for axes[0 .. kept): { for axes[kept ..): tape -> reductions;  epilogue; stores }
//   kMatMul:  axes = batch..., m, n, k. loads[0] is A, loads[1] is B as read by the tape: `tape` computes
//             the two factors of one term (lhs, rhs: any pointwise prologue of its loads);
//             accumulator 0 is their sum over k; then epilogue; stores.
//
// In kReduce and kMatMul the epilogue has its own tape whose loads index `loads` as well (their
// strides along reduced axes are 0) and whose kAccumulator(k) is the result of reduction k.
struct Kernel {
  enum class Kind : uint8_t { kMap, kReduce, kMatMul } kind = Kind::kMap;
  std::string name;           // "k0_matmul_maximum"
  std::vector<ir::OpId> ops;  // fused ops, for dumps
  SourceLoc loc;
  ir::Shape extents;  // one per axis
  size_t kept = 0;    // kReduce: how many leading axes are kept
  std::vector<BufferAccess> loads;
  ops::Tape tape;
  std::vector<Reduction> reductions;  // kReduce
  ops::Ref lhs, rhs;                  // kMatMul
  DType accumulator = DType::kF32;    // kMatMul
  ops::Tape epilogue;
  std::vector<Store> stores;
  bool may_raise = false;  // the tape has checks: runs on one thread, in iteration order
  bool carries_dependence =
      false;           // a store may feed a later load: in order, one element at a time
  double cost_ns = 0;  // estimate, when all extents are known (symbolic: from examples)

  // How many leading axes the results have: what comes after is summed over.
  size_t result_axes() const {
    return kind == Kind::kMap ? extents.size() : kind == Kind::kReduce ? kept : extents.size() - 1;
  }
};

struct Statement;
using Block = std::vector<Statement>;

struct AllocResult {
  uint32_t result = 0;
  BufferId buffer;
};  // shape from the buffer
struct ViewResult {
  uint32_t result = 0;
  uint32_t base = 0;  // CUVIL_BASE_*
  ir::Shape shape;
  ops::Access access;
};
struct Lease {
  BufferId buffer;
};  // arena buffer whose size is known only at run time
struct CopyBuffer {
  BufferId from, to;
};  // same shape and layout
struct BindDim {
  ir::SymbolId symbol;
  BufferId scalar;
};              // rank-0 i64 buffer
struct Check {  // raises `site` unless lhs op rhs; with `fits`: unless int64 holds lhs
  artifact::Predicate::Op op = artifact::Predicate::Op::kEq;
  ir::Dim lhs, rhs;
  uint32_t site = 0;
  std::vector<ir::Dim> payload;  // at most 4
  bool fits = false;
};
struct HostOperand {
  BufferId buffer;
  ops::Access access;
  ir::Shape shape;
};
struct HostCall {
  uint32_t site = 0;
  std::vector<HostOperand> operands;
};
struct For {
  ir::SymbolId induction;
  ir::Dim begin, trip;  // induction = begin + k, k in [0, trip)
  bool polls = true;
  std::unique_ptr<Block> body;
};
struct Statement {
  std::variant<Kernel, AllocResult, ViewResult, Lease, CopyBuffer, BindDim, Check, HostCall, For> v;
};

struct MemoryPlan {
  int64_t arena_bytes = 0;
  int64_t lower_bound_bytes = 0;  // largest sum of live arena bytes
  int64_t weight_bytes = 0;       // captured arrays
  int64_t largest_activation_bytes = 0;
  int64_t scratch_bytes = 0;  // per-thread kernel scratch
};

struct Program {
  ir::Graph* graph = nullptr;
  std::vector<Buffer> buffers;
  Block body;
  MemoryPlan memory;
  std::vector<artifact::Site> sites;  // of every check and host call; loc is filled by compiler/
  std::vector<SourceLoc> site_locs;   // parallel to sites
  uint32_t array_slots = 0;           // inputs' slots, then host results'
  Buffer& buffer(BufferId b) { return buffers[b.id]; }
  const Buffer& buffer(BufferId b) const { return buffers[b.id]; }
};

// Lowers a graph (after passes) to a program: fuse.cpp, lower.cpp, lifetime.cpp, memory_plan.cpp.
cuvil::Result<std::unique_ptr<Program>> build_program(ir::Graph& graph);
// Independent checks of a finished plan: no two live buffers overlap, bounds and alignment hold.
cuvil::Result<> validate_plan(const Program& p);

std::string print_schedule(
    const Program& p);  // for dump_schedule(): a line a kernel, then its body
std::string print_memory_plan(const Program& p);  // parsed by cuvil.MemoryPlan
std::string print_dot(const Program& p);          // cuvil_ir.dot: kernels as clusters

}  // namespace cuvil::schedule
