// Writing in place: stores into cells, and keeping what others still need of the old contents.
// Called by lower.cpp and loop.cpp.
//
//   %1 = slice %a [0:n-1]       view of a                  a[1:] += a[:-1]
//   %2 = slice %a [1:n]         view of a
//   %3 = add %2, %1             pending, reads a
//   %4 = store %a, %2, %3       reads a at other places than it writes: %3 goes through a temporary
//   %5 = mul %1, 2              needs the old a: %1 is copied before the store
#include <algorithm>
#include <set>

#include "schedule/lower.h"

namespace cuvil::schedule {

using ir::Dim;
using ir::ValueId;
using ops::Access;

bool Lowering::reads(ValueId v, BufferId b) {
  std::vector<ValueId> work{v};
  std::set<int32_t> seen;
  while (!work.empty()) {
    ValueId x = work.back();
    work.pop_back();
    if (!seen.insert(x.id).second) continue;
    if (in_memory(x) && forms_[x.id].memory.buffer == b) return true;
    if (!pending(x)) continue;
    for (ValueId o : g_.def(x)->operands) work.push_back(o);
  }
  return false;
}

cuvil::Result<> Lowering::protect(BufferId b, std::span<const ValueId> given_up) {
  for (;;) {
    Counts c{uses_, released_};
    for (ValueId v : given_up) release_in(c, v);
    // The last one first: with it, what it is computed from may no longer be needed.
    auto reader = std::find_if(visited_.rbegin(), visited_.rend(),
                               [&](ValueId v) { return c.uses[v.id] > 0 && reads(v, b); });
    if (reader == visited_.rend()) return Ok{};
    if (in_memory(*reader)) {
      CUVIL_CHECK(relocate(*reader));
    } else {
      CUVIL_CHECK(materialise(*reader));
    }
  }
}

cuvil::Result<BufferAccess> Lowering::own(ValueId cell, std::span<const ValueId> given_up) {
  const ir::Op* def = g_.def(cell);
  const bool here = g_.value(cell).region == region_;
  auto is_own = [&] {
    if (!in_memory(cell) || !here || (def && is_movement(*def) && def->operands.size() == 1))
      return false;
    MemoryScope s = p_.buffer(forms_[cell.id].memory.buffer).scope;
    return s != MemoryScope::kConstant && s != MemoryScope::kScalar;
  };
  if (is_own()) return forms_[cell.id].memory;
  if (pending(cell) && here) {
    Counts c{uses_, released_};
    for (ValueId v : given_up) release_in(c, v);
    if (c.uses[cell.id] <= 0 || is_named(def, "empty")) {
      CUVIL_CHECK(materialise(cell));
      return forms_[cell.id].memory;
    }
  }
  // Others keep the value where it is; the cell goes on in memory of its own.
  CUVIL_TRY(Draft d, unblocked_draft(cell, g_.type(cell).shape));
  BufferAccess to = new_storage(cell);
  add_store(d, d.value, to);
  commit(std::move(d), [] {});
  return to;
}

namespace {

struct Span {
  int64_t lo = 0, hi = 0;
};

// Bytes that an access touches, relative to its offset; nullopt if not constant.
std::optional<Span> touched(const ir::DimTable& dims, const ir::Shape& extents,
                            const BufferAccess& a) {
  Span s{0, size_of(a.dtype)};
  for (size_t k = 0; k < extents.size(); ++k) {
    auto stride = dims.as_constant(a.access.strides[k]), extent = dims.as_constant(extents[k]);
    if (stride == 0) continue;
    if (!stride || !extent) return std::nullopt;
    int64_t reach = *stride * std::max<int64_t>(*extent - 1, 0);
    (reach < 0 ? s.lo : s.hi) += reach;
  }
  return s;
}

}  // namespace

bool Lowering::overwrites_what_it_reads(const Draft& d, const Store& store) const {
  const Kernel& k = d.kernel;
  auto& dims = g_.dims;
  auto unit = [&](Dim x) { return dims.is_constant(x, 1); };
  // One element: everything is read before it is written.
  if (std::all_of(k.extents.begin(), k.extents.end(), unit)) return false;
  for (size_t i = 0; i < k.loads.size(); ++i) {
    const BufferAccess& l = k.loads[i];
    if (l.buffer != store.to.buffer) continue;
    // Elements are read and written one by one at the same place; the terms of a sum are not.
    bool same = l.access.offset == store.to.access.offset && l.dtype == store.to.dtype;
    for (size_t a = 0; a < k.extents.size(); ++a)
      same &= unit(k.extents[a]) || l.access.strides[a] == store.to.access.strides[a];
    if (k.kind != Kernel::Kind::kMap)
      for (const ops::Inst& inst : k.tape.insts)
        same &= inst.prim != ops::Prim::kLoad || inst.imm != i;
    if (same) continue;
    auto read = touched(dims, k.extents, l), written = touched(dims, k.extents, store.to);
    auto apart = dims.as_constant(g_.dims.sub(l.access.offset, store.to.access.offset));
    if (read && written && apart &&
        (*apart + read->lo >= written->hi || *apart + read->hi <= written->lo))
      continue;
    return true;
  }
  return false;
}

cuvil::Result<> Lowering::write(ValueId value, const BufferAccess& to,
                                const std::function<void()>& let_go) {
  const ir::Shape shape = g_.type(value).shape;
  CUVIL_TRY(Draft d, unblocked_draft(value, shape));
  add_store(d, d.value, to);
  if (overwrites_what_it_reads(d, d.kernel.stores.back())) {
    if (in_memory(value)) {
      CUVIL_CHECK(relocate(value));
    } else {
      CUVIL_CHECK(materialise(value));
    }
    CUVIL_TRY(d, unblocked_draft(value, shape));
    add_store(d, d.value, to);
  }
  commit(std::move(d), let_go);
  return Ok{};
}

cuvil::Result<> Lowering::visit_store(ir::OpId id) {
  const ir::Op& op = g_.op(id);
  const ValueId cell = op.operands[0], view = op.operands[1], value = op.operands[2];
  const std::vector<ValueId> operands = op.operands;
  CUVIL_TRY(BufferAccess memory, own(cell, operands));
  // The access of the view, from the cell's.
  int32_t path = 0;
  ValueId v = view;
  while (v != cell) {
    const ir::Op* step = g_.def(v);
    if (!step || !is_movement(*step) || !ops::info_of(*step).view)
      return internal("a store's view does not lead to its cell", &op);
    path = extend(g_.value(v).def, path);
    v = step->operands[0];
  }
  auto moved = along(path, memory.access);
  if (std::holds_alternative<Blocked>(moved))
    return internal("a store's view is no view of its cell's memory", &op);
  BufferAccess to{memory.buffer, std::get<Access>(moved), memory.dtype};
  CUVIL_CHECK(protect(memory.buffer, operands));
  const ValueId next = op.results[0];
  auto let_go = [&] { done(id); };
  const BufferAccess& from = forms_[value.id].memory;
  if (in_memory(value) && from.buffer == to.buffer && from.access.offset == to.access.offset &&
      from.access.strides == to.access.strides) {
    let_go();  // it is there already
  } else {
    CUVIL_CHECK(write(value, to, let_go));
  }
  set_memory(next, memory);
  visited_.push_back(next);
  return Ok{};
}

}  // namespace cuvil::schedule
