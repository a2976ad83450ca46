// One kernel put together: the expression of a value down to memory as a tape over loads, with one
// reduction or matmul (or several reductions of one space) in the middle. Called by emit.cpp.
//
//   maximum(matmul(x, w) + broadcast(b), 0)       space [m, n]
//
//   axes   m n k        loads   x [m, 0, k]   w [0, n, k]   b [0, n, 0]
//   tape   l0 * l1  -> accumulator 0
//   epilogue        max(acc 0 + l2, 0)
//
// Only roots read along the empty path are stored as well, and reductions, whose axes come first.
// A value that is moved before it is used is read through a path: the movement ops from the value to
// the space, applied to the access of whatever memory lies below. Where an op does not map an access to
// an access (a reshape of a transposed value), its result is materialised first: the draft is blocked.
#include <algorithm>

#include "schedule/lower.h"

namespace cuvil::schedule {

using ir::Dim;
using ir::ValueId;
using ops::Access;
using ops::Family;
using ops::Ref;

int32_t Lowering::extend(ir::OpId op, int32_t path) {
  auto [it, fresh] = path_ids_.try_emplace({op.id, path}, static_cast<int32_t>(paths_.size()));
  if (fresh) paths_.push_back({op, path});
  return it->second;
}

std::variant<Access, Blocked> Lowering::along(int32_t path, Access a) {
  for (; path != 0; path = paths_[path].rest) {
    const ir::Op& op = g_.op(paths_[path].op);
    Access next;
    if (!ops::info_of(op).view(g_, op, a, &next)) return Blocked{op.results[0]};
    a = std::move(next);
  }
  return a;
}

Ref Lowering::load(Draft& d, ops::Tape& t, const std::vector<int32_t>& axes, BufferId b,
                   DType dtype, const Access& a, size_t shared_from) {
  BufferAccess load{b, {a.offset, ir::Shape(d.kernel.extents.size())}, dtype};
  for (size_t j = 0; j < axes.size(); ++j)
    if (axes[j] >= 0) load.access.strides[axes[j]] = a.strides[j];
  auto& loads = d.kernel.loads;
  for (size_t i = shared_from; i < loads.size(); ++i) {
    if (loads[i].buffer == b && loads[i].dtype == dtype && loads[i].access.offset == a.offset &&
        loads[i].access.strides == load.access.strides)
      return t.load(dtype, static_cast<uint32_t>(i));
  }
  loads.push_back(std::move(load));
  return t.load(dtype, static_cast<uint32_t>(loads.size() - 1));
}

// Bodies of creation ops ask for positions along the axes of their own result.
Drafted<Ref> Lowering::build_creation(Draft& d, ops::Tape& t, const std::vector<int32_t>& axes,
                                      const ir::Op& op, int32_t path) {
  ops::Tape body;
  Ref result = ops::info_of(op).body({body, g_, op, {}, 0});
  std::vector<Ref> map(body.insts.size());
  auto dim = [&](Dim x) {
    auto c = g_.dims.as_constant(x);
    return c ? t.integer(DType::kI64, *c) : t.dim(x.id);
  };
  for (size_t i = 0; i < body.insts.size(); ++i) {
    ops::Inst inst = body.insts[i];
    if (inst.prim != ops::Prim::kIndex) {
      for (Ref* r : {&inst.a, &inst.b, &inst.c})
        if (r->valid()) *r = map[r->id];
      map[i] = t.push(inst);
      continue;
    }
    // The position is affine in the axes of the space: an access with stride 1 along its axis.
    Access position{g_.dims.constant(0), ir::Shape(g_.type(op.results[0]).rank())};
    position.strides[inst.imm] = g_.dims.constant(1);
    auto moved = along(path, position);
    if (auto* blocked = std::get_if<Blocked>(&moved)) return *blocked;
    const Access& a = std::get<Access>(moved);
    Ref sum = dim(a.offset);
    for (size_t j = 0; j < axes.size(); ++j) {
      if (axes[j] < 0 || g_.dims.is_constant(a.strides[j], 0)) continue;
      if (g_.dims.is_constant(d.kernel.extents[axes[j]], 1)) continue;
      Ref index = t.index(static_cast<uint32_t>(axes[j]));
      Ref term = g_.dims.is_constant(a.strides[j], 1) ? index : t.mul(index, dim(a.strides[j]));
      sum = g_.dims.is_constant(a.offset, 0) && j == 0 ? term : t.add(sum, term);
    }
    map[i] = sum;
  }
  return map[result.id];
}

Drafted<Ref> Lowering::build(Draft& d, const Scope& s, ValueId v, int32_t path) {
  if (auto it = s.memo.find({v.id, path}); it != s.memo.end()) return it->second;
  if (in_memory(v)) {
    const BufferAccess& m = forms_[v.id].memory;
    auto moved = along(path, m.access);
    if (auto* blocked = std::get_if<Blocked>(&moved)) return *blocked;
    return s.memo[{v.id, path}] =
               load(d, s.tape, s.axes, m.buffer, m.dtype, std::get<Access>(moved), s.shared_from);
  }
  const ir::OpId id = g_.value(v).def;
  if (!pending(v) || !id.valid() || (fusion_.is_cut(v) && v != d.asked)) return Blocked{v};
  const ir::Op& op = g_.op(id);
  const ops::OpInfo& info = ops::info_of(op);
  Ref ref;
  if (is_movement(op)) {
    int32_t longer = info.view ? extend(id, path) : path;
    auto r = build(d, s, op.operands[0], longer);
    if (!std::holds_alternative<Ref>(r)) return r;
    ref = std::get<Ref>(r);
  } else if (is_heavy(info)) {
    auto it = std::find(d.accumulators.begin(), d.accumulators.end(), v);
    if (s.prologue || it == d.accumulators.end()) return Blocked{v};
    auto k = static_cast<uint32_t>(it - d.accumulators.begin());
    DType type = d.kernel.accumulator;
    if (d.kernel.kind == Kernel::Kind::kReduce) {
      ops::ReduceKind kind = d.kernel.reductions[k].kind;
      bool arg = kind == ops::ReduceKind::kArgMin || kind == ops::ReduceKind::kArgMax;
      type = arg ? DType::kI64 : d.kernel.reductions[k].accumulator;
    }
    ref = s.tape.cast(g_.type(v).dtype, s.tape.accumulator(type, k));
  } else if (!info.body || (fusion_.is_root(v) && (s.prologue || path != 0))) {
    return Blocked{v};
  } else if (info.family == Family::kCreate) {
    auto r = build_creation(d, s.tape, s.axes, op, path);
    if (!std::holds_alternative<Ref>(r)) return r;
    ref = std::get<Ref>(r);
  } else {
    std::vector<Ref> operands;
    for (ValueId o : op.operands) {
      auto r = build(d, s, o, path);
      if (!std::holds_alternative<Ref>(r)) return r;
      operands.push_back(std::get<Ref>(r));
    }
    auto site = sites_.find(id.id);
    ref = info.body({s.tape, g_, op, operands, site == sites_.end() ? 0 : site->second});
  }
  if (!s.prologue && (is_heavy(info) || (fusion_.is_root(v) && path == 0)))
    d.inlined.push_back({v, ref});
  if (std::find(d.ops.begin(), d.ops.end(), id) == d.ops.end()) d.ops.push_back(id);
  return s.memo[{v.id, path}] = ref;
}

void Lowering::find_heavy(ValueId v, int32_t path, std::vector<std::pair<ValueId, int32_t>>* out,
                          std::set<std::pair<int32_t, int32_t>>* seen) {
  if (!pending(v) || !seen->insert({v.id, path}).second) return;
  const ir::OpId id = g_.value(v).def;
  const ir::Op& op = g_.op(id);
  const ops::OpInfo& info = ops::info_of(op);
  if (is_heavy(info)) {
    out->push_back({v, path});
  } else if (is_movement(op)) {
    find_heavy(op.operands[0], info.view ? extend(id, path) : path, out, seen);
  } else if (info.family == Family::kPointwise && !(fusion_.is_root(v) && path != 0) &&
             !(fusion_.is_cut(v) && seen->size() > 1)) {
    for (ValueId o : op.operands) find_heavy(o, path, out, seen);
  }
}

// Axes of the space -> axes of the kernel, if every element of the space is one of the reduction's
// results and the other way round. Found by what the path makes of a dense buffer: strides tell axes.
Drafted<std::vector<int32_t>> Lowering::kept_axes(const Draft& d, ValueId h, int32_t path) {
  const ir::Shape& kept = g_.type(h).shape;
  std::vector<int32_t> axes(d.space.size(), -1);
  if (path == 0 && kept == d.space) {
    for (size_t k = 0; k < kept.size(); ++k) axes[k] = static_cast<int32_t>(k);
    return axes;
  }
  Access dense{g_.dims.constant(0), dense_strides(g_.type(h), {})};
  auto moved = along(path, dense);
  if (std::holds_alternative<Blocked>(moved)) return Blocked{h};
  const Access& a = std::get<Access>(moved);
  if (!g_.dims.is_constant(a.offset, 0)) return Blocked{h};
  std::vector<char> used(kept.size(), 0);
  for (size_t j = 0; j < d.space.size(); ++j) {
    if (g_.dims.is_constant(d.space[j], 1)) continue;
    for (size_t k = 0; k < kept.size() && axes[j] < 0; ++k)
      if (!used[k] && kept[k] == d.space[j] && dense.strides[k] == a.strides[j])
        axes[j] = static_cast<int32_t>(k);
    if (axes[j] < 0) return Blocked{h};
    used[axes[j]] = 1;
  }
  for (size_t k = 0; k < kept.size(); ++k)
    if (!used[k] && !g_.dims.is_constant(kept[k], 1)) return Blocked{h};
  return axes;
}

std::optional<Blocked> Lowering::start_reduction(Draft& d, ValueId h) {
  const ir::Op& op = *g_.def(h);
  const ir::Shape& shape = g_.type(op.operands[0]).shape;
  auto reduced = op.integers(ops::attr::kAxes);
  auto is_reduced = [&](size_t k) {
    return std::find(reduced.begin(), reduced.end(), static_cast<int64_t>(k)) != reduced.end();
  };
  Kernel& k = d.kernel;
  k.kind = Kernel::Kind::kReduce;
  d.reduced_axes.assign(shape.size(), -1);
  for (bool pass : {false, true}) {
    for (size_t i = 0; i < shape.size(); ++i) {
      if (is_reduced(i) != pass) continue;
      d.reduced_axes[i] = static_cast<int32_t>(k.extents.size());
      k.extents.push_back(shape[i]);
    }
    if (!pass) k.kept = k.extents.size();
  }
  return add_reduction(d, h);
}

std::optional<Blocked> Lowering::add_reduction(Draft& d, ValueId h) {
  const ir::Op& op = *g_.def(h);
  const ops::OpInfo& info = ops::info_of(op);
  if (!d.accumulators.empty()) {
    const ir::Op& first = *g_.def(d.accumulators[0]);
    auto a = first.integers(ops::attr::kAxes), b = op.integers(ops::attr::kAxes);
    if (info.family != Family::kReduce || d.kernel.kind != Kernel::Kind::kReduce ||
        g_.type(first.operands[0]).shape != g_.type(op.operands[0]).shape ||
        !std::equal(a.begin(), a.end(), b.begin(), b.end()))
      return Blocked{h};
  }
  std::map<std::pair<int32_t, int32_t>, Ref> memo;
  auto r = build(d, {d.kernel.tape, memo, d.reduced_axes, true, 0}, op.operands[0], 0);
  if (auto* blocked = std::get_if<Blocked>(&r)) return *blocked;
  Reduction reduction;
  reduction.kind = info.reduction;
  // Sums of halves are kept in float, as NumPy does.
  DType type = g_.type(op.operands[0]).dtype;
  bool adds = info.reduction == ops::ReduceKind::kSum || info.reduction == ops::ReduceKind::kProd;
  reduction.accumulator = adds && type == DType::kF16 ? DType::kF32 : type;
  reduction.value = d.kernel.tape.cast(reduction.accumulator, std::get<Ref>(r));
  d.kernel.reductions.push_back(reduction);
  d.accumulators.push_back(h);
  return std::nullopt;
}

std::optional<Blocked> Lowering::start_matmul(Draft& d, ValueId h) {
  const ir::Op& op = *g_.def(h);
  Kernel& k = d.kernel;
  k.kind = Kernel::Kind::kMatMul;
  const ir::Shape& result = g_.type(h).shape;
  const size_t batch = result.size() - 2;
  k.extents = result;
  k.extents.push_back(g_.type(op.operands[0]).shape.back());
  const auto m = static_cast<int32_t>(batch), n = m + 1, inner = m + 2;
  std::vector<int32_t> a_axes, b_axes;
  for (int32_t i = 0; i < m; ++i) {
    a_axes.push_back(i);
    b_axes.push_back(i);
  }
  a_axes.insert(a_axes.end(), {m, inner});
  b_axes.insert(b_axes.end(), {inner, n});
  k.accumulator = g_.type(h).dtype == DType::kF16 ? DType::kF32 : g_.type(h).dtype;
  std::map<std::pair<int32_t, int32_t>, Ref> memo_a, memo_b;
  auto a = build(d, {k.tape, memo_a, a_axes, true, 0}, op.operands[0], 0);
  if (auto* blocked = std::get_if<Blocked>(&a)) return *blocked;
  const size_t of_a = k.loads.size();
  if (of_a == 0) return Blocked{op.operands[0]};
  auto b = build(d, {k.tape, memo_b, b_axes, true, of_a}, op.operands[1], 0);
  if (auto* blocked = std::get_if<Blocked>(&b)) return *blocked;
  if (k.loads.size() == of_a) return Blocked{op.operands[1]};
  k.lhs = k.tape.cast(k.accumulator, std::get<Ref>(a));
  k.rhs = k.tape.cast(k.accumulator, std::get<Ref>(b));
  // By contract load 0 is of A and load 1 of B.
  if (of_a > 1) {
    std::swap(k.loads[1], k.loads[of_a]);
    for (ops::Inst& i : k.tape.insts) {
      if (i.prim != ops::Prim::kLoad) continue;
      if (i.imm == 1)
        i.imm = of_a;
      else if (i.imm == of_a)
        i.imm = 1;
    }
  }
  d.accumulators.push_back(h);
  return std::nullopt;
}

Drafted<Draft> Lowering::draft(ValueId v, const ir::Shape& space) {
  Draft d;
  d.space = space;
  d.asked = v;
  std::vector<std::pair<ValueId, int32_t>> heavy;
  std::set<std::pair<int32_t, int32_t>> seen;
  find_heavy(v, 0, &heavy, &seen);
  if (heavy.empty()) {
    d.kernel.extents = space;
    for (size_t k = 0; k < space.size(); ++k) d.axes.push_back(static_cast<int32_t>(k));
  } else {
    auto matmul = std::find_if(heavy.begin(), heavy.end(), [&](const auto& h) {
      return info_of(g_, h.first)->family == Family::kContract;
    });
    if (matmul != heavy.end()) std::swap(*heavy.begin(), *matmul);
    auto blocked = info_of(g_, heavy[0].first)->family == Family::kContract
                       ? start_matmul(d, heavy[0].first)
                       : start_reduction(d, heavy[0].first);
    if (blocked) return *blocked;
    for (size_t i = 0; i < heavy.size(); ++i) {
      auto [h, path] = heavy[i];
      auto axes = kept_axes(d, h, path);
      if (auto* b = std::get_if<Blocked>(&axes)) return *b;
      if (i == 0) {
        d.axes = std::get<std::vector<int32_t>>(axes);
      } else {
        if (d.axes != std::get<std::vector<int32_t>>(axes)) return Blocked{h};
        bool known =
            std::find(d.accumulators.begin(), d.accumulators.end(), h) != d.accumulators.end();
        if (!known)
          if (auto b = add_reduction(d, h)) return *b;
      }
    }
  }
  auto r = build(d, {d.tape(), d.memo, d.axes, false, 0}, v, 0);
  if (auto* b = std::get_if<Blocked>(&r)) return *b;
  d.value = std::get<Ref>(r);
  return d;
}

std::optional<Ref> Lowering::join(Draft& d, ValueId v) {
  if (g_.type(v).shape != d.space) return std::nullopt;
  auto alone = draft(v, d.space);
  Draft* single = std::get_if<Draft>(&alone);
  if (!single || single->kernel.kind != d.kernel.kind) return std::nullopt;
  Draft both = d;
  both.asked = v;
  std::vector<std::pair<ValueId, int32_t>> heavy;
  std::set<std::pair<int32_t, int32_t>> seen;
  find_heavy(v, 0, &heavy, &seen);
  for (auto [h, path] : heavy) {
    auto axes = kept_axes(both, h, path);
    auto* same = std::get_if<std::vector<int32_t>>(&axes);
    if (!same || *same != both.axes) return std::nullopt;
    bool known =
        std::find(both.accumulators.begin(), both.accumulators.end(), h) != both.accumulators.end();
    if (!known && add_reduction(both, h)) return std::nullopt;
  }
  auto r = build(both, {both.tape(), both.memo, both.axes, false, 0}, v, 0);
  if (!std::holds_alternative<Ref>(r)) return std::nullopt;
  // Worth it only if something is shared.
  bool shares = both.kernel.loads.size() < d.kernel.loads.size() + single->kernel.loads.size() ||
                both.inlined.size() < d.inlined.size() + single->inlined.size();
  if (!shares || both.kernel.loads.size() > kMostLoads ||
      both.kernel.tape.insts.size() > kMostInsts)
    return std::nullopt;
  d = std::move(both);
  return std::get<Ref>(r);
}

}  // namespace cuvil::schedule
