// One tape inside a loop nest: each instruction is emitted at the shallowest loop at which it can be,
// as a scalar or, if it depends on the vector axis, as a vector. Loops themselves belong to the caller,
// which says enter(axis, index) whenever it has opened one. Used by loops, reduce and gemm.
#pragma once

#include <map>

#include "codegen/expr.h"
#include "codegen/plan.h"

namespace cuvil::codegen {

// An affine access with its numbers as values.
struct Memory {
  llvm::Value* base = nullptr;                 // of element (0, ..., 0)
  llvm::SmallVector<llvm::Value*, 6> strides;  // bytes, one an axis
  DType dtype = DType::kF32;
  bool zero(size_t axis) const { return as_const(strides[axis]) == 0; }
  bool unit(size_t axis) const { return as_const(strides[axis]) == size_of(dtype); }
  bool reversed(size_t axis) const { return as_const(strides[axis]) == -int64_t{size_of(dtype)}; }
};

Memory make_memory(FunctionBuilder& f, const PlanAccess& a);

class TapeNest {
 public:
  // Axes are numbered from slow to fast; `vector_axis` of them takes indices `width` at a time (-1: none).
  // `wanted` are the instructions whose values are asked for. `ordered`: loads are never moved.
  TapeNest(FunctionBuilder& f, const ops::Tape& tape, llvm::ArrayRef<Memory> loads, size_t axes,
           int vector_axis, llvm::ArrayRef<int32_t> index_axis, llvm::ArrayRef<ops::Ref> wanted,
           bool ordered);

  // What kAccumulator(k) stands for: a value of depth `axes` - 1 unless it is a load.
  void set_accumulator(uint32_t k, llvm::Value* v) { accumulators_[k] = v; }

  // Added to the indices that kIndex reads, by axis; empty: nothing.
  void set_origin(llvm::ArrayRef<llvm::Value*> origin) {
    origin_.assign(origin.begin(), origin.end());
  }

  // Outside of all loops; then just inside the loop over an axis, in order. On the vector axis `index` is
  // that of lane 0, and lanes whose mask bit is off are neither read nor used.
  void begin();
  void enter(int axis, llvm::Value* index, unsigned width = 1, llvm::Value* mask = nullptr);
  // Emits the splats that the inner loops would otherwise repeat. Call it before a loop of that width.
  void prepare(unsigned width);

  llvm::Value* value(ops::Ref r, unsigned width);  // splat if it is a scalar
  // The address of an access at the indices entered so far.
  struct Cursor {
    llvm::SmallVector<llvm::Value*, 8> at;
  };  // [axis + 1]
  Cursor cursor(const Memory& m);
  void advance(Cursor& c, const Memory& m, int axis, llvm::Value* index);
  llvm::Value* load(const Memory& m, llvm::Value* address, unsigned width, llvm::Value* mask);
  void store(llvm::Value* v, const Memory& m, llvm::Value* address, unsigned width,
             llvm::Value* mask);
  bool live(size_t inst) const { return live_[inst]; }
  bool on_vector_axis(ops::Ref r) const { return vector_[r.id]; }
  Expr& expr() { return expr_; }

 private:
  void classify(llvm::ArrayRef<ops::Ref> wanted, bool ordered);
  void emit(size_t inst);

  FunctionBuilder& f_;
  Expr expr_;
  const ops::Tape& tape_;
  llvm::SmallVector<Memory, 8> loads_;
  int axes_, vector_axis_;
  llvm::SmallVector<int32_t, 8> index_axis_;
  std::map<uint32_t, llvm::Value*> accumulators_;
  llvm::SmallVector<ops::Ref, 4> wanted_;
  // By instruction.
  std::vector<bool> live_, vector_;
  std::vector<int> depth_;
  std::vector<llvm::Value*> value_;
  std::map<std::pair<int32_t, unsigned>, llvm::Value*> wide_;  // splats of scalars
  std::vector<bool> read_;                                     // by load
  llvm::SmallVector<Cursor, 8> cursors_;
  llvm::SmallVector<llvm::Value*, 8> indices_, origin_;
  unsigned width_ = 1;
  llvm::Value* mask_ = nullptr;
};

}  // namespace cuvil::codegen
