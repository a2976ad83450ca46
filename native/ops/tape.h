// A tape: scalar primitives in SSA form, straight-line. What a kernel does to one element.
// Written by the bodies of ops, folded and interpreted by tests, emitted by codegen/expr at any width.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "support/dtype.h"

namespace cuvil::ops {

enum class Prim : uint8_t {
#define CUVIL_PRIM(id, arity, text) id,
#include "ops/scalar.def"
#undef CUVIL_PRIM
};

enum class MathFn : uint8_t {
#define CUVIL_MATH(name, arity) name,
#include "ops/math.def"
#undef CUVIL_MATH
};

const char* prim_name(Prim p);
int prim_arity(Prim p);
const char* math_name(MathFn f);
int math_arity(MathFn f);

// An instruction of a tape, by position.
struct Ref {
  int32_t id = -1;
  bool valid() const { return id >= 0; }
  bool operator==(const Ref&) const = default;
};

struct Inst {
  Prim prim = Prim::kConst;
  DType type = DType::kF32;
  Ref a, b, c;
  uint64_t imm = 0;
  bool operator==(const Inst&) const = default;
};

// Appends instructions; equal pure instructions are shared, constants fold where that is exact.
class Tape {
 public:
  std::vector<Inst> insts;

  const Inst& at(Ref r) const { return insts[r.id]; }
  DType type(Ref r) const { return insts[r.id].type; }
  bool empty() const { return insts.empty(); }

  Ref push(const Inst& inst);

  // Leaves.
  Ref load(DType t, uint32_t input) { return push({Prim::kLoad, t, {}, {}, {}, input}); }
  Ref bits(DType t, uint64_t raw) { return push({Prim::kConst, t, {}, {}, {}, raw}); }
  Ref number(DType t, double v);    // v converted to t
  Ref integer(DType t, int64_t v);  // v converted to t (wraps; exact for every int type)
  Ref boolean(bool v) { return bits(DType::kBool, v ? 1 : 0); }
  Ref index(uint32_t axis) { return push({Prim::kIndex, DType::kI64, {}, {}, {}, axis}); }
  Ref dim(int32_t dim_id) {
    return push({Prim::kDim, DType::kI64, {}, {}, {}, static_cast<uint64_t>(dim_id)});
  }
  Ref accumulator(DType t, uint32_t k) { return push({Prim::kAccumulator, t, {}, {}, {}, k}); }

  // T is the type of a.
  Ref unary(Prim p, Ref a) { return push({p, type(a), a, {}, {}, 0}); }
  Ref binary(Prim p, Ref a, Ref b) { return push({p, type(a), a, b, {}, 0}); }
  Ref add(Ref a, Ref b) { return binary(Prim::kAdd, a, b); }
  Ref sub(Ref a, Ref b) { return binary(Prim::kSub, a, b); }
  Ref mul(Ref a, Ref b) { return binary(Prim::kMul, a, b); }
  Ref div(Ref a, Ref b) { return binary(Prim::kDiv, a, b); }
  Ref rem(Ref a, Ref b) { return binary(Prim::kRem, a, b); }
  Ref neg(Ref a) { return unary(Prim::kNeg, a); }
  Ref abs(Ref a) { return unary(Prim::kAbs, a); }
  Ref band(Ref a, Ref b) { return binary(Prim::kAnd, a, b); }
  Ref bor(Ref a, Ref b) { return binary(Prim::kOr, a, b); }
  Ref bxor(Ref a, Ref b) { return binary(Prim::kXor, a, b); }
  Ref bnot(Ref a);  // bool: logical not; ints: ~a
  Ref compare(Prim p, Ref a, Ref b) { return push({p, DType::kBool, a, b, {}, 0}); }
  Ref eq(Ref a, Ref b) { return compare(Prim::kEq, a, b); }
  Ref ne(Ref a, Ref b) { return compare(Prim::kNe, a, b); }
  Ref lt(Ref a, Ref b) { return compare(Prim::kLt, a, b); }
  Ref le(Ref a, Ref b) { return compare(Prim::kLe, a, b); }
  Ref is_nan(Ref a) { return ne(a, a); }
  Ref select(Ref c, Ref t, Ref f) { return push({Prim::kSelect, type(t), c, t, f, 0}); }
  Ref cast(DType t, Ref a) { return t == type(a) ? a : push({Prim::kCast, t, a, {}, {}, 0}); }
  Ref bitcast(DType t, Ref a) { return t == type(a) ? a : push({Prim::kBitcast, t, a, {}, {}, 0}); }
  Ref math(MathFn f, Ref a, Ref b = {}) {
    return push({Prim::kMath, type(a), a, b, {}, static_cast<uint64_t>(f)});
  }
  Ref check(Ref condition, uint32_t site) {
    return push({Prim::kCheck, DType::kBool, condition, {}, {}, site});
  }
};

}  // namespace cuvil::ops
