// One tile of a matmul: rows x columns accumulators in registers (6 x 64 f32 on AVX-512 are 24). Each step
// along k takes one row of B and a broadcast of A for each row.
#include "codegen/gemm.h"

namespace cuvil::codegen {

using llvm::Value;

namespace {

// FMA latency times throughput: fewer independent chains leave the unit idle.
constexpr int64_t kChains = 8;
constexpr int64_t kStreams = 8;

DType in_memory(DType t) { return t == DType::kF16 ? DType::kF32 : t; }

}  // namespace

TileEmitter::TileEmitter(FunctionBuilder& f, const MatMulPlan& p) : f_(f), p_(p), expr_(f) {
  for (const PlanAccess& a : p.plan.loads) loads_.push_back(make_memory(f, a));
  for (const PlanAccess& a : p.plan.stores) stores_.push_back(make_memory(f, a));
}

TapeNest TileEmitter::nest(const ops::Tape& tape, llvm::ArrayRef<ops::Ref> wanted, size_t axes,
                           int vector_axis) {
  return TapeNest(f_, tape, loads_, axes, vector_axis, p_.plan.index_axis, wanted, false);
}

void TileEmitter::open(TapeNest& n, Value* m, Value* n0, unsigned width) {
  n.begin();
  for (size_t i = 0; i < batch_.size(); ++i) n.enter(static_cast<int>(i), batch_[i]);
  n.enter(static_cast<int>(p_.m()), m);
  n.enter(static_cast<int>(p_.n()), n0, width);
}

Value* TileEmitter::zero(unsigned width) {
  return llvm::Constant::getNullValue(expr_.type(p_.type, width));
}

Value* TileEmitter::add(Value* a, Value* b) {
  if (is_float(p_.type)) return f_.b.CreateFAdd(a, b);
  return is_bool(p_.type) ? f_.b.CreateOr(a, b) : f_.b.CreateAdd(a, b);
}

Value* TileEmitter::multiply_add(Value* a, Value* b, Value* acc) {
  if (is_float(p_.type)) {
    if (f_.unit.target.has_fma) return expr_.fma(a, b, acc);
    return f_.b.CreateFAdd(acc, f_.b.CreateFMul(a, b));
  }
  if (is_bool(p_.type)) return f_.b.CreateOr(acc, f_.b.CreateAnd(a, b));
  return f_.b.CreateAdd(acc, f_.b.CreateMul(a, b));
}

TapeNest TileEmitter::row_nest(ops::Ref factor, Value* m) {
  llvm::SmallVector<Memory, 8> loads = loads_;
  for (Memory& x : loads) std::swap(x.strides[p_.n()], x.strides[p_.k()]);
  std::vector<int32_t> index = p_.plan.index_axis;
  for (int32_t& i : index) {
    if (i == static_cast<int32_t>(p_.n()))
      i = static_cast<int32_t>(p_.k());
    else if (i == static_cast<int32_t>(p_.k()))
      i = static_cast<int32_t>(p_.n());
  }
  TapeNest n(f_, p_.kernel->tape, loads, p_.k() + 1, static_cast<int>(p_.k()), index, {factor},
             false);
  n.begin();
  for (size_t i = 0; i < batch_.size(); ++i) n.enter(static_cast<int>(i), batch_[i]);
  n.enter(static_cast<int>(p_.m()), m);
  return n;
}

llvm::SmallVector<Value*, 8> TileEmitter::row_values(TapeNest& n, ops::Ref factor, Value* k,
                                                     Value* n0, unsigned parts, unsigned width) {
  llvm::SmallVector<Value*, 8> out;
  n.enter(static_cast<int>(p_.n()), k);
  for (unsigned j = 0; j < parts; ++j) {
    n.enter(static_cast<int>(p_.k()), f_.add(n0, f_.number(int64_t{j} * width)), width);
    out.push_back(n.value(factor, width));
  }
  return out;
}

void TileEmitter::pack(Value* packed, Value* n0, unsigned columns) {
  const unsigned width = std::min(columns, p_.lanes), parts = columns / width;
  TapeNest b = row_nest(p_.rhs, f_.number(0));
  b.prepare(width);
  llvm::Type* part = expr_.memory_type(in_memory(p_.type), width);
  f_.loop(f_.number(0), extent(p_.k()), 1, [&](Value* k) {
    auto row = row_values(b, p_.rhs, k, n0, parts, width);
    for (unsigned j = 0; j < parts; ++j)
      expr_.store(row[j],
                  f_.b.CreateGEP(part, packed, f_.add(f_.mul(k, f_.number(parts)), f_.number(j))),
                  in_memory(p_.type), width);
  });
}

void TileEmitter::tile(Value* m0, Value* n0, int64_t rows, unsigned columns, Value* packed,
                       Value* m_new, Value* n_new) {
  const int k_axis = static_cast<int>(p_.k());
  const unsigned width = std::min(columns, p_.lanes), parts = columns / width;
  std::vector<TapeNest> a;
  for (int64_t i = 0; i < rows; ++i) {
    Value* m = f_.add(m0, f_.number(i));
    if (p_.mixed) {
      a.push_back(row_nest(p_.lhs, m));
    } else {
      a.push_back(nest(p_.kernel->tape, {p_.lhs}, p_.k() + 1, -1));
      open(a.back(), m, f_.number(0), 1);
    }
  }
  TapeNest b = row_nest(p_.rhs, p_.mixed ? m0 : f_.number(0));
  for (TapeNest& n : a) n.prepare(width);
  b.prepare(width);
  llvm::Type* packed_part = expr_.memory_type(in_memory(p_.type), width);

  int64_t chains = 1;
  while (chains * rows * parts < kChains) chains *= 2;
  const int64_t steps = rows * parts >= kChains ? 1 : std::max<int64_t>(chains, 4);
  const int64_t tile_registers = rows * parts;

  auto step = [&](Value* k, Value** acc) {
    llvm::SmallVector<Value*, 8> y;
    if (packed != nullptr) {
      for (unsigned j = 0; j < parts; ++j)
        y.push_back(expr_.load(
            f_.b.CreateGEP(packed_part, packed, f_.add(f_.mul(k, f_.number(parts)), f_.number(j))),
            in_memory(p_.type), width));
    } else {
      y = row_values(b, p_.rhs, k, n0, parts, width);
    }
    for (int64_t i = 0; i < rows; ++i) {
      llvm::SmallVector<Value*, 8> x;
      if (p_.mixed) {
        x = row_values(a[i], p_.lhs, k, n0, parts, width);
      } else {
        a[i].enter(k_axis, k);
        x.assign(parts, a[i].value(p_.lhs, width));
      }
      for (unsigned j = 0; j < parts; ++j)
        acc[i * parts + j] = multiply_add(x[j], y[j], acc[i * parts + j]);
    }
  };
  llvm::SmallVector<Value*, 32> acc(static_cast<size_t>(tile_registers * chains), zero(width));
  Value* end = extent(p_.k());
  Value* whole = f_.b.CreateAnd(end, f_.number(-steps));
  f_.loop(f_.number(0), whole, steps, acc, [&](Value* k, llvm::SmallVectorImpl<Value*>& c) {
    for (int64_t s = 0; s < steps; ++s)
      step(f_.add(k, f_.number(s)), c.data() + tile_registers * (s % chains));
  });
  if (steps > 1)
    f_.loop(whole, end, 1, acc,
            [&](Value* k, llvm::SmallVectorImpl<Value*>& c) { step(k, c.data()); });
  for (int64_t n = chains; n > 1; n /= 2)
    for (int64_t i = 0; i < n / 2 * tile_registers; ++i)
      acc[i] = add(acc[i], acc[i + n / 2 * tile_registers]);
  acc.resize(static_cast<size_t>(tile_registers));
  if (p_.type == DType::kF16)
    for (Value*& v : acc) v = expr_.round_f16(v, width);

  if (p_.tile_buffer)
    finish_buffer(acc, m0, n0, rows, columns, m_new, n_new);
  else
    finish_rows(acc, m0, n0, rows, columns);
}

void TileEmitter::finish_rows(llvm::ArrayRef<Value*> acc, Value* m0, Value* n0, int64_t rows,
                              unsigned columns) {
  const schedule::Kernel& k = *p_.kernel;
  llvm::SmallVector<ops::Ref, 4> values;
  for (const auto& s : k.stores) values.push_back(s.value);
  const unsigned width = std::min(columns, p_.lanes), parts = columns / width;
  for (int64_t i = 0; i < rows; ++i) {
    Value* m = f_.add(m0, f_.number(i));
    for (unsigned j = 0; j < parts; ++j) {
      TapeNest e = nest(k.epilogue, values, p_.k(), static_cast<int>(p_.n()));
      e.set_accumulator(0, acc[static_cast<size_t>(i) * parts + j]);
      Value* n = f_.add(n0, f_.number(int64_t{j} * width));
      open(e, m, n, width);
      store_all(e, values, m, n, width);
    }
  }
}

void TileEmitter::store_all(TapeNest& e, llvm::ArrayRef<ops::Ref> values, Value* m, Value* n,
                            unsigned width) {
  for (size_t s = 0; s < stores_.size(); ++s) {
    TapeNest::Cursor c = e.cursor(stores_[s]);
    for (size_t x = 0; x < batch_.size(); ++x)
      e.advance(c, stores_[s], static_cast<int>(x), batch_[x]);
    e.advance(c, stores_[s], static_cast<int>(p_.m()), m);
    e.advance(c, stores_[s], static_cast<int>(p_.n()), n);
    e.store(e.value(values[s], width), stores_[s], c.at[p_.k()], width, nullptr);
  }
}

void TileEmitter::finish_buffer(llvm::ArrayRef<Value*> acc, Value* m0, Value* n0, int64_t rows,
                                unsigned columns, Value* m_new, Value* n_new) {
  const DType held = in_memory(p_.type);
  const int64_t row_bytes = int64_t{columns} * size_of(held);
  Value* at = f_.stack(f_.unit.i8, static_cast<uint64_t>(row_bytes * rows), 64);
  const unsigned width = std::min(columns, p_.lanes);
  for (size_t i = 0; i < acc.size(); ++i)
    expr_.store(acc[i], f_.offset(at, f_.number(static_cast<int64_t>(i) * width * size_of(held))),
                held, width);
  finish_region(at, row_bytes, m0, n0, {f_.sub(m_new, m0), f_.number(rows)},
                {f_.sub(n_new, n0), f_.number(columns)});
}

void TileEmitter::finish_region(Value* at, int64_t row_bytes, Value* m0, Value* n0,
                                std::pair<Value*, Value*> rows, std::pair<Value*, Value*> columns) {
  // The accumulator becomes one more load.
  const DType held = in_memory(p_.type);
  const schedule::Kernel& k = *p_.kernel;
  ops::Tape tape = k.epilogue;
  for (ops::Inst& i : tape.insts) {
    if (i.prim != ops::Prim::kAccumulator) continue;
    i.prim = ops::Prim::kLoad;
    i.imm = loads_.size();
  }
  Region r;
  for (size_t x = 0; x < p_.batch; ++x) {
    r.ranges.push_back({f_.number(0), f_.number(1)});
    r.origin.push_back(batch_[x]);
  }
  r.ranges.push_back(rows);
  r.ranges.push_back(columns);
  r.origin.push_back(m0);
  r.origin.push_back(n0);
  auto from_here = [&](Memory m) {
    m.strides.resize(p_.k());
    for (size_t x = 0; x < p_.k(); ++x)
      m.base = f_.offset(m.base, f_.mul(r.origin[x], m.strides[x]));
    return m;
  };
  for (const Memory& m : loads_) r.loads.push_back(from_here(m));
  for (const Memory& m : stores_) r.stores.push_back(from_here(m));
  Memory tile{at, {}, held};
  tile.strides.assign(p_.batch, f_.number(0));
  tile.strides.push_back(f_.number(row_bytes));
  tile.strides.push_back(f_.number(size_of(held)));
  r.loads.push_back(tile);
  r.index_axis.assign(p_.plan.index_axis.begin(), p_.plan.index_axis.end());
  for (const auto& s : k.stores) r.values.push_back(s.value);
  emit_region(f_, tape, r, false);
}

// One row of A times a large B: whole rows of B are read in turn, kStreams at a time, and added to a row of
// accumulators in memory, so that the hardware sees a few long streams instead of a jump at every step.
void TileEmitter::stream_row(Value* n0, Value* columns, int64_t most_columns) {
  const DType held = in_memory(p_.type);
  const int k_axis = static_cast<int>(p_.k()), inner = k_axis;
  Value* row = f_.stack(f_.unit.i8, static_cast<uint64_t>(most_columns * size_of(held)), 64);
  Widths w;
  w.single = p_.lanes;
  w.body = 2 * p_.lanes;
  w.masked = f_.unit.target.has_masks;
  llvm::Type* element = expr_.memory_type(held, 1);
  auto at = [&](Value* j) { return f_.b.CreateGEP(element, row, j); };
  auto add_rows = [&](Value* k, int64_t count) {
    std::vector<TapeNest> a, b;
    for (int64_t u = 0; u < count; ++u) {
      Value* here = f_.add(k, f_.number(u));
      a.push_back(nest(p_.kernel->tape, {p_.lhs}, p_.k() + 1, -1));
      open(a.back(), f_.number(0), f_.number(0), 1);
      a.back().enter(k_axis, here);
      a.back().prepare(p_.lanes);
      b.push_back(row_nest(p_.rhs, f_.number(0)));
      b.back().enter(static_cast<int>(p_.n()), here);
      b.back().prepare(p_.lanes);
    }
    vector_loop(f_, w, f_.number(0), columns, [&](Value* j, unsigned width, Value* mask) {
      Value* acc = expr_.load(at(j), held, width, mask);
      for (int64_t u = 0; u < count; ++u) {
        b[u].enter(inner, f_.add(n0, j), width, mask);
        acc = multiply_add(a[u].value(p_.lhs, width), b[u].value(p_.rhs, width), acc);
      }
      expr_.store(acc, at(j), held, width, mask);
    });
  };
  Value* end = extent(p_.k());
  Value* whole = f_.b.CreateAnd(end, f_.number(-kStreams));
  vector_loop(f_, w, f_.number(0), columns, [&](Value* j, unsigned width, Value* mask) {
    expr_.store(zero(width), at(j), held, width, mask);
  });
  f_.loop(f_.number(0), whole, kStreams, [&](Value* k) { add_rows(k, kStreams); });
  f_.loop(whole, end, 1, [&](Value* k) { add_rows(k, 1); });
  if (p_.type == DType::kF16)
    vector_loop(f_, w, f_.number(0), columns, [&](Value* j, unsigned width, Value* mask) {
      expr_.store(expr_.round_f16(expr_.load(at(j), held, width, mask), width), at(j), held, width,
                  mask);
    });
  finish_region(row, 0, f_.number(0), n0, {f_.number(0), f_.number(1)}, {f_.number(0), columns});
}

void TileEmitter::dot_tile(Value* m0, Value* n0, int64_t rows, int64_t columns) {
  const int k_axis = static_cast<int>(p_.k());
  const size_t axes = p_.k() + 1;
  const ops::Tape& tape = p_.kernel->tape;
  const int64_t outputs = rows * columns;
  std::vector<TapeNest> a, b;
  auto open_factor = [&](std::vector<TapeNest>& list, ops::Ref r, int64_t i, int64_t j) {
    list.push_back(nest(tape, {r}, axes, k_axis));
    TapeNest& n = list.back();
    n.begin();
    for (size_t x = 0; x < batch_.size(); ++x) n.enter(static_cast<int>(x), batch_[x]);
    n.enter(static_cast<int>(p_.m()), f_.add(m0, f_.number(i)));
    n.enter(static_cast<int>(p_.n()), f_.add(n0, f_.number(j)));
  };
  // A factor that depends on both indices has its own nest for each output.
  const int64_t a_count = p_.mixed ? outputs : rows, b_count = p_.mixed ? outputs : columns;
  for (int64_t i = 0; i < a_count; ++i)
    open_factor(a, p_.lhs, p_.mixed ? i / columns : i, p_.mixed ? i % columns : 0);
  for (int64_t j = 0; j < b_count; ++j)
    open_factor(b, p_.rhs, p_.mixed ? j / columns : 0, p_.mixed ? j % columns : j);

  Widths w;
  w.single = w.body = p_.lanes;
  while (w.body > 1 && w.body / p_.lanes * outputs < kChains) w.body *= 2;
  w.single = w.body;
  if (auto depth = as_const(extent(p_.k())))
    while (w.body > 1 && w.body > *depth) w.single = w.body /= 2;
  bool contiguous = true;  // a masked load needs it
  for (const Memory& m : loads_) contiguous = contiguous && (m.unit(p_.k()) || m.zero(p_.k()));
  const bool masked = f_.unit.target.has_masks && contiguous && w.body > 1;

  auto step = [&](Value* k, unsigned width, Value* mask, Value** acc) {
    llvm::SmallVector<Value*, 8> x, y;
    auto factor = [&](TapeNest& n, ops::Ref r) {
      n.enter(k_axis, k, width, mask);
      Value* v = n.value(r, width);
      return mask != nullptr ? f_.b.CreateSelect(mask, v, zero(width)) : v;
    };
    for (TapeNest& n : a) x.push_back(factor(n, p_.lhs));
    for (TapeNest& n : b) y.push_back(factor(n, p_.rhs));
    for (int64_t o = 0; o < outputs; ++o) {
      int64_t i = p_.mixed ? o : o / columns, j = p_.mixed ? o : o % columns;
      acc[o] = multiply_add(x[i], y[j], acc[o]);
    }
  };
  llvm::SmallVector<Value*, 16> acc(static_cast<size_t>(outputs), zero(w.body));
  Value* end = extent(p_.k());
  Value* whole = f_.b.CreateAnd(end, f_.number(-static_cast<int64_t>(w.body)));
  for (auto* list : {&a, &b})
    for (TapeNest& n : *list) n.prepare(w.body);
  f_.loop(f_.number(0), whole, w.body, acc,
          [&](Value* k, llvm::SmallVectorImpl<Value*>& c) { step(k, w.body, nullptr, c.data()); });
  llvm::SmallVector<Value*, 16> rest(static_cast<size_t>(outputs), zero(1));
  if (masked) {
    // At most one iteration.
    f_.loop(whole, end, w.body, acc, [&](Value* k, llvm::SmallVectorImpl<Value*>& c) {
      step(k, w.body, lane_mask(f_, f_.b.CreateSub(end, k), w.body), c.data());
    });
  } else if (w.body > 1) {
    f_.loop(whole, end, 1, rest,
            [&](Value* k, llvm::SmallVectorImpl<Value*>& c) { step(k, 1, nullptr, c.data()); });
  }
  const schedule::Kernel& kernel = *p_.kernel;
  llvm::SmallVector<ops::Ref, 4> values;
  for (const auto& s : kernel.stores) values.push_back(s.value);
  for (int64_t o = 0; o < outputs; ++o) {
    Value* v = expr_.fold(acc[o], w.body, [&](Value* p, Value* q) { return add(p, q); });
    if (!masked && w.body > 1) v = add(v, rest[o]);
    if (p_.type == DType::kF16) v = expr_.round_f16(v, 1);
    TapeNest e = nest(kernel.epilogue, values, p_.k(), -1);
    e.set_accumulator(0, v);
    Value* m = f_.add(m0, f_.number(o / columns));
    Value* n = f_.add(n0, f_.number(o % columns));
    open(e, m, n, 1);
    store_all(e, values, m, n, 1);
  }
}

}  // namespace cuvil::codegen
