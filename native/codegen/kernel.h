// Kernels as functions: emits one and the code that runs it. Called by entry.cpp for each kernel.
#pragma once

#include "codegen/nest.h"

namespace cuvil::codegen {

// Widths of vectors that a loop over one axis works with.
struct Widths {
  unsigned body = 1;    // elements an iteration of the main loop: several registers
  unsigned single = 1;  // elements of one register
  bool masked = false;  // what is left over is one iteration with a mask, not a loop of scalars
  bool only_masked = false;  // there is no main loop: every iteration has a mask (large bodies)
};

// `accesses`: loads and stores; those that are neither unit nor 0 along the axis are done lane by lane.
Widths choose_widths(Unit& u, const ops::Tape& tape, unsigned element_bytes, unsigned weight,
                     llvm::ArrayRef<Memory> accesses, size_t vector_axis,
                     std::optional<int64_t> extent);
// The widest register type among live instructions and accesses, in bytes.
unsigned widest_element(const ops::Tape& tape, llvm::ArrayRef<Memory> accesses);
// for (i = begin; i < end; ...) body(i, width, mask), where width is w.single or 1.
void vector_loop(FunctionBuilder& f, const Widths& w, llvm::Value* begin, llvm::Value* end,
                 llvm::function_ref<void(llvm::Value*, unsigned, llvm::Value*)> body);
// The mask whose first `count` lanes are on.
llvm::Value* lane_mask(FunctionBuilder& f, llvm::Value* count, unsigned width);

// Emits the kernel and, at `entry`'s insertion point, what runs it. A function that has returned a
// non-zero code makes the entry return it.
void emit_kernel(FunctionBuilder& entry, const schedule::Kernel& k);

// A whole loop nest of a tape and its stores: kMap, and the epilogue of a matmul tile.
// `ranges`: begin and end of each axis.
struct Region {
  llvm::SmallVector<std::pair<llvm::Value*, llvm::Value*>, 6> ranges;
  llvm::SmallVector<Memory, 8> loads;
  llvm::SmallVector<Memory, 4> stores;
  llvm::SmallVector<int32_t, 8> index_axis;
  llvm::SmallVector<ops::Ref, 4> values;      // parallel to stores
  llvm::SmallVector<llvm::Value*, 6> origin;  // added to what kIndex reads; empty: nothing
};
void emit_region(FunctionBuilder& f, const ops::Tape& tape, const Region& r, bool ordered);

void emit_map(FunctionBuilder& entry, const schedule::Kernel& k);
void emit_reduce(FunctionBuilder& entry, const schedule::Kernel& k);
void emit_matmul(FunctionBuilder& entry, const schedule::Kernel& k);

// Whether run_over would divide a kernel whose divided loop has `example` iterations.
bool worth_dividing(const schedule::Kernel& k, int64_t example);
// Runs `body(f, begin, end)` over [0, count) in a function of its own, called directly or through
// parallel_for, as the kernel's cost says. `count` is the extent of the loop that is divided.
void run_over(FunctionBuilder& entry, const schedule::Kernel& k, ir::Dim count, bool may_divide,
              llvm::function_ref<void(FunctionBuilder&, llvm::Value*, llvm::Value*)> body);

}  // namespace cuvil::codegen
