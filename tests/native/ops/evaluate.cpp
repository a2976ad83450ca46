// The reference evaluator of graphs for tests.
#include "evaluate.h"

#include <algorithm>
#include <cmath>

#include "ops/interpret.h"
#include "ops/structural.h"

namespace cuvil::ops::testing {
namespace {

int64_t product(const std::vector<int64_t>& s) {
  int64_t n = 1;
  for (int64_t d : s) n *= d;
  return n;
}
std::vector<int64_t> unravel(int64_t k, const std::vector<int64_t>& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t a = shape.size(); a-- > 0;) {
    index[a] = k % shape[a];
    k /= shape[a];
  }
  return index;
}
int64_t ravel(const std::vector<int64_t>& index, const std::vector<int64_t>& shape) {
  int64_t k = 0;
  for (size_t a = 0; a < shape.size(); ++a) k = k * shape[a] + index[a];
  return k;
}
bool is_nan(DType t, uint64_t bits) { return is_float(t) && std::isnan(float_value(t, bits)); }
// a < b, of one type
bool less(DType t, uint64_t a, uint64_t b) {
  return is_bool(t) ? a < b : *evaluate(Prim::kLt, DType::kBool, t, 0, a, b, 0);
}

}  // namespace

int64_t Evaluator::dim(ir::Dim d) {
  ir::Dim known = g_.dims.substitute(d, [&](ir::SymbolId s) -> std::optional<ir::Dim> {
    auto it = bound_.find(s.id);
    if (it != bound_.end()) return g_.dims.constant(it->second);
    return g_.dims.constant(*g_.dims.info(s).example);
  });
  return *g_.dims.as_constant(known);
}

std::vector<int64_t> Evaluator::sizes(const ir::Shape& s) {
  std::vector<int64_t> r;
  for (ir::Dim d : ir::Shape(s)) r.push_back(dim(d));
  return r;
}

Array Evaluator::pointwise(const ir::Op& op) {
  Tape tape;
  std::vector<Ref> refs;
  std::vector<const Array*> operands;
  for (size_t k = 0; k < op.operands.size(); ++k) {
    ir::ValueId v = op.operands[k];
    // Constants as constants, as the schedule gives them to bodies.
    const ir::Op* def = g_.def(v);
    while (def && def->desc->name == "broadcast_to") def = g_.def(def->operands[0]);
    const DType t = g_.type(v).dtype;
    refs.push_back(def && def->desc->name == "constant"
                       ? tape.bits(t, static_cast<uint64_t>(def->integer(attr::kBits)))
                       : tape.load(t, static_cast<uint32_t>(k)));
    operands.push_back(&values.at(v.id));
  }
  Ref result = info_of(op).body({tape, g_, op, refs, 0});
  Array out{sizes(g_.type(op.results[0]).shape), {}};
  std::vector<int64_t> dims;
  for (const Inst& in : tape.insts)
    if (in.prim == Prim::kDim) {
      dims.resize(std::max<size_t>(dims.size(), in.imm + 1));
      dims[in.imm] = dim(ir::Dim{static_cast<int32_t>(in.imm)});
    }
  for (int64_t k = 0; k < product(out.shape); ++k) {
    std::vector<uint64_t> loads;
    for (const Array* a : operands) loads.push_back(a->bits[static_cast<size_t>(k)]);
    std::vector<int64_t> indices = unravel(k, out.shape);
    std::optional<uint32_t> fired;
    auto bits = interpret(tape, result, {loads, indices, dims, {}}, &fired);
    if (fired) {
      raised = std::string(python_class_name(static_cast<ErrorClass>(op.integer(attr::kError)))) +
               ": " + std::string(op.text(attr::kMessage));
      return out;
    }
    out.bits.push_back(*bits);
  }
  return out;
}

Array Evaluator::movement(const ir::Op& op) {
  const std::string_view name = op.desc->name;
  Array out{sizes(g_.type(op.results[0]).shape), {}};
  const Array& from = values.at(op.operands[0].id);
  const size_t rank = out.shape.size();
  auto ints = op.integers(attr::kPerm);
  auto axes = op.integers(attr::kAxes);
  auto steps = op.integers(attr::kSteps);
  const ir::Shape start_dims(op.dims(attr::kStarts).begin(), op.dims(attr::kStarts).end());
  const std::vector<int64_t> starts = sizes(start_dims);
  for (int64_t k = 0; k < product(out.shape); ++k) {
    std::vector<int64_t> index = unravel(k, out.shape), source;
    if (name == "reshape") {
      out.bits.push_back(from.bits[static_cast<size_t>(k)]);
      continue;
    }
    if (name == "concatenate") {
      auto axis = static_cast<size_t>(op.integer(attr::kAxis));
      size_t part = 0;
      while (index[axis] >= values.at(op.operands[part].id).shape[axis])
        index[axis] -= values.at(op.operands[part++].id).shape[axis];
      const Array& a = values.at(op.operands[part].id);
      out.bits.push_back(a.bits[static_cast<size_t>(ravel(index, a.shape))]);
      continue;
    }
    if (name == "transpose") {
      source.resize(rank);
      for (size_t a = 0; a < rank; ++a) source[static_cast<size_t>(ints[a])] = index[a];
    } else if (name == "expand_dims") {
      for (size_t a = 0; a < rank; ++a)
        if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(a)) == axes.end())
          source.push_back(index[a]);
    } else if (name == "squeeze") {
      size_t next = 0;
      for (size_t a = 0; a < from.shape.size(); ++a)
        source.push_back(std::find(axes.begin(), axes.end(), static_cast<int64_t>(a)) != axes.end()
                             ? 0
                             : index[next++]);
    } else if (name == "broadcast_to") {
      for (size_t a = 0; a < from.shape.size(); ++a)
        source.push_back(from.shape[a] == 1 ? 0 : index[rank - from.shape.size() + a]);
    } else {  // slice
      for (size_t a = 0; a < rank; ++a) source.push_back(starts[a] + index[a] * steps[a]);
    }
    out.bits.push_back(from.bits.at(static_cast<size_t>(ravel(source, from.shape))));
  }
  return out;
}

Array Evaluator::reduce(const ir::Op& op) {
  const ReduceKind kind = info_of(op).reduction;
  const DType t = g_.type(op.operands[0]).dtype, rt = g_.type(op.results[0]).dtype;
  const Array& from = values.at(op.operands[0].id);
  auto axes = op.integers(attr::kAxes);
  auto reduced = [&](size_t a) {
    return std::find(axes.begin(), axes.end(), static_cast<int64_t>(a)) != axes.end();
  };
  Array out{sizes(g_.type(op.results[0]).shape), {}};
  std::vector<bool> seen(static_cast<size_t>(product(out.shape)), false);
  std::vector<uint64_t> best(seen.size(), 0);
  std::vector<double> sums(seen.size(), kind == ReduceKind::kProd ? 1.0 : 0.0);
  uint64_t start = 0;
  if (kind == ReduceKind::kProd) start = *evaluate(Prim::kCast, t, DType::kI64, 0, 1, 0, 0);
  if (kind == ReduceKind::kAll) start = 1;
  out.bits.assign(seen.size(), start);
  const bool float_sum = is_float(t) && (kind == ReduceKind::kSum || kind == ReduceKind::kProd);
  for (int64_t k = 0; k < static_cast<int64_t>(from.bits.size()); ++k) {
    std::vector<int64_t> index = unravel(k, from.shape), kept;
    int64_t position = 0;
    for (size_t a = 0; a < index.size(); ++a) {
      if (reduced(a))
        position = position * from.shape[a] + index[a];
      else
        kept.push_back(index[a]);
    }
    const auto r = static_cast<size_t>(ravel(kept, out.shape));
    const uint64_t x = from.bits[static_cast<size_t>(k)];
    if (float_sum) {
      const double v = float_value(t, x);
      sums[r] = kind == ReduceKind::kSum ? sums[r] + v : sums[r] * v;
      continue;
    }
    switch (kind) {
      case ReduceKind::kSum: out.bits[r] = *evaluate(Prim::kAdd, t, t, 0, out.bits[r], x, 0); break;
      case ReduceKind::kProd:
        out.bits[r] = *evaluate(Prim::kMul, t, t, 0, out.bits[r], x, 0);
        break;
      case ReduceKind::kAny: out.bits[r] |= x; break;
      case ReduceKind::kAll: out.bits[r] &= x; break;
      default: {
        const bool largest = kind == ReduceKind::kMax || kind == ReduceKind::kArgMax;
        const bool better =
            !seen[r] || (!is_nan(t, best[r]) &&
                         (is_nan(t, x) || (largest ? less(t, best[r], x) : less(t, x, best[r]))));
        if (!better) break;
        best[r] = x;
        out.bits[r] =
            rt == DType::kI64 && (kind == ReduceKind::kArgMax || kind == ReduceKind::kArgMin)
                ? static_cast<uint64_t>(position)
                : x;
      }
    }
    seen[r] = true;
  }
  if (float_sum)
    for (size_t r = 0; r < sums.size(); ++r) out.bits[r] = float_bits(t, sums[r]);
  return out;
}

Array Evaluator::matmul(const ir::Op& op) {
  const DType t = g_.type(op.results[0]).dtype;
  const Array &a = values.at(op.operands[0].id), &b = values.at(op.operands[1].id);
  Array out{sizes(g_.type(op.results[0]).shape), {}};
  const size_t rank = out.shape.size();
  const int64_t inner = a.shape[rank - 1];
  for (int64_t k = 0; k < product(out.shape); ++k) {
    std::vector<int64_t> i = unravel(k, out.shape), l = i, r = i;
    uint64_t ints = 0;
    double sum = 0;
    for (int64_t j = 0; j < inner; ++j) {
      l[rank - 1] = j;
      r[rank - 2] = j;
      uint64_t x = a.bits[static_cast<size_t>(ravel(l, a.shape))];
      uint64_t y = b.bits[static_cast<size_t>(ravel(r, b.shape))];
      if (is_float(t))
        sum += float_value(t, x) * float_value(t, y);
      else
        ints = *evaluate(Prim::kAdd, t, t, 0, ints, *evaluate(Prim::kMul, t, t, 0, x, y, 0), 0);
    }
    out.bits.push_back(is_float(t) ? float_bits(t, sum) : ints);
  }
  return out;
}

void Evaluator::run() {
  for (size_t i = 0; i < g_.region(g_.root()).ops.size() && !raised; ++i) {
    const ir::Op op = g_.op(g_.region(g_.root()).ops[i]);
    const std::string_view name = op.desc->name;
    Array out;
    switch (info_of(op).family) {
      case Family::kPointwise: out = pointwise(op); break;
      case Family::kMovement: out = movement(op); break;
      case Family::kReduce: out = reduce(op); break;
      case Family::kContract: out = matmul(op); break;
      case Family::kCreate:
        if (name != "tensor_constant") {
          out = pointwise(op);
        } else {
          const ir::Type& t = g_.type(op.results[0]);
          std::string_view data = op.text(attr::kData);
          out.shape = sizes(t.shape);
          for (size_t k = 0; k < data.size(); k += size_of(t.dtype)) {
            uint64_t bits = 0;
            data.copy(reinterpret_cast<char*>(&bits), size_of(t.dtype), k);
            out.bits.push_back(bits);
          }
        }
        break;
      case Family::kStorage:
        if (name == "copy")
          out = values.at(op.operands[0].id);
        else
          out.shape = sizes(g_.type(op.results[0]).shape);
        break;
      case Family::kControl:
        if (name == "bind_dim") {
          bound_[static_cast<int32_t>(op.integer(attr::kSymbol))] =
              static_cast<int64_t>(values.at(op.operands[0].id).bits[0]);
        } else if (name == "check") {
          const int64_t l = dim(op.dims(attr::kLhs)[0]), r = dim(op.dims(attr::kRhs)[0]);
          using Relation = artifact::Predicate::Op;
          const auto relation = static_cast<Relation>(op.integer(attr::kOp));
          const bool holds = relation == Relation::kEq   ? l == r
                             : relation == Relation::kNe ? l != r
                             : relation == Relation::kLt ? l < r
                                                         : l <= r;
          if (!holds) {
            std::string text(op.text(attr::kMessage));
            const ir::Shape payload(op.dims(attr::kPayload).begin(), op.dims(attr::kPayload).end());
            for (size_t k = 0; k < payload.size(); ++k) {
              const std::string hole = "{" + std::to_string(k) + "}";
              if (size_t at = text.find(hole); at != text.npos)
                text.replace(at, hole.size(), std::to_string(dim(payload[k])));
            }
            raised =
                std::string(python_class_name(static_cast<ErrorClass>(op.integer(attr::kError)))) +
                ": " + text;
          }
        }
        break;
      case Family::kHost: return;
    }
    if (!op.results.empty()) values[op.results[0].id] = std::move(out);
  }
}

}  // namespace cuvil::ops::testing
