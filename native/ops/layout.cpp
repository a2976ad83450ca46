// Memory layout of values: strides through views, and NumPy's K order. Called by Builder and frontend.
#include "ops/layout.h"

#include <algorithm>
#include <numeric>

namespace cuvil::ops {
namespace {

// A stride to compare with others: its value in the present call; a symbol bound inside the code counts
// as the least size it may have (at least 2).
int64_t magnitude(ir::DimTable& dims, ir::Dim d) {
  if (auto c = dims.as_constant(d)) return *c < 0 ? -*c : *c;
  auto v = dims.example(d);
  if (!v) {
    ir::Dim known = dims.substitute(d, [&](ir::SymbolId s) -> std::optional<ir::Dim> {
      const auto& info = dims.info(s);
      return dims.constant(info.example ? *info.example : std::max<int64_t>(info.range.lo, 2));
    });
    v = dims.as_constant(known);
  }
  return v ? (*v < 0 ? -*v : *v) : 1;
}

bool is_identity(std::span<const uint8_t> order) {
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i] != i) return false;
  return true;
}

}  // namespace

ir::Shape dense_strides(ir::DimTable& dims, const ir::Shape& shape, DType dtype,
                        std::span<const uint8_t> order) {
  ir::Shape strides(shape.size());
  ir::Dim step = dims.constant(size_of(dtype));
  for (size_t k = shape.size(); k-- > 0;) {
    size_t axis = order.empty() ? k : order[k];
    strides[axis] = step;
    step = dims.mul(step, shape[axis]);
  }
  return strides;
}

Access layout_access(ir::Graph& g, ir::ValueId v) {
  const ir::Op* op = g.def(v);
  if (!op) {
    for (const ir::Input& in : g.inputs)
      if (in.value == v && in.kind == ir::Input::Kind::kArray)
        return {g.dims.constant(0), in.strides};
  } else if (info_of(*op).view) {
    Access from = layout_access(g, op->operands[0]), result;
    if (info_of(*op).view(g, *op, from, &result)) return result;
  } else if (op->desc->name == "store") {
    return layout_access(g, op->operands[0]);
  }
  const ir::Type& t = g.type(v);
  return {g.dims.constant(0), dense_strides(g.dims, t.shape, t.dtype, g.value(v).order)};
}

Result<bool> is_contiguous(Builder& b, ir::ValueId v, bool fortran) {
  const ir::Type type = b.type(v);
  const ir::Shape strides = layout_access(b.g, v).strides;
  ir::Dim step = b.dim(size_of(type.dtype));
  bool dense = true;
  for (size_t i = 0; dense && i < type.rank(); ++i) {
    const size_t k = fortran ? i : type.rank() - 1 - i;
    if (strides[k] != step) {
      CUVIL_TRY(dense, b.equal(type.shape[k], b.dim(1)));
      if (!dense) {
        CUVIL_TRY(dense, b.equal(strides[k], step));
      }
    }
    step = b.g.dims.mul(step, type.shape[k]);
  }
  for (size_t k = 0; !dense && k < type.rank(); ++k) {
    CUVIL_TRY(dense, b.equal(type.shape[k], b.dim(0)));
  }
  return dense;
}

std::vector<uint8_t> keep_order(ir::Graph& g, std::span<const ir::ValueId> operands, size_t rank,
                                bool zero_is_free) {
  if (rank < 2) return {};
  // strides[operand][axis]; -1: says nothing about this axis.
  std::vector<std::vector<int64_t>> strides;
  bool sorted = true;
  for (ir::ValueId v : operands) {
    const ir::Shape shape = g.type(v).shape;
    if (shape.empty()) continue;
    Access access = layout_access(g, v);
    std::vector<int64_t> row(rank, -1);
    int64_t last = -1;
    for (size_t i = 0; i < shape.size(); ++i) {
      size_t axis = rank - shape.size() + i;
      if (g.dims.is_constant(shape[i], 1)) continue;
      int64_t m = magnitude(g.dims, access.strides[i]);
      if (m == 0 && zero_is_free) continue;
      row[axis] = m;
      if (last >= 0 && m > last) sorted = false;
      last = m;
    }
    strides.push_back(std::move(row));
  }
  if (sorted) return {};
  // Insertion sort from the fastest axis outwards, as npyiter_find_best_axis_ordering does: where two
  // operands disagree, C order wins.
  std::vector<uint8_t> fast_first(rank);
  for (size_t k = 0; k < rank; ++k) fast_first[k] = static_cast<uint8_t>(rank - 1 - k);
  for (size_t i = 1; i < rank; ++i) {
    size_t position = i;
    uint8_t axis = fast_first[i];
    for (size_t j = i; j-- > 0;) {
      uint8_t other = fast_first[j];
      bool ambiguous = true, swap = false;
      for (const auto& row : strides) {
        if (row[axis] < 0 || row[other] < 0) continue;
        if (row[other] <= row[axis]) {
          swap = false;
        } else if (ambiguous) {
          swap = true;
        }
        ambiguous = false;
      }
      if (ambiguous) continue;
      if (!swap) break;
      position = j;
    }
    if (position != i) {
      fast_first.erase(fast_first.begin() + static_cast<ptrdiff_t>(i));
      fast_first.insert(fast_first.begin() + static_cast<ptrdiff_t>(position), axis);
    }
  }
  std::reverse(fast_first.begin(), fast_first.end());
  if (is_identity(fast_first)) return {};
  return fast_first;
}

std::vector<uint8_t> layout_order(ir::Graph& g, ir::ValueId v) {
  return keep_order(g, std::span(&v, 1), g.type(v).rank());
}

}  // namespace cuvil::ops
