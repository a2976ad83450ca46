// Graph to text (the form is described in text.h). Values are numbered in the order of printing.
#include <cstdio>
#include <unordered_map>
#include <unordered_set>

#include "ir/graph.h"
#include "ir/text.h"

namespace cuvil::ir {
namespace {

std::string quote(std::string_view s) {
  std::string out = "\"";
  for (char c : s) {
    auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || u < 0x20 || u >= 0x7f) {
      char buffer[8];
      std::snprintf(buffer, sizeof buffer, "\\x%02x", u);
      out += buffer;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

template <class T, class F> std::string join(const T& items, F&& f) {
  std::string out;
  for (const auto& x : items) {
    if (!out.empty()) out += ", ";
    out += f(x);
  }
  return out;
}

class Printer {
 public:
  explicit Printer(const Graph& g) : g_(g) {}

  std::string run() {
    for (size_t i = 0; i < g_.dims.symbol_count(); ++i) symbol(SymbolId{static_cast<int32_t>(i)});
    for (const DimPredicate& p : g_.predicates)
      out_ += "predicate " + dim(p.lhs) + " " +
              std::string(text::kPredicates[static_cast<size_t>(p.op)]) + " " + dim(p.rhs) + "\n";
    for (size_t i = 0; i < g_.host_specs.size(); ++i) host(i);
    out_ += "func @" + (g_.name.empty() ? std::string("f") : g_.name) + "(";
    out_ += join(g_.inputs, [&](const Input& in) { return input(in); });
    out_ += ") {\n";
    body(g_.root(), 1);
    out_ += "  return " + join(g_.results, [&](const Result& r) { return result(r); }) + "\n}\n";
    return std::move(out_);
  }

  std::string type(const Type& t) const {
    return std::string(info(t.dtype).name) + "[" + join(t.shape, [&](Dim d) { return dim(d); }) +
           "]";
  }

 private:
  std::string dim(Dim d) const { return g_.dims.to_string(d); }

  std::string name(ValueId v) {
    auto it = names_.find(v.id);
    if (it != names_.end()) return it->second;
    const std::string& given = g_.value(v).name;
    std::string n = !given.empty() && taken_.insert(given).second ? given : std::to_string(next_++);
    return names_.emplace(v.id, "%" + n).first->second;
  }

  void symbol(SymbolId s) {
    const DimTable::SymbolInfo& i = g_.dims.info(s);
    out_ +=
        "symbol " + i.name + " = " + std::string(text::kSymbolKinds[static_cast<size_t>(i.kind)]);
    if (i.kind != artifact::Symbol::Kind::kInternal)
      out_ += "(" + std::to_string(i.array) + ", " + std::to_string(i.axis) + ")";
    auto bound = [](int64_t v) {
      return v == INT64_MAX ? "inf" : v == INT64_MIN ? "-inf" : std::to_string(v);
    };
    out_ += " range [" + bound(i.range.lo) + ", " + bound(i.range.hi) + "]";
    if (i.example) out_ += " example " + std::to_string(*i.example);
    out_ += "\n";
  }

  void host(size_t k) {
    const HostSpec& h = g_.host_specs[k];
    out_ += "host " + std::to_string(k) + " = " + quote(h.name) + " source " +
            std::to_string(h.callable) + " (" + std::to_string(h.arguments.size()) +
            " arguments)\n";
  }

  std::string input(const Input& in) {
    std::string s = name(in.value) + ": " + type(g_.type(in.value));
    if (in.kind == Input::Kind::kScalar) return s + " scalar(" + std::to_string(in.slot) + ")";
    const artifact::ArraySpec& a = in.array;
    s += " input(" + std::to_string(in.slot);
    if (a.layout == artifact::Layout::kF) s += ", f";
    if (a.layout == artifact::Layout::kStrided) {
      std::string classes, order;
      for (size_t k = 0; k < a.rank; ++k) {
        classes += (k ? ", " : "") +
                   std::string(text::kStrideNames[static_cast<size_t>(a.stride_class[k])]);
        order += (k ? ", " : "") + std::to_string(a.order[k]);
      }
      s += ", strided[" + classes + "] order[" + order + "]";
    }
    s += ")";
    if (in.captured) s += " capture";
    if (!a.writeable) s += " readonly";
    if (!a.aligned) s += " misaligned";
    if (a.numpy_scalar) s += " numpy_scalar";
    return s;
  }

  std::string result(const Result& r) {
    std::string s;
    if (r.kind == Result::Kind::kViewOfInput) s = "view(" + std::to_string(r.base) + ") ";
    if (r.kind == Result::Kind::kViewOfResult)
      s = "view_of_result(" + std::to_string(r.base) + ") ";
    s += name(r.value) + " " + std::string(text::kForms[static_cast<size_t>(r.form)]);
    return r.readonly ? s + " readonly" : s;
  }

  std::string attribute(const Attribute& a) const {
    std::string s = std::string(a.key) + " = ";
    if (const auto* i = std::get_if<int64_t>(&a.value)) return s + std::to_string(*i);
    if (const auto* d = std::get_if<double>(&a.value)) {
      char buffer[64];
      std::snprintf(buffer, sizeof buffer, "real %a", *d);
      return s + buffer;
    }
    if (const auto* t = std::get_if<DType>(&a.value)) return s + std::string(info(*t).name);
    if (const auto* l = std::get_if<std::vector<int64_t>>(&a.value))
      return s + "[" + join(*l, [](int64_t v) { return std::to_string(v); }) + "]";
    if (const auto* l = std::get_if<Shape>(&a.value))
      return s + "dims[" + join(*l, [&](Dim d) { return dim(d); }) + "]";
    return s + quote(std::get<std::string>(a.value));
  }

  void body(RegionId r, int depth) {
    std::string pad(static_cast<size_t>(depth) * 2, ' ');
    for (OpId id : g_.region(r).ops) {
      const Op& op = g_.op(id);
      out_ += pad;
      if (!op.results.empty()) out_ += join(op.results, [&](ValueId v) { return name(v); }) + " = ";
      out_ += std::string(op.desc->name);
      if (!op.operands.empty()) out_ += " " + join(op.operands, [&](ValueId v) { return name(v); });
      if (!op.attributes.empty())
        out_ += " {" + join(op.attributes, [&](const Attribute& a) { return attribute(a); }) + "}";
      if (!op.results.empty()) {
        out_ += " : " + join(op.results, [&](ValueId v) {
                  std::string s = type(g_.type(v));
                  const auto& order = g_.value(v).order;
                  if (!order.empty())
                    s += " order[" + join(order, [](uint8_t k) { return std::to_string(k); }) + "]";
                  return s;
                });
      }
      if (op.loc.line > 0) {
        out_ += " loc(" + std::to_string(op.loc.function) + ":" + std::to_string(op.loc.line) +
                ":" + std::to_string(op.loc.column) + "-" + std::to_string(op.loc.end_line) + ":" +
                std::to_string(op.loc.end_column) + ")";
      }
      for (RegionId inner : op.regions) {
        out_ += " {\n" + pad + "  ^(" +
                join(g_.region(inner).params,
                     [&](ValueId v) { return name(v) + ": " + type(g_.type(v)); }) +
                ")\n";
        body(inner, depth + 1);
        const auto& yields = g_.region(inner).yields;
        out_ += pad + "  yield" + (yields.empty() ? "" : " ") +
                join(yields, [&](ValueId v) { return name(v); }) + "\n" + pad + "}";
      }
      out_ += "\n";
    }
  }

  const Graph& g_;
  std::string out_;
  std::unordered_map<int32_t, std::string> names_;
  std::unordered_set<std::string> taken_;
  int next_ = 0;
};

}  // namespace

std::string print(const Graph& g) { return Printer(g).run(); }
std::string print_type(const Graph& g, const Type& t) { return Printer(g).type(t); }

}  // namespace cuvil::ir
