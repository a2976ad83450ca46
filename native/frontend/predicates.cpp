// Questions about dims: proven from ranges, answered for the present call with a predicate, or refused.
#include <algorithm>

#include "frontend/interpreter.h"
#include "ops/structural.h"

namespace cuvil::frontend {
namespace {

using Kind = ir::DimTable::Atom::Kind;

}  // namespace

ir::Dim Interpreter::new_symbol(const std::string& stem, ir::Range range) {
  ir::DimTable::SymbolInfo info;
  info.name = unique_symbol(stem + std::to_string(symbol_counter_++));
  info.range = range;
  return g_.dims.symbol(g_.dims.add_symbol(std::move(info)));
}

// Replaces loop indices by the end of their range that makes `d` largest (or smallest).
ir::Dim Interpreter::bound(ir::Dim d, bool upper) {
  for (int round = 0; round < 8; ++round) {
    ir::Dim sum = g_.dims.constant(0);
    bool changed = false;
    auto terms_view = g_.dims.terms(d);
    const std::vector<ir::DimTable::Term> terms(terms_view.begin(), terms_view.end());
    for (const auto& term : terms) {
      ir::Dim rest = g_.dims.constant(term.coefficient);
      const Bounds* found = nullptr;
      int32_t symbol = -1;
      for (int32_t id : term.atoms) {
        const ir::DimTable::Atom atom = g_.dims.atom(id);
        auto it = atom.kind == Kind::kSymbol ? bounds_.find(atom.symbol.id) : bounds_.end();
        if (it != bounds_.end() && atom.symbol.id > symbol) {
          found = &it->second;
          symbol = atom.symbol.id;
        }
      }
      bool taken = false;
      for (int32_t id : term.atoms) {
        const ir::DimTable::Atom atom = g_.dims.atom(id);
        if (found && !taken && atom.kind == Kind::kSymbol && atom.symbol.id == symbol) {
          taken = true;
          continue;
        }
        ir::Dim factor;
        switch (atom.kind) {
          case Kind::kSymbol: factor = g_.dims.symbol(atom.symbol); break;
          case Kind::kFloorDiv: factor = g_.dims.floordiv(atom.a, atom.b); break;
          case Kind::kMod: factor = g_.dims.mod(atom.a, atom.b); break;
          case Kind::kMin: factor = g_.dims.min(atom.a, atom.b); break;
          case Kind::kMax: factor = g_.dims.max(atom.a, atom.b); break;
        }
        rest = g_.dims.mul(rest, factor);
      }
      if (found) {
        ir::Range r = g_.dims.range(rest);
        bool positive = r.lo >= 0, negative = r.hi <= 0;
        ir::Dim end = found->lo;
        if (positive ? upper : !upper) end = found->hi;
        if (positive || negative) {
          rest = g_.dims.mul(rest, end);
          changed = true;
        } else {
          rest = g_.dims.mul(rest, g_.dims.symbol(ir::SymbolId{symbol}));
        }
      }
      sum = g_.dims.add(sum, rest);
    }
    d = sum;
    if (!changed) break;
  }
  return d;
}

bool Interpreter::provably_less(ir::Dim a, ir::Dim b) {
  ir::Dim slack = g_.dims.sub(b, a);
  if (g_.dims.range(slack).lo >= 1) return true;
  return g_.dims.range(bound(slack, false)).lo >= 1;
}

Result<bool> Interpreter::less(ir::Dim a, ir::Dim b, const Node& n) {
  if (provably_less(a, b)) return true;
  // b <= a for every value?
  if (provably_less(b, g_.dims.add(a, g_.dims.constant(1)))) return false;
  ops::Builder builder_here = builder(n);
  const ir::Dim difference = g_.dims.sub(a, b), zero = g_.dims.constant(0);
  if (g_.dims.depends_on_internal(difference)) {
    // The same answer in every iteration, if what the caller bound is as in this call.
    for (bool upper : {true, false}) {
      const ir::Dim end = bound(difference, upper);
      std::optional<int64_t> here = g_.dims.example(end);
      if (here && !g_.dims.depends_on_internal(end) && (*here < 0) == upper)
        return builder_here.less(end, zero);
    }
  }
  Result<bool> r = builder_here.less(a, b);
  if (r.ok()) {
    // What holds from here on tightens the range of a plain symbol.
    auto tighten = [&](ir::Dim d, std::optional<int64_t> lo, std::optional<int64_t> hi) {
      auto terms = g_.dims.terms(d);
      if (terms.size() != 1 || terms[0].coefficient != 1 || terms[0].atoms.size() != 1) return;
      const ir::DimTable::Atom atom = g_.dims.atom(terms[0].atoms[0]);
      if (atom.kind != Kind::kSymbol) return;
      ir::Range& range = g_.dims.info(atom.symbol).range;
      if (lo) range.lo = std::max(range.lo, *lo);
      if (hi) range.hi = std::min(range.hi, *hi);
    };
    std::optional<int64_t> ca = g_.dims.as_constant(a), cb = g_.dims.as_constant(b);
    if (ca) *r ? tighten(b, *ca + 1, {}) : tighten(b, {}, *ca);
    if (cb) *r ? tighten(a, {}, *cb - 1) : tighten(a, *cb, {});
  }
  return r;
}

// Python ints do not overflow: the result of arithmetic on run-time ones, if int64 holds it in every call that
// this code is for. That its operands are small becomes a condition; what only the running code knows is
// checked there. nullopt: with static ints, then.
Result<std::optional<ir::Dim>> Interpreter::fitting(std::optional<ir::Dim> result, const Node& n) {
  ir::DimTable& dims = g_.dims;
  if (!result || dims.fits(*result)) return result;
  std::vector<ir::SymbolId> symbols;
  dims.collect_symbols(*result, &symbols);
  std::erase_if(symbols, [&](ir::SymbolId s) { return !dims.info(s).example; });
  for (int bits : {31, 24, 20, 15, 10}) {
    const int64_t limit = int64_t{1} << bits;
    auto small = [&](ir::SymbolId s) {
      const int64_t v = *dims.info(s).example;
      return -limit <= v && v <= limit;
    };
    if (!std::all_of(symbols.begin(), symbols.end(), small)) break;
    std::vector<ir::Range> before;
    for (ir::SymbolId s : symbols) {
      ir::Range& r = dims.info(s).range;
      before.push_back(r);
      r = {std::max(r.lo, -limit), std::min(r.hi, limit)};
    }
    const bool fits = dims.fits(*result);
    for (size_t k = 0; k < symbols.size(); ++k) dims.info(symbols[k]).range = before[k];
    if (!fits) continue;
    for (ir::SymbolId s : symbols) {
      const ir::Dim v = dims.symbol(s);
      CUVIL_CHECK(less(dims.constant(-limit - 1), v, n));
      CUVIL_CHECK(less(v, dims.constant(limit + 1), n));
    }
    return result;
  }
  if (!dims.depends_on_internal(*result)) return std::optional<ir::Dim>();
  g_.add_op(region_, *ops::find_desc("check_fits"), {}, {},
            {{ops::attr::kLhs, ir::Shape{*result}},
             {ops::attr::kError, int64_t{static_cast<int>(ErrorClass::kUnsupported)}},
             {ops::attr::kMessage, std::string("an int grows beyond 64 bits in compiled code")},
             {ops::attr::kRemedy, std::string("use a float, or numbers that stay smaller")},
             {ops::attr::kPayload, ir::Shape{}}},
            loc(n));
  return result;
}

Result<bool> Interpreter::equal(ir::Dim a, ir::Dim b, const Node& n) {
  if (a == b) return true;
  if (provably_less(a, b) || provably_less(b, a)) return false;
  ops::Builder builder_here = builder(n);
  return builder_here.equal(a, b);
}

}  // namespace cuvil::frontend
