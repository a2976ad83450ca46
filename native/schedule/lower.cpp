// Graph to program: walks ops in program order and decides what happens at each. Called by compiler/.
// The state is described in lower.h; fuse.cpp has decided beforehand what is worth storing.
#include "schedule/lower.h"

#include <algorithm>

namespace cuvil::schedule {

using ir::OpId;
using ir::ValueId;
using ops::Family;

Lowering::Lowering(ir::Graph& g, Program& p)
    : g_(g),
      p_(p),
      fusion_(g),
      forms_(g.value_count()),
      uses_(g.use_counts()),
      released_(g.op_count(), 0),
      next_version_(g.value_count()),
      result_buffer_(g.results.size()) {}

cuvil::Result<> Lowering::run() {
  for (size_t r = 0; r < g_.region_count(); ++r) {
    for (OpId id : g_.region({static_cast<int32_t>(r)}).ops) {
      const ir::Op& op = g_.op(id);
      if (is_named(&op, "store")) note_version(op.operands[0], op.results[0], op.parent);
      if (!is_named(&op, "for")) continue;
      for (size_t k = 0; k < op.operands.size(); ++k) {
        const ir::Region& body = g_.region(op.regions[0]);
        if (uses_[op.operands[k].id] == 1 || is_later_version(g_, body.yields[k], body.params[k]))
          note_version(op.operands[k], op.results[k], op.parent);
      }
    }
  }
  p_.graph = &g_;
  block_ = &p_.body;
  region_ = g_.root();
  add_inputs();
  CUVIL_CHECK(visit_region(region_));
  return emit_results();
}

void Lowering::note_version(ValueId cell, ValueId next, ir::RegionId r) {
  if (g_.value(cell).region == r) next_version_[cell.id] = next;
}

cuvil::Result<> Lowering::visit_region(ir::RegionId r) {
  const std::vector<OpId> ops = g_.region(r).ops;
  for (OpId id : ops) CUVIL_CHECK(visit(id));
  return Ok{};
}

cuvil::Result<> Lowering::visit(OpId id) {
  const ir::Op& op = g_.op(id);
  const ops::OpInfo& info = ops::info_of(op);
  if (is_named(&op, "store")) return visit_store(id);
  if (is_named(&op, "for")) return visit_for(id);
  if (is_named(&op, "check") || is_named(&op, "check_fits")) return visit_check(id);
  if (is_named(&op, "bind_dim")) return visit_bind(id);
  switch (info.family) {
    case Family::kHost: return visit_host_call(id);
    case Family::kPointwise:
    case Family::kReduce:
    case Family::kContract:
    case Family::kMovement:
    case Family::kCreate:
    case Family::kStorage:
      if (op.results.size() != 1) return internal("an op with several results", &op);
      return visit_pending(id);
    case Family::kControl: break;
  }
  return internal("an op that has no lowering", &op);
}

cuvil::Result<> Lowering::visit_pending(OpId id) {
  const ir::Op& op = g_.op(id);
  const ValueId v = op.results[0];
  forms_[v.id].kind = Form::Kind::kPending;
  visited_.push_back(v);
  if (op.desc->effects & ir::kMayRaise) {
    sites_[id.id] = add_site(op);
    return materialise(v);  // here: effects keep their order
  }
  if (is_named(&op, "tensor_constant")) {
    Buffer b;
    b.name = name_of(v);
    b.scope = MemoryScope::kConstant;
    b.dtype = g_.type(v).dtype;
    b.shape = g_.type(v).shape;
    b.strides = dense_strides(g_.type(v), {});
    std::string_view data = op.text(ops::attr::kData);
    b.data.assign(data.begin(), data.end());
    b.bytes = g_.dims.constant(static_cast<int64_t>(data.size()));
    set_memory(v, whole(add_buffer(std::move(b))));
  }
  if (is_movement(op) && in_memory(op.operands[0])) {
    // A view of memory; a copy is one too until one of the two is written.
    BufferAccess m = forms_[op.operands[0].id].memory;
    ops::Access moved = m.access;
    const ops::OpInfo& info = ops::info_of(op);
    if (!info.view || info.view(g_, op, m.access, &moved))
      set_memory(v, {m.buffer, std::move(moved), m.dtype});
  }
  if (uses_[v.id] <= 0) done(id);
  return fusion_.is_root(v) && pending(v) ? wait_for_memory(op.parent, v) : Ok{};
}

// Every draft walks over what is pending, so that of a long program not everything may be: the oldest root
// gets its memory.
cuvil::Result<> Lowering::wait_for_memory(ir::RegionId region, ValueId v) {
  std::deque<ValueId>& roots = waiting_[region.id];
  roots.push_back(v);
  while (roots.size() > kMostWaiting) {
    const ValueId oldest = roots.front();
    roots.pop_front();
    if (pending(oldest) && uses_[oldest.id] > 0) CUVIL_CHECK(materialise(oldest));
  }
  return Ok{};
}

cuvil::Result<> Lowering::visit_check(OpId id) {
  const ir::Op& op = g_.op(id);
  Check c;
  c.fits = is_named(&op, "check_fits");
  auto lhs = op.dims(ops::attr::kLhs), payload = op.dims(ops::attr::kPayload);
  auto rhs = c.fits ? lhs : op.dims(ops::attr::kRhs);
  if (lhs.size() != 1 || rhs.size() != 1) return internal("a check without two sides", &op);
  if (!c.fits) c.op = static_cast<artifact::Predicate::Op>(op.integer(ops::attr::kOp));
  c.lhs = lhs[0];
  c.rhs = rhs[0];
  c.payload.assign(payload.begin(), payload.end());
  c.site = add_site(op);
  emit({std::move(c)});
  return Ok{};
}

cuvil::Result<> Lowering::visit_bind(OpId id) {
  const ir::Op& op = g_.op(id);
  ValueId v = op.operands[0];
  if (g_.type(v) != ir::Type{DType::kI64, {}})
    return internal("a symbol is bound to something that is no i64", &op);
  CUVIL_CHECK(materialise(v));
  // The statement reads the buffer's first element.
  if (!g_.dims.is_constant(forms_[v.id].memory.access.offset, 0)) CUVIL_CHECK(relocate(v));
  emit({BindDim{ir::SymbolId{static_cast<int32_t>(op.integer(ops::attr::kSymbol))},
                forms_[v.id].memory.buffer}});
  done(id);
  return Ok{};
}

cuvil::Result<> Lowering::visit_host_call(OpId id) {
  const ir::Op op = g_.op(id);
  for (ValueId o : op.operands) CUVIL_CHECK(materialise(o));
  HostCall call;
  call.site = add_site(op);
  for (ValueId o : op.operands) {
    const BufferAccess& m = forms_[o.id].memory;
    call.operands.push_back({m.buffer, m.access, g_.type(o).shape});
  }
  for (ValueId r : op.results) {
    const ir::Type& type = g_.type(r);
    Buffer b;
    b.name = name_of(r);
    b.scope = MemoryScope::kHost;
    b.index = p_.array_slots++;
    b.dtype = type.dtype;
    b.shape = type.shape;
    b.strides = dense_strides(type, {});
    b.bytes = g_.dims.mul(g_.dims.product(type.shape), g_.dims.constant(size_of(type.dtype)));
    artifact::HostResult spec;
    spec.slot = b.index;
    spec.dtype = type.dtype;
    spec.rank = static_cast<uint8_t>(type.rank());
    for (ir::Dim d : type.shape) spec.shape.push_back(g_.dims.to_expr(d));
    p_.sites[call.site].results.push_back(std::move(spec));
    set_memory(r, whole(add_buffer(std::move(b))));
    visited_.push_back(r);
  }
  emit({std::move(call)});
  done(id);
  return Ok{};
}

// Where an error can come from, or a host call goes to.
uint32_t Lowering::add_site(const ir::Op& op) {
  artifact::Site site;
  if (ops::info_of(op).family == Family::kHost) {
    const ir::HostSpec& spec = g_.host_specs[static_cast<size_t>(op.integer(ops::attr::kSpec))];
    site.is_host_call = true;
    site.callable = spec.callable;
    site.arguments = spec.arguments;
    site.message = spec.name;
  } else {
    site.cls = static_cast<ErrorClass>(op.integer(ops::attr::kError));
    site.message = op.text(ops::attr::kMessage);
    site.remedy = op.text(ops::attr::kRemedy);
  }
  p_.sites.push_back(std::move(site));
  p_.site_locs.push_back(op.loc);
  return static_cast<uint32_t>(p_.sites.size() - 1);
}

cuvil::Result<std::unique_ptr<Program>> build_program(ir::Graph& graph) {
  auto p = std::make_unique<Program>();
  CUVIL_CHECK(Lowering(graph, *p).run());
  find_lifetimes(*p);
  plan_memory(*p);
  return p;
}

}  // namespace cuvil::schedule
