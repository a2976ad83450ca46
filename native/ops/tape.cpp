// Tape: sharing of equal instructions, folding of constants, names of primitives. Called by op bodies.
#include "ops/tape.h"

#include "ops/interpret.h"

namespace cuvil::ops {
namespace {

struct Row {
  const char* text;
  int arity;
};
constexpr Row kPrims[] = {
#define CUVIL_PRIM(id, arity, text) {text, arity},
#include "ops/scalar.def"
#undef CUVIL_PRIM
};
constexpr Row kMaths[] = {
#define CUVIL_MATH(name, arity) {#name, arity},
#include "ops/math.def"
#undef CUVIL_MATH
};

// Exact on the host, hence the same on every target. kMath is not: each target has its own table.
bool folds(Prim p) {
  switch (p) {
    case Prim::kLoad:
    case Prim::kConst:
    case Prim::kIndex:
    case Prim::kDim:
    case Prim::kAccumulator:
    case Prim::kMath:
    case Prim::kCheck: return false;
    default: return true;
  }
}

}  // namespace

const char* prim_name(Prim p) { return kPrims[static_cast<size_t>(p)].text; }
int prim_arity(Prim p) { return kPrims[static_cast<size_t>(p)].arity; }
const char* math_name(MathFn f) { return kMaths[static_cast<size_t>(f)].text; }
int math_arity(MathFn f) { return kMaths[static_cast<size_t>(f)].arity; }

Ref Tape::push(const Inst& inst) {
  auto is_const = [&](Ref r) { return !r.valid() || at(r).prim == Prim::kConst; };
  auto bits_of = [&](Ref r) { return r.valid() ? at(r).imm : 0; };
  if (inst.prim == Prim::kSelect) {
    if (inst.b == inst.c) return inst.b;
    if (is_const(inst.a)) return (bits_of(inst.a) & 1) ? inst.b : inst.c;
  }
  if (folds(inst.prim) && is_const(inst.a) && is_const(inst.b) && is_const(inst.c)) {
    Ref typed = inst.prim == Prim::kSelect ? inst.b : inst.a;
    auto v = evaluate(inst.prim, inst.type, type(typed), inst.imm, bits_of(inst.a), bits_of(inst.b),
                      bits_of(inst.c));
    if (v) return bits(inst.type, *v);
  }
  if (inst.prim != Prim::kCheck) {
    for (size_t i = insts.size(); i-- > 0;)
      if (insts[i] == inst) return Ref{static_cast<int32_t>(i)};
  }
  insts.push_back(inst);
  return Ref{static_cast<int32_t>(insts.size() - 1)};
}

Ref Tape::number(DType t, double v) {
  return bits(t, cast_bits(t, DType::kF64, std::bit_cast<uint64_t>(v)));
}

Ref Tape::integer(DType t, int64_t v) {
  return bits(t, cast_bits(t, DType::kI64, static_cast<uint64_t>(v)));
}

Ref Tape::bnot(Ref a) { return bxor(a, is_bool(type(a)) ? boolean(true) : integer(type(a), -1)); }

}  // namespace cuvil::ops
