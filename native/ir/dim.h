// Dims: integer expressions over named symbols, interned in canonical form, with ranges.
//
// Canonical form is a polynomial: a sum of coefficient * product of atoms, where an atom is a symbol
// or an irreducible floordiv, mod, min or max of two dims. Two dims that are equal as polynomials are
// the same Dim, so `(n - 1) + 1 == n` is a comparison of two ints.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "artifact/format.h"

namespace cuvil::ir {

// An index into a DimTable.
struct Dim {
  int32_t id = 0;
  bool operator==(const Dim&) const = default;
};

struct SymbolId {
  int32_t id = 0;
  bool operator==(const SymbolId&) const = default;
};

// Inclusive bounds.
struct Range {
  int64_t lo = INT64_MIN, hi = INT64_MAX;
  bool operator==(const Range&) const = default;
};

class DimTable {
 public:
  struct SymbolInfo {
    std::string name;  // "n", "x.stride0", "i"
    artifact::Symbol::Kind kind = artifact::Symbol::Kind::kInternal;
    uint32_t array = 0, axis = 0;
    Range range;
    std::optional<int64_t> example;  // its value in the call that is being compiled
  };

  DimTable();

  Dim constant(int64_t v);
  // Declares a new symbol. Caller-bound kinds must come with an example.
  SymbolId add_symbol(SymbolInfo info);
  Dim symbol(SymbolId s);
  const SymbolInfo& info(SymbolId s) const { return symbols_[s.id]; }
  SymbolInfo& info(SymbolId s) { return symbols_[s.id]; }
  size_t symbol_count() const { return symbols_.size(); }

  Dim add(Dim a, Dim b);
  Dim sub(Dim a, Dim b);
  Dim mul(Dim a, Dim b);
  Dim floordiv(Dim a, Dim b);
  Dim mod(Dim a, Dim b);
  Dim min(Dim a, Dim b);
  Dim max(Dim a, Dim b);
  Dim product(std::span<const Dim> dims);
  // nullopt: a coefficient overflows.
  std::optional<Dim> add_exactly(Dim a, Dim b);
  std::optional<Dim> mul_exactly(Dim a, Dim b);

  std::optional<int64_t> as_constant(Dim d) const;
  bool is_constant(Dim d, int64_t v) const { return as_constant(d) == v; }
  Range range(Dim d) const;                     // from the symbols' ranges
  std::optional<int64_t> example(Dim d) const;  // from the symbols' examples
  bool fits(Dim d) const;                       // int64 holds it, by the symbols' ranges
  bool depends_on_internal(Dim d) const;        // on a symbol the caller cannot bind
  void collect_symbols(Dim d, std::vector<SymbolId>* out) const;

  // Replaces symbols; used to compile one specialisation's dims with known values.
  Dim substitute(Dim d, const std::function<std::optional<Dim>(SymbolId)>& f);

  // Gives symbol s the number to[s] (a permutation). Dims keep their ids.
  void renumber_symbols(std::span<const int32_t> to);

  std::string to_string(Dim d) const;   // "2*n + 1", "min(n, 4)"
  artifact::Expr to_expr(Dim d) const;  // over symbol ids
  // Parses what to_string prints; symbols are found by name. nullopt: no such text.
  std::optional<Dim> parse(std::string_view text);

  // Structure, for code generation. A polynomial is a sum of terms.
  struct Term {
    int64_t coefficient;
    std::vector<int32_t> atoms;  // sorted atom ids, with repetition
    bool operator==(const Term&) const = default;
  };
  struct Atom {
    enum class Kind : uint8_t { kSymbol, kFloorDiv, kMod, kMin, kMax } kind;
    SymbolId symbol;  // kSymbol
    Dim a, b;         // the others
  };
  std::span<const Term> terms(Dim d) const { return polys_[d.id]; }
  const Atom& atom(int32_t id) const { return atoms_[id]; }

 private:
  // `overflow`: set if a coefficient does.
  Dim add(Dim a, Dim b, bool* overflow);
  Dim mul(Dim a, Dim b, bool* overflow);
  Dim intern(std::vector<Term> terms);
  Dim of_atom(Atom a);
  int32_t intern_atom(const Atom& a);

  std::deque<std::vector<Term>> polys_;
  std::unordered_multimap<uint64_t, int32_t> poly_index_;
  std::vector<Atom> atoms_;
  std::vector<SymbolInfo> symbols_;
};

}  // namespace cuvil::ir
