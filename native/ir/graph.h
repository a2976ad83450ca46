// CIR: a typed SSA graph with regions. Nodes are fixed-size records in vectors, named by typed indices.
//
//   func @f(%0: f32[n, 128], %1: f32[128, 64]) -> (%3) {
//     %2 = matmul %0, %1 : f32[n, 64]      loc(8:23)
//     %3 = maximum %2, 0.0 : f32[n, 64]    loc(8:12)
//   }
//
// Order within a region is program order: ops with effects (OpDesc::effects) never pass one another,
// which is what an effect token would say. Storage is functionalised: `store %cell, %view, %value`
// makes the next version of a cell, where %view was derived from %cell by movement ops.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/dim.h"
#include "support/dtype.h"
#include "support/error.h"

namespace cuvil::ir {

struct ValueId {
  int32_t id = -1;
  bool valid() const { return id >= 0; }
  bool operator==(const ValueId&) const = default;
};
struct OpId {
  int32_t id = -1;
  bool valid() const { return id >= 0; }
  bool operator==(const OpId&) const = default;
};
struct RegionId {
  int32_t id = -1;
  bool valid() const { return id >= 0; }
  bool operator==(const RegionId&) const = default;
};

using Shape = std::vector<Dim>;

struct Type {
  DType dtype = DType::kF32;
  Shape shape;
  size_t rank() const { return shape.size(); }
  bool operator==(const Type&) const = default;
};

// What an op may do besides computing its results.
enum Effect : uint8_t {
  kPure = 0,
  kWrites = 1,    // makes a new version of a cell (store)
  kMayRaise = 2,  // every earlier write the caller can see lands before it, no later one does
  kCallsPython = 4,
};

// The part of an op's registry entry that the IR itself needs; ops::OpInfo derives from it.
struct OpDesc {
  std::string_view name;
  uint8_t effects = kPure;
  uint8_t regions = 0;
};

struct Attribute {
  // Which alternative an attribute holds is fixed by its op.
  using Value = std::variant<int64_t, double, DType, std::vector<int64_t>, Shape, std::string>;
  std::string_view key;  // static storage
  Value value;
  bool operator==(const Attribute&) const = default;
};

struct Op {
  const OpDesc* desc = nullptr;
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  std::vector<Attribute> attributes;
  std::vector<RegionId> regions;
  RegionId parent;
  SourceLoc loc;

  const Attribute::Value* find(std::string_view key) const;
  int64_t integer(std::string_view key, int64_t otherwise = 0) const;
  double real(std::string_view key, double otherwise = 0) const;
  DType dtype(std::string_view key, DType otherwise = DType::kF32) const;
  std::span<const int64_t> integers(std::string_view key) const;  // empty if absent
  std::span<const Dim> dims(std::string_view key) const;          // empty if absent
  std::string_view text(std::string_view key) const;
};

struct Value {
  Type type;
  OpId def;  // invalid: a parameter of `region`
  RegionId region;
  uint32_t index = 0;          // which result or parameter
  std::vector<uint8_t> order;  // memory order when it gets a buffer of its own, axes slow to fast;
                               // empty: C order
  std::string name;            // for printing: parameter names
};

struct Region {
  std::vector<ValueId> params;
  std::vector<OpId> ops;  // in program order
  std::vector<ValueId>
      yields;  // values handed to the enclosing op; for the root: see Graph::results
  OpId owner;  // invalid for the root
};

// A parameter of the root region.
struct Input {
  enum class Kind : uint8_t { kArray, kScalar } kind = Kind::kArray;
  uint32_t slot = 0;          // array slot or scalar slot of the artifact
  artifact::ArraySpec array;  // kArray
  ValueId value;
  // Element strides in bytes, one an axis (a constant, a product of dims, or a kStride symbol).
  Shape strides;
  bool captured = false;
};

// One array or scalar leaf of what the function returns.
struct Result {
  enum class Kind : uint8_t {
    kFresh,        // newly allocated; memory order from Value::order
    kViewOfInput,  // `value` was derived from input `base` by movement ops
    kViewOfResult  // ... from result `base`
  } kind = Kind::kFresh;
  ValueId value;
  uint32_t base = 0;
  artifact::ResultSpec::Form form = artifact::ResultSpec::Form::kArray;
  bool readonly = false;
};

// What was decided about caller-bound symbols while tracing; holds for every call of the result.
struct DimPredicate {
  artifact::Predicate::Op op;
  Dim lhs, rhs;
  bool operator==(const DimPredicate&) const = default;
};

// How a host_call op calls its Python callable (attribute `spec` indexes Graph::host_specs).
struct HostSpec {
  int32_t callable = -1;  // index of an artifact::Source
  std::string name;       // "numpy.linalg.solve", for dumps and messages
  std::vector<artifact::HostArgument> arguments;
};

class Graph {
 public:
  std::string name;
  DimTable dims;
  std::vector<DimPredicate> predicates;
  std::vector<HostSpec> host_specs;
  std::vector<Input> inputs;  // in the order of the root region's params
  std::vector<Result> results;

  Graph();
  RegionId root() const { return RegionId{0}; }

  RegionId add_region(OpId owner);
  ValueId add_param(RegionId r, Type type, std::string name = {});
  // Appends to region `r`; makes one result per type.
  OpId add_op(RegionId r, const OpDesc& desc, std::vector<ValueId> operands,
              std::vector<Type> result_types, std::vector<Attribute> attributes = {},
              SourceLoc loc = {}, std::vector<RegionId> regions = {});

  Op& op(OpId id) { return ops_[id.id]; }
  const Op& op(OpId id) const { return ops_[id.id]; }
  Value& value(ValueId id) { return values_[id.id]; }
  const Value& value(ValueId id) const { return values_[id.id]; }
  Region& region(RegionId id) { return regions_[id.id]; }
  const Region& region(RegionId id) const { return regions_[id.id]; }
  const Type& type(ValueId id) const { return values_[id.id].type; }
  // The op that makes a value, or nullptr for a parameter.
  const Op* def(ValueId id) const {
    OpId d = values_[id.id].def;
    return d.valid() ? &ops_[d.id] : nullptr;
  }
  size_t value_count() const { return values_.size(); }
  size_t op_count() const { return ops_.size(); }
  size_t region_count() const { return regions_.size(); }

  // Replaces every use (operands, yields, results) of `from` by `to`.
  void replace_uses(ValueId from, ValueId to);
  // How many uses each value has (operands, yields, results).
  std::vector<int32_t> use_counts() const;

 private:
  std::deque<Op> ops_;
  std::deque<Value> values_;
  std::deque<Region> regions_;
};

// Declares an array input: its param in the root region, its dims' strides (constants or products for
// C and F layouts and for axes of class kUnit and kZero, else new kStride symbols whose examples are
// `example_strides`), and Value::order for the layout.
ValueId add_array_input(Graph& g, const artifact::ArraySpec& spec, Shape shape, uint32_t slot,
                        bool captured, std::string name, std::span<const int64_t> example_strides);
// A run-time Python float (rank 0, f64) in scalar slot `slot`.
ValueId add_scalar_input(Graph& g, uint32_t slot, std::string name);

// Structural checks: defined before used, types and regions consistent. The text names the op.
cuvil::Result<> verify(const Graph& g);

// Text form; print -> parse -> print is the identity. `lookup` finds an op by name (ops::find_op).
std::string print(const Graph& g);
std::string print_type(const Graph& g, const Type& t);
using OpLookup = const OpDesc* (*)(std::string_view name);
cuvil::Result<std::unique_ptr<Graph>> parse(std::string_view text, OpLookup lookup);

}  // namespace cuvil::ir
