// Buffers: who gets which memory, and references to values. Called by the other files of lowering.
#include <algorithm>

#include "schedule/lower.h"

namespace cuvil::schedule {

using ir::Dim;
using ir::ValueId;
using ops::Family;

Error Lowering::internal(std::string what, const ir::Op* op) const {
  if (op) what += " (op " + std::string(op->desc->name) + ")";
  return make_error(ErrorClass::kInternal, "lowering: " + what, {}, op ? op->loc : SourceLoc{});
}

ir::Shape Lowering::dense_strides(const ir::Type& t, std::span<const uint8_t> order) {
  ir::Shape strides(t.rank());
  Dim step = g_.dims.constant(size_of(t.dtype));
  for (size_t k = t.rank(); k-- > 0;) {
    size_t axis = order.empty() ? k : order[k];
    strides[axis] = step;
    step = g_.dims.mul(step, t.shape[axis]);
  }
  return strides;
}

BufferId Lowering::add_buffer(Buffer b) {
  p_.buffers.push_back(std::move(b));
  home_.push_back(region_);
  return BufferId{static_cast<int32_t>(p_.buffers.size() - 1)};
}

std::string Lowering::name_of(ValueId v) const {
  const ir::Value& value = g_.value(v);
  return value.name.empty() ? "%" + std::to_string(v.id) : value.name;
}

void Lowering::set_memory(ValueId v, BufferAccess a) {
  forms_[v.id].kind = Form::Kind::kMemory;
  forms_[v.id].memory = std::move(a);
}

BufferAccess Lowering::whole(BufferId id) {
  const Buffer& b = p_.buffer(id);
  return {id, {g_.dims.constant(0), b.strides}, b.dtype};
}

void Lowering::add_inputs() {
  uint32_t slots = 0;
  for (const ir::Input& in : g_.inputs) {
    const ir::Type& type = g_.type(in.value);
    Buffer b;
    b.name = name_of(in.value);
    b.index = in.slot;
    b.dtype = type.dtype;
    b.shape = type.shape;
    if (in.kind == ir::Input::Kind::kArray) {
      b.scope = MemoryScope::kArgument;
      b.strides = in.strides;
      slots = std::max(slots, in.slot + 1);
    } else {
      b.scope = MemoryScope::kScalar;
    }
    b.bytes = g_.dims.mul(g_.dims.product(type.shape), g_.dims.constant(size_of(type.dtype)));
    set_memory(in.value, whole(add_buffer(std::move(b))));
    visited_.push_back(in.value);
  }
  p_.array_slots = slots;
}

BufferAccess Lowering::arena_storage(const ir::Type& t, std::span<const uint8_t> order,
                                     std::string name) {
  Buffer b;
  b.name = std::move(name);
  b.scope = MemoryScope::kArena;
  b.dtype = t.dtype;
  b.shape = t.shape;
  b.strides = dense_strides(t, order);
  b.bytes = g_.dims.mul(g_.dims.product(t.shape), g_.dims.constant(size_of(t.dtype)));
  bool leased = !g_.dims.as_constant(b.bytes);
  BufferId id = add_buffer(std::move(b));
  if (leased) emit({Lease{id}});
  return whole(id);
}

BufferAccess Lowering::result_storage(uint32_t index) {
  ValueId v = g_.results[index].value;
  const ir::Type& t = g_.type(v);
  Buffer b;
  b.name = "result" + std::to_string(index);
  b.scope = MemoryScope::kResult;
  b.index = index;
  b.dtype = t.dtype;
  b.shape = t.shape;
  b.strides = dense_strides(t, g_.value(v).order);
  b.bytes = g_.dims.mul(g_.dims.product(t.shape), g_.dims.constant(size_of(t.dtype)));
  BufferId id = add_buffer(std::move(b));
  result_buffer_[index] = id;
  emit({AllocResult{index, id}});
  return whole(id);
}

// The result that the last version of the value's cell becomes, if it has no memory yet. Results are
// made outside of loops only.
std::optional<uint32_t> Lowering::future_result(ValueId v) const {
  if (region_ != g_.root()) return std::nullopt;
  while (next_version_[v.id].valid()) v = next_version_[v.id];
  for (uint32_t i = 0; i < g_.results.size(); ++i) {
    const ir::Result& r = g_.results[i];
    if (r.value == v && r.kind == ir::Result::Kind::kFresh && !result_buffer_[i].valid()) return i;
  }
  return std::nullopt;
}

BufferAccess Lowering::new_storage(ValueId v, bool c_order) {
  const ir::Value& value = g_.value(v);
  if (auto index = future_result(v)) {
    const ir::Type& t = value.type;
    const auto& order = g_.value(g_.results[*index].value).order;
    if (!c_order || dense_strides(t, order) == dense_strides(t, {})) return result_storage(*index);
  }
  std::span<const uint8_t> order;
  if (!c_order) order = value.order;
  return arena_storage(value.type, order, name_of(v));
}

// ---- References --------------------------------------------------------------------------------

void Lowering::release(ValueId v) {
  if (--uses_[v.id] > 0) return;
  const ir::OpId id = g_.value(v).def;
  if (id.valid() && (pending(v) || is_movement(g_.op(id)))) done(id);
}

void Lowering::done(ir::OpId id) {
  if (released_[id.id]) return;
  released_[id.id] = 1;
  for (ValueId o : g_.op(id).operands) release(o);
}

void Lowering::release_in(Counts& c, ValueId v) const {
  if (--c.uses[v.id] > 0) return;
  const ir::OpId id = g_.value(v).def;
  if (!id.valid() || c.released[id.id]) return;
  if (!pending(v) && !is_movement(g_.op(id))) return;
  c.released[id.id] = 1;
  for (ValueId o : g_.op(id).operands) release_in(c, o);
}

bool Lowering::buffer_is_live(const Counts& c, BufferId b) const {
  return std::any_of(visited_.begin(), visited_.end(), [&](ValueId v) {
    return c.uses[v.id] > 0 && in_memory(v) && forms_[v.id].memory.buffer == b;
  });
}

}  // namespace cuvil::schedule
