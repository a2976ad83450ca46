#include "python/texts.h"

#include "python/constants.h"

namespace cuvil::python {

using artifact::ArgSpec;
using artifact::Guard;
using artifact::Source;

namespace {

std::string path(const artifact::Artifact& a, int32_t i) {
  if (i < 0) return {};
  const Source& s = a.sources[static_cast<size_t>(i)];
  std::string parent = path(a, s.parent);
  switch (s.kind) {
    case Source::Kind::kArgument:
      return s.name.empty() ? "argument " + std::to_string(s.index) : s.name;
    case Source::Kind::kGlobal: return s.name;
    case Source::Kind::kClosure:
      return s.name.empty() ? "closure cell " + std::to_string(s.index) : s.name;
    case Source::Kind::kDefault: return "default " + std::to_string(s.index);
    case Source::Kind::kKwDefault: return "default of " + s.name;
    case Source::Kind::kAttribute: return parent + "." + s.name;
    case Source::Kind::kItem: {
      PyRef key = to_object(s.key);
      if (!key) PyErr_Clear();
      return parent + "[" + (key ? short_repr(key.get()) : "?") + "]";
    }
    case Source::Kind::kType: return "type(" + parent + ")";
    case Source::Kind::kWrapped: return parent + ".__wrapped__";
    case Source::Kind::kMethodFunction: return parent + ".__func__";
    case Source::Kind::kMethodSelf: return parent + ".__self__";
  }
  return {};
}

std::string guard_text(const artifact::Artifact& a, const Guard& g) {
  std::string what = path(a, static_cast<int32_t>(g.source));
  switch (g.kind) {
    case Guard::Kind::kKeys: what = "tuple(" + what + ")"; [[fallthrough]];
    case Guard::Kind::kValue: {
      PyRef v = to_object(g.value);
      if (!v) PyErr_Clear();
      return what + " == " + (v ? short_repr(v.get()) : "?");
    }
    case Guard::Kind::kQualified: return what + " is " + g.value.text;
    case Guard::Kind::kCode: return what + " has the code it had";
    case Guard::Kind::kArray:
      return what + " is an array of " + std::string(info(g.array.dtype).numpy_name) + " with " +
             std::to_string(g.array.rank) + " axes";
    case Guard::Kind::kLength: return "len(" + what + ") == " + std::to_string(g.value.integer);
    case Guard::Kind::kIdentity: return what + " is the same object";
    case Guard::Kind::kMissing: return what + " does not exist";
  }
  return {};
}

// "x.shape[0]", "n": what the caller binds a symbol to.
std::string symbol_text(const artifact::Artifact& a, const std::vector<std::string>& names,
                        size_t index) {
  const artifact::Symbol& symbol = a.symbols[index];
  const bool scalar = symbol.kind == artifact::Symbol::Kind::kScalar;
  uint32_t arrays = 0, scalars = 0;
  std::string what;
  for (size_t i = 0; i < a.arguments.size() && what.empty(); ++i) {
    const ArgSpec::Kind kind = a.arguments[i].kind;
    const bool number = kind == ArgSpec::Kind::kInt || kind == ArgSpec::Kind::kFloat;
    if (scalar && number && scalars++ == symbol.array) what = names[i];
    if (!scalar && kind == ArgSpec::Kind::kArray && arrays++ == symbol.array) what = names[i];
  }
  for (const Guard& g : a.guards)
    if (!scalar && what.empty() && g.kind == Guard::Kind::kArray && g.slot == symbol.array)
      what = path(a, static_cast<int32_t>(g.source));
  if (scalar || what.empty()) return what.empty() ? "?" : what;
  const char* of = symbol.kind == artifact::Symbol::Kind::kShape ? ".shape[" : ".strides[";
  return what + of + std::to_string(symbol.axis) + "]";
}

// As Python would write it.
std::string expr_text(const artifact::Artifact& a, const std::vector<std::string>& names,
                      const artifact::Expr& e) {
  using Op = artifact::ExprNode::Op;
  struct Part {
    std::string text;
    bool atom;
  };
  std::vector<Part> stack;
  for (const artifact::ExprNode& n : e) {
    if (n.op == Op::kConst) {
      stack.push_back({std::to_string(n.imm), n.imm >= 0});
      continue;
    }
    if (n.op == Op::kSymbol) {
      stack.push_back({symbol_text(a, names, static_cast<size_t>(n.imm)), true});
      continue;
    }
    Part r = std::move(stack.back());
    stack.pop_back();
    Part l = std::move(stack.back());
    stack.pop_back();
    if (n.op == Op::kMin || n.op == Op::kMax) {
      stack.push_back({(n.op == Op::kMin ? "min(" : "max(") + l.text + ", " + r.text + ")", true});
      continue;
    }
    const char* sign = n.op == Op::kAdd        ? " + "
                       : n.op == Op::kMul      ? "*"
                       : n.op == Op::kFloorDiv ? " // "
                                               : " % ";
    auto wrapped = [&](const Part& p) {
      return p.atom || n.op == Op::kAdd ? p.text : "(" + p.text + ")";
    };
    stack.push_back({wrapped(l) + sign + wrapped(r), n.op == Op::kMul && l.atom && r.atom});
  }
  return stack.empty() ? "?" : stack.back().text;
}

std::string predicate_text(const artifact::Artifact& a, const std::vector<std::string>& names,
                           const artifact::Predicate& p) {
  static constexpr const char* kSigns[] = {" == ", " != ", " < ", " <= "};
  return expr_text(a, names, p.lhs) + kSigns[static_cast<size_t>(p.op)] +
         expr_text(a, names, p.rhs);
}

}  // namespace

std::string mismatch_text(const artifact::Artifact& a, const std::vector<std::string>& names,
                          const Mismatch& why) {
  auto name = [&](uint32_t i) { return i < names.size() ? names[i] : std::string("?"); };
  switch (why.stage) {
    case Mismatch::Stage::kNone: return "";
    case Mismatch::Stage::kCallShape: return "another number of arguments in *args or **kwargs";
    case Mismatch::Stage::kArgument:
      return "argument '" + name(why.index) + "' is of another kind, dtype, rank, layout or value";
    case Mismatch::Stage::kAxis:
      return "axis " + std::to_string(why.axis) + " of '" + name(why.index) + "' has another size";
    case Mismatch::Stage::kGuard: return "no longer true: " + guard_text(a, a.guards[why.index]);
    case Mismatch::Stage::kPredicate:
      return "no longer true: " + predicate_text(a, names, a.predicates[why.index]);
    case Mismatch::Stage::kAlias: return "arrays overlap in another way";
  }
  return "";
}

std::vector<std::string> guard_texts(const artifact::Artifact& a,
                                     const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const artifact::Predicate& p : a.predicates) out.push_back(predicate_text(a, names, p));
  for (const Guard& g : a.guards) out.push_back(guard_text(a, g));
  return out;
}

}  // namespace cuvil::python
