// kReduce: folds of elements over some axes of an iteration space, then an epilogue.
//
// Lanes run along the innermost reduced axis (rows: the memory is contiguous there) or along a kept axis
// (columns: contiguous across results). Sums of floats are added up in blocks of kBlock terms a lane, and
// the blocks' sums with compensation, so the error is bounded by about (kBlock + 8) u * sum|x| whatever the
// length: below NumPy's pairwise summation, whose blocks have 16 terms a lane and then log2(n / 128) levels.
//
// A full reduction of many elements is divided into chunks of a fixed length; their partial results are
// joined in order, so that the result does not depend on the number of threads.
#include "artifact/abi.h"
#include "codegen/fold.h"
#include "codegen/kernel.h"

namespace cuvil::codegen {

using llvm::Value;

namespace {

constexpr int64_t kBlock = 8;
constexpr double kChunk_ns = 40e3;

struct ReducePlan {
  Plan plan;
  size_t kept = 0;
  size_t divided = 0;    // the kept axis that is divided among threads
  int vector_axis = -1;  // a kept axis (the last one), the last axis, or -1
  bool ordered = false;
  bool columns() const { return vector_axis >= 0 && vector_axis < static_cast<int>(kept); }
};

bool has_arg(const schedule::Kernel& k) {
  for (const auto& r : k.reductions)
    if (r.kind == ops::ReduceKind::kArgMin || r.kind == ops::ReduceKind::kArgMax) return true;
  return false;
}

ReducePlan choose(Unit& u, const schedule::Kernel& k) {
  ReducePlan p;
  p.plan = make_plan(k, k.kept);
  // What does not change along an axis is read before the loop over it, which there is nothing to read for
  // if the loop is empty: then it counts as changing.
  for (size_t axis = k.kept; axis < k.extents.size(); ++axis)
    if (u.dims.is_constant(k.extents[axis], 0))
      for (PlanAccess& a : p.plan.loads)
        if (u.dims.is_constant(a.strides[axis], 0))
          a.strides[axis] = u.dims.constant(size_of(a.dtype));
  p.kept = k.kept;
  p.ordered = k.may_raise || k.carries_dependence;
  Plan& plan = p.plan;
  drop_unit_axes(u, plan, p.kept, plan.axes.size());
  size_t before = plan.axes.size();
  drop_unit_axes(u, plan, 0, p.kept);
  p.kept -= before - plan.axes.size();
  if (p.ordered) return p;
  if (!has_arg(k) && !plan.loads.empty())  // positions count in the order of the axes
    sort_axes(u, plan, plan.loads[0], p.kept, plan.axes.size());
  merge_axes(u, plan, k, p.kept, plan.axes.size());
  if (!plan.stores.empty()) sort_axes(u, plan, plan.stores[0], 0, p.kept);
  p.kept = merge_axes(u, plan, k, 0, p.kept);

  const size_t axes = plan.axes.size();
  auto unit = [&](size_t axis) {
    return !plan.loads.empty() &&
           u.dims.is_constant(plan.loads[0].strides[axis], size_of(plan.loads[0].dtype));
  };
  p.vector_axis = static_cast<int>(axes) - 1;
  if (axes > p.kept && unit(axes - 1)) return p;
  for (size_t i = p.kept; i-- > 0;) {
    if (!unit(i)) continue;
    for (; i + 1 < p.kept; ++i) plan.swap_axes(i, i + 1);
    p.vector_axis = static_cast<int>(i);
    return p;
  }
  if (axes == p.kept) p.vector_axis = static_cast<int>(p.kept) - 1;
  return p;
}

class ReduceEmitter {
 public:
  ReduceEmitter(FunctionBuilder& f, const schedule::Kernel& k, const ReducePlan& p)
      : f_(f), k_(k), p_(p), axes_(p.plan.axes.size()) {
    for (const PlanAccess& a : p.plan.loads) loads_.push_back(make_memory(f, a));
    for (const PlanAccess& a : p.plan.stores) stores_.push_back(make_memory(f, a));
    for (const auto& r : k.reductions) {
      folds_.emplace_back(f, r);
      wanted_.push_back(r.value);
    }
    for (const auto& s : k.stores) results_.push_back(s.value);
  }

  // All results whose divided axis lies in [begin, end) (all of them if none is kept).
  void whole(Value* begin, Value* end) {
    TapeNest nest = tape_nest();
    nest.begin();
    over_kept(nest, 0, begin, end);
  }

  // Partial results of reduced axis 0 over [begin, end); no axis is kept.
  std::vector<Slots> partial(Value* begin, Value* end) {
    TapeNest nest = tape_nest();
    nest.begin();
    return rows(nest, begin, end);
  }
  void finish_scalar(std::vector<Slots> closed) { epilogue(closed, {}, 1, nullptr); }
  std::vector<Fold>& folds() { return folds_; }

 private:
  TapeNest tape_nest() {
    return TapeNest(f_, k_.tape, loads_, axes_, p_.vector_axis, p_.plan.index_axis, wanted_,
                    p_.ordered);
  }
  Value* extent(size_t axis) { return f_.dim(p_.plan.axes[axis].extent); }

  void over_kept(TapeNest& nest, size_t axis, Value* begin, Value* end) {
    if (axis == p_.kept) {
      std::vector<Slots> closed = rows(nest, f_.number(0), reduced_extent());
      epilogue(closed, at_, 1, nullptr);
      return;
    }
    Value* from = axis == p_.divided ? begin : f_.number(0);
    Value* to = axis == p_.divided ? end : extent(axis);
    if (static_cast<int>(axis) == p_.vector_axis) {
      // The last kept axis; lanes are results.
      Widths w = widths(axis, as_const(to) && as_const(from)
                                  ? std::optional(*as_const(to) - *as_const(from))
                                  : std::nullopt);
      nest.prepare(w.single);
      vector_loop(f_, w, from, to, [&](Value* i, unsigned width, Value* mask) {
        nest.enter(static_cast<int>(axis), i, width, mask);
        std::vector<Slots> total = totals(width);
        over_reduced(nest, p_.kept, f_.number(0), reduced_extent(), f_.number(0), total, width);
        for (size_t n = 0; n < folds_.size(); ++n) total[n] = folds_[n].close_total(total[n]);
        at_.push_back(i);
        epilogue(total, at_, width, mask);
        at_.pop_back();
      });
      return;
    }
    f_.loop(from, to, 1, [&](Value* i) {
      nest.enter(static_cast<int>(axis), i);
      at_.push_back(i);
      over_kept(nest, axis + 1, begin, end);
      at_.pop_back();
    });
  }

  // Of the first reduced axis; 1 if there is none.
  Value* reduced_extent() { return p_.kept < axes_ ? extent(p_.kept) : f_.number(1); }

  std::vector<Slots> totals(unsigned width) {
    std::vector<Slots> out;
    for (Fold& fold : folds_) out.push_back(fold.total_identity(width));
    return out;
  }
  std::vector<Slots> accumulators(unsigned width) {
    std::vector<Slots> out;
    for (Fold& fold : folds_) out.push_back(fold.identity(width));
    return out;
  }

  // Lanes along the reduced axis, or none: scalar results of all reduced axes.
  std::vector<Slots> rows(TapeNest& nest, Value* begin, Value* end) {
    std::vector<Slots> total = totals(1);
    over_reduced(nest, p_.kept, begin, end, f_.number(0), total, 1);
    for (size_t n = 0; n < folds_.size(); ++n) total[n] = folds_[n].close_total(total[n]);
    return total;
  }

  using Carried = llvm::SmallVector<Value*, 8>;
  static Carried flatten(const std::vector<Slots>& s) {
    Carried out;
    for (const Slots& x : s) out.append(x.begin(), x.end());
    return out;
  }
  static void unflatten(llvm::ArrayRef<Value*> flat, std::vector<Slots>& s) {
    size_t at = 0;
    for (Slots& x : s)
      for (Value*& v : x) v = flat[at++];
  }
  // A loop that carries accumulators.
  void loop(Value* begin, Value* end, int64_t step, std::vector<Slots>& state,
            llvm::function_ref<void(Value*, std::vector<Slots>&)> body) {
    Carried carried = flatten(state);
    f_.loop(begin, end, step, carried, [&](Value* i, llvm::SmallVectorImpl<Value*>& c) {
      std::vector<Slots> inner = state;
      unflatten(c, inner);
      body(i, inner);
      Carried out = flatten(inner);
      std::copy(out.begin(), out.end(), c.begin());
    });
    unflatten(carried, state);
  }

  // Reduced axes from `axis` on, that one over [begin, end). `position`: of its element 0 in flattened order.
  void over_reduced(TapeNest& nest, size_t axis, Value* begin, Value* end, Value* position,
                    std::vector<Slots>& total, unsigned width) {
    if (axis >= axes_) {  // no reduced axis at all: one element
      std::vector<Slots> acc = accumulators(width);
      fold_element(nest, acc, nest.expr().splat(position, width), width, nullptr);
      for (size_t n = 0; n < folds_.size(); ++n) folds_[n].add_to_total(total[n], acc[n]);
      return;
    }
    if (axis + 1 < axes_) {
      Value* inner = extent(axis + 1);
      loop(begin, end, 1, total, [&](Value* i, std::vector<Slots>& state) {
        nest.enter(static_cast<int>(axis), i);
        over_reduced(nest, axis + 1, f_.number(0), inner, f_.mul(f_.add(position, i), inner), state,
                     width);
      });
      return;
    }
    if (static_cast<int>(axis) == p_.vector_axis)
      along(nest, begin, end, position, total);
    else
      across(nest, begin, end, position, total, width);
  }

  void fold_element(TapeNest& nest, std::vector<Slots>& acc, Value* position, unsigned width,
                    Value* mask) {
    for (size_t n = 0; n < folds_.size(); ++n) {
      const ops::Ref r = k_.reductions[n].value;
      Value* x = folds_[n].prepare(nest.value(r, width), k_.tape.type(r), width, mask);
      folds_[n].step(acc[n], x, position, width);
    }
  }

  bool compensates() {
    for (Fold& fold : folds_)
      if (fold.compensated()) return true;
    return false;
  }

  // The last reduced axis one element at a time; lanes, if any, are results.
  void across(TapeNest& nest, Value* begin, Value* end, Value* position, std::vector<Slots>& total,
              unsigned width) {
    const int axis = static_cast<int>(axes_) - 1;
    auto elements = [&](Value* from, Value* to, std::vector<Slots>& acc) {
      loop(from, to, 1, acc, [&](Value* i, std::vector<Slots>& a) {
        nest.enter(axis, i);
        Value* at = has_arg(k_) ? nest.expr().splat(f_.add(position, i), width) : nullptr;
        fold_element(nest, a, at, width, nullptr);
      });
    };
    if (!compensates()) {
      elements(begin, end, total);
      return;
    }
    blocks(begin, end, kBlock, total, [&](Value* from, Value* to, std::vector<Slots>& t) {
      std::vector<Slots> acc = accumulators(width);
      elements(from, to, acc);
      for (size_t n = 0; n < folds_.size(); ++n) folds_[n].add_to_total(t[n], acc[n]);
    });
  }

  void blocks(Value* begin, Value* end, int64_t size, std::vector<Slots>& total,
              llvm::function_ref<void(Value*, Value*, std::vector<Slots>&)> body) {
    auto first = as_const(begin), last = as_const(end);
    if (first && last && *last - *first <= size) {
      body(begin, end, total);
      return;
    }
    loop(begin, end, size, total, [&](Value* b, std::vector<Slots>& t) {
      Value* to = f_.add(b, f_.number(size));
      body(b, f_.b.CreateSelect(f_.b.CreateICmpSLT(to, end), to, end), t);
    });
  }

  // The last reduced axis with lanes along it, down to scalars.
  void along(TapeNest& nest, Value* begin, Value* end, Value* position, std::vector<Slots>& total) {
    const int axis = p_.vector_axis;
    auto first = as_const(begin), last = as_const(end);
    std::optional<int64_t> count;
    if (first && last) count = *last - *first;
    Widths w = widths(axis, count);
    if (count && *count < kBlock && compensates()) w = Widths{};  // NumPy's order, term by term
    const unsigned body = w.body, single = w.single;
    nest.prepare(body);
    auto element = [&](Value* i, unsigned width, Value* mask, std::vector<Slots>& acc) {
      nest.enter(axis, i, width, mask);
      Value* at = has_arg(k_) ? nest.expr().iota(f_.add(position, i), width) : nullptr;
      fold_element(nest, acc, at, width, mask);
    };
    std::vector<Slots> sum = totals(single);
    Value* to =
        f_.add(begin, f_.b.CreateAnd(f_.sub(end, begin), f_.number(-static_cast<int64_t>(body))));
    auto add_block = [&](std::vector<Slots>& t, std::vector<Slots>& acc) {
      for (size_t n = 0; n < folds_.size(); ++n)
        folds_[n].add_to_total(t[n], folds_[n].narrow(acc[n], body, single));
    };
    auto plain = [&](Value* from, Value* until, std::vector<Slots>& acc) {
      loop(from, until, body, acc,
           [&](Value* i, std::vector<Slots>& a) { element(i, body, nullptr, a); });
    };
    std::vector<Slots> acc = accumulators(body);
    if (compensates()) {
      // Folds without compensation stay in wide accumulators between blocks.
      auto wide = [&](std::vector<Slots>& all) {
        for (size_t n = 0; n < folds_.size(); ++n)
          if (folds_[n].compensated()) all[n] = folds_[n].identity(body);
      };
      std::vector<Slots> both = sum;
      both.insert(both.end(), acc.begin(), acc.end());
      blocks(begin, to, kBlock * body, both, [&](Value* from, Value* until, std::vector<Slots>& s) {
        std::vector<Slots> t(s.begin(), s.begin() + folds_.size()),
            a(s.begin() + folds_.size(), s.end());
        wide(a);
        plain(from, until, a);
        for (size_t n = 0; n < folds_.size(); ++n)
          if (folds_[n].compensated())
            folds_[n].add_to_total(t[n], folds_[n].narrow(a[n], body, single));
        wide(a);
        std::copy(t.begin(), t.end(), s.begin());
        std::copy(a.begin(), a.end(), s.begin() + folds_.size());
      });
      sum.assign(both.begin(), both.begin() + folds_.size());
      acc.assign(both.begin() + folds_.size(), both.end());
    } else {
      plain(begin, to, acc);
    }
    if (w.masked)  // at most one iteration
      loop(to, end, body, acc, [&](Value* i, std::vector<Slots>& a) {
        element(i, body, lane_mask(f_, f_.b.CreateSub(end, i), body), a);
      });
    add_block(sum, acc);
    std::vector<Slots> scalar;
    for (size_t n = 0; n < folds_.size(); ++n)
      scalar.push_back(folds_[n].fold_lanes(folds_[n].close_total(sum[n]), single));
    if (!w.masked && body > 1) {
      std::vector<Slots> rest = accumulators(1);
      loop(to, end, 1, rest, [&](Value* i, std::vector<Slots>& a) { element(i, 1, nullptr, a); });
      for (size_t n = 0; n < folds_.size(); ++n) scalar[n] = folds_[n].merge(scalar[n], rest[n]);
    }
    for (size_t n = 0; n < folds_.size(); ++n) folds_[n].add_to_total(total[n], scalar[n]);
  }

  Widths widths(size_t axis, std::optional<int64_t> count) {
    llvm::SmallVector<Memory, 8> used;
    std::vector<bool> read(loads_.size(), false);
    for (const ops::Inst& i : k_.tape.insts)
      if (i.prim == ops::Prim::kLoad) read[i.imm] = true;
    for (size_t i = 0; i < loads_.size(); ++i)
      if (read[i]) used.push_back(loads_[i]);
    unsigned widest = widest_element(k_.tape, used);
    for (const auto& r : k_.reductions)
      widest =
          std::max<unsigned>(widest, r.accumulator == DType::kF16 ? 4 : size_of(r.accumulator));
    unsigned weight = tape_weight(k_.tape) + static_cast<unsigned>(folds_.size());
    if (has_arg(k_))
      weight = std::max(weight, 13u);  // positions take registers: one vector at a time
    Widths w = choose_widths(f_.unit, k_.tape, widest, std::max(weight, 2u), used, axis, count);
    if (p_.ordered) w = Widths{};
    // Stores go lane by lane or whole; masks need them whole.
    if (p_.columns())
      for (const Memory& m : stores_) w.masked = w.masked && m.unit(axis);
    w.only_masked = w.only_masked && w.masked && p_.columns();
    return w;
  }

  void epilogue(const std::vector<Slots>& closed, llvm::ArrayRef<Value*> at, unsigned width,
                Value* mask) {
    const int vector = width > 1 ? p_.vector_axis : -1;
    TapeNest e(f_, k_.epilogue, loads_, p_.kept, vector, p_.plan.index_axis, results_, false);
    for (size_t n = 0; n < folds_.size(); ++n)
      e.set_accumulator(static_cast<uint32_t>(n), folds_[n].result(closed[n], width));
    e.begin();
    for (size_t i = 0; i < at.size(); ++i)
      e.enter(static_cast<int>(i), at[i], width > 1 && static_cast<int>(i) == vector ? width : 1,
              static_cast<int>(i) == vector ? mask : nullptr);
    for (size_t s = 0; s < stores_.size(); ++s) {
      TapeNest::Cursor c = e.cursor(stores_[s]);
      for (size_t i = 0; i < at.size(); ++i) e.advance(c, stores_[s], static_cast<int>(i), at[i]);
      e.store(e.value(results_[s], width), stores_[s], c.at[p_.kept], width, mask);
    }
  }

  FunctionBuilder& f_;
  const schedule::Kernel& k_;
  const ReducePlan& p_;
  size_t axes_;
  llvm::SmallVector<Memory, 8> loads_;
  llvm::SmallVector<Memory, 4> stores_;
  std::vector<Fold> folds_;
  llvm::SmallVector<ops::Ref, 4> wanted_, results_;
  llvm::SmallVector<Value*, 6> at_;
};

// A reduction of everything, in chunks:
//   parallel_for(chunks): partial results -> scratch;   then in one thread: join in order, epilogue
void emit_chunked(FunctionBuilder& entry, const schedule::Kernel& k, const ReducePlan& p) {
  Unit& u = entry.unit;
  ir::DimTable& d = u.dims;
  const ir::Dim extent = p.plan.axes[0].extent;
  const double example = static_cast<double>(d.example(extent).value_or(1));
  auto length = static_cast<int64_t>(example * kChunk_ns / k.cost_ns) + 1;
  if (p.plan.axes.size() == 1) length = (length + 4095) / 4096 * 4096;
  const ir::Dim chunks = d.floordiv(d.add(extent, d.constant(length - 1)), d.constant(length));

  size_t slots = 0;
  for (const auto& r : k.reductions)
    slots += r.kind == ops::ReduceKind::kArgMin || r.kind == ops::ReduceKind::kArgMax ? 2 : 1;
  const auto bytes = static_cast<int64_t>(slots) * 8;
  Value* scratch =
      entry.service(offsetof(CuvilServices, lease_scratch), u.ptr,
                    {entry.call, entry.mul(entry.dim(chunks), entry.number(bytes)),
                     llvm::ConstantInt::get(u.i32, static_cast<uint32_t>(CUVIL_SCRATCH_CALL))});
  entry.return_if(entry.b.CreateIsNull(scratch), llvm::ConstantInt::get(u.i32, CUVIL_SITE_PYTHON));
  // What both functions get: the frame and the scratch.
  Value* context = entry.stack(u.ptr, 2, 8);
  entry.b.CreateStore(entry.frame, context);
  entry.b.CreateStore(scratch, entry.b.CreateConstInBoundsGEP1_64(u.ptr, context, 1));

  struct Parts {
    llvm::Function* function;
    std::unique_ptr<FunctionBuilder> builder;
    Value* scratch;
  };
  auto open = [&](const char* suffix, llvm::ArrayRef<llvm::Type*> types) {
    llvm::Function* fn = u.make_function(k.name + suffix, types);
    auto made = std::make_unique<FunctionBuilder>(u, fn, fn->getArg(0), nullptr, false);
    FunctionBuilder& f = *made;
    f.frame = f.prologue.CreateLoad(u.ptr, fn->getArg(1));
    Value* s = f.prologue.CreateLoad(
        u.ptr, f.prologue.CreateConstInBoundsGEP1_64(u.ptr, fn->getArg(1), 1));
    return Parts{fn, std::move(made), s};
  };
  auto slot = [&](FunctionBuilder& f, Value* base, Value* chunk, size_t index) {
    return f.offset(f.offset(base, f.mul(chunk, f.number(bytes))),
                    f.number(static_cast<int64_t>(index) * 8));
  };

  Parts part = open("_part", {u.ptr, u.ptr, u.i64, u.i64});
  {
    FunctionBuilder& f = *part.builder;
    ReduceEmitter r(f, k, p);
    f.loop(part.function->getArg(2), part.function->getArg(3), 1, [&](Value* c) {
      Value* begin = f.mul(c, f.number(length));
      Value* to = f.add(begin, f.number(length));
      Value* end = f.dim(extent);
      std::vector<Slots> got =
          r.partial(begin, f.b.CreateSelect(f.b.CreateICmpSLT(to, end), to, end));
      size_t at = 0;
      for (const Slots& s : got)
        for (Value* v : s)
          f.b.CreateAlignedStore(v, slot(f, part.scratch, c, at++), llvm::Align(1));
    });
    f.return_code(0);
    f.finish();
  }
  Parts join = open("_join", {u.ptr, u.ptr});
  {
    FunctionBuilder& f = *join.builder;
    ReduceEmitter r(f, k, p);
    llvm::SmallVector<Value*, 8> state;
    for (Fold& fold : r.folds())
      for (Value* v : fold.total_identity(1)) state.push_back(v);
    f.loop(f.number(0), f.dim(chunks), 1, state, [&](Value* c, llvm::SmallVectorImpl<Value*>& s) {
      size_t at = 0, from = 0;
      for (Fold& fold : r.folds()) {
        Slots block, total(s.begin() + at, s.begin() + at + fold.slots());
        for (size_t i = 0; i < (fold.is_arg() ? 2u : 1u); ++i)
          block.push_back(f.b.CreateAlignedLoad(fold.slot_type(i, 1),
                                                slot(f, join.scratch, c, from++), llvm::Align(1)));
        fold.add_to_total(total, block);
        std::copy(total.begin(), total.end(), s.begin() + at);
        at += fold.slots();
      }
    });
    std::vector<Slots> closed;
    size_t at = 0;
    for (Fold& fold : r.folds()) {
      closed.push_back(
          fold.close_total(Slots(state.begin() + at, state.begin() + at + fold.slots())));
      at += fold.slots();
    }
    r.finish_scalar(std::move(closed));
    f.return_code(0);
    f.finish();
  }
  Value* code =
      entry.service(offsetof(CuvilServices, parallel_for), u.i32,
                    {entry.call, part.function, context, entry.dim(chunks), entry.number(1)});
  entry.return_if(entry.b.CreateICmpNE(code, llvm::ConstantInt::get(u.i32, 0)), code);
  entry.b.CreateCall(join.function, {entry.call, context});
}

}  // namespace

void emit_reduce(FunctionBuilder& entry, const schedule::Kernel& k) {
  Unit& u = entry.unit;
  ReducePlan p = choose(u, k);
  p.divided = divided_axis(u, p.plan, p.kept);
  if (p.kept == 0 && !p.ordered && !p.plan.axes.empty() &&
      worth_dividing(k, u.dims.example(p.plan.axes[0].extent).value_or(1))) {
    emit_chunked(entry, k, p);
    return;
  }
  ir::Dim count = p.kept > 0 ? p.plan.axes[p.divided].extent : u.dims.constant(1);
  run_over(entry, k, count, p.kept > 0 && !p.ordered,
           [&](FunctionBuilder& f, Value* begin, Value* end) {
             ReduceEmitter(f, k, p).whole(begin, end);
           });
}

}  // namespace cuvil::codegen
