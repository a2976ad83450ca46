// print_dot: the program as Graphviz (cuvil_ir.dot). Each kernel is a cluster of the CIR ops it fuses;
// edges carry types; inputs, constants in memory and results stand outside.
#include "schedule/lower.h"

namespace cuvil::schedule {

namespace {

std::string escape(const std::string& s) {
  std::string out;
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

class Dot {
 public:
  explicit Dot(const Program& p) : p_(p), g_(*p.graph) {}

  std::string run() {
    out_ = "digraph \"" + escape(g_.name) +
           "\" {\n  rankdir=TB;\n  fontname=\"Helvetica\";\n"
           "  node [fontname=\"Helvetica\", fontsize=10, shape=box, style=\"rounded,filled\", "
           "fillcolor=white];\n  edge [fontname=\"Helvetica\", fontsize=9];\n";
    for (const ir::Input& in : g_.inputs)
      out_ += "  " + input(in.value) + " [shape=ellipse, fillcolor=\"#dfeffc\", label=\"" +
              escape(g_.value(in.value).name) + "\\n" + type(in.value) + "\"];\n";
    block(p_.body, "  ");
    edges();
    for (size_t i = 0; i < g_.results.size(); ++i) {
      std::string to = "result" + std::to_string(i);
      out_ += "  " + to + " [shape=ellipse, fillcolor=\"#fbe6d4\", label=\"" + to + "\\n" +
              type(g_.results[i].value) + "\"];\n";
      edge(g_.results[i].value, to);
    }
    return out_ + "}\n";
  }

 private:
  std::string type(ir::ValueId v) const { return escape(ir::print_type(g_, g_.type(v))); }
  static std::string input(ir::ValueId v) { return "value" + std::to_string(v.id); }
  static std::string node(ir::OpId id) { return "op" + std::to_string(id.id); }

  void block(const Block& b, const std::string& pad) {
    for (const Statement& s : b) {
      if (const Kernel* k = std::get_if<Kernel>(&s.v)) kernel(*k, pad);
      if (const For* f = std::get_if<For>(&s.v)) {
        out_ += pad + "subgraph cluster_loop" + std::to_string(clusters_++) + " {\n" + pad +
                "  label=\"for " + escape(g_.dims.info(f->induction).name) + " in " +
                escape(g_.dims.to_string(f->trip)) + "\"; style=dashed; color=\"#888888\";\n";
        block(*f->body, pad + "  ");
        out_ += pad + "}\n";
      }
    }
  }

  // An op that several kernels compute is drawn in each; edges start at the last.
  void kernel(const Kernel& k, const std::string& pad) {
    out_ += pad + "subgraph cluster_" + std::to_string(clusters_++) + " {\n" + pad + "  label=\"" +
            escape(k.name) +
            "\"; style=\"rounded,filled\"; fillcolor=\"#eef5e9\"; color=\"#6a994e\";\n";
    bool drawn = false;
    for (ir::OpId id : k.ops) {
      if (!drawn_.insert(id.id).second) continue;
      op(id, pad + "  ");
      drawn = true;
    }
    if (!drawn) out_ += pad + "  kernel" + std::to_string(clusters_) + " [label=\"copy\"];\n";
    out_ += pad + "}\n";
  }

  void op(ir::OpId id, const std::string& pad) {
    const ir::Op& o = g_.op(id);
    std::string label(o.desc->name);
    for (const ir::Attribute& a : o.attributes) {
      if (const auto* l = std::get_if<std::vector<int64_t>>(&a.value)) {
        label += "\n" + std::string(a.key) + " ";
        for (size_t i = 0; i < l->size(); ++i) label += (i ? "," : "") + std::to_string((*l)[i]);
      }
    }
    bool heavy = is_heavy(ops::info_of(o));
    out_ += pad + node(id) + " [label=\"" + newlines(escape(label)) + "\"" +
            (heavy ? ", fillcolor=\"#a7c957\"" : "") + "];\n";
  }
  static std::string newlines(const std::string& s) {
    std::string out;
    for (char c : s) out += c == '\n' ? std::string("\\n") : std::string(1, c);
    return out;
  }

  void edge(ir::ValueId from, const std::string& to) {
    const ir::OpId def = g_.value(from).def;
    std::string label = " [label=\"" + type(from) + "\"];\n";
    if (def.valid())
      out_ += "  " + node(def) + " -> " + to + label;
    else if (g_.value(from).region == g_.root())
      out_ += "  " + input(from) + " -> " + to + label;
    else
      out_ += "  " + node(g_.region(g_.value(from).region).owner) + " -> " + to + label;
  }

  void edges() {
    for (size_t r = 0; r < g_.region_count(); ++r) {
      ir::RegionId region{static_cast<int32_t>(r)};
      for (ir::OpId id : g_.region(region).ops) {
        if (!drawn_.count(id.id)) {  // views, stores, loops, calls
          op(id, "  ");
          drawn_.insert(id.id);
        }
        for (ir::ValueId o : g_.op(id).operands) edge(o, node(id));
      }
      ir::OpId owner = g_.region(region).owner;
      if (owner.valid())
        for (ir::ValueId y : g_.region(region).yields) edge(y, node(owner));
    }
  }

  const Program& p_;
  const ir::Graph& g_;
  std::string out_;
  std::set<int32_t> drawn_;
  int clusters_ = 0;
};

}  // namespace

std::string print_dot(const Program& p) { return Dot(p).run(); }

}  // namespace cuvil::schedule
