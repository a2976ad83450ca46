// print_schedule: the text of dump_schedule(), kept in the artifact. cuvil.Schedule reads the lines that
// begin (after spaces) with `kernel `; fields are separated by two spaces, keys come before `=`:
//
//   schedule matmul_inference  kernels=1  arena_bytes=0
//   alloc result0  f32[1, 64]
//   kernel k0_matmul_maximum  ops=matmul+maximum  shape=f32[1, 64]  reads=x,w  writes=result0  loc=0:8:13
//     for m in 1, n in 64, k in 128                          estimate 1.9 us
//       l0 = x[512*m + 4*k] : f32
//       l1 = w[256*k + 4*n] : f32
//       acc0 = sum over k of l0 * l1 : f32
//       result0[256*m + 4*n] = maximum...
//
// Statements are indented by the depth of their loop.
#include <cstdio>

#include "schedule/lower.h"

namespace cuvil::schedule {

namespace {

class Printer {
 public:
  explicit Printer(const Program& p) : p_(p), g_(*p.graph) {}

  std::string run() {
    size_t kernels = 0;
    for_each_statement(p_.body, [&](int32_t, const Statement& s, int) {
      kernels += std::holds_alternative<Kernel>(s.v);
    });
    out_ = "schedule " + g_.name + "  kernels=" + std::to_string(kernels) +
           "  arena_bytes=" + std::to_string(p_.memory.arena_bytes) + "\n";
    block(p_.body);
    return std::move(out_);
  }

 private:
  void block(const Block& b) {
    for (const Statement& s : b) std::visit([&](const auto& x) { statement(x); }, s.v);
  }
  void line(const std::string& s, int extra = 0) {
    out_ += std::string(static_cast<size_t>(depth_ + extra) * 2, ' ') + s + "\n";
  }
  std::string dim(ir::Dim d) const { return g_.dims.to_string(d); }
  std::string shape(const ir::Shape& s) const {
    std::string out = "[";
    for (size_t i = 0; i < s.size(); ++i) out += (i ? ", " : "") + dim(s[i]);
    return out + "]";
  }
  std::string type(DType t, const ir::Shape& s) const {
    return std::string(info(t).name) + shape(s);
  }
  std::string name(BufferId b) const { return p_.buffer(b).name; }

  // "x[4*i + 8]": bytes.
  std::string place(BufferId b, const ops::Access& a, const std::vector<std::string>& axes) const {
    std::string out;
    for (size_t k = 0; k < a.strides.size(); ++k) {
      if (g_.dims.is_constant(a.strides[k], 0)) continue;
      std::string stride = dim(a.strides[k]);
      if (stride.find(' ') != std::string::npos) stride = "(" + stride + ")";
      out += (out.empty() ? "" : " + ") + (stride == "1" ? "" : stride + "*") +
             (k < axes.size() ? axes[k] : "?");
    }
    if (!g_.dims.is_constant(a.offset, 0)) out += (out.empty() ? "" : " + ") + dim(a.offset);
    return name(b) + "[" + (out.empty() ? "0" : out) + "]";
  }

  static std::vector<std::string> axis_names(const Kernel& k) {
    std::vector<std::string> names;
    const size_t n = k.extents.size();
    for (size_t i = 0; i < n; ++i) names.push_back("i" + std::to_string(i));
    if (k.kind == Kernel::Kind::kMatMul && n >= 3) {
      names[n - 3] = "m";
      names[n - 2] = "n";
      names[n - 1] = "k";
    }
    return names;
  }

  std::string constant(const ops::Inst& i) const {
    char buffer[48];
    uint64_t bits = i.imm;
    if (i.type == DType::kF32) {
      std::snprintf(buffer, sizeof buffer, "%.9g",
                    static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))));
    } else if (i.type == DType::kF64) {
      std::snprintf(buffer, sizeof buffer, "%.17g", std::bit_cast<double>(bits));
    } else if (is_bool(i.type)) {
      return bits ? "true" : "false";
    } else if (is_signed(i.type)) {
      int shift = 64 - 8 * size_of(i.type);
      auto v = static_cast<int64_t>(bits << shift) >> shift;
      std::snprintf(buffer, sizeof buffer, "%lld", static_cast<long long>(v));
    } else {
      std::snprintf(buffer, sizeof buffer, "0x%llx", static_cast<unsigned long long>(bits));
    }
    return buffer;
  }

  // Instructions that are read once are printed where they are read.
  std::string expression(const ops::Tape& t, ops::Ref r, const Kernel& k, char prefix,
                         std::vector<int>& uses) {
    const ops::Inst& i = t.at(r);
    switch (i.prim) {
      case ops::Prim::kConst: return constant(i);
      case ops::Prim::kLoad: return "l" + std::to_string(i.imm);
      case ops::Prim::kIndex: return axis_names(k)[i.imm];
      case ops::Prim::kDim: return "(" + dim(ir::Dim{static_cast<int32_t>(i.imm)}) + ")";
      case ops::Prim::kAccumulator: return "acc" + std::to_string(i.imm);
      default: break;
    }
    if (uses[r.id] != 1) return prefix + std::to_string(r.id);
    return call(t, r, k, prefix, uses);
  }

  std::string call(const ops::Tape& t, ops::Ref r, const Kernel& k, char prefix,
                   std::vector<int>& uses) {
    const ops::Inst& i = t.at(r);
    std::string out = i.prim == ops::Prim::kMath ? ops::math_name(static_cast<ops::MathFn>(i.imm))
                                                 : ops::prim_name(i.prim);
    if (i.prim == ops::Prim::kCast || i.prim == ops::Prim::kBitcast)
      out += "<" + std::string(info(i.type).name) + ">";
    out += "(";
    bool first = true;
    for (ops::Ref o : {i.a, i.b, i.c}) {
      if (!o.valid()) continue;
      out += (first ? "" : ", ") + expression(t, o, k, prefix, uses);
      first = false;
    }
    return out + ")";
  }

  void tape(const ops::Tape& t, const Kernel& k, char prefix, std::vector<int>& uses) {
    for (size_t n = 0; n < t.insts.size(); ++n) {
      const ops::Inst& i = t.insts[n];
      bool leaf = ops::prim_arity(i.prim) == 0;
      if (leaf || (uses[n] <= 1 && i.prim != ops::Prim::kCheck)) continue;
      ops::Ref r{static_cast<int32_t>(n)};
      line(prefix + std::to_string(n) + " = " + call(t, r, k, prefix, uses) + " : " +
               std::string(info(i.type).name),
           2);
    }
  }

  static std::vector<int> count_uses(const ops::Tape& t, const std::vector<ops::Ref>& wanted) {
    std::vector<int> uses(t.insts.size(), 0);
    for (ops::Ref r : wanted) ++uses[r.id];
    // A value is only used by what is used itself.
    for (size_t n = t.insts.size(); n-- > 0;) {
      if (uses[n] == 0 && t.insts[n].prim != ops::Prim::kCheck) continue;
      for (ops::Ref o : {t.insts[n].a, t.insts[n].b, t.insts[n].c})
        if (o.valid()) ++uses[o.id];
    }
    return uses;
  }

  void statement(const Kernel& k) {
    std::string names, reads, writes;
    for (ir::OpId id : k.ops) {
      const ir::Op& op = g_.op(id);
      if (is_movement(op) || ops::info_of(op).family == ops::Family::kCreate) continue;
      names += (names.empty() ? "" : "+") + std::string(op.desc->name);
    }
    std::set<int32_t> seen;
    for (const BufferAccess& l : k.loads)
      if (seen.insert(l.buffer.id).second) reads += (reads.empty() ? "" : ",") + name(l.buffer);
    seen.clear();
    for (const Store& s : k.stores)
      if (seen.insert(s.to.buffer.id).second)
        writes += (writes.empty() ? "" : ",") + name(s.to.buffer);
    const bool map = k.kind == Kernel::Kind::kMap;
    const size_t kept = map                               ? k.extents.size()
                        : k.kind == Kernel::Kind::kReduce ? k.kept
                                                          : k.extents.size() - 1;
    ir::Shape stored(k.extents.begin(), k.extents.begin() + static_cast<int64_t>(kept));
    DType dtype = k.stores.empty() ? DType::kBool : k.stores[0].to.dtype;
    line("kernel " + k.name + "  ops=" + (names.empty() ? "copy" : names) +
         "  shape=" + type(dtype, stored) + "  reads=" + reads + "  writes=" + writes +
         "  loc=" + std::to_string(k.loc.function) + ":" + std::to_string(k.loc.line) + ":" +
         std::to_string(k.loc.column + 1));

    const std::vector<std::string> axes = axis_names(k);
    std::string loops;
    for (size_t i = 0; i < k.extents.size(); ++i)
      loops += (i ? ", " : "") + axes[i] + " in " + dim(k.extents[i]);
    char cost[32];
    std::snprintf(cost, sizeof cost, "%.3g us", k.cost_ns / 1000);
    line((loops.empty() ? "once" : "for " + loops) + "    estimate " + cost, 1);
    for (size_t i = 0; i < k.loads.size(); ++i)
      line("l" + std::to_string(i) + " = " + place(k.loads[i].buffer, k.loads[i].access, axes) +
               " : " + std::string(info(k.loads[i].dtype).name),
           2);
    std::vector<ops::Ref> wanted;
    if (map)
      for (const Store& s : k.stores) wanted.push_back(s.value);
    for (const Reduction& r : k.reductions) wanted.push_back(r.value);
    if (k.lhs.valid()) wanted.insert(wanted.end(), {k.lhs, k.rhs});
    std::vector<int> uses = count_uses(k.tape, wanted);
    tape(k.tape, k, 't', uses);
    static constexpr const char* kReduceNames[] = {"sum", "prod", "min",    "max",
                                                   "any", "all",  "argmin", "argmax"};
    std::string over;
    for (size_t i = kept; i < k.extents.size(); ++i) over += (over.empty() ? "" : ", ") + axes[i];
    for (size_t i = 0; i < k.reductions.size(); ++i)
      line("acc" + std::to_string(i) + " = " +
               kReduceNames[static_cast<size_t>(k.reductions[i].kind)] + " over " + over + " of " +
               expression(k.tape, k.reductions[i].value, k, 't', uses) + " : " +
               std::string(info(k.reductions[i].accumulator).name),
           2);
    if (k.kind == Kernel::Kind::kMatMul)
      line("acc0 = sum over k of " + expression(k.tape, k.lhs, k, 't', uses) + " * " +
               expression(k.tape, k.rhs, k, 't', uses) + " : " +
               std::string(info(k.accumulator).name),
           2);
    if (!map) {
      wanted.clear();
      for (const Store& s : k.stores) wanted.push_back(s.value);
      uses = count_uses(k.epilogue, wanted);
      tape(k.epilogue, k, 'e', uses);
    }
    for (const Store& s : k.stores)
      line(place(s.to.buffer, s.to.access, axes) + " = " +
               expression(map ? k.tape : k.epilogue, s.value, k, map ? 't' : 'e', uses) + " : " +
               std::string(info(s.to.dtype).name),
           2);
  }

  void statement(const AllocResult& a) {
    const Buffer& b = p_.buffer(a.buffer);
    line("alloc " + b.name + "  " + type(b.dtype, b.shape));
  }
  void statement(const ViewResult& v) {
    bool of_result = v.base & 0x80000000u;
    line("view result" + std::to_string(v.result) + "  base=" + (of_result ? "result" : "array") +
         std::to_string(v.base & 0x7fffffffu) + "  shape=" + shape(v.shape) +
         "  offset=" + dim(v.access.offset) + "  strides=" + shape(v.access.strides));
  }
  void statement(const Lease& l) {
    line("lease " + name(l.buffer) + "  bytes=" + dim(p_.buffer(l.buffer).bytes));
  }
  void statement(const CopyBuffer& c) { line("copy " + name(c.from) + " -> " + name(c.to)); }
  void statement(const BindDim& b) {
    line("bind " + g_.dims.info(b.symbol).name + " = " + name(b.scalar));
  }
  void statement(const Check& c) {
    static constexpr const char* kOps[] = {"==", "!=", "<", "<="};
    const std::string what =
        c.fits ? " fits int64"
               : std::string(" ") + kOps[static_cast<size_t>(c.op)] + " " + dim(c.rhs);
    line("check " + dim(c.lhs) + what + "  site=" + std::to_string(c.site));
  }
  void statement(const HostCall& h) {
    std::string operands, results;
    for (const HostOperand& o : h.operands)
      operands += (operands.empty() ? "" : ",") + name(o.buffer);
    for (const artifact::HostResult& r : p_.sites[h.site].results)
      results += (results.empty() ? "" : ",") + std::string("array") + std::to_string(r.slot);
    line("host " + p_.sites[h.site].message + "  reads=" + operands + "  writes=" + results);
  }
  void statement(const For& f) {
    line("for " + g_.dims.info(f.induction).name + " in " + dim(f.begin) + " .. " + dim(f.begin) +
         " + " + dim(f.trip));
    ++depth_;
    block(*f.body);
    --depth_;
  }

  const Program& p_;
  const ir::Graph& g_;
  std::string out_;
  int depth_ = 0;
};

}  // namespace

std::string print_schedule(const Program& p) { return Printer(p).run(); }

}  // namespace cuvil::schedule
