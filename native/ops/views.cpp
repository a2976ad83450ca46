// Access maps of the movement ops: where an element of the result lies in the operand's buffer.
// Called by layout and by the schedule through OpInfo::view.
#include <algorithm>

#include "ops/movement.h"
#include "ops/structural.h"

namespace cuvil::ops {
namespace {

bool known_equal(const ir::Graph& g, ir::Dim a, ir::Dim b) {
  if (a == b) return true;
  for (const ir::DimPredicate& p : g.predicates) {
    if (p.op != artifact::Predicate::Op::kEq) continue;
    if ((p.lhs == a && p.rhs == b) || (p.lhs == b && p.rhs == a)) return true;
  }
  return false;
}

// An atom of a polynomial as a Dim.
ir::Dim atom_dim(ir::DimTable& t, int32_t id) {
  const ir::DimTable::Atom a = t.atom(id);
  switch (a.kind) {
    case ir::DimTable::Atom::Kind::kSymbol: return t.symbol(a.symbol);
    case ir::DimTable::Atom::Kind::kFloorDiv: return t.floordiv(a.a, a.b);
    case ir::DimTable::Atom::Kind::kMod: return t.mod(a.a, a.b);
    case ir::DimTable::Atom::Kind::kMin: return t.min(a.a, a.b);
    case ir::DimTable::Atom::Kind::kMax: return t.max(a.a, a.b);
  }
  return {};
}

}  // namespace

std::optional<ir::Dim> exact_divide(ir::DimTable& t, ir::Dim total, ir::Dim divisor) {
  if (t.terms(divisor).size() != 1) {
    if (total == divisor) return t.constant(1);
    return std::nullopt;
  }
  const ir::DimTable::Term d = t.terms(divisor)[0];
  const std::vector<ir::DimTable::Term> terms(t.terms(total).begin(), t.terms(total).end());
  ir::Dim sum = t.constant(0);
  for (const auto& term : terms) {
    if (term.coefficient % d.coefficient != 0) return std::nullopt;
    std::vector<int32_t> rest = term.atoms;
    for (int32_t a : d.atoms) {
      auto it = std::find(rest.begin(), rest.end(), a);
      if (it == rest.end()) return std::nullopt;
      rest.erase(it);
    }
    ir::Dim p = t.constant(term.coefficient / d.coefficient);
    for (int32_t a : rest) p = t.mul(p, atom_dim(t, a));
    sum = t.add(sum, p);
  }
  return sum;
}

bool transpose_view(ir::Graph&, const ir::Op& op, const Access& from, Access* to) {
  to->offset = from.offset;
  to->strides.clear();
  for (int64_t p : op.integers(attr::kPerm))
    to->strides.push_back(from.strides[static_cast<size_t>(p)]);
  return true;
}

bool expand_view(ir::Graph& g, const ir::Op& op, const Access& from, Access* to) {
  *to = from;
  for (int64_t a : op.integers(attr::kAxes))
    to->strides.insert(to->strides.begin() + a, g.dims.constant(0));
  return true;
}

bool squeeze_view(ir::Graph&, const ir::Op& op, const Access& from, Access* to) {
  auto axes = op.integers(attr::kAxes);
  to->offset = from.offset;
  to->strides.clear();
  for (size_t k = 0; k < from.strides.size(); ++k)
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(k)) == axes.end())
      to->strides.push_back(from.strides[k]);
  return true;
}

bool broadcast_view(ir::Graph& g, const ir::Op& op, const Access& from, Access* to) {
  const ir::Shape& shape = g.type(op.operands[0]).shape;
  const ir::Shape& target = g.type(op.results[0]).shape;
  const size_t lead = target.size() - shape.size();
  to->offset = from.offset;
  to->strides.assign(target.size(), g.dims.constant(0));
  // Builder::broadcast_to sees to it that a stretched axis has the constant size 1.
  for (size_t k = 0; k < shape.size(); ++k)
    if (!g.dims.is_constant(shape[k], 1) || g.dims.is_constant(target[lead + k], 1))
      to->strides[lead + k] = from.strides[k];
  return true;
}

bool slice_view(ir::Graph& g, const ir::Op& op, const Access& from, Access* to) {
  auto starts = op.dims(attr::kStarts);
  auto steps = op.integers(attr::kSteps);
  *to = from;
  for (size_t k = 0; k < from.strides.size(); ++k) {
    to->offset = g.dims.add(to->offset, g.dims.mul(starts[k], from.strides[k]));
    to->strides[k] = g.dims.mul(from.strides[k], g.dims.constant(steps[k]));
  }
  return true;
}

// Groups axes of both shapes with equal products; the operand's axes of a group must be one run in memory.
//
//   old  [n, 4 | 6]        group 1: n * 4 == 2*n * 2        group 2: 6 == 6
//   new  [2*n, 2 | 6]
bool reshape_view(ir::Graph& g, const ir::Op& op, const Access& from, Access* to) {
  ir::DimTable& t = g.dims;
  const ir::Shape new_shape = g.type(op.results[0]).shape, shape = g.type(op.operands[0]).shape;
  const ir::Dim one = t.constant(1), zero = t.constant(0);
  ir::Shape old_dims, old_strides;
  for (size_t k = 0; k < shape.size(); ++k) {
    if (t.is_constant(shape[k], 0)) {  // nothing is ever read
      to->offset = from.offset;
      to->strides.assign(new_shape.size(), zero);
      return true;
    }
    if (shape[k] == one) continue;
    old_dims.push_back(shape[k]);
    old_strides.push_back(from.strides[k]);
  }
  std::vector<size_t> axes;  // of the result, without those of size 1
  for (size_t k = 0; k < new_shape.size(); ++k)
    if (new_shape[k] != one) axes.push_back(k);
  to->offset = from.offset;
  to->strides.assign(new_shape.size(), zero);

  size_t i = 0, j = 0;
  while (i < old_dims.size() || j < axes.size()) {
    size_t i0 = i, j0 = j;
    ir::Dim a = i < old_dims.size() ? old_dims[i++] : one;
    ir::Dim b = j < axes.size() ? new_shape[axes[j++]] : one;
    while (!known_equal(g, a, b)) {
      const bool more_old = i < old_dims.size(), more_new = j < axes.size();
      if (!more_old && !more_new) break;  // the whole sizes are equal, if not seen to be
      auto x = t.example(a), y = t.example(b);
      bool grow_old = more_old && (!more_new || (x && y && *x < *y));
      if (grow_old) {
        a = t.mul(a, old_dims[i++]);
      } else {
        b = t.mul(b, new_shape[axes[j++]]);
      }
    }
    for (size_t k = i0; k + 1 < i; ++k)
      if (!known_equal(g, old_strides[k], t.mul(old_dims[k + 1], old_strides[k + 1]))) return false;
    if (i == i0) continue;
    ir::Dim stride = old_strides[i - 1];
    for (size_t k = j; k-- > j0;) {
      to->strides[axes[k]] = stride;
      stride = t.mul(stride, new_shape[axes[k]]);
    }
  }
  return true;
}

}  // namespace cuvil::ops
