// What one compile works on (Unit), and what is known inside one generated function (FunctionBuilder):
// the insertion point, values of dims, addresses of buffers, loops, ways to leave with an error.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <optional>
#include <unordered_map>
#include <vector>

#include "codegen/target.h"
#include "schedule/program.h"

namespace cuvil::codegen {

struct Unit {
  Unit(const schedule::Program& p, const Target& t, llvm::Module& m);

  const schedule::Program& program;
  ir::DimTable& dims;
  const Target& target;
  llvm::Module& module;
  llvm::LLVMContext& context;
  llvm::Type *i1, *i8, *i16, *i32, *i64, *f32, *f64;
  llvm::PointerType* ptr;

  // Buffers whose address is found while the call runs (results, leases) have a slot in the frame,
  // an array of pointers on the entry's stack; -1: none.
  std::vector<int32_t> frame_slot;
  uint32_t frame_slots = 0;
  uint32_t services_size = 16;  // the least CuvilServices::size that was made use of

  // A new internal function that returns i32.
  llvm::Function* make_function(const llvm::Twine& name, llvm::ArrayRef<llvm::Type*> parameters);
  void set_attributes(llvm::Function& f) const;
  llvm::GlobalVariable* constant(schedule::BufferId b);
  llvm::ConstantInt* i64_const(int64_t v) const;

 private:
  std::vector<llvm::GlobalVariable*> constants_;
};

std::optional<int64_t> as_const(llvm::Value* v);

class FunctionBuilder {
 public:
  // `frame` may be null (it is set later, in the entry). Symbols that the function itself changes are
  // read anew each time if `rereads_dims`.
  FunctionBuilder(Unit& u, llvm::Function* f, llvm::Value* call, llvm::Value* frame,
                  bool rereads_dims);
  // Ends the prologue. Every builder must be finished.
  void finish();

  Unit& unit;
  llvm::Function* function;
  llvm::Value* call;
  llvm::Value* frame;
  llvm::IRBuilder<> b;         // where code goes
  llvm::IRBuilder<> prologue;  // the function's first block: values that hold all through it

  llvm::Value* dim(ir::Dim d);
  // The sum of the magnitudes of its terms, as f64: whether i64 holds it without wrapping.
  llvm::Value* magnitude(ir::Dim d);
  llvm::Value* buffer_address(schedule::BufferId id);
  llvm::Value* frame_address(int32_t slot);

  // Integer arithmetic on i64 that folds what IRBuilder does not (x + 0, x * 1, x * 0).
  llvm::Value* add(llvm::Value* x, llvm::Value* y);
  llvm::Value* mul(llvm::Value* x, llvm::Value* y);
  llvm::Value* sub(llvm::Value* x, llvm::Value* y);
  // base + bytes
  llvm::Value* offset(llvm::Value* base, llvm::Value* bytes);
  llvm::Value* number(int64_t v) { return unit.i64_const(v); }

  // A field of CuvilCall, a function of CuvilServices.
  llvm::Value* call_field(llvm::Type* t, unsigned byte);
  llvm::Value* store_call_field(llvm::Value* v, unsigned byte);
  llvm::Value* service(unsigned byte, llvm::Type* result, llvm::ArrayRef<llvm::Value*> arguments);

  // for (i = begin; i < end; i += step) body(i). Straight-line code if it runs at most once.
  void loop(llvm::Value* begin, llvm::Value* end, int64_t step,
            llvm::function_ref<void(llvm::Value*)> body);
  // The same with values carried from one iteration to the next; `carried` holds the last ones after.
  void loop(llvm::Value* begin, llvm::Value* end, int64_t step,
            llvm::SmallVectorImpl<llvm::Value*>& carried,
            llvm::function_ref<void(llvm::Value*, llvm::SmallVectorImpl<llvm::Value*>&)> body);
  void if_then(llvm::Value* condition, llvm::function_ref<void()> then);

  llvm::BasicBlock* block(const llvm::Twine& name);
  void return_if(llvm::Value* condition, llvm::Value* code);  // unlikely
  void return_code(int32_t code);
  // Where `condition` holds: services->raise(site).
  void raise_if(llvm::Value* condition, uint32_t site);
  llvm::AllocaInst* stack(llvm::Type* t, uint64_t count, uint64_t alignment);

 private:
  llvm::Value* emit_dim(llvm::IRBuilder<>& at, ir::Dim d);
  llvm::Value* emit_atom(llvm::IRBuilder<>& at, int32_t atom);
  llvm::Value* emit_address(llvm::IRBuilder<>& at, schedule::BufferId id);

  bool rereads_dims_;
  llvm::BasicBlock* body_;
  std::unordered_map<int32_t, llvm::Value*> dims_, atoms_, addresses_;
};

}  // namespace cuvil::codegen
