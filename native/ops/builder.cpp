// Builder: emits ops and answers static questions about dims. Called by build functions and frontend.
#include <algorithm>

#include "ops/interpret.h"
#include "ops/layout.h"
#include "ops/op.h"
#include "ops/rows.h"
#include "ops/structural.h"

namespace cuvil::ops {
namespace {

using Relation = artifact::Predicate::Op;

void record(ir::Graph& g, Relation op, ir::Dim lhs, ir::Dim rhs) {
  ir::DimPredicate p{op, lhs, rhs};
  if (std::find(g.predicates.begin(), g.predicates.end(), p) == g.predicates.end())
    g.predicates.push_back(p);
}

}  // namespace

ir::ValueId Builder::emit(std::string_view op, std::vector<ir::ValueId> operands, ir::Type result,
                          std::vector<ir::Attribute> attributes) {
  const OpInfo& info = *find_op(op);
  std::vector<uint8_t> order;
  if (info.family == Family::kPointwise) order = keep_order(operands, result.shape);
  ir::OpId id =
      g.add_op(region, info, std::move(operands), {std::move(result)}, std::move(attributes), loc);
  ir::ValueId v = g.op(id).results[0];
  g.value(v).order = std::move(order);
  return v;
}

ir::ValueId Builder::constant(DType t, uint64_t bits) {
  return emit("constant", {}, {t, {}}, {{attr::kBits, static_cast<int64_t>(bits)}});
}

ir::ValueId Builder::constant(DType t, double v) {
  return constant(t, cast_bits(t, DType::kF64, std::bit_cast<uint64_t>(v)));
}

ir::ValueId Builder::constant_int(DType t, int64_t v) {
  // Through double on the way to a float, as Python's float(v) does.
  if (is_float(t)) return constant(t, static_cast<double>(v));
  return constant(t, cast_bits(t, DType::kI64, static_cast<uint64_t>(v)));
}

ir::ValueId Builder::dim_value(ir::Dim d, DType t) {
  if (auto c = g.dims.as_constant(d)) return constant_int(t, *c);
  ir::ValueId v = emit("dim_value", {}, {DType::kI64, {}}, {{attr::kDim, ir::Shape{d}}});
  if (is_float(t)) v = cast(v, DType::kF64);
  return cast(v, t);
}

ir::ValueId Builder::cast(ir::ValueId v, DType t) {
  const ir::Type from = type(v);
  if (from.dtype == t) return v;
  const ir::Op* def = g.def(v);
  if (def && def->desc->name == "constant" && !is_complex(from.dtype) && !is_complex(t))
    return constant(t, cast_bits(t, from.dtype, static_cast<uint64_t>(def->integer(attr::kBits))));
  return emit("cast", {v}, {t, from.shape});
}

ir::ValueId Builder::broadcast_to(ir::ValueId v, const ir::Shape& shape) {
  if (type(v).shape == shape) return v;
  const ir::Shape from = type(v).shape;
  // An axis that is known to be 1 by a predicate alone becomes a constant 1, so that the op says
  // without further knowledge which axes it stretches.
  ir::Shape starts, sizes = from;
  bool narrowed = false;
  for (size_t i = 0; i < from.size(); ++i) {
    starts.push_back(dim(0));
    ir::Dim target = shape[shape.size() - from.size() + i];
    if (from[i] == target || g.dims.as_constant(from[i])) continue;
    auto same = equal(from[i], target);
    if (same.ok() && *same) continue;
    sizes[i] = dim(1);
    narrowed = true;
  }
  if (narrowed)
    v = emit("slice", {v}, {type(v).dtype, sizes},
             {{attr::kStarts, starts},
              {attr::kSteps, std::vector<int64_t>(from.size(), 1)},
              {attr::kSizes, sizes}});
  return emit("broadcast_to", {v}, {type(v).dtype, shape}, {{attr::kShape, shape}});
}

Result<bool> Builder::equal(ir::Dim a, ir::Dim b) {
  if (a == b) return true;
  ir::Dim d = g.dims.sub(a, b);
  ir::Range r = g.dims.range(d);
  if (r.lo > 0 || r.hi < 0) return false;
  auto v = g.dims.example(d);
  if (!v || g.dims.depends_on_internal(d))
    return error(ErrorClass::kUnsupported,
                 "whether " + g.dims.to_string(a) + " equals " + g.dims.to_string(b) +
                     " is known only while the code runs",
                 "use sizes and indices that depend on the arguments alone");
  record(g, *v == 0 ? Relation::kEq : Relation::kNe, a, b);
  return *v == 0;
}

Result<bool> Builder::less(ir::Dim a, ir::Dim b) {
  if (a == b) return false;
  ir::Dim d = g.dims.sub(a, b);
  ir::Range r = g.dims.range(d);
  if (r.hi < 0) return true;
  if (r.lo >= 0) return false;
  auto x = g.dims.example(a), y = g.dims.example(b);
  if (!x || !y || g.dims.depends_on_internal(d))
    return error(ErrorClass::kUnsupported,
                 "whether " + g.dims.to_string(a) + " is less than " + g.dims.to_string(b) +
                     " is known only while the code runs",
                 "use sizes and indices that depend on the arguments alone");
  // Compared as they are, not by their difference, which may overflow.
  if (*x < *y) {
    record(g, Relation::kLt, a, b);
    return true;
  }
  record(g, Relation::kLe, b, a);
  return false;
}

Result<ir::Shape> Builder::broadcast_shapes(std::span<const ir::Shape> shapes) {
  size_t rank = 0;
  for (const ir::Shape& s : shapes) rank = std::max(rank, s.size());
  ir::Shape out(rank, dim(1));
  for (size_t k = 0; k < rank; ++k) {
    for (const ir::Shape& s : shapes) {
      if (k >= s.size()) continue;
      ir::Dim d = s[s.size() - 1 - k];
      ir::Dim& so_far = out[rank - 1 - k];
      if (d == so_far || g.dims.is_constant(d, 1)) continue;
      if (g.dims.is_constant(so_far, 1)) {
        so_far = d;
        continue;
      }
      CUVIL_TRY(bool same, equal(d, so_far));
      if (same) {
        if (g.dims.as_constant(d)) so_far = d;
        continue;
      }
      CUVIL_TRY(bool so_far_one, equal(so_far, dim(1)));
      if (so_far_one) {
        so_far = d;
        continue;
      }
      CUVIL_TRY(bool one, equal(d, dim(1)));
      if (one) continue;
      std::string text = "operands could not be broadcast together with shapes";
      for (const ir::Shape& t : shapes) text += " " + shape_text(*this, t);
      return error(ErrorClass::kShape, text,
                   "make the sizes equal, or 1, counting axes from the last one");
    }
  }
  return out;
}

std::vector<uint8_t> Builder::keep_order(std::span<const ir::ValueId> operands,
                                         const ir::Shape& result) {
  return ops::keep_order(g, operands, result.size());
}

}  // namespace cuvil::ops
