// sin, cos and tan: x = n pi/2 + r with |r| <= pi/4 (Cody & Waite 1980), polynomials in r.
//
//        |x| <= limit everywhere?
//          |             \ no
//       (fast r)      reduce_huge, per lane selected where |x| > limit
//          |             /
//        phi r, quadrant -> polynomials -> select by quadrant
//
// A lane gets the same reduction whether or not its neighbours forced the slow block.
#include "math_coeffs.h"
#include "math_kernels.h"

#include <llvm/IR/MDBuilder.h>

namespace cuvil::codegen {

using llvm::Value;

namespace {

constexpr double two_over_pi = 0x1.45f306dc9c883p-1;

TrigReduction reduce_moderate(MathBuilder& m, Value* x) {
  const Rounded n = m.round(x, two_over_pi);
  if (m.is_f32()) {
    // The first step is exact thanks to FMA. The second one's rounding error follows in two
    // operations where the head dominates; where it does not, r is too small for it to matter.
    Value* head = m.mul_add(n.value, -0x1.921fb6p+0, x);
    Value* r = m.mul_add(n.value, 0x1.777a5cp-25, head);
    Value* error = m.mul_add(n.value, 0x1.777a5cp-25, m.sub(head, r));
    error = m.select(m.gt(m.abs(head), 0x1p-9), error, m.c(0));
    return {{r, m.mul_add(n.value, 0x1.ee59dap-50, error)}, n.bits};
  }
  // Heads of 33 bits make n * head exact for |n| < 2^20, with or without FMA.
  Value* head = m.mul_add(n.value, -0x1.921fb544p+0, x);
  if (m.is_wide()) return {{m.mul_add(n.value, -0x1.0b4611a626331p-34, head)}, n.bits};
  const Pair second = m.two_sum(head, m.mul(n.value, -0x1.0b4611a6p-34));
  const Pair third = m.two_sum(second.hi, m.mul(n.value, -0x1.3198a2e0p-69));
  Value* low = m.mul_add(n.value, -0x1.b839a252049c1p-104, m.add(second.lo, third.lo));
  return {m.fast_two_sum(third.hi, low), n.bits};
}

Value* any(MathBuilder& m, Value* mask) {
  return mask->getType()->isVectorTy() ? m.b.CreateOrReduce(mask) : mask;
}

TrigReduction reduce(MathBuilder& m, Value* x) {
  TrigReduction fast = reduce_moderate(m, x);
  // An infinity stays with the fast path, where inf - inf makes it NaN.
  Value* size = m.abs(x);
  Value* huge =
      m.b.CreateAnd(m.gt(size, m.by_type(0x1p15, 0x1p20)), m.b.CreateFCmpOLT(size, m.inf()));
  llvm::BasicBlock* entry = m.b.GetInsertBlock();
  llvm::Function* function = entry->getParent();
  auto& context = m.b.getContext();
  // What already follows the insertion point moves behind the merge.
  llvm::BasicBlock* merge;
  if (m.b.GetInsertPoint() == entry->end()) {
    merge = llvm::BasicBlock::Create(context, "trig.reduced", function);
  } else {
    merge = entry->splitBasicBlock(m.b.GetInsertPoint(), "trig.reduced");
    entry->getTerminator()->eraseFromParent();
  }
  auto* slow_block = llvm::BasicBlock::Create(context, "trig.huge", function, merge);
  m.b.SetInsertPoint(entry);
  m.b.CreateCondBr(any(m, huge), slow_block, merge,
                   llvm::MDBuilder(context).createUnlikelyBranchWeights());

  m.b.SetInsertPoint(slow_block);
  const TrigReduction slow = reduce_huge(m, x);
  const Pair r = m.select(huge, slow.r, fast.r);
  Value* quadrant = m.b.CreateSelect(huge, slow.quadrant, fast.quadrant);
  m.b.CreateBr(merge);

  m.b.SetInsertPoint(merge, merge->begin());
  auto phi = [&](Value* from_fast, Value* from_slow) -> Value* {
    if (!from_slow) return nullptr;
    auto* node = m.b.CreatePHI(from_slow->getType(), 2);
    node->addIncoming(from_fast, entry);
    node->addIncoming(from_slow, slow_block);
    return node;
  };
  Value* hi = phi(fast.r.hi, r.hi);
  Value* lo = phi(fast.r.lo, r.lo);
  return {{hi, lo}, phi(fast.quadrant, quadrant)};
}

struct SinCos {
  Pair sin, cos;  // unnormalised: the low parts hold everything but the leading term
};

SinCos sin_cos(MathBuilder& m, Pair r) {
  Value* z = m.mul(r.hi, r.hi);
  if (m.is_f32()) {
    Value* sin_tail = m.mul_add(m.mul(z, r.hi), m.poly(z, coeffs::sin), r.lo);
    // Small terms first: each sum of the size of z / 2 costs a quarter of a unit.
    Value* small = m.mul_add(m.mul(z, z), m.poly(z, coeffs::cos), m.mul(m.neg(r.hi), r.lo));
    return {{r.hi, sin_tail}, {m.c(1), m.mul_add(z, -0.5, small)}};
  }
  Value* half = m.mul(z, 0.5);
  Value* w = m.b.CreateFSub(m.c(1), half);
  // cos(r) as the factor of the low part is enough at 1 - r^2/2.
  Value* sin_tail = m.mul_add(m.mul(z, r.hi), m.poly(z, coeffs::sin), m.mul(r.lo, w));
  Value* cos_tail = m.mul(m.mul(z, z), m.poly(z, coeffs::cos));
  if (!m.is_wide()) {
    Value* w_error = m.sub(m.b.CreateFSub(m.c(1), w), half);
    cos_tail = m.add(m.mul_add(m.neg(r.hi), r.lo, w_error), cos_tail);
  }
  return {{r.hi, sin_tail}, {w, cos_tail}};
}

Value* bit(MathBuilder& m, Value* x, int64_t mask) {
  return m.b.CreateICmpNE(m.b.CreateAnd(x, m.ci(mask)), m.ci(0));
}

Value* flip_sign(MathBuilder& m, Value* x, Value* quadrant) {
  // Quadrants 2 and 3: bit 1 becomes the sign bit.
  const int to_top = m.is_f32() ? 30 : 62;
  Value* sign = m.b.CreateShl(m.b.CreateAnd(quadrant, m.ci(2)), m.ci(to_top));
  return m.from_bits(m.b.CreateXor(m.to_bits(x), sign));
}

}  // namespace

Value* emit_sin(MathBuilder& m, Value* x) {
  const auto [r, quadrant] = reduce(m, x);
  const auto [sin, cos] = sin_cos(m, r);
  Value* y = m.select(bit(m, quadrant, 1), m.sum(cos), m.sum(sin));
  // Zero keeps its sign.
  return m.select(m.eq(x, 0), x, flip_sign(m, y, quadrant));
}

Value* emit_cos(MathBuilder& m, Value* x) {
  const auto [r, quadrant] = reduce(m, x);
  const auto [sin, cos] = sin_cos(m, r);
  Value* y = m.select(bit(m, quadrant, 1), m.sum(sin), m.sum(cos));
  return flip_sign(m, y, m.b.CreateAdd(quadrant, m.ci(1)));
}

Value* emit_tan(MathBuilder& m, Value* x) {
  const auto [r, quadrant] = reduce(m, x);
  const auto [sin, cos] = sin_cos(m, r);
  const Pair s = m.fast_two_sum(sin.hi, sin.lo), c = m.fast_two_sum(cos.hi, cos.lo);
  Value* odd = bit(m, quadrant, 1);
  Value* y = m.sum(m.div(m.select(odd, m.neg(c), s), m.select(odd, s, c)));
  return m.select(m.eq(x, 0), x, y);
}

}  // namespace cuvil::codegen
