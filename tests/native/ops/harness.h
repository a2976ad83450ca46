// A graph under construction for tests of rows: declare inputs, call rows by name, read back types.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "ops/op.h"
#include "ops/rows.h"

namespace cuvil::ops::testing {

struct Harness {
  ir::Graph g;
  Builder b{g, g.root()};

  ir::Dim symbol(std::string name, int64_t example, int64_t least = 2) {
    ir::DimTable::SymbolInfo info;
    info.name = std::move(name);
    info.kind = artifact::Symbol::Kind::kShape;
    info.range = {least, int64_t{1} << 47};
    info.example = example;
    return g.dims.symbol(g.dims.add_symbol(info));
  }
  // A run-time Python int.
  ir::Dim run_time_int(std::string name, int64_t example) {
    ir::DimTable::SymbolInfo info;
    info.name = std::move(name);
    info.kind = artifact::Symbol::Kind::kScalar;
    info.example = example;
    return g.dims.symbol(g.dims.add_symbol(info));
  }
  ir::Dim internal(std::string name, ir::Range range = {}) {
    ir::DimTable::SymbolInfo info;
    info.name = std::move(name);
    info.range = range;
    return g.dims.symbol(g.dims.add_symbol(info));
  }
  ir::Shape shape(std::initializer_list<int64_t> sizes) {
    ir::Shape s;
    for (int64_t n : sizes) s.push_back(b.dim(n));
    return s;
  }
  TensorArg input(DType t, ir::Shape shape, artifact::Layout layout = artifact::Layout::kC) {
    artifact::ArraySpec spec;
    spec.dtype = t;
    spec.rank = static_cast<uint8_t>(shape.size());
    spec.layout = layout;
    auto slot = static_cast<uint32_t>(g.inputs.size());
    return {ir::add_array_input(g, spec, std::move(shape), slot, false, "x" + std::to_string(slot),
                                {})};
  }
  TensorArg input(DType t, std::initializer_list<int64_t> sizes,
                  artifact::Layout layout = artifact::Layout::kC) {
    return input(t, shape(sizes), layout);
  }

  // Missing arguments are filled up to the number of parameters.
  Result<ArgValue> call(std::string_view name, std::vector<ArgValue> args) {
    const DialectRow* row = find_row(name);
    if (!row) return make_error(ErrorClass::kInternal, "no row " + std::string(name));
    args.resize(parameter_count(row->params));
    return row->build(b, *row, args);
  }
  static size_t parameter_count(std::string_view params) {
    size_t n = 0;
    while (!params.empty()) {
      size_t comma = params.find(", ");
      std::string_view item = params.substr(0, comma);
      params = comma == params.npos ? std::string_view() : params.substr(comma + 2);
      n += item != "*" && item != "/";
    }
    return n;
  }
  // "f32[2, 3]", "f32[] scalar", "weak f64", an int, a list, or the error.
  std::string show(const Result<ArgValue>& r) {
    if (!r.ok()) return std::string(python_class_name(r.error().cls)) + ": " + r.error().found;
    return show(*r);
  }
  std::string show(const ArgValue& a) {
    if (const auto* t = a.get<TensorArg>()) {
      std::string s = ir::print_type(g, b.type(t->value));
      if (t->weak != Weak::kNo) return "weak " + s;
      return t->scalar ? s + " scalar" : s;
    }
    if (const auto* v = a.get<int64_t>()) return std::to_string(*v);
    if (const auto* v = a.get<bool>()) return *v ? "True" : "False";
    if (const auto* d = a.get<ir::Dim>()) return g.dims.to_string(*d);
    if (const auto* t = a.get<DType>()) return std::string(info(*t).name);
    if (const auto* list = a.get<std::shared_ptr<ArgList>>()) {
      std::string s;
      for (const ArgValue& x : **list) s += (s.empty() ? "" : "; ") + show(x);
      return "[" + s + "]";
    }
    return "?";
  }
  std::string type(std::string_view name, std::vector<ArgValue> args) {
    return show(call(name, std::move(args)));
  }
  ir::ValueId value(std::string_view name, std::vector<ArgValue> args) {
    auto r = call(name, std::move(args));
    EXPECT_TRUE(r.ok()) << name << ": " << (r.ok() ? "" : r.error().found);
    if (!r.ok()) return {};
    const auto* t = r->get<TensorArg>();
    EXPECT_TRUE(t) << name;
    return t ? t->value : ir::ValueId{};
  }
};

inline ArgValue list(std::vector<ArgValue> items) { return ArgValue::list(std::move(items)); }
inline ArgValue slice(ArgValue start, ArgValue stop, ArgValue step = ArgValue::None{}) {
  return std::make_shared<SliceArg>(SliceArg{std::move(start), std::move(stop), std::move(step)});
}
inline const ArgValue kNone = ArgValue::None{};

}  // namespace cuvil::ops::testing
