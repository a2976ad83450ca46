// The parts of a matmul kernel: what is multiplied, in which tiles, and what becomes of a tile.
// gemm.cpp chooses and lays out the loops; gemm_tile.cpp emits one tile.
#pragma once

#include "codegen/kernel.h"

namespace cuvil::codegen {

// Axes are batch..., m, n, k in this order, after roles may have been swapped.
struct MatMulPlan {
  const schedule::Kernel* kernel = nullptr;
  Plan plan;
  ops::Ref lhs, rhs;
  DType type = DType::kF32;  // of the accumulator
  size_t batch = 0;          // how many batch axes
  size_t m() const { return batch; }
  size_t n() const { return batch + 1; }
  size_t k() const { return batch + 2; }

  unsigned lanes = 1;        // of one register
  int64_t rows = 1;          // of a tile
  unsigned columns = 1;      // of a tile, a power of two
  bool mixed = false;        // a factor depends on both m and n: one row at a time
  bool along_k = false;      // dot products: lanes run along k
  bool stream = false;       // one row of A, a large B
  bool pack = false;         // panels of B are copied before they are used
  bool tile_buffer = false;  // the epilogue works on a tile in memory, not in registers
};

// One function's view of a plan.
class TileEmitter {
 public:
  TileEmitter(FunctionBuilder& f, const MatMulPlan& p);

  void set_batch(llvm::ArrayRef<llvm::Value*> indices) {
    batch_.assign(indices.begin(), indices.end());
  }
  // Evaluates B's factor for all k and columns [n0, n0 + columns) into `packed`, row by row.
  void pack(llvm::Value* packed, llvm::Value* n0, unsigned columns);
  // One tile at (m0, n0): multiplies, applies the epilogue, stores. Rows before `m_new` and columns before
  // `n_new` have been stored by a tile that overlaps this one.
  void tile(llvm::Value* m0, llvm::Value* n0, int64_t rows, unsigned columns, llvm::Value* packed,
            llvm::Value* m_new, llvm::Value* n_new);
  // All of the one row of a result at columns [n0, n0 + columns).
  void stream_row(llvm::Value* n0, llvm::Value* columns, int64_t most_columns);
  // `rows` by `columns` dot products, each along k.
  void dot_tile(llvm::Value* m0, llvm::Value* n0, int64_t rows, int64_t columns);

  llvm::Value* extent(size_t axis) { return f_.dim(p_.plan.axes[axis].extent); }

 private:
  TapeNest nest(const ops::Tape& tape, llvm::ArrayRef<ops::Ref> wanted, size_t axes,
                int vector_axis);
  // Of a factor, with the axes in the order batch..., m, k, n: a row of B is one base with small offsets.
  TapeNest row_nest(ops::Ref factor, llvm::Value* m);
  llvm::SmallVector<llvm::Value*, 8> row_values(TapeNest& n, ops::Ref factor, llvm::Value* k,
                                                llvm::Value* n0, unsigned parts, unsigned width);
  void open(TapeNest& n, llvm::Value* m, llvm::Value* n0, unsigned width);
  // The epilogue over a part of a tile that lies at `at`.
  void finish_region(llvm::Value* at, int64_t row_bytes, llvm::Value* m0, llvm::Value* n0,
                     std::pair<llvm::Value*, llvm::Value*> rows,
                     std::pair<llvm::Value*, llvm::Value*> columns);
  llvm::Value* multiply_add(llvm::Value* a, llvm::Value* b, llvm::Value* acc);
  llvm::Value* add(llvm::Value* a, llvm::Value* b);
  llvm::Value* zero(unsigned width);
  // acc: row by row, register by register.
  void finish_rows(llvm::ArrayRef<llvm::Value*> acc, llvm::Value* m0, llvm::Value* n0, int64_t rows,
                   unsigned columns);
  void store_all(TapeNest& e, llvm::ArrayRef<ops::Ref> values, llvm::Value* m, llvm::Value* n,
                 unsigned width);
  void finish_buffer(llvm::ArrayRef<llvm::Value*> acc, llvm::Value* m0, llvm::Value* n0,
                     int64_t rows, unsigned columns, llvm::Value* m_new, llvm::Value* n_new);

  FunctionBuilder& f_;
  const MatMulPlan& p_;
  Expr expr_;
  llvm::SmallVector<Memory, 8> loads_;
  llvm::SmallVector<Memory, 4> stores_;
  llvm::SmallVector<llvm::Value*, 4> batch_;
  llvm::Value* buffer_ = nullptr;
};

}  // namespace cuvil::codegen
