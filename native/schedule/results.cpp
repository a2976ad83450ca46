// The function's results: fresh arrays are computed into their own memory where that is possible, views
// are described. Called by lower.cpp at the end of the root region.
#include "artifact/abi.h"
#include "schedule/lower.h"

namespace cuvil::schedule {

using ir::ValueId;
using ops::Access;

cuvil::Result<> Lowering::emit_results() {
  for (uint32_t i = 0; i < g_.results.size(); ++i)
    if (g_.results[i].kind == ir::Result::Kind::kFresh) CUVIL_CHECK(emit_fresh_result(i));
  for (uint32_t i = 0; i < g_.results.size(); ++i)
    if (g_.results[i].kind != ir::Result::Kind::kFresh) CUVIL_CHECK(emit_view_result(i));
  return Ok{};
}

cuvil::Result<> Lowering::emit_fresh_result(uint32_t index) {
  ValueId v = g_.results[index].value;
  if (!in_memory(v)) CUVIL_CHECK(materialise(v));
  BufferId b = result_buffer_[index];
  const BufferAccess from = forms_[v.id].memory;
  if (b.valid() && from.buffer == b) {
    BufferAccess all = whole(b);
    if (from.access.offset == all.access.offset && from.access.strides == all.access.strides) {
      release(v);
      return Ok{};
    }
  }
  if (b.valid()) CUVIL_CHECK(protect(b, {&v, 1}));  // an earlier version was put there
  CUVIL_TRY(Draft d, unblocked_draft(v, g_.type(v).shape));
  BufferAccess to = b.valid() ? whole(b) : result_storage(index);
  add_store(d, d.value, to);
  commit(std::move(d), [&] { release(v); });
  return Ok{};
}

cuvil::Result<> Lowering::emit_view_result(uint32_t index) {
  const ir::Result& r = g_.results[index];
  ViewResult view;
  view.result = index;
  view.shape = g_.type(r.value).shape;
  Access base{g_.dims.constant(0), {}};
  ValueId stop;
  if (r.kind == ir::Result::Kind::kViewOfInput) {
    view.base = CUVIL_BASE_ARRAY(g_.inputs[r.base].slot);
    base.strides = g_.inputs[r.base].strides;
  } else {
    view.base = CUVIL_BASE_RESULT(r.base);
    stop = g_.results[r.base].value;
    if (!result_buffer_[r.base].valid()) return internal("a view of a result that has no memory");
    base.strides = p_.buffer(result_buffer_[r.base]).strides;
  }
  // Down to the base by movement ops; what remains is a version of the cell.
  int32_t path = 0;
  ValueId v = r.value;
  for (const ir::Op* op = g_.def(v); op && is_movement(*op) && v != stop; op = g_.def(v)) {
    if (!ops::info_of(*op).view) return internal("a view of a copy is returned as a view", op);
    path = extend(g_.value(v).def, path);
    v = op->operands[0];
  }
  auto moved = along(path, base);
  if (std::holds_alternative<Blocked>(moved))
    return internal("a returned view is no view of its base", g_.def(r.value));
  view.access = std::get<Access>(moved);
  emit({std::move(view)});
  release(r.value);
  return Ok{};
}

}  // namespace cuvil::schedule
