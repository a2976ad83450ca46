// kMatMul: chooses tiles and lays out the loops around them.
//
//   tasks = batches x panels of columns x blocks of rows          (divided among threads)
//     once a panel: copy its columns of B into [k][columns]       (large, transposed or computed B)
//     tiles of rows: all of k in registers, then the epilogue
//
// The last tile of a dimension is moved back to overlap the one before, so that one micro-kernel serves
// all: rows and columns that two tiles cover are computed twice and stored twice with the same bits. Where
// storing twice would show (the epilogue reads what it overwrites) the tile goes through a buffer and only
// the new part is stored.
#include "codegen/gemm.h"

#include "artifact/abi.h"

namespace cuvil::codegen {

using llvm::Value;

namespace {

constexpr int64_t kPackBytes = 512 << 10;    // B beyond this is copied into panels
constexpr int64_t kStreamBytes = 256 << 10;  // B beyond this is read row by row for one row of A
constexpr int64_t kStreamColumns = 2048;
constexpr int64_t kRowBlock = 96;              // rows of a task, where rows are divided
constexpr unsigned kEpilogueInRegisters = 60;  // weight of an epilogue times registers of a tile

// Which loads a value is computed from.
void collect_loads(const ops::Tape& t, ops::Ref r, std::vector<bool>& seen,
                   std::vector<size_t>* out) {
  if (!r.valid() || seen[r.id]) return;
  seen[r.id] = true;
  const ops::Inst& i = t.at(r);
  if (i.prim == ops::Prim::kLoad) out->push_back(i.imm);
  for (ops::Ref x : {i.a, i.b, i.c}) collect_loads(t, x, seen, out);
}

std::vector<size_t> loads_of(const ops::Tape& t, ops::Ref r) {
  std::vector<bool> seen(t.insts.size(), false);
  std::vector<size_t> out;
  collect_loads(t, r, seen, &out);
  return out;
}

bool reads_index(const ops::Tape& t, const Plan& p, ops::Ref r, size_t axis) {
  if (!r.valid()) return false;
  const ops::Inst& i = t.at(r);
  if (i.prim == ops::Prim::kIndex) return p.index_axis[i.imm] == static_cast<int32_t>(axis);
  return reads_index(t, p, i.a, axis) || reads_index(t, p, i.b, axis) ||
         reads_index(t, p, i.c, axis);
}

class Chooser {
 public:
  Chooser(Unit& u, const schedule::Kernel& k) : u_(u), k_(k) {}

  MatMulPlan choose() {
    MatMulPlan p;
    p.kernel = &k_;
    p.type = k_.accumulator;
    p.lhs = k_.lhs;
    p.rhs = k_.rhs;
    p.plan = make_plan(k_, k_.extents.size() - 1);
    p.batch = k_.extents.size() - 3;
    drop_batch_axes(p);
    p.mixed = depends(p, p.lhs, p.n()) || depends(p, p.rhs, p.m());
    orient(p);
    choose_tile(p);
    return p;
  }

 private:
  bool is_one(ir::Dim d) const { return u_.dims.is_constant(d, 1); }

  void drop_batch_axes(MatMulPlan& p) {
    size_t before = p.plan.axes.size();
    drop_unit_axes(u_, p.plan, 0, p.batch);
    p.batch -= before - p.plan.axes.size();
    // With one B for all batches, batches are more rows.
    p.batch = merge_axes(u_, p.plan, k_, 0, p.batch + 1) - 1;
  }

  bool depends(const MatMulPlan& p, ops::Ref r, size_t axis) const {
    for (size_t l : loads_of(k_.tape, r))
      if (!u_.dims.is_constant(p.plan.loads[l].strides[axis], 0)) return true;
    return reads_index(k_.tape, p.plan, r, axis);
  }

  // All loads of a factor that move along the axis are contiguous there.
  bool contiguous(const MatMulPlan& p, ops::Ref r, size_t axis) const {
    for (size_t l : loads_of(k_.tape, r)) {
      const PlanAccess& a = p.plan.loads[l];
      auto stride = u_.dims.as_constant(a.strides[axis]);
      if (!stride || (*stride != 0 && *stride != size_of(a.dtype))) return false;
    }
    return true;
  }

  // C = A B is C' = B' A': whichever of the two has contiguous vectors.
  void orient(MatMulPlan& p) {
    const auto one = [&](size_t axis) { return is_one(p.plan.axes[axis].extent); };
    bool columns = !one(p.n()) && contiguous(p, p.rhs, p.n());
    bool rows = !one(p.m()) && contiguous(p, p.lhs, p.m());
    auto store_unit = [&](size_t axis) {
      const PlanAccess& s = p.plan.stores[0];
      return u_.dims.is_constant(s.strides[axis], size_of(s.dtype));
    };
    if (!p.mixed && !columns && rows && store_unit(p.m())) {
      p.plan.swap_axes(p.m(), p.n());
      std::swap(p.lhs, p.rhs);
      std::swap(columns, rows);
    }
    const auto m = u_.dims.as_constant(p.plan.axes[p.m()].extent);
    p.along_k = one(p.n()) || (!columns && m && *m < 4);
    p.pack = !columns && !p.along_k && !p.mixed;
  }

  void choose_tile(MatMulPlan& p) {
    const unsigned element = p.type == DType::kF16 ? 4 : size_of(p.type);
    unsigned widest = element;
    for (const ops::Ref r : {p.lhs, p.rhs})
      for (size_t l : loads_of(k_.tape, r))
        widest = std::max<unsigned>(widest, size_of(p.plan.loads[l].dtype));
    p.lanes = std::max(1u, u_.target.vector_bytes / widest);
    const auto m = u_.dims.as_constant(p.plan.axes[p.m()].extent);
    const auto n = u_.dims.as_constant(p.plan.axes[p.n()].extent);
    const bool many = u_.target.vector_registers == 32;

    // Columns: registers a row, as many as leave few over.
    unsigned most = m == 1 ? 8 : many ? 4 : 2;
    p.columns = p.lanes * most;
    if (n) {
      double best = 1e30;
      for (unsigned c = p.lanes * most; c >= 1; c /= 2) {
        if (c > *n && c > 1) continue;
        double panels = static_cast<double>((*n + c - 1) / c);
        double cost = panels * (std::max(1.0, static_cast<double>(c) / p.lanes) + 0.5);
        if (cost < best) {
          best = cost;
          p.columns = c;
        }
      }
    }
    // Rows: accumulators for all but a few registers.
    const int64_t registers = std::max<int64_t>(1, p.columns / p.lanes);
    int64_t most_rows = many                ? (registers >= 4 ? 6 : 8)
                        : u_.target.has_fma ? 12 / registers
                                            : 8 / registers;
    most_rows = std::clamp<int64_t>(most_rows, 1, 8);
    if (p.mixed) most_rows = 1;
    p.rows = most_rows;
    if (m) {
      double best = 1e30;
      for (int64_t r = most_rows; r >= 1; --r) {
        if (r > *m) continue;
        double cost = static_cast<double>((*m + r - 1) / r) * (static_cast<double>(r) + 1.0);
        if (cost < best) {
          best = cost;
          p.rows = r;
        }
      }
    }
    const int64_t m_example = u_.dims.example(p.plan.axes[p.m()].extent).value_or(1);
    const int64_t k_example = u_.dims.example(p.plan.axes[p.k()].extent).value_or(1);
    const int64_t n_example = u_.dims.example(p.plan.axes[p.n()].extent).value_or(1);
    if (!p.along_k && !p.mixed && m_example >= 4 * p.rows &&
        (k_example * n_example * element > kPackBytes || tape_weight(k_.tape) > 8))
      p.pack = true;

    p.stream = m == 1 && !p.along_k && !p.mixed && !p.pack && contiguous(p, p.rhs, p.n()) &&
               k_example * n_example * element > kStreamBytes && k_example >= 32;

    unsigned weight = std::max(1u, tape_weight(k_.epilogue));
    bool scattered = false;
    for (const PlanAccess& s : p.plan.stores)
      scattered = scattered || !u_.dims.is_constant(s.strides[p.n()], size_of(s.dtype));
    for (const PlanAccess& l : p.plan.loads) {
      auto stride = u_.dims.as_constant(l.strides[p.n()]);
      bool used = false;
      for (const ops::Inst& i : k_.epilogue.insts)
        used = used || (i.prim == ops::Prim::kLoad && &p.plan.loads[i.imm] == &l);
      scattered = scattered || (used && (!stride || (*stride != 0 && *stride != size_of(l.dtype))));
    }
    p.tile_buffer = scattered || stores_into_loads(u_.program, k_) ||
                    weight * static_cast<unsigned>(p.rows * registers) > kEpilogueInRegisters;
  }

  Unit& u_;
  const schedule::Kernel& k_;
};

// Loops over tiles of rows [from, to) at columns n0.
class Layout {
 public:
  Layout(FunctionBuilder& f, const MatMulPlan& p) : f_(f), p_(p), t_(f, p) {}

  TileEmitter& tiles() { return t_; }

  // min(i, last), as constants if they are.
  Value* at_most(Value* i, Value* last) {
    auto a = as_const(i), b = as_const(last);
    if (a && b) return f_.number(std::min(*a, *b));
    return f_.b.CreateSelect(f_.b.CreateICmpSLT(i, last), i, last);
  }

  void rows(Value* from, Value* to, Value* n0, Value* n_new, unsigned columns, Value* packed) {
    Value* m = t_.extent(p_.m());
    auto tiled = [&] {
      Value* last = f_.sub(m, f_.number(p_.rows));
      f_.loop(from, to, p_.rows,
              [&](Value* i) { t_.tile(at_most(i, last), n0, p_.rows, columns, packed, i, n_new); });
    };
    if (as_const(m) || p_.rows == 1) {
      tiled();
      return;
    }
    either(f_.b.CreateICmpSGE(m, f_.number(p_.rows)), tiled, [&] {
      f_.loop(from, to, 1, [&](Value* i) { t_.tile(i, n0, 1, columns, packed, i, n_new); });
    });
  }

  // Panel number `panel`; `body(n0, n_new, columns)`.
  void panel(Value* panel, llvm::function_ref<void(Value*, Value*, unsigned)> body) {
    Value* n = t_.extent(p_.n());
    Value* first = f_.mul(panel, f_.number(p_.columns));
    auto wide = [&](unsigned columns) {
      body(at_most(first, f_.sub(n, f_.number(columns))), first, columns);
    };
    if (as_const(n) || p_.columns == 1) {
      wide(p_.columns);
      return;
    }
    // Fewer columns than a panel: registers one by one, or single columns.
    either(
        f_.b.CreateICmpSGE(n, f_.number(p_.columns)), [&] { wide(p_.columns); },
        [&] {
          auto narrow = [&](unsigned columns) {
            Value* last = f_.sub(n, f_.number(columns));
            f_.loop(f_.number(0), n, columns,
                    [&](Value* j) { body(at_most(j, last), j, columns); });
          };
          either(
              f_.b.CreateICmpSGE(n, f_.number(p_.lanes)), [&] { narrow(p_.lanes); },
              [&] { narrow(1); });
        });
  }

  void dots() {
    const auto m = as_const(t_.extent(p_.m())), n = as_const(t_.extent(p_.n()));
    // Four at a time share one factor's loads.
    int64_t tile_m = p_.mixed || (m && *m < 4) || n != 1 ? 1 : 4;
    int64_t tile_n = !p_.mixed && m && *m < 4 && n && *n >= 4 ? 4 : 1;
    auto over = [&](Value* from, Value* to, int64_t tile,
                    llvm::function_ref<void(Value*, int64_t)> body) {
      // Not overlapping: the epilogue may read what it overwrites.
      Value* whole = f_.add(from, f_.b.CreateAnd(f_.sub(to, from), f_.number(-tile)));
      f_.loop(from, whole, tile, [&](Value* i) { body(i, tile); });
      if (tile > 1) f_.loop(whole, to, 1, [&](Value* i) { body(i, 1); });
    };
    over(row_begin, row_end, tile_m, [&](Value* i, int64_t rows) {
      over(f_.number(0), t_.extent(p_.n()), tile_n,
           [&](Value* j, int64_t columns) { t_.dot_tile(i, j, rows, columns); });
    });
  }

  void either(Value* condition, llvm::function_ref<void()> yes, llvm::function_ref<void()> no) {
    llvm::BasicBlock *then = f_.block("then"), *otherwise = f_.block("else"),
                     *after = f_.block("endif");
    f_.b.CreateCondBr(condition, then, otherwise);
    f_.b.SetInsertPoint(then);
    yes();
    f_.b.CreateBr(after);
    f_.b.SetInsertPoint(otherwise);
    no();
    f_.b.CreateBr(after);
    f_.b.SetInsertPoint(after);
  }

  Value *row_begin = nullptr, *row_end = nullptr;

 private:
  FunctionBuilder& f_;
  const MatMulPlan& p_;
  TileEmitter t_;
};

// task = ((batch * panels) + panel) * blocks + block
struct Task {
  Value* rest;
  FunctionBuilder& f;
  Value* take(Value* count) {
    if (as_const(count) == 1) return f.number(0);
    Value* i = f.b.CreateURem(rest, count);
    rest = f.b.CreateUDiv(rest, count);
    return i;
  }
};

}  // namespace

void emit_matmul(FunctionBuilder& entry, const schedule::Kernel& k) {
  Unit& u = entry.unit;
  const MatMulPlan p = Chooser(u, k).choose();
  ir::DimTable& d = u.dims;
  const ir::Dim m = p.plan.axes[p.m()].extent, n = p.plan.axes[p.n()].extent,
                depth = p.plan.axes[p.k()].extent;
  auto blocks_of = [&](ir::Dim extent, int64_t size) {
    return d.floordiv(d.add(extent, d.constant(size - 1)), d.constant(size));
  };
  ir::Dim batches = d.constant(1);
  for (size_t i = 0; i < p.batch; ++i) batches = d.mul(batches, p.plan.axes[i].extent);
  ir::Dim panels = p.along_k ? d.constant(1) : blocks_of(n, p.stream ? kStreamColumns : p.columns);
  // Rows are divided too when the kernel is large; blocks start at multiples of a tile.
  const int64_t block_rows = p.along_k ? 64 : std::max<int64_t>(1, kRowBlock / p.rows) * p.rows;
  ir::Dim blocks = worth_dividing(k, 2) && !p.stream ? blocks_of(m, block_rows) : d.constant(1);
  ir::Dim tasks = d.mul(d.mul(batches, panels), blocks);

  run_over(entry, k, tasks, true, [&](FunctionBuilder& f, Value* begin, Value* end) {
    Layout layout(f, p);
    Value* packed = nullptr;
    if (p.pack) {
      unsigned element = p.type == DType::kF16 ? 4 : size_of(p.type);
      Value* bytes = f.mul(f.dim(depth), f.number(int64_t{element} * p.columns));
      packed =
          f.service(offsetof(CuvilServices, lease_scratch), u.ptr,
                    {f.call, bytes,
                     llvm::ConstantInt::get(u.i32, static_cast<uint32_t>(CUVIL_SCRATCH_THREAD))});
      f.return_if(f.b.CreateIsNull(packed), llvm::ConstantInt::get(u.i32, CUVIL_SITE_PYTHON));
    }
    Value* block_count = f.dim(blocks);
    Value* panel_count = f.dim(panels);
    f.loop(begin, end, 1, [&](Value* t) {
      Task task{t, f};
      Value* block = task.take(block_count);
      Value* panel = task.take(panel_count);
      llvm::SmallVector<Value*, 4> index(p.batch);
      for (size_t i = p.batch; i-- > 0;)
        index[i] = i == 0 ? task.rest : task.take(f.dim(p.plan.axes[i].extent));
      layout.tiles().set_batch(index);
      Value* rows_end = layout.tiles().extent(p.m());
      layout.row_begin = f.mul(block, f.number(block_rows));
      layout.row_end =
          as_const(block_count) == 1
              ? rows_end
              : layout.at_most(f.add(layout.row_begin, f.number(block_rows)), rows_end);
      if (p.along_k) {
        layout.dots();
        return;
      }
      if (p.stream) {
        Value* n0 = f.mul(panel, f.number(kStreamColumns));
        Value* left = f.sub(layout.tiles().extent(p.n()), n0);
        layout.tiles().stream_row(n0, layout.at_most(left, f.number(kStreamColumns)),
                                  kStreamColumns);
        return;
      }
      layout.panel(panel, [&](Value* n0, Value* n_new, unsigned columns) {
        if (packed != nullptr) {
          // Kept while the next block of rows uses the same panel.
          auto fill = [&] { layout.tiles().pack(packed, n0, columns); };
          if (as_const(block_count) == 1 || columns != p.columns)
            fill();
          else
            f.if_then(
                f.b.CreateOr(f.b.CreateICmpEQ(t, begin), f.b.CreateICmpEQ(block, f.number(0))),
                fill);
        }
        layout.rows(layout.row_begin, layout.row_end, n0, n_new, columns, packed);
      });
    });
  });
}

}  // namespace cuvil::codegen
