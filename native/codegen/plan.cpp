// Plan: see plan.h.
#include "codegen/plan.h"

#include <algorithm>

namespace cuvil::codegen {

void Plan::erase_axis(size_t axis) {
  axes.erase(axes.begin() + axis);
  for (auto* list : {&loads, &stores})
    for (PlanAccess& a : *list) a.strides.erase(a.strides.begin() + axis);
  for (int32_t& i : index_axis) {
    if (i == static_cast<int32_t>(axis))
      i = -1;
    else if (i > static_cast<int32_t>(axis))
      --i;
  }
}

void Plan::swap_axes(size_t a, size_t b) {
  std::swap(axes[a], axes[b]);
  for (auto* list : {&loads, &stores})
    for (PlanAccess& x : *list) std::swap(x.strides[a], x.strides[b]);
  for (int32_t& i : index_axis) {
    if (i == static_cast<int32_t>(a))
      i = static_cast<int32_t>(b);
    else if (i == static_cast<int32_t>(b))
      i = static_cast<int32_t>(a);
  }
}

Plan make_plan(const schedule::Kernel& k, size_t kept) {
  Plan p;
  for (size_t i = 0; i < k.extents.size(); ++i) {
    p.axes.push_back({k.extents[i], i >= kept});
    p.index_axis.push_back(static_cast<int32_t>(i));
  }
  auto access = [&](const schedule::BufferAccess& a) {
    PlanAccess out{a.buffer, a.dtype, a.access.offset, a.access.strides};
    out.strides.resize(k.extents.size());  // Dim{} is the constant 0
    return out;
  };
  for (const auto& a : k.loads) p.loads.push_back(access(a));
  for (const auto& s : k.stores) p.stores.push_back(access(s.to));
  return p;
}

void drop_unit_axes(Unit& u, Plan& p, size_t first, size_t last) {
  for (size_t i = last; i-- > first;)
    if (u.dims.is_constant(p.axes[i].extent, 1)) p.erase_axis(i);
}

int64_t example_stride(Unit& u, ir::Dim d) {
  auto v = u.dims.example(d);
  return v ? std::abs(*v) : -1;
}

void sort_axes(Unit& u, Plan& p, const PlanAccess& lead, size_t first, size_t last) {
  std::vector<int64_t> key;
  for (ir::Dim s : lead.strides) key.push_back(example_stride(u, s));
  for (size_t i = first; i < last; ++i)
    if (key[i] < 0) return;
  for (size_t i = first + 1; i < last; ++i) {  // insertion sort, stable; few axes
    for (size_t j = i; j > first && key[j - 1] < key[j]; --j) {
      if (key[j - 1] == 0 || key[j] == 0) break;
      std::swap(key[j - 1], key[j]);
      p.swap_axes(j - 1, j);
    }
  }
}

size_t merge_axes(Unit& u, Plan& p, const schedule::Kernel& k, size_t first, size_t last) {
  std::vector<bool> indexed(p.axes.size(), false);
  for (const ops::Tape* t : {&k.tape, &k.epilogue})
    for (const ops::Inst& i : t->insts)
      if (i.prim == ops::Prim::kIndex && p.index_axis[i.imm] >= 0)
        indexed[p.index_axis[i.imm]] = true;
  for (size_t i = last; i-- > first + 1;) {
    if (indexed[i] || indexed[i - 1] || p.axes[i].reduced != p.axes[i - 1].reduced) continue;
    bool even = true;
    for (auto* list : {&p.loads, &p.stores})
      for (const PlanAccess& a : *list)
        even = even && a.strides[i - 1] == u.dims.mul(a.strides[i], p.axes[i].extent);
    if (!even) continue;
    for (auto* list : {&p.loads, &p.stores})
      for (PlanAccess& a : *list) a.strides[i - 1] = a.strides[i];
    p.axes[i - 1].extent = u.dims.mul(p.axes[i - 1].extent, p.axes[i].extent);
    p.erase_axis(i);
    indexed.erase(indexed.begin() + i);
    --last;
  }
  return last;
}

size_t divided_axis(Unit& u, const Plan& p, size_t last) {
  constexpr int64_t kEnough = 16;
  size_t best = 0;
  for (size_t i = 1; i < last; ++i) {
    const int64_t at_best = u.dims.example(p.axes[best].extent).value_or(kEnough);
    if (at_best < kEnough && u.dims.example(p.axes[i].extent).value_or(0) > at_best) best = i;
  }
  return best;
}

bool stores_into_loads(const schedule::Program& p, const schedule::Kernel& k) {
  // Arguments may be the same memory as one another; arena buffers may share bytes.
  for (const auto& s : k.stores) {
    const schedule::Buffer& to = p.buffer(s.to.buffer);
    for (const auto& l : k.loads) {
      if (l.buffer == s.to.buffer) return true;
      const schedule::Buffer& from = p.buffer(l.buffer);
      if (from.scope == to.scope && to.scope != schedule::MemoryScope::kResult) return true;
    }
  }
  return false;
}

}  // namespace cuvil::codegen
