// The structural ops without a dialect row: constants, cells, loops, checks, host calls (structural.h).
// Emitted by Builder and by the frontend.
#include "ops/structural.h"

#include "ops/op.h"

namespace cuvil::ops {
namespace {

Ref constant_body(const BodyContext& c) {
  return c.tape.bits(c.graph.type(c.op.results[0]).dtype,
                     static_cast<uint64_t>(c.op.integer(attr::kBits)));
}
Ref dim_value_body(const BodyContext& c) { return c.tape.dim(c.op.dims(attr::kDim)[0].id); }
Ref iota_body(const BodyContext& c) {
  return c.tape.index(static_cast<uint32_t>(c.op.integer(attr::kAxis)));
}
Ref copy_body(const BodyContext& c) { return c.operands[0]; }

constexpr OpInfo structural(std::string_view name, Family family, int8_t arity,
                            std::string_view doc, uint8_t effects = ir::kPure,
                            Ref (*body)(const BodyContext&) = nullptr, uint8_t regions = 0) {
  OpInfo r;
  r.name = name;
  r.effects = effects;
  r.regions = regions;
  r.family = family;
  r.arity = arity;
  r.body = body;
  r.recompute = body != nullptr && family == Family::kCreate;
  r.doc = doc;
  return r;
}

constexpr OpInfo kOps[] = {
    structural("constant", Family::kCreate, 0, "one number", ir::kPure, constant_body),
    structural("tensor_constant", Family::kCreate, 0, "an array of constant bytes"),
    structural("dim_value", Family::kCreate, 0, "a dim as i64", ir::kPure, dim_value_body),
    structural("iota", Family::kCreate, 0, "i64: the position along an axis", ir::kPure, iota_body),
    structural("empty", Family::kStorage, 0, "a new cell with undefined contents"),
    structural("copy", Family::kStorage, 1, "a new cell with the contents of a", ir::kPure,
               copy_body),
    structural("store", Family::kStorage, 3, "the next version of a cell", ir::kWrites),
    // What a loop does is what its region does; taken for the worst, so that it keeps its place.
    structural("for", Family::kControl, -1, "a counted loop with carried values",
               ir::kWrites | ir::kMayRaise, nullptr, 1),
    structural("bind_dim", Family::kControl, 1, "gives an internal symbol its value", ir::kWrites),
    structural("check", Family::kControl, 0, "raises unless lhs op rhs", ir::kMayRaise),
    structural("check_fits", Family::kControl, 0, "raises unless int64 holds lhs", ir::kMayRaise),
    structural("host_call", Family::kHost, -1, "calls a Python callable",
               ir::kMayRaise | ir::kCallsPython),
};

}  // namespace

FamilyTable control_table() { return {kOps, {}}; }

}  // namespace cuvil::ops
