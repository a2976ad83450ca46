// Lowering: a graph becomes statements over buffers. The state that the files of this folder share.
//
// Ops are visited in program order. Values of pointwise, movement, creation, reduction and contraction
// ops stay *pending*; a kernel is made only when something asks for memory (a result, a store, a host
// call, a loop, a hazard), and takes in everything pending that it can compute on the way:
//
//   visited:   %2 = matmul %x, %w      pending
//              %3 = constant 0         pending
//              %4 = maximum %2, %3     pending
//   result %4  ask for %4 -> draft: matmul, epilogue maximum -> kernel k0_matmul_maximum -> memory
//
//   value:  unvisited --visit--> pending --materialise--> memory (a buffer and an access)
//                                   \--view of memory----^
//
// Storage: versions of a cell share one buffer, written in place. Before a buffer is written, whatever
// still needs its old contents is materialised (pending values) or copied (views). So at any time every
// live value that reads a buffer wants what is in it now, and a pending value may be computed whenever.
//
// References: an op holds its operands until it is done: a pending or view op until nobody needs its
// result, any other until it has been emitted. `uses` counts references; 0 means dead.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ops/op.h"
#include "ops/structural.h"
#include "schedule/program.h"

namespace cuvil::schedule {

// ---- fuse.cpp ----------------------------------------------------------------------------------
// Which values get memory of their own because more than one kernel needs them and computing them
// again costs more than reading them. A hint: lowering may materialise any value at any time.
class FusionPlan {
 public:
  explicit FusionPlan(const ir::Graph& g);
  bool is_root(ir::ValueId v) const { return root_[v.id]; }
  // A root because of what it takes to compute it: no kernel goes on behind it.
  bool is_cut(ir::ValueId v) const { return cost_[v.id] > kLargest; }
  // Operations of one element of `v`, down to memory, roots and what is the same for many elements.
  double cost(ir::ValueId v) const { return cost_[v.id]; }
  // Cheap enough to be computed in every kernel that needs it.
  bool is_cheap(ir::ValueId v) const;

 private:
  static constexpr double kLargest = 256;  // operations in one kernel

  void measure(ir::RegionId r);
  bool ends_reduction(ir::ValueId v) const;
  void choose_shared(ir::RegionId r);
  void choose_reductions(ir::RegionId r);

  const ir::Graph& g_;
  std::vector<std::vector<std::pair<ir::OpId, size_t>>> users_;  // (op, operand) by value
  std::vector<char> root_, flags_;
  std::vector<double> cost_;
  std::vector<int32_t> wide_;  // how many full-size operands in memory an element is computed from
};

double op_cost(const ir::Graph& g,
               ir::OpId op);  // scalar operations an element; families with bodies

inline const ops::OpInfo* info_of(const ir::Graph& g, ir::ValueId v) {
  const ir::Op* op = g.def(v);
  return op ? &ops::info_of(*op) : nullptr;
}
inline bool is_named(const ir::Op* op, std::string_view name) {
  return op && op->desc->name == name;
}
// Re-reads the elements of one operand: movement with a view, and copy.
bool is_movement(const ir::Op& op);
inline bool is_heavy(const ops::OpInfo& i) {
  return i.family == ops::Family::kReduce || i.family == ops::Family::kContract;
}
// Several elements of the result are one element of the operand.
bool repeats(const ir::Graph& g, const ir::Op& op);

// `v` is `cell` after stores, through loops that carry it.
bool is_later_version(const ir::Graph& g, ir::ValueId v, ir::ValueId cell);

// ---- lowering ------------------------------------------------------------------------------------
struct Form {
  enum class Kind : uint8_t { kUnvisited, kPending, kMemory } kind = Kind::kUnvisited;
  BufferAccess memory;  // kMemory: one stride an axis of the value
};

// A chain of movement ops from a value to an element space, interned: 0 is the empty one. A value read
// through (op, rest) is first moved by op.
struct Path {
  ir::OpId op;
  int32_t rest = 0;
};

using Memo = std::map<std::pair<int32_t, int32_t>, ops::Ref>;  // (value, path) -> in a tape

// A value that a draft computes on the way and that others may need, too.
struct Inlined {
  ir::ValueId value;
  ops::Ref ref;
};

// A kernel being put together.
struct Draft {
  Kernel kernel;
  ir::Shape space;                        // axes of what is stored
  std::vector<int32_t> axes;              // of the space -> of the kernel; -1: has size 1
  std::vector<int32_t> reduced_axes;      // kReduce: of the operand -> of the kernel
  std::vector<ir::ValueId> accumulators;  // the reductions, the matmul
  std::vector<Inlined> inlined;           // roots and accumulators
  std::vector<ir::OpId> ops;
  Memo memo;          // of the tape of the space
  ir::ValueId asked;  // the value that it is made for
  ops::Ref value;     // in the tape
  ops::Tape& tape() { return kernel.kind == Kernel::Kind::kMap ? kernel.tape : kernel.epilogue; }
};

// Where an expression is built: a tape, and how axes of its elements are numbered in the kernel.
struct Scope {
  ops::Tape& tape;
  Memo& memo;
  const std::vector<int32_t>& axes;
  bool prologue;       // of a reduction: nothing else is reduced or stored here
  size_t shared_from;  // loads before this one are not shared with
};

constexpr size_t kMostWaiting = 24;                  // roots of a region that have no memory yet
constexpr size_t kMostLoads = 16, kMostInsts = 500;  // of a kernel with several results

// What stands in the way of a draft: it needs this value in memory first.
struct Blocked {
  ir::ValueId value;
};
template <class T> using Drafted = std::variant<T, Blocked>;

class Lowering {
 public:
  Lowering(ir::Graph& g, Program& p);
  cuvil::Result<> run();

 private:
  // ---- lower.cpp: program order
  void note_version(ir::ValueId cell, ir::ValueId next, ir::RegionId r);
  cuvil::Result<> visit_region(ir::RegionId r);
  cuvil::Result<> visit(ir::OpId id);
  cuvil::Result<> visit_pending(ir::OpId id);
  cuvil::Result<> wait_for_memory(ir::RegionId region, ir::ValueId v);
  cuvil::Result<> visit_host_call(ir::OpId id);
  cuvil::Result<> visit_check(ir::OpId id);
  cuvil::Result<> visit_bind(ir::OpId id);

  // ---- store.cpp: writing in place
  cuvil::Result<> visit_store(ir::OpId id);
  // Memory of a cell that may be written: the cell's own buffer, or a fresh one with its contents.
  cuvil::Result<BufferAccess> own(ir::ValueId cell, std::span<const ir::ValueId> given_up);
  // Whoever needs the present contents of the buffer, when those references are given up, gets them
  // elsewhere.
  cuvil::Result<> protect(BufferId b, std::span<const ir::ValueId> given_up);
  // Computes a value into memory that it may itself read: through a temporary if need be.
  cuvil::Result<> write(ir::ValueId value, const BufferAccess& to,
                        const std::function<void()>& let_go);
  bool overwrites_what_it_reads(const Draft& d, const Store& store) const;
  bool reads(ir::ValueId v, BufferId b);

  // ---- loop.cpp
  cuvil::Result<> visit_for(ir::OpId id);
  cuvil::Result<BufferAccess> carried_storage(ir::ValueId init, const ir::Op& loop);
  cuvil::Result<> settle_outer(ir::RegionId r);
  cuvil::Result<> settle(ir::ValueId v);

  // ---- results.cpp
  cuvil::Result<> emit_results();
  cuvil::Result<> emit_fresh_result(uint32_t index);
  cuvil::Result<> emit_view_result(uint32_t index);

  // ---- storage.cpp
  BufferId add_buffer(Buffer b);
  // A buffer for `v`: the result it will become, else arena memory (leased if its size is not constant).
  BufferAccess new_storage(ir::ValueId v, bool c_order = false);
  BufferAccess result_storage(uint32_t result);
  BufferAccess arena_storage(const ir::Type& t, std::span<const uint8_t> order, std::string name);
  ir::Shape dense_strides(const ir::Type& t, std::span<const uint8_t> order);
  std::optional<uint32_t> future_result(ir::ValueId v) const;
  BufferAccess whole(BufferId b);  // every element of the buffer
  void add_inputs();
  std::string name_of(ir::ValueId v) const;
  void set_memory(ir::ValueId v, BufferAccess a);

  // ---- references
  void release(ir::ValueId v);  // one reference less; dead pending ops let go in turn
  void done(ir::OpId id);       // the op lets go of its operands
  struct Counts {
    std::vector<int32_t> uses;
    std::vector<char> released;
  };
  void release_in(Counts& c, ir::ValueId v) const;
  bool buffer_is_live(const Counts& c, BufferId b) const;

  // ---- draft.cpp: one kernel
  int32_t extend(ir::OpId op, int32_t path);
  std::variant<ops::Access, Blocked> along(int32_t path, ops::Access a);
  Drafted<Draft> draft(ir::ValueId v, const ir::Shape& space);
  std::optional<Blocked> start_reduction(Draft& d, ir::ValueId h);
  std::optional<Blocked> start_matmul(Draft& d, ir::ValueId h);
  std::optional<Blocked> add_reduction(Draft& d, ir::ValueId h);
  Drafted<std::vector<int32_t>> kept_axes(const Draft& d, ir::ValueId h, int32_t path);
  Drafted<ops::Ref> build(Draft& d, const Scope& s, ir::ValueId v, int32_t path);
  Drafted<ops::Ref> build_creation(Draft& d, ops::Tape& t, const std::vector<int32_t>& axes,
                                   const ir::Op& op, int32_t path);
  ops::Ref load(Draft& d, ops::Tape& t, const std::vector<int32_t>& axes, BufferId b, DType dtype,
                const ops::Access& a, size_t shared_from);
  void find_heavy(ir::ValueId v, int32_t path, std::vector<std::pair<ir::ValueId, int32_t>>* out,
                  std::set<std::pair<int32_t, int32_t>>* seen);
  // One more output on the side, computed in the same space; nullopt: it does not fit or shares nothing.
  std::optional<ops::Ref> join(Draft& d, ir::ValueId v);

  // ---- emit.cpp: drafts become statements
  cuvil::Result<> materialise(ir::ValueId v);
  cuvil::Result<> materialise_reshape(ir::ValueId v);
  cuvil::Result<> materialise_concatenate(ir::ValueId v);
  // A copy of a value in memory; the value is there from now on.
  cuvil::Result<> relocate(ir::ValueId v);
  // Materialises what is in the way until the draft succeeds.
  cuvil::Result<Draft> unblocked_draft(ir::ValueId v, const ir::Shape& space);
  // Emits the kernel. `let_go` drops the references that end with it; what it computes on the way and is
  // needed after that is stored, too.
  void commit(Draft d, const std::function<void()>& let_go);
  void add_store(Draft& d, ops::Ref value, const BufferAccess& over_space);
  std::optional<BufferAccess> reuse_in_place(const Draft& d, ir::ValueId v);
  void emit(Statement s) { block_->push_back(std::move(s)); }

  uint32_t add_site(const ir::Op& op);

  bool pending(ir::ValueId v) const { return forms_[v.id].kind == Form::Kind::kPending; }
  bool in_memory(ir::ValueId v) const { return forms_[v.id].kind == Form::Kind::kMemory; }
  Error internal(std::string what, const ir::Op* op = nullptr) const;

  ir::Graph& g_;
  Program& p_;
  FusionPlan fusion_;
  std::vector<Form> forms_;
  std::vector<int32_t> uses_;
  std::vector<char> released_;        // by op
  std::vector<ir::ValueId> visited_;  // in program order
  std::map<int32_t, std::deque<ir::ValueId>>
      waiting_;  // roots without memory, by region, oldest first
  std::vector<ir::ValueId>
      next_version_;  // by value: the store or loop result that takes its cell over
  std::vector<Path> paths_{{}};
  std::map<std::pair<int32_t, int32_t>, int32_t> path_ids_;
  std::map<int32_t, uint32_t> sites_;    // by op
  std::vector<BufferId> result_buffer_;  // by result
  std::vector<ir::RegionId> home_;       // by buffer: the region whose block made it
  ir::RegionId region_;
  Block* block_ = nullptr;
  int kernels_ = 0;
};

// ---- after lowering ------------------------------------------------------------------------------
double kernel_cost(const ir::Graph& g, const Kernel& k);  // ns; cost.cpp
void find_lifetimes(Program& p);                          // lifetime.cpp
void plan_memory(Program& p);                             // memory_plan.cpp
// A picture of arena buffers: time on x, offset on y.
std::string draw_memory(const Program& p);

// Calls f(position, statement, depth) for every statement in execution order; a loop has a position at
// its head and one more at its end. Returns the number of positions.
template <class F>
int32_t for_each_statement(const Block& b, F&& f, int32_t position = 0, int depth = 0) {
  for (const Statement& s : b) {
    f(position++, s, depth);
    if (const For* loop = std::get_if<For>(&s.v)) {
      position = for_each_statement(*loop->body, f, position, depth + 1);
      ++position;
    }
  }
  return position;
}

}  // namespace cuvil::schedule
