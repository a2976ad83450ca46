// The op registry: one OpInfo says everything about an op, one DialectRow says how a language spells it.
// Adding an op touches one file: the table of its family (pointwise_math.cpp, reduce.cpp, ...).
#pragma once

#include <span>
#include <string_view>

#include "ir/graph.h"
#include "ops/tape.h"

namespace cuvil::ops {

enum class Family : uint8_t {
  kPointwise,  // body: one element of the result from one element of each operand (same shapes)
  kReduce,     // attributes axes; reduction: how elements combine
  kContract,   // matmul: [..., m, k] x [..., k, n], equal leading dims
  kMovement,   // view: the result's elements are elements of operand 0 (or of several: concatenate)
  kCreate,     // body without operands: index(axis), dim, constants
  kStorage,    // store, copy, empty
  kControl,    // for, check, bind_dim
  kHost,       // host_call
};

enum class ReduceKind : uint8_t { kSum, kProd, kMin, kMax, kAny, kAll, kArgMin, kArgMax };

struct BodyContext {
  Tape& tape;
  const ir::Graph& graph;
  const ir::Op& op;
  std::span<const Ref> operands;
  uint32_t site;  // for Tape::check, if the op may raise
};

// An affine map from an element of a value to bytes of a buffer:
//   address = offset + sum over axes of index[axis] * strides[axis]      (bytes; dims may be symbolic)
struct Access {
  ir::Dim offset;
  ir::Shape strides;
};

struct OpInfo : ir::OpDesc {
  Family family = Family::kPointwise;
  int8_t arity = 1;  // -1: any
  // kPointwise, kCreate
  Ref (*body)(const BodyContext&) = nullptr;
  // NumPy's loops, where the op is a ufunc: the input types in the order in which NumPy searches them
  // (NumPy's type characters; all inputs share a type), and the result type of each: "=" the same,
  // one character for all loops, or one character a loop. A leading '-': not for bool; '!': ints and
  // bool run the last loop.
  std::string_view loops = {}, outputs = "=";
  // kReduce
  ReduceKind reduction = ReduceKind::kSum;
  // kMovement with one operand: the access of the result from the operand's; false if the operand's
  // layout does not allow it (a reshape of a strided buffer), then a copy is made.
  bool (*view)(ir::Graph&, const ir::Op&, const Access& operand, Access* result) = nullptr;
  // Cheap enough to compute again in every consumer instead of storing it.
  bool recompute = false;
  std::string_view doc = {};
};

// ---- How a language spells an op ---------------------------------------------------------------

// Python scalars are weak in promotion (NEP 50).
enum class Weak : uint8_t { kNo, kBool, kInt, kFloat, kComplex };

struct TensorArg {
  ir::ValueId value;
  Weak weak = Weak::kNo;  // a run-time Python float: rank 0, f64, weak
  bool scalar = false;    // rank 0: a NumPy scalar, not a 0-d array
};

// A static Python int beyond int64.
struct BigInt {
  double real;                  // rounded as float() rounds it
  std::optional<uint64_t> u64;  // where it fits
  std::string text;
};

struct SliceArg;
struct ArgValue;
using ArgList = std::vector<ArgValue>;

// An argument of a dialect row, or its result. Nothing here knows Python.
struct ArgValue {
  struct None {};
  struct Ellipsis {};
  struct Missing {};  // not given; the row's default applies (only inside build functions)
  // int64_t/BigInt/double/bool: static Python numbers. Dim: a run-time Python int.
  using Variant =
      std::variant<Missing, None, Ellipsis, bool, int64_t, BigInt, double, std::string, DType,
                   ir::Dim, TensorArg, std::shared_ptr<ArgList>, std::shared_ptr<SliceArg>>;
  Variant v;
  ArgValue() = default;
  template <class T>
  requires(!std::is_same_v<std::decay_t<T>, ArgValue>) ArgValue(T&& x) : v(std::forward<T>(x)) {}
  template <class T> const T* get() const { return std::get_if<T>(&v); }
  template <class T> bool is() const { return std::holds_alternative<T>(v); }
  bool missing_or_none() const { return is<Missing>() || is<None>(); }
  static ArgValue list(ArgList items) {
    return ArgValue(std::make_shared<ArgList>(std::move(items)));
  }
};
struct SliceArg {
  ArgValue start, stop, step;
};

// What build functions work with.
class Builder {
 public:
  Builder(ir::Graph& graph, ir::RegionId region) : g(graph), region(region) {}
  ir::Graph& g;
  ir::RegionId region;
  SourceLoc loc;

  ir::ValueId emit(std::string_view op, std::vector<ir::ValueId> operands, ir::Type result,
                   std::vector<ir::Attribute> attributes = {});
  ir::ValueId constant(DType t, uint64_t bits);  // rank 0
  ir::ValueId constant(DType t, double v);
  ir::ValueId constant_int(DType t, int64_t v);
  ir::ValueId dim_value(ir::Dim d, DType t = DType::kI64);  // rank 0 from a Dim
  ir::ValueId cast(ir::ValueId v, DType t);                 // no-op if it has it already
  ir::ValueId broadcast_to(ir::ValueId v, const ir::Shape& shape);
  const ir::Type& type(ir::ValueId v) const { return g.type(v); }
  ir::Dim dim(int64_t v) { return g.dims.constant(v); }

  // Static answers about dims. Where symbols are involved the answer is that of the present call, and
  // a predicate is recorded so that the specialisation is used only where it holds. An Error if a
  // symbol has no value yet (a loop index).
  Result<bool> equal(ir::Dim a, ir::Dim b);
  Result<bool> less(ir::Dim a, ir::Dim b);
  // NumPy's broadcasting of shapes; ShapeError with both shapes.
  Result<ir::Shape> broadcast_shapes(std::span<const ir::Shape> shapes);
  // Memory order of an elementwise result, as NumPy's order='K'.
  std::vector<uint8_t> keep_order(std::span<const ir::ValueId> operands, const ir::Shape& result);

  Error error(ErrorClass c, std::string found, std::string remedy = {}) const {
    return make_error(c, std::move(found), std::move(remedy), loc);
  }
};

struct DialectRow {
  // What resolves to this row: "numpy.maximum" (function, by identity), "ndarray.sum" (method),
  // "ndarray.T" (property), "operator.add" (syntax), "scipy.special.erf", "math.sqrt" (weak scalars).
  std::string_view name;
  // Python-style parameter list: "a, axis=None, dtype=None, out=None, keepdims=False, *, where=True".
  std::string_view params;
  // One ArgValue a parameter, in order; those not given are Missing.
  Result<ArgValue> (*build)(Builder&, const DialectRow&, std::span<const ArgValue> args);
  std::string_view op = {};  // for build functions shared between rows
  bool is_property = false;
};

// Registry.
const OpInfo* find_op(std::string_view name);  // nullptr: none
inline const ir::OpDesc* find_desc(std::string_view name) { return find_op(name); }
const OpInfo& info_of(const ir::Op& op);  // static_cast of op.desc
std::span<const OpInfo* const> all_ops();
std::span<const DialectRow* const> all_rows();
const DialectRow* find_row(std::string_view name);

// Each family's tables (registry.cpp lists them: a new family is one line there).
struct FamilyTable {
  std::span<const OpInfo> ops;
  std::span<const DialectRow> rows;
};
FamilyTable arith_table();  // pointwise, by sub-family
FamilyTable compare_table();
FamilyTable logic_table();
FamilyTable math_table();
FamilyTable round_table();
FamilyTable select_table();
FamilyTable reduce_table();
FamilyTable contract_table();
FamilyTable movement_table();
FamilyTable create_table();
FamilyTable control_table();  // also storage and host: structural ops, no dialect rows
FamilyTable linalg_table();   // host ops with shape rules

}  // namespace cuvil::ops
