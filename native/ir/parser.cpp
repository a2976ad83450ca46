// Text to graph (the form is described in text.h); errors name line and what was expected.
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "ir/graph.h"
#include "ir/text.h"

namespace cuvil::ir {
namespace {

// Attribute keys live in static storage; parsed ones are interned for the life of the process.
std::string_view intern_key(std::string_view key) {
  static std::set<std::string, std::less<>>* keys = new std::set<std::string, std::less<>>();
  return *keys->emplace(key).first;
}

class Parser {
 public:
  Parser(std::string_view text, OpLookup lookup)
      : s_(text), lookup_(lookup), g_(std::make_unique<Graph>()) {}

  cuvil::Result<std::unique_ptr<Graph>> run() {
    while (ok() && word_is("symbol")) symbol();
    while (ok() && word_is("predicate")) predicate();
    while (ok() && word_is("host")) host();
    function();
    skip();
    if (ok() && pos_ != s_.size()) fail("the end of the text");
    if (!error_.empty()) return make_error(ErrorClass::kValueError, error_);
    return std::move(g_);
  }

 private:
  bool ok() const { return error_.empty(); }
  void fail(std::string_view expected) {
    if (!ok()) return;
    int line = 1;
    for (size_t i = 0; i < pos_ && i < s_.size(); ++i) line += s_[i] == '\n';
    std::string_view rest = s_.substr(std::min(pos_, s_.size()), 20);
    error_ = "CIR text, line " + std::to_string(line) + ": expected " + std::string(expected) +
             ", found '" + std::string(rest.substr(0, rest.find('\n'))) + "'";
  }
  void skip() {
    while (pos_ < s_.size()) {
      if (std::isspace(static_cast<unsigned char>(s_[pos_])))
        ++pos_;
      else if (s_.substr(pos_, 2) == "//")
        pos_ = std::min(s_.find('\n', pos_), s_.size());
      else
        break;
    }
  }
  bool peek(std::string_view token) {
    skip();
    return s_.substr(pos_, token.size()) == token;
  }
  bool eat(std::string_view token) {
    if (!peek(token)) return false;
    pos_ += token.size();
    return true;
  }
  void need(std::string_view token) {
    if (ok() && !eat(token)) fail("'" + std::string(token) + "'");
  }
  static bool name_char(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  }
  std::string_view word() {
    skip();
    size_t begin = pos_;
    while (pos_ < s_.size() && name_char(s_[pos_])) ++pos_;
    if (begin == pos_) fail("a name");
    return s_.substr(begin, pos_ - begin);
  }
  bool word_is(std::string_view w) {
    return peek(w) && (pos_ + w.size() == s_.size() || !name_char(s_[pos_ + w.size()]));
  }
  bool eat_word(std::string_view w) { return word_is(w) && eat(w); }
  int64_t integer() {
    skip();
    if (eat("inf")) return INT64_MAX;
    if (eat("-inf")) return INT64_MIN;
    char* end = nullptr;
    std::string digits(s_.substr(pos_, 24));
    long long v = std::strtoll(digits.c_str(), &end, 10);
    if (end == digits.c_str()) fail("an integer");
    pos_ += static_cast<size_t>(end - digits.c_str());
    return v;
  }
  template <size_t N>
  size_t one_of(const std::array<std::string_view, N>& names, std::string_view what) {
    std::string_view w = word();
    for (size_t i = 0; i < N; ++i)
      if (names[i] == w) return i;
    fail(what);
    return 0;
  }
  std::string quoted() {
    need("\"");
    std::string out;
    while (ok() && pos_ < s_.size() && s_[pos_] != '"') {
      if (s_[pos_] == '\\' && s_.substr(pos_, 2) == "\\x" && pos_ + 4 <= s_.size()) {
        out += static_cast<char>(
            std::strtol(std::string(s_.substr(pos_ + 2, 2)).c_str(), nullptr, 16));
        pos_ += 4;
      } else {
        out += s_[pos_++];
      }
    }
    need("\"");
    return out;
  }
  // A dim ends at ',' or ']' outside parentheses, or where `stop` begins.
  Dim dim(std::string_view stop = {}) {
    skip();
    size_t begin = pos_;
    int depth = 0;
    while (pos_ < s_.size()) {
      char c = s_[pos_];
      if (c == '(') ++depth;
      if (c == ')') --depth;
      if (depth < 0 || (depth == 0 && (c == ',' || c == ']' || c == '\n'))) break;
      if (depth == 0 && !stop.empty() && s_.substr(pos_, stop.size()) == stop) break;
      ++pos_;
    }
    std::string_view text = s_.substr(begin, pos_ - begin);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    auto d = g_->dims.parse(text);
    if (!d) {
      pos_ = begin;
      fail("a dimension");
      return {};
    }
    return *d;
  }
  Shape dims() {
    Shape out;
    need("[");
    while (ok() && !peek("]")) {
      out.push_back(dim());
      if (!eat(",")) break;
    }
    need("]");
    return out;
  }
  std::vector<int64_t> integers() {
    std::vector<int64_t> out;
    need("[");
    while (ok() && !peek("]")) {
      out.push_back(integer());
      if (!eat(",")) break;
    }
    need("]");
    return out;
  }
  Type type() {
    Type t;
    if (!parse_dtype(word(), &t.dtype)) fail("a dtype");
    t.shape = dims();
    return t;
  }

  void symbol() {
    eat_word("symbol");
    DimTable::SymbolInfo i;
    i.name = std::string(word());
    need("=");
    i.kind = static_cast<artifact::Symbol::Kind>(one_of(text::kSymbolKinds, "a kind of symbol"));
    if (i.kind != artifact::Symbol::Kind::kInternal) {
      need("(");
      i.array = static_cast<uint32_t>(integer());
      need(",");
      i.axis = static_cast<uint32_t>(integer());
      need(")");
    }
    need("range");
    need("[");
    i.range.lo = integer();
    need(",");
    i.range.hi = integer();
    need("]");
    if (eat_word("example")) i.example = integer();
    g_->dims.add_symbol(std::move(i));
  }
  void predicate() {
    eat_word("predicate");
    size_t line_end = std::min(s_.find('\n', pos_), s_.size());
    std::string_view line = s_.substr(pos_, line_end - pos_);
    // Longest operators first.
    for (size_t k : {3, 1, 0, 2}) {
      std::string token = " " + std::string(text::kPredicates[k]) + " ";
      if (line.find(token) == std::string_view::npos) continue;
      DimPredicate p;
      p.op = static_cast<artifact::Predicate::Op>(k);
      p.lhs = dim(token);
      need(text::kPredicates[k]);
      p.rhs = dim();
      g_->predicates.push_back(p);
      return;
    }
    fail("a comparison");
  }
  void host() {
    eat_word("host");
    integer();
    need("=");
    HostSpec h;
    h.name = quoted();
    need("source");
    h.callable = static_cast<int32_t>(integer());
    need("(");
    h.arguments.resize(static_cast<size_t>(integer()));
    for (size_t i = 0; i < h.arguments.size(); ++i) h.arguments[i].index = static_cast<uint32_t>(i);
    need("arguments");
    need(")");
    g_->host_specs.push_back(std::move(h));
  }

  ValueId use() {
    need("%");
    std::string n(word());
    auto it = values_.find(n);
    if (it == values_.end()) {
      fail("a value defined before");
      return {};
    }
    return it->second;
  }
  std::string definition() {
    need("%");
    return std::string(word());
  }
  static bool is_number(const std::string& s) {
    return !s.empty() && std::isdigit(static_cast<unsigned char>(s[0]));
  }

  void function() {
    need("func");
    need("@");
    g_->name = std::string(word());
    need("(");
    while (ok() && !peek(")")) {
      input();
      if (!eat(",")) break;
    }
    need(")");
    need("{");
    body(g_->root());
    need("return");
    while (ok() && !peek("}")) {
      Result r;
      if (eat("view("))
        r.kind = Result::Kind::kViewOfInput;
      else if (eat("view_of_result("))
        r.kind = Result::Kind::kViewOfResult;
      if (r.kind != Result::Kind::kFresh) {
        r.base = static_cast<uint32_t>(integer());
        need(")");
      }
      r.value = use();
      r.form = static_cast<artifact::ResultSpec::Form>(one_of(text::kForms, "a form of result"));
      r.readonly = eat_word("readonly");
      g_->results.push_back(r);
      if (!eat(",")) break;
    }
    need("}");
  }
  void input() {
    std::string n = definition();
    need(":");
    Type t = type();
    if (!ok()) return;
    std::string given = is_number(n) ? std::string() : n;
    if (eat("scalar(")) {
      values_[n] = add_scalar_input(*g_, static_cast<uint32_t>(integer()), given);
      need(")");
      return;
    }
    artifact::ArraySpec a;
    a.dtype = t.dtype;
    a.rank = static_cast<uint8_t>(t.rank());
    need("input(");
    auto slot = static_cast<uint32_t>(integer());
    if (eat(",")) {
      if (eat_word("f")) {
        a.layout = artifact::Layout::kF;
      } else {
        a.layout = artifact::Layout::kStrided;
        need("strided");
        need("[");
        for (size_t k = 0; ok() && k < a.rank; ++k) {
          if (k) need(",");
          a.stride_class[k] =
              static_cast<artifact::StrideClass>(one_of(text::kStrideNames, "a stride class"));
        }
        need("]");
        need("order");
        std::vector<int64_t> order = integers();
        for (size_t k = 0; k < order.size() && k < a.rank; ++k)
          a.order[k] = static_cast<uint8_t>(order[k]);
      }
    }
    need(")");
    bool captured = eat_word("capture");
    a.writeable = !eat_word("readonly");
    a.aligned = !eat_word("misaligned");
    a.numpy_scalar = eat_word("numpy_scalar");
    if (!ok()) return;
    values_[n] = reuse_strides(a, t.shape, slot, captured, given);
  }
  // Stride symbols were declared by `symbol` lines: bind them instead of declaring new ones.
  ValueId reuse_strides(const artifact::ArraySpec& a, Shape shape, uint32_t slot, bool captured,
                        const std::string& name) {
    size_t before = g_->dims.symbol_count();
    Graph scratch;
    std::map<uint32_t, SymbolId> declared;
    for (size_t i = 0; i < before; ++i) {
      SymbolId s{static_cast<int32_t>(i)};
      const auto& info = g_->dims.info(s);
      if (info.kind == artifact::Symbol::Kind::kStride && info.array == slot)
        declared[info.axis] = s;
    }
    artifact::ArraySpec plain = a;
    for (auto& [axis, symbol] : declared)
      if (axis < a.rank) plain.stride_class[axis] = artifact::StrideClass::kZero;
    ValueId v = add_array_input(*g_, plain, std::move(shape), slot, captured, name, {});
    Input& in = g_->inputs.back();
    in.array = a;
    for (auto& [axis, symbol] : declared)
      if (axis < a.rank) in.strides[axis] = g_->dims.symbol(symbol);
    return v;
  }

  Attribute attribute() {
    Attribute a;
    a.key = intern_key(word());
    need("=");
    DType t;
    if (eat_word("real")) {
      skip();
      std::string text(s_.substr(pos_, 40));
      char* end = nullptr;
      a.value = std::strtod(text.c_str(), &end);
      pos_ += static_cast<size_t>(end - text.c_str());
    } else if (eat("dims")) {
      a.value = dims();
    } else if (peek("[")) {
      a.value = integers();
    } else if (peek("\"")) {
      a.value = quoted();
    } else if (skip(), pos_ < s_.size() && std::isalpha(static_cast<unsigned char>(s_[pos_])) &&
                           !word_is("inf")) {
      if (!parse_dtype(word(), &t)) fail("an attribute value");
      a.value = t;
    } else {
      a.value = integer();
    }
    return a;
  }

  void body(RegionId r) {
    while (ok() && !peek("}") && !word_is("return") && !word_is("yield")) operation(r);
  }
  void operation(RegionId r) {
    std::vector<std::string> names;
    if (peek("%")) {
      do names.push_back(definition());
      while (ok() && eat(","));
      need("=");
    }
    const OpDesc* desc = ok() ? lookup_(word()) : nullptr;
    if (!desc) return fail("a known op");
    std::vector<ValueId> operands;
    if (peek("%")) {
      do operands.push_back(use());
      while (ok() && eat(","));
    }
    std::vector<Attribute> attributes;
    skip();
    // `{key = ...}` are attributes, `{ ^(...)` begins a region.
    if (peek("{") && s_.substr(pos_ + 1).find_first_not_of(" \n") != std::string_view::npos &&
        s_[pos_ + 1 + s_.substr(pos_ + 1).find_first_not_of(" \n")] != '^') {
      need("{");
      while (ok() && !peek("}")) {
        attributes.push_back(attribute());
        if (!eat(",")) break;
      }
      need("}");
    }
    std::vector<Type> types;
    std::vector<std::vector<uint8_t>> orders;
    if (!names.empty()) {
      need(":");
      for (size_t i = 0; ok() && i < names.size(); ++i) {
        if (i) need(",");
        types.push_back(type());
        std::vector<uint8_t> order;
        if (eat_word("order"))
          for (int64_t k : integers()) order.push_back(static_cast<uint8_t>(k));
        orders.push_back(std::move(order));
      }
    }
    SourceLoc loc;
    if (eat("loc(")) {
      loc.function = static_cast<uint32_t>(integer());
      need(":");
      loc.line = static_cast<int32_t>(integer());
      need(":");
      loc.column = static_cast<int32_t>(integer());
      need("-");
      loc.end_line = static_cast<int32_t>(integer());
      need(":");
      loc.end_column = static_cast<int32_t>(integer());
      need(")");
    }
    if (!ok()) return;
    std::vector<RegionId> regions;
    while (ok() && eat("{")) {
      RegionId inner = g_->add_region(OpId{});
      need("^");
      need("(");
      while (ok() && !peek(")")) {
        std::string n = definition();
        need(":");
        values_[n] = g_->add_param(inner, type(), is_number(n) ? std::string() : n);
        if (!eat(",")) break;
      }
      need(")");
      body(inner);
      need("yield");
      std::vector<ValueId> yields;
      if (peek("%")) {
        do yields.push_back(use());
        while (ok() && eat(","));
      }
      g_->region(inner).yields = std::move(yields);
      need("}");
      regions.push_back(inner);
    }
    if (!ok()) return;
    OpId id = g_->add_op(r, *desc, std::move(operands), std::move(types), std::move(attributes),
                         loc, std::move(regions));
    for (size_t i = 0; i < names.size(); ++i) {
      ValueId v = g_->op(id).results[i];
      g_->value(v).order = orders[i];
      values_[names[i]] = v;
    }
  }

  std::string_view s_;
  OpLookup lookup_;
  std::unique_ptr<Graph> g_;
  size_t pos_ = 0;
  std::string error_;
  std::map<std::string, ValueId, std::less<>> values_;
};

}  // namespace

cuvil::Result<std::unique_ptr<Graph>> parse(std::string_view text, OpLookup lookup) {
  return Parser(text, lookup).run();
}

}  // namespace cuvil::ir
