// Loops: where carried values live, and what must be computed before the loop. Called by lower.cpp.
//
//   %r = for %init { ^(%p) ...; yield %y }
//
// %p and %r are one buffer B. A cell that the body stores into (%y comes from %p by stores) keeps its
// memory: B is the cell's own buffer. Any other carried value gets a fresh one, or takes over the buffer
// of an %init that nobody else needs; the body ends by computing or copying %y into B.
#include <algorithm>
#include <set>

#include "schedule/lower.h"

namespace cuvil::schedule {

using ir::OpId;
using ir::ValueId;
using ops::Family;

// `v` is `cell` with stores applied: follows versions upwards.
bool is_later_version(const ir::Graph& g, ValueId v, ValueId cell) {
  while (v != cell) {
    const ir::Op* def = g.def(v);
    if (is_named(def, "store")) {
      v = def->operands[0];
    } else if (is_named(def, "for")) {
      uint32_t k = g.value(v).index;
      const ir::Region& body = g.region(def->regions[0]);
      if (body.yields[k] != body.params[k] && !is_later_version(g, body.yields[k], body.params[k]))
        return false;
      v = def->operands[k];
    } else {
      return false;
    }
  }
  return true;
}

cuvil::Result<> Lowering::settle(ValueId v) {
  if (!pending(v)) return Ok{};
  const ir::Op& op = *g_.def(v);
  const ops::OpInfo& info = ops::info_of(op);
  if (is_heavy(info) || fusion_.is_root(v) || !(info.body || is_movement(op)) ||
      (info.family == Family::kPointwise && !fusion_.is_cheap(v)))
    return materialise(v);
  const std::vector<ValueId> operands = op.operands;
  for (ValueId o : operands) CUVIL_CHECK(settle(o));
  return Ok{};
}

// What the body reads from outside is computed once, before the loop, unless that is cheap.
cuvil::Result<> Lowering::settle_outer(ir::RegionId r) {
  const ir::Region body = g_.region(r);
  for (OpId id : body.ops) {
    const std::vector<ValueId> operands = g_.op(id).operands;
    for (ValueId o : operands) CUVIL_CHECK(settle(o));
    const std::vector<ir::RegionId> inner = g_.op(id).regions;
    for (ir::RegionId i : inner) CUVIL_CHECK(settle_outer(i));
  }
  for (ValueId o : body.yields) CUVIL_CHECK(settle(o));
  return Ok{};
}

cuvil::Result<> Lowering::visit_for(OpId id) {
  const ir::Op op = g_.op(id);
  const ir::Region body = g_.region(op.regions[0]);
  CUVIL_CHECK(settle_outer(op.regions[0]));

  std::vector<BufferAccess> carried;
  for (size_t k = 0; k < op.operands.size(); ++k) {
    ValueId init = op.operands[k];
    BufferAccess b;
    if (is_later_version(g_, body.yields[k], body.params[k])) {
      CUVIL_TRY(b, own(init, op.operands));
      CUVIL_CHECK(protect(b.buffer, op.operands));
    } else {
      CUVIL_TRY(b, carried_storage(init, op));
    }
    // Two carried values never share memory.
    for (size_t j = 0; j < k; ++j) {
      if (carried[j].buffer != b.buffer) continue;
      CUVIL_TRY(Draft d, unblocked_draft(init, g_.type(init).shape));
      b = arena_storage(g_.type(init), g_.value(op.results[k]).order, name_of(op.results[k]));
      add_store(d, d.value, b);
      commit(std::move(d), [] {});
    }
    carried.push_back(b);
  }
  done(id);

  // The body.
  Block* outer = block_;
  const ir::RegionId outer_region = region_;
  const size_t outer_visited = visited_.size();
  For loop;
  loop.induction = ir::SymbolId{static_cast<int32_t>(op.integer(ops::attr::kSymbol))};
  loop.begin = op.dims(ops::attr::kBegin)[0];
  loop.trip = op.dims(ops::attr::kTrip)[0];
  loop.body = std::make_unique<Block>();
  block_ = loop.body.get();
  region_ = op.regions[0];
  for (size_t k = 0; k < carried.size(); ++k) {
    set_memory(body.params[k], carried[k]);
    visited_.push_back(body.params[k]);
  }
  CUVIL_CHECK(visit_region(region_));

  // All yields take place at once: one that reads a buffer which is written before it is computed first.
  for (size_t k = 0; k < carried.size(); ++k) {
    ValueId y = body.yields[k];
    const BufferAccess& from = forms_[y.id].memory;
    if (in_memory(y) && from.buffer == carried[k].buffer &&
        from.access.strides == carried[k].access.strides &&
        from.access.offset == carried[k].access.offset) {
      release(y);
      continue;
    }
    CUVIL_CHECK(protect(carried[k].buffer, {&y, 1}));
    CUVIL_CHECK(write(y, carried[k], [&] { release(y); }));
  }

  visited_.resize(outer_visited);
  block_ = outer;
  region_ = outer_region;
  emit({std::move(loop)});
  for (size_t k = 0; k < carried.size(); ++k) {
    set_memory(op.results[k], carried[k]);
    visited_.push_back(op.results[k]);
  }
  return Ok{};
}

// Memory for a carried value that is not stored into, with its initial contents.
cuvil::Result<BufferAccess> Lowering::carried_storage(ValueId init, const ir::Op& loop) {
  const ir::Op* def = g_.def(init);
  Counts c{uses_, released_};
  for (ValueId v : loop.operands) release_in(c, v);
  const bool dies = c.uses[init.id] <= 0;
  const bool here = g_.value(init).region == region_;
  if (in_memory(init) && dies && here && !(def && is_movement(*def))) {
    BufferAccess m = forms_[init.id].memory;
    MemoryScope s = p_.buffer(m.buffer).scope;
    if ((s == MemoryScope::kArena || s == MemoryScope::kResult) && !buffer_is_live(c, m.buffer))
      return m;
  }
  CUVIL_TRY(Draft d, unblocked_draft(init, g_.type(init).shape));
  size_t k = std::find(loop.operands.begin(), loop.operands.end(), init) - loop.operands.begin();
  BufferAccess to = new_storage(loop.results[k]);
  add_store(d, d.value, to);
  commit(std::move(d), [] {});
  return to;
}

}  // namespace cuvil::schedule
