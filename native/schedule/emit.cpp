// Drafts become kernels in the program; values become memory. Called by lower.cpp, store.cpp, loop.cpp
// and results.cpp whenever they need a value in memory.
#include <algorithm>

#include "schedule/lower.h"

namespace cuvil::schedule {

using ir::ValueId;
using ops::Family;
using ops::Ref;

namespace {

bool is_movement_of_memory(const ir::Graph& g, ValueId v) {
  const ir::Op* op = g.def(v);
  return op && is_movement(*op);
}

}  // namespace

cuvil::Result<Draft> Lowering::unblocked_draft(ValueId v, const ir::Shape& space) {
  for (;;) {
    auto d = draft(v, space);
    if (Draft* ok = std::get_if<Draft>(&d)) return std::move(*ok);
    ValueId blocked = std::get<Blocked>(d).value;
    if (!pending(blocked))
      return internal("a value is asked for before it is computed", g_.def(blocked));
    CUVIL_CHECK(materialise(blocked));
  }
}

cuvil::Result<> Lowering::materialise(ValueId v) {
  if (in_memory(v)) return Ok{};
  const ir::Op* op = g_.def(v);
  if (!pending(v) || !op) return internal("a value is asked for before it is computed", op);
  if (is_named(op, "concatenate")) return materialise_concatenate(v);
  if (is_named(op, "empty")) {
    set_memory(v, new_storage(v));
    return Ok{};
  }
  for (;;) {
    auto drafted = draft(v, g_.type(v).shape);
    if (auto* blocked = std::get_if<Blocked>(&drafted)) {
      if (blocked->value == v) return materialise_reshape(v);
      if (!pending(blocked->value)) return internal("a value is asked for too early", op);
      CUVIL_CHECK(materialise(blocked->value));
      continue;
    }
    Draft d = std::move(std::get<Draft>(drafted));
    std::vector<std::pair<ValueId, Ref>> outputs{{v, d.value}};
    if (!(op->desc->effects & ir::kMayRaise)) {
      for (size_t i = visited_.size(); i-- > 0;) {
        ValueId u = visited_[i];
        bool wanted = u != v && pending(u) && uses_[u.id] > 0 && fusion_.is_root(u);
        bool inlined = std::any_of(d.inlined.begin(), d.inlined.end(),
                                   [&](const Inlined& x) { return x.value == u; });
        if (!wanted || inlined) continue;
        if (auto ref = join(d, u)) outputs.push_back({u, *ref});
      }
    }
    for (auto& [u, ref] : outputs) {
      auto in_place = reuse_in_place(d, u);
      BufferAccess to = in_place ? *in_place : new_storage(u);
      set_memory(u, to);
      add_store(d, ref, to);
    }
    commit(std::move(d), [&] {
      for (auto& [u, ref] : outputs) done(g_.value(u).def);
    });
    return Ok{};
  }
}

// A reshape that is no view: its operand's elements in C order.
cuvil::Result<> Lowering::materialise_reshape(ValueId v) {
  const ir::OpId id = g_.value(v).def;
  ValueId operand = g_.op(id).operands[0];
  CUVIL_TRY(Draft d, unblocked_draft(operand, g_.type(operand).shape));
  BufferAccess to = new_storage(v, true);
  set_memory(v, to);
  add_store(d, d.value,
            {to.buffer, {to.access.offset, dense_strides(g_.type(operand), {})}, to.dtype});
  if (std::find(d.ops.begin(), d.ops.end(), id) == d.ops.end()) d.ops.push_back(id);
  commit(std::move(d), [&] { done(id); });
  return Ok{};
}

// One kernel an operand, each storing into its slice of the result.
cuvil::Result<> Lowering::materialise_concatenate(ValueId v) {
  const ir::OpId id = g_.value(v).def;
  const std::vector<ValueId> operands = g_.op(id).operands;
  const auto axis = static_cast<size_t>(g_.op(id).integer(ops::attr::kAxis));
  BufferAccess to = new_storage(v);
  released_[id.id] = 1;
  for (ValueId o : operands) {
    const ir::Shape shape = g_.type(o).shape;
    CUVIL_TRY(Draft d, unblocked_draft(o, shape));
    add_store(d, d.value, to);
    if (std::find(d.ops.begin(), d.ops.end(), id) == d.ops.end()) d.ops.push_back(id);
    commit(std::move(d), [&] { release(o); });
    to.access.offset =
        g_.dims.add(to.access.offset, g_.dims.mul(shape[axis], to.access.strides[axis]));
  }
  to.access.offset = g_.dims.constant(0);
  set_memory(v, to);
  return Ok{};
}

cuvil::Result<> Lowering::relocate(ValueId v) {
  CUVIL_TRY(Draft d, unblocked_draft(v, g_.type(v).shape));
  // An old version: what its cell becomes is not its own.
  const ir::Value& value = g_.value(v);
  BufferAccess to = next_version_[v.id].valid() ? arena_storage(value.type, value.order, name_of(v))
                                                : new_storage(v);
  add_store(d, d.value, to);
  bool view = is_movement_of_memory(g_, v);
  commit(std::move(d), [&] {
    set_memory(v, to);
    if (view) done(g_.value(v).def);
  });
  return Ok{};
}

void Lowering::add_store(Draft& d, Ref value, const BufferAccess& over_space) {
  Store s{value,
          {over_space.buffer,
           {over_space.access.offset, ir::Shape(d.kernel.extents.size())},
           over_space.dtype}};
  for (size_t j = 0; j < d.axes.size(); ++j)
    if (d.axes[j] >= 0) s.to.access.strides[d.axes[j]] = over_space.access.strides[j];
  d.kernel.stores.push_back(std::move(s));
}

// The memory of an operand that dies in this kernel and lies as the result would.
std::optional<BufferAccess> Lowering::reuse_in_place(const Draft& d, ValueId v) {
  if (d.kernel.kind != Kernel::Kind::kMap || future_result(v)) return std::nullopt;
  const ir::Type& type = g_.type(v);
  ir::Shape strides = dense_strides(type, g_.value(v).order);
  Counts after{uses_, released_};
  const ir::Op& op = *g_.def(v);
  after.released[g_.value(v).def.id] = 1;
  for (ValueId o : op.operands) release_in(after, o);
  for (const BufferAccess& l : d.kernel.loads) {
    const Buffer& b = p_.buffer(l.buffer);
    if (b.scope != MemoryScope::kArena || home_[l.buffer.id] != region_ || b.dtype != type.dtype ||
        b.shape != type.shape || b.strides != strides || l.access.strides != strides ||
        !g_.dims.is_constant(l.access.offset, 0) || buffer_is_live(after, l.buffer))
      continue;
    bool once = true;
    for (const BufferAccess& o : d.kernel.loads) once &= &o == &l || o.buffer != l.buffer;
    for (const Store& s : d.kernel.stores) once &= s.to.buffer != l.buffer;
    if (once) return BufferAccess{l.buffer, {g_.dims.constant(0), strides}, type.dtype};
  }
  return std::nullopt;
}

void Lowering::commit(Draft d, const std::function<void()>& let_go) {
  let_go();
  // Users come after what they use: letting one go may end the need for another.
  std::sort(d.inlined.begin(), d.inlined.end(),
            [](const Inlined& a, const Inlined& b) { return a.value.id > b.value.id; });
  for (const Inlined& i : d.inlined) {
    if (!pending(i.value) || uses_[i.value.id] <= 0) continue;
    BufferAccess to = new_storage(i.value);
    set_memory(i.value, to);
    const ops::OpInfo& info = *info_of(g_, i.value);
    if (is_heavy(info)) {
      Store s{i.ref, {to.buffer, {to.access.offset, ir::Shape(d.kernel.extents.size())}, to.dtype}};
      for (size_t k = 0; k < to.access.strides.size(); ++k)
        s.to.access.strides[k] = to.access.strides[k];
      d.kernel.stores.push_back(std::move(s));
    } else {
      add_store(d, i.ref, to);
    }
    done(g_.value(i.value).def);
  }
  Kernel k = std::move(d.kernel);
  std::sort(d.ops.begin(), d.ops.end(), [](ir::OpId a, ir::OpId b) { return a.id < b.id; });
  k.name = "k" + std::to_string(kernels_++);
  int names = 0;
  std::string last;
  for (ir::OpId id : d.ops) {
    const ir::Op& op = g_.op(id);
    Family f = ops::info_of(op).family;
    std::string name(op.desc->name);
    if (f == Family::kCreate || is_movement(op) || name == last || names >= 4) continue;
    k.name += "_" + name;
    last = name;
    ++names;
  }
  if (names == 0)
    k.name += d.ops.empty() ? "_copy" : "_" + std::string(g_.op(d.ops.back()).desc->name);
  if (!d.ops.empty()) k.loc = g_.op(d.ops.back()).loc;
  for (const ops::Inst& i : k.tape.insts) k.may_raise |= i.prim == ops::Prim::kCheck;
  for (const ops::Inst& i : k.epilogue.insts) k.may_raise |= i.prim == ops::Prim::kCheck;
  k.ops = std::move(d.ops);
  k.cost_ns = kernel_cost(g_, k);
  emit({std::move(k)});
}

}  // namespace cuvil::schedule
