// The arithmetic of reductions: identities, steps, and how partial results join. Used by reduce.cpp.
//
// A fold has `slots` values: one, or two for argmin/argmax (best value, its position as i64) and for sums
// of floats (sum, and what rounding has lost so far: Neumaier's compensation).
#pragma once

#include "codegen/expr.h"
#include "schedule/program.h"

namespace cuvil::codegen {

using Slots = llvm::SmallVector<llvm::Value*, 2>;

class Fold {
 public:
  Fold(FunctionBuilder& f, const schedule::Reduction& r);

  bool is_arg() const {
    return kind_ == ops::ReduceKind::kArgMin || kind_ == ops::ReduceKind::kArgMax;
  }
  // A float sum: blocks of few terms are added plainly, and their sums with compensation.
  bool compensated() const { return kind_ == ops::ReduceKind::kSum && is_float(type_); }
  size_t slots() const { return is_arg() || compensated() ? 2 : 1; }
  const schedule::Reduction& reduction() const { return *reduction_; }

  // A plain accumulator: one slot (two for arg*).
  Slots identity(unsigned width);
  // An element of the tape's type, made ready to be folded; lanes whose mask is off become the identity.
  llvm::Value* prepare(llvm::Value* x, DType from, unsigned width, llvm::Value* mask);
  void step(Slots& acc, llvm::Value* x, llvm::Value* position, unsigned width);
  // Joins two plain accumulators.
  Slots merge(const Slots& a, const Slots& b);
  Slots fold_lanes(const Slots& a, unsigned width);
  Slots narrow(const Slots& a, unsigned from, unsigned to);

  // A total: what many blocks add up to.
  Slots total_identity(unsigned width);
  void add_to_total(Slots& total, const Slots& block);
  Slots close_total(const Slots& total);  // one plain accumulator
  // What kAccumulator stands for.
  llvm::Value* result(const Slots& acc, unsigned width);

  llvm::Type* slot_type(size_t slot, unsigned width);

 private:
  llvm::Value* better(llvm::Value* x, llvm::Value* best);

  FunctionBuilder& f_;
  Expr expr_;
  const schedule::Reduction* reduction_;
  ops::ReduceKind kind_;
  DType type_;
};

}  // namespace cuvil::codegen
