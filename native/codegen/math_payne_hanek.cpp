// The trigonometric reduction of huge arguments (Payne & Hanek 1983), in integers and branch-free.
//
// x = m 2^k with a 53-bit integer m. Bits of 2/pi that give multiples of 4 when multiplied by x do
// not matter, and 192 bits after those are enough for every double:
//
//   2/pi = 0.[ multiples of 4 | 192-bit window W | too small ]
//   m W mod 2^192 = [ 2 bits: quadrant | 190 bits: fraction of a quadrant ]
//
// The window is picked out of constants by a tree of selects on the bits of its position: no table
// in memory, hence no relocation and no gather, and the same code for scalars on a GPU.
#include "math_kernels.h"

#include <llvm/ADT/SmallVector.h>

#include <array>

namespace cuvil::codegen {

using llvm::Value;

namespace {

// 64 zero bits, then the fraction of 2/pi.
constexpr std::array<uint64_t, 20> two_over_pi = {
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
    0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e,
    0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b,
    0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
};
constexpr int leading_zeros = 64;
constexpr int window_words = 3;

using Words = llvm::SmallVector<Value*, 20>;

// The 192-bit window that starts `position` bits into the table; most significant word first.
Words window(MathBuilder& m, Value* position, int last_position) {
  auto& b = m.b;
  const int last_word = last_position / 64;
  Words words;
  for (int k = 0; k < last_word + window_words + 1; k++)
    words.push_back(m.ci(static_cast<int64_t>(two_over_pi[k])));
  Value* word = b.CreateLShr(position, m.ci(6));
  int level = 1;
  while (2 * level <= last_word) level *= 2;
  for (; level > 0; level /= 2) {
    // After this level the words still needed start at most level - 1 further on.
    const size_t reach = level - 1;
    Value* taken = b.CreateICmpNE(b.CreateAnd(word, m.ci(level)), m.ci(0));
    Words next;
    for (size_t k = 0; k < window_words + 1 + reach && k < words.size(); k++)
      next.push_back(k + level < words.size() ? b.CreateSelect(taken, words[k + level], words[k])
                                              : words[k]);
    words = next;
  }
  // Shift left by position mod 64. The right shift in two steps avoids shifting by 64.
  Value* left = b.CreateAnd(position, m.ci(63));
  Value* right = b.CreateSub(m.ci(63), left);
  Words result;
  for (int k = 0; k < window_words; k++) {
    Value* carried = b.CreateLShr(b.CreateLShr(words[k + 1], m.ci(1)), right);
    result.push_back(b.CreateOr(b.CreateShl(words[k], left), carried));
  }
  return result;
}

// significand * window mod 2^192 in 32-bit limbs, least significant first. 32-bit factors keep
// every product and its carries within 64 bits.
Words multiply(MathBuilder& m, Value* significand, const Words& window) {
  auto& b = m.b;
  Value* mask = m.ci(0xffffffff);
  Value* low = b.CreateAnd(significand, mask);
  Value* high = b.CreateLShr(significand, m.ci(32));
  Words limbs;
  for (int k = window_words - 1; k >= 0; k--) {
    limbs.push_back(b.CreateAnd(window[k], mask));
    limbs.push_back(b.CreateLShr(window[k], m.ci(32)));
  }
  Words product;
  Value* carry = m.ci(0);
  for (size_t k = 0; k < limbs.size(); k++) {
    Value* first = b.CreateAdd(b.CreateMul(low, limbs[k]), carry);
    Value* second = b.CreateAnd(first, mask);
    if (k > 0) second = b.CreateAdd(second, b.CreateMul(high, limbs[k - 1]));
    product.push_back(b.CreateAnd(second, mask));
    carry = b.CreateAdd(b.CreateLShr(first, m.ci(32)), b.CreateLShr(second, m.ci(32)));
  }
  return product;
}

TrigReduction reduce_double(MathBuilder& m, Value* x) {
  auto& b = m.b;
  Value* bits = m.to_bits(m.abs(x));
  Value* biased = b.CreateLShr(bits, m.ci(52));
  Value* significand = b.CreateOr(b.CreateAnd(bits, m.ci(0xfffffffffffff)), m.ci(int64_t{1} << 52));
  // k = biased - 1075; the bits before k - 2 give multiples of 4. Arguments that are not huge give
  // positions out of range, and their lanes are discarded.
  Value* position = b.CreateSub(biased, m.ci(1075 + 2 - leading_zeros));
  const int last_position = (m.is_wide() ? 127 + 1023 : 2046) - 1077 + leading_zeros;
  const Words p = multiply(m, significand, window(m, position, last_position));

  // 128 bits of fraction, most significant chunk first, read as a signed number in [-1/2, 1/2).
  Value* mask = m.ci(0xffffffff);
  auto chunk = [&](int k) {
    Value* upper = b.CreateShl(p[5 - k], m.ci(2));
    return b.CreateAnd(b.CreateOr(upper, b.CreateLShr(p[4 - k], m.ci(30))), mask);
  };
  Value* top = chunk(0);
  Value* quadrant = b.CreateAdd(b.CreateLShr(p[5], m.ci(30)), b.CreateLShr(top, m.ci(31)));
  Value* signed_top = m.to_fp(b.CreateXor(top, m.ci(0x80000000)), 0x1p31);
  Pair turn = m.two_sum(m.mul(signed_top, 0x1p-32), m.mul(m.to_fp(chunk(1), 0.0), 0x1p-64));
  if (!m.is_wide()) {
    const Pair more = m.two_sum(turn.hi, m.mul(m.to_fp(chunk(2), 0.0), 0x1p-96));
    Value* low = m.mul(m.to_fp(chunk(3), 0.0), 0x1p-128);
    turn = m.fast_two_sum(more.hi, m.add(m.add(turn.lo, more.lo), low));
  }
  const Pair r = m.mul(turn, Constant2{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54});

  Value* negative = m.lt(x, 0.0);
  return {m.select(negative, m.neg(r), r),
          b.CreateSelect(negative, b.CreateNeg(quadrant), quadrant)};
}

}  // namespace

TrigReduction reduce_huge(MathBuilder& m, Value* x) {
  if (!m.is_f32()) return reduce_double(m, x);
  // A double holds the reduced argument of a float to far more bits than sin and cos can use.
  llvm::Type* type = m.fp->getWithNewType(m.b.getDoubleTy());
  MathBuilder wide(m.b, Precision::wide, m.has_fma, type);
  const TrigReduction reduced = reduce_double(wide, m.b.CreateFPExt(x, type));
  Value* hi = m.b.CreateFPTrunc(reduced.r.hi, m.fp);
  Value* rest = m.b.CreateFSub(reduced.r.hi, m.b.CreateFPExt(hi, type));
  return {{hi, m.b.CreateFPTrunc(rest, m.fp)}, m.b.CreateTrunc(reduced.quadrant, m.i)};
}

}  // namespace cuvil::codegen
