#include "artifact/validate.h"

#include <algorithm>

namespace cuvil::artifact {
namespace {

class Validator {
 public:
  Validator(const Artifact& a, uint64_t blob_size) : a_(a), blob_size_(blob_size) {}

  Result<> run() {
    struct Row {
      bool (Validator::*check)();
      const char* what;
    };
    static constexpr Row kRows[] = {
        {&Validator::slots, "array slots"},   {&Validator::symbols, "symbols"},
        {&Validator::arguments, "arguments"}, {&Validator::predicates, "predicates"},
        {&Validator::sources, "sources"},     {&Validator::guards, "guards"},
        {&Validator::aliases, "aliases"},     {&Validator::results, "results"},
        {&Validator::exprs, "expressions"},   {&Validator::tree, "result tree"},
        {&Validator::functions, "functions"}, {&Validator::sites, "sites"},
        {&Validator::sizes, "sizes"},
    };
    for (const Row& row : kRows) {
      if (!(this->*row.check)())
        return make_error(ErrorClass::kCache,
                          std::string("not a usable artifact: wrong ranges in its ") + row.what,
                          "compile the function again");
    }
    return Ok{};
  }

 private:
  // Which slot has which rank; every array slot is filled by exactly one of argument, guard, host call.
  bool slots() {
    if (a_.array_slots > kMaxSlots || a_.scalar_slots > kMaxSlots) return false;
    ranks_.assign(a_.array_slots, -1);
    uint32_t arrays = 0, scalars = 0;
    for (const ArgSpec& s : a_.arguments) {
      if (s.kind == ArgSpec::Kind::kArray && !fill(arrays++, s.array.rank)) return false;
      scalars += s.kind == ArgSpec::Kind::kInt || s.kind == ArgSpec::Kind::kFloat;
    }
    for (const Guard& g : a_.guards)
      if (g.kind == Guard::Kind::kArray && !fill(g.slot, g.array.rank)) return false;
    caller_ranks_ = ranks_;
    for (const Site& s : a_.sites)
      for (const HostResult& r : s.results) {
        // Several sites may fill one slot only if they agree.
        if (r.slot >= ranks_.size() || caller_ranks_[r.slot] >= 0 || r.rank > kMaxRank)
          return false;
        if (ranks_[r.slot] >= 0 && ranks_[r.slot] != r.rank) return false;
        ranks_[r.slot] = r.rank;
      }
    return scalars == a_.scalar_slots;
  }
  bool fill(uint32_t slot, uint8_t rank) {
    if (slot >= ranks_.size() || ranks_[slot] >= 0 || rank > kMaxRank) return false;
    ranks_[slot] = rank;
    return true;
  }

  bool symbols() {
    if (a_.symbols.size() > kMaxSlots) return false;
    bool internal = false;
    for (const Symbol& s : a_.symbols) {
      if (s.kind == Symbol::Kind::kInternal) {
        internal = true;
        continue;
      }
      if (internal) return false;  // caller-bound ones come first
      ++bound_;
      if (s.kind == Symbol::Kind::kScalar ? s.array >= a_.scalar_slots
                                          : s.array >= caller_ranks_.size() ||
                                                static_cast<int>(s.axis) >= caller_ranks_[s.array])
        return false;
    }
    return true;
  }

  bool expr(const Expr& e, size_t symbols) const {
    size_t depth = 0;
    for (const ExprNode& n : e) {
      if (n.op == ExprNode::Op::kSymbol && (n.imm < 0 || static_cast<size_t>(n.imm) >= symbols))
        return false;
      if (n.op == ExprNode::Op::kConst || n.op == ExprNode::Op::kSymbol) {
        if (++depth > kMaxExprDepth) return false;
      } else if (depth-- < 2) {
        return false;
      }
    }
    return depth == 1;
  }
  bool dims(const std::vector<Expr>& shape, size_t rank) const {
    return shape.size() == rank && std::all_of(shape.begin(), shape.end(), [&](const Expr& e) {
             return e.size() == 1 && expr(e, bound_);
           });
  }
  static bool permutation(const std::array<uint8_t, kMaxRank>& order, size_t rank) {
    uint32_t seen = 0;
    for (size_t i = 0; i < rank; ++i) {
      if (order[i] >= rank || (seen >> order[i] & 1)) return false;
      seen |= 1u << order[i];
    }
    return true;
  }
  bool array(const ArraySpec& s, const std::vector<Expr>& shape) const {
    if (s.rank > kMaxRank || !dims(shape, s.rank)) return false;
    if (s.numpy_scalar && s.rank != 0) return false;
    return s.layout != Layout::kStrided || permutation(s.order, s.rank);
  }

  bool arguments() {
    for (const ArgSpec& s : a_.arguments)
      if (s.kind == ArgSpec::Kind::kArray && !array(s.array, s.shape)) return false;
    return a_.call_shape.varargs <= a_.arguments.size() &&
           a_.call_shape.keyword_names.size() <= a_.arguments.size();
  }
  bool predicates() {
    return std::all_of(a_.predicates.begin(), a_.predicates.end(), [&](const Predicate& p) {
      return expr(p.lhs, bound_) && expr(p.rhs, bound_);
    });
  }
  bool sources() {
    for (size_t i = 0; i < a_.sources.size(); ++i) {
      const Source& s = a_.sources[i];
      if (s.parent < -1 || s.parent >= static_cast<int32_t>(i)) return false;
      switch (s.kind) {
        case Source::Kind::kArgument:
          if (s.index >= a_.arguments.size()) return false;
          break;
        case Source::Kind::kGlobal:
        case Source::Kind::kClosure:
        case Source::Kind::kDefault:
        case Source::Kind::kKwDefault: break;
        case Source::Kind::kAttribute:
        case Source::Kind::kItem:
        case Source::Kind::kType:
        case Source::Kind::kWrapped:
        case Source::Kind::kMethodFunction:
        case Source::Kind::kMethodSelf:
          if (s.parent < 0) return false;
          break;
      }
    }
    return true;
  }
  bool guards() {
    for (const Guard& g : a_.guards) {
      if (g.source >= a_.sources.size()) return false;
      if (g.kind == Guard::Kind::kArray && (!array(g.array, g.shape) || g.array.numpy_scalar))
        return false;
      if (g.kind == Guard::Kind::kIdentity && !a_.memory_only) return false;
    }
    return true;
  }
  bool aliases() {
    return std::all_of(a_.aliases.begin(), a_.aliases.end(), [&](const AliasPredicate& p) {
      return p.a < caller_ranks_.size() && p.b < caller_ranks_.size() && caller_ranks_[p.a] >= 0 &&
             caller_ranks_[p.b] >= 0;
    });
  }
  bool results() {
    return a_.results.size() <= kMaxSlots &&
           std::all_of(a_.results.begin(), a_.results.end(), [](const ResultSpec& r) {
             bool scalar = r.form != ResultSpec::Form::kArray;
             return r.rank <= kMaxRank && !(scalar && (r.rank != 0 || r.view)) &&
                    (r.view || permutation(r.order, r.rank));
           });
  }
  bool exprs() {
    return std::all_of(a_.exprs.begin(), a_.exprs.end(),
                       [&](const Expr& e) { return expr(e, a_.symbols.size()); });
  }

  bool tree() {
    size_t at = 0;
    made_.assign(a_.tree.size(), false);
    return subtree(&at, 0) && at == a_.tree.size();
  }
  bool subtree(size_t* at, size_t depth) {
    if (*at >= a_.tree.size() || depth > kMaxNesting) return false;
    const size_t self = *at;
    const TreeNode& n = a_.tree[(*at)++];
    uint32_t children = 0;
    switch (n.kind) {
      case TreeNode::Kind::kTuple:
      case TreeNode::Kind::kList: children = n.count; break;
      case TreeNode::Kind::kDict:
        children = n.count;
        if (n.index > a_.constants.size() || n.count > a_.constants.size() - n.index) return false;
        break;
      case TreeNode::Kind::kCall:
        children = n.count;
        if (n.index >= a_.sources.size()) return false;
        break;
      case TreeNode::Kind::kResult:
        if (n.index >= a_.results.size()) return false;
        break;
      case TreeNode::Kind::kSource:
        if (n.index >= a_.sources.size()) return false;
        break;
      case TreeNode::Kind::kConst:
        if (n.index >= a_.constants.size()) return false;
        break;
      case TreeNode::Kind::kExpr:
        if (n.index >= a_.exprs.size()) return false;
        break;
      case TreeNode::Kind::kSame:
        if (n.index >= self || !made_[n.index]) return false;
        break;
    }
    for (uint32_t i = 0; i < children; ++i)
      if (!subtree(at, depth + 1)) return false;
    made_[self] = n.kind == TreeNode::Kind::kTuple || n.kind == TreeNode::Kind::kList ||
                  n.kind == TreeNode::Kind::kDict || n.kind == TreeNode::Kind::kCall;
    return true;
  }

  bool functions() {
    if (a_.functions.empty() || a_.functions[0] != -1) return false;
    return std::all_of(a_.functions.begin() + 1, a_.functions.end(), [&](int32_t s) {
      return s >= 0 && static_cast<size_t>(s) < a_.sources.size();
    });
  }
  bool sites() {
    for (const Site& s : a_.sites) {
      if (s.loc.function >= a_.functions.size()) return false;
      if (!s.is_host_call) continue;
      if (s.callable < 0 || static_cast<size_t>(s.callable) >= a_.sources.size()) return false;
      for (const HostArgument& g : s.arguments)
        if (g.rank > kMaxRank || (g.numpy_scalar && g.rank != 0)) return false;
      for (const HostResult& r : s.results) {
        if (r.shape.size() != r.rank) return false;
        for (const Expr& e : r.shape)
          if (!expr(e, a_.symbols.size())) return false;
      }
    }
    return true;
  }
  bool sizes() {
    for (const CodeSymbol& s : a_.code_symbols)
      if (s.offset > blob_size_ || s.size > blob_size_ - s.offset) return false;
    return a_.arena_bytes >= 0 && a_.entry_offset < blob_size_;
  }

  const Artifact& a_;
  uint64_t blob_size_;
  std::vector<int> ranks_;         // by array slot; -1: not filled
  std::vector<int> caller_ranks_;  // the same without host results
  std::vector<bool> made_;         // nodes of the tree that are complete and containers
  size_t bound_ = 0;               // caller-bound symbols
};

}  // namespace

Result<> validate(const Artifact& a, uint64_t blob_size) { return Validator(a, blob_size).run(); }

}  // namespace cuvil::artifact
