// Linear algebra that NumPy computes: host calls with native shape and dtype rules.
#include "ops/promote.h"
#include "ops/structural.h"

namespace cuvil::ops {
namespace {

using Relation = artifact::Predicate::Op;

struct Matrix {
  ir::ValueId value;
  DType dtype;  // of the result: f32 or f64
};

Result<Matrix> matrix(Builder& b, const ArgValue& a) {
  CUVIL_TRY(TensorArg x, as_tensor(b, a));
  const DType t = b.type(x.value).dtype;
  CUVIL_CHECK(require_real(b, t));
  if (t == DType::kF16)
    return b.error(ErrorClass::kTypeError, "array type float16 is unsupported in linalg",
                   "convert with .astype(np.float32)");
  return Matrix{x.value, t == DType::kF32 ? DType::kF32 : DType::kF64};
}

Result<> square(Builder& b, ir::ValueId v) {
  const ir::Shape shape = b.type(v).shape;
  if (shape.size() < 2)
    return b.error(ErrorClass::kLinAlgError, std::to_string(shape.size()) +
                                                 "-dimensional array given. Array must be at least "
                                                 "two-dimensional");
  return require(b, Relation::kEq, shape[shape.size() - 1], shape[shape.size() - 2],
                 ErrorClass::kLinAlgError, "Last 2 dimensions of the array must be square", "", {});
}

// Calls the Python function of this row's name; the frontend fills in which object that is.
ir::ValueId call(Builder& b, const DialectRow& row, std::vector<ir::ValueId> operands,
                 ir::Type result, std::vector<artifact::HostArgument> constants = {}) {
  ir::HostSpec spec;
  spec.name = std::string(row.name);
  for (size_t k = 0; k < operands.size(); ++k) {
    artifact::HostArgument a;
    a.kind = artifact::HostArgument::Kind::kOperand;
    a.index = static_cast<uint32_t>(k);
    a.dtype = b.type(operands[k]).dtype;
    a.rank = static_cast<uint8_t>(b.type(operands[k]).rank());
    spec.arguments.push_back(std::move(a));
  }
  for (artifact::HostArgument& c : constants) spec.arguments.push_back(std::move(c));
  b.g.host_specs.push_back(std::move(spec));
  return b.emit("host_call", std::move(operands), std::move(result),
                {{attr::kSpec, static_cast<int64_t>(b.g.host_specs.size() - 1)}});
}

Result<ArgValue> build_inv(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(Matrix a, matrix(b, args[0]));
  CUVIL_CHECK(square(b, a.value));
  return array(call(b, row, {a.value}, {a.dtype, b.type(a.value).shape}));
}

Result<ArgValue> build_det(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(Matrix a, matrix(b, args[0]));
  CUVIL_CHECK(square(b, a.value));
  const ir::Shape shape = b.type(a.value).shape;
  return scalar_if_rank0(b, call(b, row, {a.value}, {a.dtype, {shape.begin(), shape.end() - 2}}));
}

Result<ArgValue> build_cholesky(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(bool upper, bool_or(b, args[1], false, "upper"));
  CUVIL_TRY(Matrix a, matrix(b, args[0]));
  CUVIL_CHECK(square(b, a.value));
  std::vector<artifact::HostArgument> constants;
  if (upper) {
    artifact::HostArgument c;
    c.kind = artifact::HostArgument::Kind::kConst;
    c.keyword = "upper";
    c.value.kind = artifact::Const::Kind::kBool;
    c.value.integer = 1;
    constants.push_back(std::move(c));
  }
  return array(call(b, row, {a.value}, {a.dtype, b.type(a.value).shape}, std::move(constants)));
}

// solve(a, b): b is a vector if it has one axis, else a stack of matrices.
Result<ArgValue> build_solve(Builder& b, const DialectRow& row, Args args) {
  CUVIL_TRY(Matrix a, matrix(b, args[0]));
  CUVIL_TRY(Matrix y, matrix(b, args[1]));
  CUVIL_CHECK(square(b, a.value));
  const ir::Shape as = b.type(a.value).shape, ys = b.type(y.value).shape;
  const DType t = promote(a.dtype, y.dtype);
  if (ys.empty())
    return b.error(ErrorClass::kValueError, "the right-hand side of solve has no axes",
                   "give a vector or a matrix");
  const bool vector = ys.size() == 1;
  const ir::Dim rows = vector ? ys[0] : ys[ys.size() - 2];
  CUVIL_TRY(bool same, b.equal(as.back(), rows));
  if (!same)
    return b.error(
        ErrorClass::kShape,
        "solve: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature " +
            std::string(vector ? "(m,m),(m)->(m)" : "(m,m),(m,n)->(m,n)") + " (size " +
            dim_text(b, rows) + " is different from " + dim_text(b, as.back()) + ")",
        "the shapes are " + shape_text(b, as) + " and " + shape_text(b, ys));
  const ir::Shape batches[] = {{as.begin(), as.end() - 2},
                               {ys.begin(), vector ? ys.begin() : ys.end() - 2}};
  CUVIL_TRY(ir::Shape shape, b.broadcast_shapes(batches));
  shape.push_back(as.back());
  if (!vector) shape.push_back(ys.back());
  return array(call(b, row, {a.value, y.value}, {t, shape}));
}

constexpr DialectRow kRows[] = {
    {"numpy.linalg.inv", "a", build_inv},
    {"numpy.linalg.det", "a", build_det},
    {"numpy.linalg.cholesky", "a, /, *, upper=False", build_cholesky},
    {"numpy.linalg.solve", "a, b", build_solve},
};

}  // namespace

FamilyTable linalg_table() { return {{}, kRows}; }

}  // namespace cuvil::ops
