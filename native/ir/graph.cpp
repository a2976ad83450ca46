// Graph: building, attributes, uses, inputs. Called by frontend, ops, passes and schedule.
#include "ir/graph.h"

#include <cassert>

namespace cuvil::ir {

const Attribute::Value* Op::find(std::string_view key) const {
  for (const Attribute& a : attributes)
    if (a.key == key) return &a.value;
  return nullptr;
}

namespace {
template <class T> const T* find_as(const Op& op, std::string_view key) {
  const Attribute::Value* v = op.find(key);
  return v ? std::get_if<T>(v) : nullptr;
}
}  // namespace

int64_t Op::integer(std::string_view key, int64_t otherwise) const {
  const auto* v = find_as<int64_t>(*this, key);
  return v ? *v : otherwise;
}

double Op::real(std::string_view key, double otherwise) const {
  const auto* v = find_as<double>(*this, key);
  return v ? *v : otherwise;
}

DType Op::dtype(std::string_view key, DType otherwise) const {
  const auto* v = find_as<DType>(*this, key);
  return v ? *v : otherwise;
}

std::span<const int64_t> Op::integers(std::string_view key) const {
  const auto* v = find_as<std::vector<int64_t>>(*this, key);
  return v ? std::span<const int64_t>(*v) : std::span<const int64_t>();
}

std::span<const Dim> Op::dims(std::string_view key) const {
  const auto* v = find_as<Shape>(*this, key);
  return v ? std::span<const Dim>(*v) : std::span<const Dim>();
}

std::string_view Op::text(std::string_view key) const {
  const auto* v = find_as<std::string>(*this, key);
  return v ? std::string_view(*v) : std::string_view();
}

Graph::Graph() { regions_.emplace_back(); }

RegionId Graph::add_region(OpId owner) {
  regions_.emplace_back();
  regions_.back().owner = owner;
  return RegionId{static_cast<int32_t>(regions_.size() - 1)};
}

ValueId Graph::add_param(RegionId r, Type type, std::string name) {
  ValueId id{static_cast<int32_t>(values_.size())};
  Value v;
  v.type = std::move(type);
  v.region = r;
  v.index = static_cast<uint32_t>(region(r).params.size());
  v.name = std::move(name);
  values_.push_back(std::move(v));
  region(r).params.push_back(id);
  return id;
}

OpId Graph::add_op(RegionId r, const OpDesc& desc, std::vector<ValueId> operands,
                   std::vector<Type> result_types, std::vector<Attribute> attributes, SourceLoc loc,
                   std::vector<RegionId> regions) {
  OpId id{static_cast<int32_t>(ops_.size())};
  Op op;
  op.desc = &desc;
  op.operands = std::move(operands);
  op.attributes = std::move(attributes);
  op.regions = std::move(regions);
  op.parent = r;
  op.loc = loc;
  for (RegionId inner : op.regions) region(inner).owner = id;
  for (size_t i = 0; i < result_types.size(); ++i) {
    ValueId v{static_cast<int32_t>(values_.size())};
    Value value;
    value.type = std::move(result_types[i]);
    value.def = id;
    value.region = r;
    value.index = static_cast<uint32_t>(i);
    values_.push_back(std::move(value));
    op.results.push_back(v);
  }
  ops_.push_back(std::move(op));
  region(r).ops.push_back(id);
  return id;
}

void Graph::replace_uses(ValueId from, ValueId to) {
  auto swap = [&](std::vector<ValueId>& list) {
    for (ValueId& v : list)
      if (v == from) v = to;
  };
  for (Op& op : ops_) swap(op.operands);
  for (Region& r : regions_) swap(r.yields);
  for (Result& r : results)
    if (r.value == from) r.value = to;
}

std::vector<int32_t> Graph::use_counts() const {
  std::vector<int32_t> counts(values_.size(), 0);
  // Only ops still listed in a region count: passes drop an op by removing it from its region.
  for (const Region& r : regions_) {
    for (OpId id : r.ops)
      for (ValueId v : op(id).operands) ++counts[v.id];
    for (ValueId v : r.yields) ++counts[v.id];
  }
  for (const Result& r : results) ++counts[r.value.id];
  return counts;
}

ValueId add_array_input(Graph& g, const artifact::ArraySpec& spec, Shape shape, uint32_t slot,
                        bool captured, std::string name, std::span<const int64_t> example_strides) {
  using artifact::Layout;
  using artifact::StrideClass;
  const size_t rank = shape.size();
  Dim item = g.dims.constant(size_of(spec.dtype));
  Shape strides(rank);
  std::vector<uint8_t> order;
  if (spec.layout == Layout::kC) {
    Dim step = item;
    for (size_t k = rank; k-- > 0;) {
      strides[k] = step;
      step = g.dims.mul(step, shape[k]);
    }
  } else if (spec.layout == Layout::kF) {
    Dim step = item;
    for (size_t k = 0; k < rank; ++k) {
      strides[k] = step;
      step = g.dims.mul(step, shape[k]);
      order.push_back(static_cast<uint8_t>(rank - 1 - k));
    }
  } else {
    for (size_t k = 0; k < rank; ++k) {
      order.push_back(spec.order[k]);
      switch (spec.stride_class[k]) {
        case StrideClass::kZero: strides[k] = g.dims.constant(0); break;
        case StrideClass::kUnit: strides[k] = item; break;
        case StrideClass::kOther: {
          DimTable::SymbolInfo info;
          info.name = name + ".stride" + std::to_string(k);
          info.kind = artifact::Symbol::Kind::kStride;
          info.array = slot;
          info.axis = static_cast<uint32_t>(k);
          if (k < example_strides.size()) info.example = example_strides[k];
          strides[k] = g.dims.symbol(g.dims.add_symbol(std::move(info)));
          break;
        }
      }
    }
  }
  ValueId v = g.add_param(g.root(), Type{spec.dtype, std::move(shape)}, std::move(name));
  g.value(v).order = std::move(order);
  Input input;
  input.kind = Input::Kind::kArray;
  input.slot = slot;
  input.array = spec;
  input.value = v;
  input.strides = std::move(strides);
  input.captured = captured;
  g.inputs.push_back(std::move(input));
  return v;
}

ValueId add_scalar_input(Graph& g, uint32_t slot, std::string name) {
  ValueId v = g.add_param(g.root(), Type{DType::kF64, {}}, std::move(name));
  Input input;
  input.kind = Input::Kind::kScalar;
  input.slot = slot;
  input.value = v;
  g.inputs.push_back(std::move(input));
  return v;
}

}  // namespace cuvil::ir
