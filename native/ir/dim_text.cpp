// Dims as text (`2*n + 1`, `min(n, 4)`, `n // 2`), back from text, and as postfix code for artifacts.
#include <cctype>

#include "ir/dim.h"

namespace cuvil::ir {
namespace {

using Op = artifact::ExprNode::Op;

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
}

// sum := term (('+' | '-') term)*; term := unary (('*' | '//' | '%') unary)*;
// unary := '-' unary | number | name | min(sum, sum) | max(sum, sum) | '(' sum ')'
class Parser {
 public:
  Parser(DimTable& table, std::string_view text) : t_(table), s_(text) {}

  std::optional<Dim> whole() {
    auto d = sum();
    skip();
    return d && pos_ == s_.size() ? d : std::nullopt;
  }

 private:
  void skip() {
    while (pos_ < s_.size() && s_[pos_] == ' ') ++pos_;
  }
  bool eat(std::string_view token) {
    skip();
    if (s_.substr(pos_, token.size()) != token) return false;
    pos_ += token.size();
    return true;
  }
  std::optional<Dim> sum() {
    auto a = term();
    while (a) {
      bool plus = eat("+");
      if (!plus && !eat("-")) break;
      auto b = term();
      if (!b) return std::nullopt;
      a = plus ? t_.add(*a, *b) : t_.sub(*a, *b);
    }
    return a;
  }
  std::optional<Dim> term() {
    auto a = unary();
    while (a) {
      int op = eat("*") ? 1 : eat("//") ? 2 : eat("%") ? 3 : 0;
      if (op == 0) break;
      auto b = unary();
      if (!b) return std::nullopt;
      a = op == 1 ? t_.mul(*a, *b) : op == 2 ? t_.floordiv(*a, *b) : t_.mod(*a, *b);
    }
    return a;
  }
  std::optional<Dim> unary() {
    if (eat("-")) {
      auto a = unary();
      return a ? std::optional(t_.mul(*a, t_.constant(-1))) : std::nullopt;
    }
    if (eat("(")) {
      auto a = sum();
      return a && eat(")") ? a : std::nullopt;
    }
    skip();
    if (pos_ == s_.size()) return std::nullopt;
    if (std::isdigit(static_cast<unsigned char>(s_[pos_]))) {
      uint64_t v = 0;
      while (pos_ < s_.size() && std::isdigit(static_cast<unsigned char>(s_[pos_])))
        v = v * 10 + static_cast<uint64_t>(s_[pos_++] - '0');
      return t_.constant(static_cast<int64_t>(v));
    }
    if (!is_name_start(s_[pos_])) return std::nullopt;
    size_t begin = pos_;
    while (pos_ < s_.size() && is_name_char(s_[pos_])) ++pos_;
    std::string_view name = s_.substr(begin, pos_ - begin);
    if ((name == "min" || name == "max") && eat("(")) {
      auto a = sum();
      if (!a || !eat(",")) return std::nullopt;
      auto b = sum();
      if (!b || !eat(")")) return std::nullopt;
      return name == "min" ? t_.min(*a, *b) : t_.max(*a, *b);
    }
    for (size_t i = 0; i < t_.symbol_count(); ++i) {
      SymbolId s{static_cast<int32_t>(i)};
      if (t_.info(s).name == name) return t_.symbol(s);
    }
    return std::nullopt;
  }

  DimTable& t_;
  std::string_view s_;
  size_t pos_ = 0;
};

}  // namespace

std::string DimTable::to_string(Dim d) const {
  const auto& terms = polys_[d.id];
  if (terms.empty()) return "0";
  std::string out;
  for (const Term& t : terms) {
    int64_t c = t.coefficient;
    bool negative = c < 0;
    std::string magnitude =
        std::to_string(negative ? 0 - static_cast<uint64_t>(c) : static_cast<uint64_t>(c));
    std::string body;
    if (t.atoms.empty() || magnitude != "1") body = magnitude;
    for (int32_t id : t.atoms) {
      if (!body.empty()) body += "*";
      const Atom& a = atoms_[id];
      switch (a.kind) {
        case Atom::Kind::kSymbol: body += symbols_[a.symbol.id].name; break;
        case Atom::Kind::kMin:
        case Atom::Kind::kMax:
          body += a.kind == Atom::Kind::kMin ? "min(" : "max(";
          body += to_string(a.a) + ", " + to_string(a.b) + ")";
          break;
        case Atom::Kind::kFloorDiv:
        case Atom::Kind::kMod:
          body += "((" + to_string(a.a) + (a.kind == Atom::Kind::kMod ? ") % (" : ") // (") +
                  to_string(a.b) + "))";
          break;
      }
    }
    if (out.empty())
      out = negative ? "-" + body : body;
    else
      out += (negative ? " - " : " + ") + body;
  }
  return out;
}

std::optional<Dim> DimTable::parse(std::string_view text) { return Parser(*this, text).whole(); }

artifact::Expr DimTable::to_expr(Dim d) const {
  artifact::Expr out;
  const auto& terms = polys_[d.id];
  if (terms.empty()) out.push_back({Op::kConst, 0});
  bool first_term = true;
  for (const Term& t : terms) {
    bool first = true;
    if (t.atoms.empty() || t.coefficient != 1) {
      out.push_back({Op::kConst, t.coefficient});
      first = false;
    }
    for (int32_t id : t.atoms) {
      const Atom& a = atoms_[id];
      if (a.kind == Atom::Kind::kSymbol) {
        out.push_back({Op::kSymbol, a.symbol.id});
      } else {
        artifact::Expr x = to_expr(a.a), y = to_expr(a.b);
        out.insert(out.end(), x.begin(), x.end());
        out.insert(out.end(), y.begin(), y.end());
        switch (a.kind) {
          case Atom::Kind::kFloorDiv: out.push_back({Op::kFloorDiv, 0}); break;
          case Atom::Kind::kMod: out.push_back({Op::kMod, 0}); break;
          case Atom::Kind::kMin: out.push_back({Op::kMin, 0}); break;
          case Atom::Kind::kMax: out.push_back({Op::kMax, 0}); break;
          case Atom::Kind::kSymbol: break;
        }
      }
      if (!first) out.push_back({Op::kMul, 0});
      first = false;
    }
    if (!first_term) out.push_back({Op::kAdd, 0});
    first_term = false;
  }
  return out;
}

}  // namespace cuvil::ir
