// DimTable: interning, arithmetic in canonical form and ranges. Printing and parsing: dim_text.cpp.
#include "ir/dim.h"

#include <algorithm>

namespace cuvil::ir {
namespace {

// Saturating arithmetic on bounds: INT64_MIN and INT64_MAX stand for "unbounded".
constexpr int64_t kMin = INT64_MIN, kMax = INT64_MAX;

int64_t sat_add(int64_t a, int64_t b) {
  int64_t r;
  if (a == kMin || b == kMin) return kMin;
  if (a == kMax || b == kMax) return kMax;
  if (__builtin_add_overflow(a, b, &r)) return a > 0 ? kMax : kMin;
  return r;
}

int64_t sat_mul(int64_t a, int64_t b) {
  int64_t r;
  if (a == 0 || b == 0) return 0;
  bool negative = (a < 0) != (b < 0);
  if (a == kMin || a == kMax || b == kMin || b == kMax || __builtin_mul_overflow(a, b, &r))
    return negative ? kMin : kMax;
  return r;
}

Range add(Range a, Range b) {
  // A bound of the sum is unbounded if either is.
  int64_t lo = a.lo == kMin || b.lo == kMin ? kMin : sat_add(a.lo, b.lo);
  int64_t hi = a.hi == kMax || b.hi == kMax ? kMax : sat_add(a.hi, b.hi);
  return {lo, hi};
}

Range mul(Range a, Range b) {
  int64_t c[4] = {sat_mul(a.lo, b.lo), sat_mul(a.lo, b.hi), sat_mul(a.hi, b.lo),
                  sat_mul(a.hi, b.hi)};
  return {*std::min_element(c, c + 4), *std::max_element(c, c + 4)};
}

int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

int64_t floor_mod(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  int64_t r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}

uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  return h;
}

uint64_t hash_terms(const std::vector<DimTable::Term>& terms) {
  uint64_t h = terms.size();
  for (const auto& t : terms) {
    h = mix(h, static_cast<uint64_t>(t.coefficient));
    for (int32_t a : t.atoms) h = mix(h, static_cast<uint64_t>(a));
  }
  return h;
}

// Longer products first, then by atoms: the constant term is last.
bool term_order(const DimTable::Term& a, const DimTable::Term& b) {
  if (a.atoms.size() != b.atoms.size()) return a.atoms.size() > b.atoms.size();
  return a.atoms < b.atoms;
}

// `overflow`: set if a coefficient does.
std::vector<DimTable::Term> normalise(std::vector<DimTable::Term> terms, bool* overflow = nullptr) {
  std::sort(terms.begin(), terms.end(), term_order);
  std::vector<DimTable::Term> out;
  for (auto& t : terms) {
    if (!out.empty() && out.back().atoms == t.atoms) {
      int64_t& sum = out.back().coefficient;
      if (__builtin_add_overflow(sum, t.coefficient, &sum) && overflow) *overflow = true;
    } else {
      out.push_back(std::move(t));
    }
  }
  std::erase_if(out, [](const DimTable::Term& t) { return t.coefficient == 0; });
  return out;
}

int64_t wrap_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

}  // namespace

DimTable::DimTable() { intern({}); }  // id 0 is the constant 0

Dim DimTable::intern(std::vector<Term> terms) {
  uint64_t h = hash_terms(terms);
  auto [first, last] = poly_index_.equal_range(h);
  for (auto it = first; it != last; ++it)
    if (polys_[it->second] == terms) return Dim{it->second};
  auto id = static_cast<int32_t>(polys_.size());
  polys_.push_back(std::move(terms));
  poly_index_.emplace(h, id);
  return Dim{id};
}

int32_t DimTable::intern_atom(const Atom& a) {
  for (size_t i = 0; i < atoms_.size(); ++i) {
    const Atom& b = atoms_[i];
    if (a.kind == b.kind && a.symbol == b.symbol && a.a == b.a && a.b == b.b)
      return static_cast<int32_t>(i);
  }
  atoms_.push_back(a);
  return static_cast<int32_t>(atoms_.size() - 1);
}

Dim DimTable::of_atom(Atom a) { return intern({Term{1, {intern_atom(a)}}}); }

Dim DimTable::constant(int64_t v) {
  if (v == 0) return Dim{0};
  return intern({Term{v, {}}});
}

SymbolId DimTable::add_symbol(SymbolInfo info) {
  symbols_.push_back(std::move(info));
  return SymbolId{static_cast<int32_t>(symbols_.size() - 1)};
}

Dim DimTable::symbol(SymbolId s) { return of_atom(Atom{Atom::Kind::kSymbol, s, {}, {}}); }

Dim DimTable::add(Dim a, Dim b) { return add(a, b, nullptr); }
Dim DimTable::mul(Dim a, Dim b) { return mul(a, b, nullptr); }

std::optional<Dim> DimTable::add_exactly(Dim a, Dim b) {
  bool overflow = false;
  Dim sum = add(a, b, &overflow);
  return overflow ? std::nullopt : std::optional(sum);
}

std::optional<Dim> DimTable::mul_exactly(Dim a, Dim b) {
  bool overflow = false;
  Dim product = mul(a, b, &overflow);
  return overflow ? std::nullopt : std::optional(product);
}

Dim DimTable::add(Dim a, Dim b, bool* overflow) {
  std::vector<Term> t = polys_[a.id];
  t.insert(t.end(), polys_[b.id].begin(), polys_[b.id].end());
  return intern(normalise(std::move(t), overflow));
}

Dim DimTable::sub(Dim a, Dim b) { return add(a, mul(b, constant(-1))); }

Dim DimTable::mul(Dim a, Dim b, bool* overflow) {
  std::vector<Term> out;
  for (const Term& x : polys_[a.id]) {
    for (const Term& y : polys_[b.id]) {
      Term t{0, x.atoms};
      if (__builtin_mul_overflow(x.coefficient, y.coefficient, &t.coefficient) && overflow)
        *overflow = true;
      t.atoms.insert(t.atoms.end(), y.atoms.begin(), y.atoms.end());
      std::sort(t.atoms.begin(), t.atoms.end());
      out.push_back(std::move(t));
    }
  }
  return intern(normalise(std::move(out), overflow));
}

Dim DimTable::floordiv(Dim a, Dim b) {
  auto ca = as_constant(a), cb = as_constant(b);
  if (ca && cb) return constant(floor_div(*ca, *cb));
  if (cb && *cb == 1) return a;
  if (cb && *cb != 0) {
    // Divide exactly if every coefficient divides.
    const std::vector<Term>& terms = polys_[a.id];
    bool exact = std::all_of(terms.begin(), terms.end(),
                             [&](const Term& t) { return floor_mod(t.coefficient, *cb) == 0; });
    if (exact) {
      std::vector<Term> out = terms;
      for (Term& t : out) t.coefficient = floor_div(t.coefficient, *cb);
      return intern(normalise(std::move(out)));
    }
    // 0 <= a < b gives 0.
    Range r = range(a);
    if (*cb > 0 && r.lo >= 0 && r.hi < *cb) return constant(0);
  }
  if (a == b && (range(a).lo > 0 || range(a).hi < 0)) return constant(1);
  return of_atom(Atom{Atom::Kind::kFloorDiv, {}, a, b});
}

Dim DimTable::mod(Dim a, Dim b) {
  auto ca = as_constant(a), cb = as_constant(b);
  if (ca && cb) return constant(floor_mod(*ca, *cb));
  if (cb && (*cb == 1 || *cb == -1)) return constant(0);
  if (cb && *cb != 0) {
    const std::vector<Term>& terms = polys_[a.id];
    if (std::all_of(terms.begin(), terms.end(),
                    [&](const Term& t) { return floor_mod(t.coefficient, *cb) == 0; }))
      return constant(0);
    Range r = range(a);
    if (*cb > 0 && r.lo >= 0 && r.hi < *cb) return a;
  }
  if (a == b) return constant(0);
  return of_atom(Atom{Atom::Kind::kMod, {}, a, b});
}

Dim DimTable::min(Dim a, Dim b) {
  if (a == b) return a;
  Range d = range(sub(a, b));
  if (d.hi <= 0) return a;
  if (d.lo >= 0) return b;
  if (b.id < a.id) std::swap(a, b);
  return of_atom(Atom{Atom::Kind::kMin, {}, a, b});
}

Dim DimTable::max(Dim a, Dim b) {
  if (a == b) return a;
  Range d = range(sub(a, b));
  if (d.lo >= 0) return a;
  if (d.hi <= 0) return b;
  if (b.id < a.id) std::swap(a, b);
  return of_atom(Atom{Atom::Kind::kMax, {}, a, b});
}

Dim DimTable::product(std::span<const Dim> dims) {
  Dim r = constant(1);
  for (Dim d : dims) r = mul(r, d);
  return r;
}

std::optional<int64_t> DimTable::as_constant(Dim d) const {
  const std::vector<Term>& t = polys_[d.id];
  if (t.empty()) return 0;
  if (t.size() == 1 && t[0].atoms.empty()) return t[0].coefficient;
  return std::nullopt;
}

Range DimTable::range(Dim d) const {
  Range sum{0, 0};
  for (const Term& t : polys_[d.id]) {
    Range p{t.coefficient, t.coefficient};
    for (size_t i = 0; i < t.atoms.size(); ++i) {
      const Atom& a = atoms_[t.atoms[i]];
      Range r;
      switch (a.kind) {
        case Atom::Kind::kSymbol: r = symbols_[a.symbol.id].range; break;
        case Atom::Kind::kMin: {
          Range x = range(a.a), y = range(a.b);
          r = {std::min(x.lo, y.lo), std::min(x.hi, y.hi)};
          break;
        }
        case Atom::Kind::kMax: {
          Range x = range(a.a), y = range(a.b);
          r = {std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
          break;
        }
        case Atom::Kind::kFloorDiv: {
          Range x = range(a.a), y = range(a.b);
          if (y.lo > 0) {
            r.lo = x.lo == kMin ? kMin : std::min(floor_div(x.lo, y.lo), floor_div(x.lo, y.hi));
            r.hi = x.hi == kMax ? kMax : std::max(floor_div(x.hi, y.lo), floor_div(x.hi, y.hi));
          }
          break;
        }
        case Atom::Kind::kMod: {
          Range y = range(a.b);
          if (y.lo > 0) r = {0, y.hi == kMax ? kMax : y.hi - 1};
          break;
        }
      }
      // An even power of one atom is not negative.
      bool square = i + 1 < t.atoms.size() && t.atoms[i + 1] == t.atoms[i];
      Range factor = square ? ir::mul(r, r) : r;
      if (square) {
        if (r.lo < 0 && r.hi > 0) factor.lo = 0;
        ++i;
      }
      p = ir::mul(p, factor);
    }
    sum = ir::add(sum, p);
  }
  return sum;
}

bool DimTable::fits(Dim d) const {
  const Range r = range(d);
  return r.lo != kMin && r.hi != kMax;
}

std::optional<int64_t> DimTable::example(Dim d) const {
  int64_t sum = 0;
  for (const Term& t : polys_[d.id]) {
    int64_t p = t.coefficient;
    for (int32_t id : t.atoms) {
      const Atom& a = atoms_[id];
      int64_t v = 0;
      if (a.kind == Atom::Kind::kSymbol) {
        if (!symbols_[a.symbol.id].example) return std::nullopt;
        v = *symbols_[a.symbol.id].example;
      } else {
        auto x = example(a.a), y = example(a.b);
        if (!x || !y) return std::nullopt;
        switch (a.kind) {
          case Atom::Kind::kFloorDiv: v = floor_div(*x, *y); break;
          case Atom::Kind::kMod: v = floor_mod(*x, *y); break;
          case Atom::Kind::kMin: v = std::min(*x, *y); break;
          case Atom::Kind::kMax: v = std::max(*x, *y); break;
          case Atom::Kind::kSymbol: return std::nullopt;
        }
      }
      p = wrap_mul(p, v);
    }
    sum = static_cast<int64_t>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(p));
  }
  return sum;
}

void DimTable::collect_symbols(Dim d, std::vector<SymbolId>* out) const {
  for (const Term& t : polys_[d.id]) {
    for (int32_t id : t.atoms) {
      const Atom& a = atoms_[id];
      if (a.kind != Atom::Kind::kSymbol) {
        collect_symbols(a.a, out);
        collect_symbols(a.b, out);
      } else if (std::find(out->begin(), out->end(), a.symbol) == out->end()) {
        out->push_back(a.symbol);
      }
    }
  }
}

bool DimTable::depends_on_internal(Dim d) const {
  std::vector<SymbolId> used;
  collect_symbols(d, &used);
  return std::any_of(used.begin(), used.end(), [&](SymbolId s) {
    return symbols_[s.id].kind == artifact::Symbol::Kind::kInternal;
  });
}

Dim DimTable::substitute(Dim d, const std::function<std::optional<Dim>(SymbolId)>& f) {
  Dim sum = constant(0);
  const std::vector<Term> terms = polys_[d.id];  // copies: interning may grow the tables
  for (const Term& t : terms) {
    Dim p = constant(t.coefficient);
    for (int32_t id : t.atoms) {
      const Atom a = atoms_[id];
      Dim v;
      switch (a.kind) {
        case Atom::Kind::kSymbol: {
          auto r = f(a.symbol);
          v = r ? *r : symbol(a.symbol);
          break;
        }
        case Atom::Kind::kFloorDiv: v = floordiv(substitute(a.a, f), substitute(a.b, f)); break;
        case Atom::Kind::kMod: v = mod(substitute(a.a, f), substitute(a.b, f)); break;
        case Atom::Kind::kMin: v = min(substitute(a.a, f), substitute(a.b, f)); break;
        case Atom::Kind::kMax: v = max(substitute(a.a, f), substitute(a.b, f)); break;
      }
      p = mul(p, v);
    }
    sum = add(sum, p);
  }
  return sum;
}

void DimTable::renumber_symbols(std::span<const int32_t> to) {
  std::vector<SymbolInfo> moved(symbols_.size());
  for (size_t s = 0; s < symbols_.size(); ++s)
    moved[static_cast<size_t>(to[s])] = std::move(symbols_[s]);
  symbols_ = std::move(moved);
  for (Atom& a : atoms_)
    if (a.kind == Atom::Kind::kSymbol) a.symbol.id = to[static_cast<size_t>(a.symbol.id)];
}

}  // namespace cuvil::ir
