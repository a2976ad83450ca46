// Contractions: matmul in all its NumPy ranks, dot, inner, outer, vdot, tensordot.
#include <algorithm>

#include "ops/promote.h"
#include "ops/structural.h"

namespace cuvil::ops {
namespace {

constexpr std::string_view kSignature = "(n?,k),(k,m?)->(n?,m?)";

// [..., m, k] x [..., k, n] of one dtype. f16 is summed in f32; bool is "some pair is true", counted.
Result<ir::ValueId> product(Builder& b, ir::ValueId x, ir::ValueId y, DType t) {
  const ir::Shape xs = b.type(x).shape, ys = b.type(y).shape;
  const ir::Shape batches[] = {{xs.begin(), xs.end() - 2}, {ys.begin(), ys.end() - 2}};
  CUVIL_TRY(ir::Shape batch, b.broadcast_shapes(batches));
  auto stretched = [&](ir::ValueId v) {
    const ir::Shape s = b.type(v).shape;
    ir::Shape shape = batch;
    shape.insert(shape.end(), s.end() - 2, s.end());
    return b.broadcast_to(v, shape);
  };
  const DType w = t == DType::kF16 ? DType::kF32 : is_bool(t) ? DType::kI32 : t;
  ir::Shape shape = batch;
  shape.push_back(xs[xs.size() - 2]);
  shape.push_back(ys[ys.size() - 1]);
  ir::ValueId l = stretched(b.cast(x, w)), r = stretched(b.cast(y, w));
  return b.cast(b.emit("matmul", {l, r}, {w, shape}), t);
}

struct Pair {
  ir::ValueId x, y;
  DType dtype;
};

Result<Pair> operands(Builder& b, const ArgValue& a, const ArgValue& c) {
  CUVIL_TRY(Operand x, classify(b, a));
  CUVIL_TRY(Operand y, classify(b, c));
  const Operand both[] = {x, y};
  const DType t = result_type(both);
  CUVIL_CHECK(require_real(b, t));
  CUVIL_TRY(ir::ValueId vx, materialise(b, x, t));
  CUVIL_TRY(ir::ValueId vy, materialise(b, y, t));
  return Pair{vx, vy, t};
}

// np.matmul and the @ operator.
Result<ArgValue> matmul(Builder& b, const ArgValue& a, const ArgValue& c) {
  CUVIL_TRY(Pair p, operands(b, a, c));
  for (int k = 0; k < 2; ++k) {
    if (b.type(k == 0 ? p.x : p.y).rank() == 0)
      return b.error(ErrorClass::kValueError,
                     "matmul: Input operand " + std::to_string(k) +
                         " does not have enough dimensions (has 0, gufunc core with signature " +
                         std::string(kSignature) + " requires 1)",
                     "multiply by a number with *");
  }
  const bool row = b.type(p.x).rank() == 1, column = b.type(p.y).rank() == 1;
  const ir::Shape xs = b.type(p.x).shape, ys = b.type(p.y).shape;
  ir::Dim kx = xs.back(), ky = column ? ys[0] : ys[ys.size() - 2];
  CUVIL_TRY(bool same, b.equal(kx, ky));
  if (!same)
    return b.error(
        ErrorClass::kShape,
        "matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature " +
            std::string(kSignature) + " (size " + dim_text(b, ky) + " is different from " +
            dim_text(b, kx) + ")",
        "the shapes are " + shape_text(b, xs) + " and " + shape_text(b, ys) +
            ": the last axis of the first and the " + (column ? "only" : "last but one") +
            " axis of the second must have the same size");
  ir::ValueId x = row ? emit_expand(b, p.x, {0}) : p.x;
  ir::ValueId y = column ? emit_expand(b, p.y, {1}) : p.y;
  CUVIL_TRY(ir::ValueId r, product(b, x, y, p.dtype));
  const auto rank = static_cast<int64_t>(b.type(r).rank());
  std::vector<int64_t> drop;
  if (row) drop.push_back(rank - 2);
  if (column) drop.push_back(rank - 1);
  return scalar_if_rank0(b, emit_squeeze(b, r, std::move(drop)));
}

Result<ArgValue> build_matmul_ufunc(Builder& b, const DialectRow& row, Args args) {
  CUVIL_CHECK(refuse_out(b, args[2], row.name));
  CUVIL_TRY(ArgValue r, matmul(b, args[0], args[1]));
  if (args[5].missing_or_none()) return r;
  return b.error(ErrorClass::kUnsupported, std::string(row.name) + " with dtype=",
                 "convert the operands with .astype() first");
}

Result<ArgValue> build_matmul(Builder& b, const DialectRow&, Args args) {
  return matmul(b, args[0], args[1]);
}

Error not_aligned(Builder& b, const ir::Shape& xs, size_t i, const ir::Shape& ys, size_t j) {
  return b.error(ErrorClass::kShape, "shapes " + shape_text(b, xs) + " and " + shape_text(b, ys) +
                                         " not aligned: " + dim_text(b, xs[i]) + " (dim " +
                                         std::to_string(i) + ") != " + dim_text(b, ys[j]) +
                                         " (dim " + std::to_string(j) + ")");
}

// Sums over axis i of x and axis j of y; the rest of x, then the rest of y.
Result<ir::ValueId> sum_over(Builder& b, Pair p, std::vector<int64_t> i, std::vector<int64_t> j) {
  auto matrix = [&](ir::ValueId v, const std::vector<int64_t>& summed, bool summed_last,
                    ir::Shape* rest) {
    const ir::Shape shape = b.type(v).shape;
    std::vector<int64_t> perm;
    ir::Dim inner = b.dim(1), outer = b.dim(1);
    for (int64_t a : summed) inner = b.g.dims.mul(inner, shape[static_cast<size_t>(a)]);
    for (size_t k = 0; k < shape.size(); ++k) {
      if (std::find(summed.begin(), summed.end(), static_cast<int64_t>(k)) != summed.end())
        continue;
      perm.push_back(static_cast<int64_t>(k));
      rest->push_back(shape[k]);
      outer = b.g.dims.mul(outer, shape[k]);
    }
    perm.insert(summed_last ? perm.end() : perm.begin(), summed.begin(), summed.end());
    v = emit_transpose(b, v, std::move(perm));
    return emit_reshape(b, v, summed_last ? ir::Shape{outer, inner} : ir::Shape{inner, outer});
  };
  ir::Shape shape;
  ir::ValueId x = matrix(p.x, i, true, &shape);
  ir::ValueId y = matrix(p.y, j, false, &shape);
  CUVIL_TRY(ir::ValueId r, product(b, x, y, p.dtype));
  return emit_reshape(b, r, std::move(shape));
}

// np.dot(a, b, out=None), a.dot(b), np.inner(a, b, /)
Result<ArgValue> build_dot(Builder& b, const DialectRow& row, Args args) {
  if (args.size() > 2) CUVIL_CHECK(refuse_out(b, args[2], row.name));
  CUVIL_TRY(Pair p, operands(b, args[0], args[1]));
  const ir::Shape xs = b.type(p.x).shape, ys = b.type(p.y).shape;
  if (xs.empty() || ys.empty()) {
    const ArgValue both[] = {TensorArg{p.x}, TensorArg{p.y}};
    return call_ufunc(b, "multiply", both);
  }
  const size_t i = xs.size() - 1;
  const bool inner = row.name == "numpy.inner";
  const size_t j = ys.size() == 1 || inner ? ys.size() - 1 : ys.size() - 2;
  CUVIL_TRY(bool same, b.equal(xs[i], ys[j]));
  if (!same && inner && ys.size() > 1) {
    // NumPy speaks of the second operand with its last axes swapped.
    ir::Shape swapped = ys;
    std::swap(swapped[j], swapped[j - 1]);
    return not_aligned(b, xs, i, swapped, j - 1);
  }
  if (!same) return not_aligned(b, xs, i, ys, j);
  if (ys.size() <= 2 && xs.size() <= 2 && !inner) {
    const ArgValue x = TensorArg{p.x}, y = TensorArg{p.y};
    return matmul(b, x, y);
  }
  CUVIL_TRY(ir::ValueId r, sum_over(b, p, {static_cast<int64_t>(i)}, {static_cast<int64_t>(j)}));
  return scalar_if_rank0(b, r);
}

Result<ArgValue> build_vdot(Builder& b, const DialectRow&, Args args) {
  CUVIL_TRY(Pair p, operands(b, args[0], args[1]));
  auto flat = [&](ir::ValueId v) {
    return emit_reshape(b, v, {b.g.dims.product(b.type(v).shape)});
  };
  p.x = flat(p.x);
  p.y = flat(p.y);
  const ir::Shape xs = b.type(p.x).shape, ys = b.type(p.y).shape;
  CUVIL_TRY(bool same, b.equal(xs[0], ys[0]));
  if (!same)
    return b.error(ErrorClass::kShape, "cannot reshape array of size " + dim_text(b, ys[0]) +
                                           " into shape " + shape_text(b, xs));
  const ArgValue x = TensorArg{p.x}, y = TensorArg{p.y};
  return matmul(b, x, y);
}

// np.outer(a, b, out=None), np.linalg.outer(x1, x2, /)
Result<ArgValue> build_outer(Builder& b, const DialectRow& row, Args args) {
  if (args.size() > 2) CUVIL_CHECK(refuse_out(b, args[2], row.name));
  ArgValue both[2];
  for (size_t k = 0; k < 2; ++k) {
    CUVIL_TRY(TensorArg x, as_tensor(b, args[k]));
    ir::ValueId v = emit_reshape(b, x.value, {b.g.dims.product(b.type(x.value).shape)});
    both[k] = TensorArg{emit_expand(b, v, {k == 0 ? 1 : 0})};
  }
  return call_ufunc(b, "multiply", both);
}

// np.tensordot(a, b, axes=2)
Result<ArgValue> build_tensordot(Builder& b, const DialectRow&, Args args) {
  CUVIL_TRY(Pair p, operands(b, args[0], args[1]));
  const ir::Shape xs = b.type(p.x).shape, ys = b.type(p.y).shape;
  std::vector<int64_t> i, j;
  const auto* list = args[2].get<std::shared_ptr<ArgList>>();
  if (list) {
    if ((*list)->size() != 2)
      return b.error(ErrorClass::kValueError, "tensordot needs two sequences of axes");
    CUVIL_TRY(i, static_ints(b, (**list)[0], "axes"));
    CUVIL_TRY(j, static_ints(b, (**list)[1], "axes"));
    for (int64_t& a : i) {
      CUVIL_TRY(a, normalise_axis(b, a, xs.size()));
    }
    for (int64_t& a : j) {
      CUVIL_TRY(a, normalise_axis(b, a, ys.size()));
    }
  } else {
    int64_t n = 2;
    if (!args[2].missing_or_none()) {
      CUVIL_TRY(n, static_int(b, args[2], "axes"));
    }
    for (int64_t k = 0; k < n; ++k) {
      i.push_back(static_cast<int64_t>(xs.size()) - n + k);
      j.push_back(k);
    }
  }
  bool same = i.size() == j.size();
  for (size_t k = 0; same && k < i.size(); ++k) {
    same = i[k] >= 0 && j[k] < static_cast<int64_t>(ys.size());
    if (!same) break;
    CUVIL_TRY(same, b.equal(xs[static_cast<size_t>(i[k])], ys[static_cast<size_t>(j[k])]));
  }
  if (!same)
    return b.error(ErrorClass::kShape, "shape-mismatch for sum",
                   "the shapes are " + shape_text(b, xs) + " and " + shape_text(b, ys));
  CUVIL_TRY(ir::ValueId r, sum_over(b, p, std::move(i), std::move(j)));
  return array(r);
}

constexpr OpInfo matmul_op() {
  OpInfo r;
  r.name = "matmul";
  r.family = Family::kContract;
  r.arity = 2;
  r.doc = "[..., m, k] x [..., k, n], equal batch dims";
  return r;
}
constexpr OpInfo kOps[] = {matmul_op()};

constexpr DialectRow kRows[] = {
    {"operator.matmul", "a, b, /", build_matmul},
    {"numpy.matmul",
     "x1, x2, /, out=None, *, casting='same_kind', order='K', dtype=None, subok=True, axes=None",
     build_matmul_ufunc},
    {"numpy.linalg.matmul", "x1, x2, /", build_matmul},
    {"numpy.dot", "a, b, out=None", build_dot},
    {"ndarray.dot", "self, b, out=None", build_dot},
    {"numpy.inner", "a, b, /", build_dot},
    {"numpy.vdot", "a, b, /", build_vdot},
    {"numpy.outer", "a, b, out=None", build_outer},
    {"numpy.linalg.outer", "x1, x2, /", build_outer},
    {"numpy.tensordot", "a, b, axes=2", build_tensordot},
};

}  // namespace

FamilyTable contract_table() { return {kOps, kRows}; }

}  // namespace cuvil::ops
