// kRem of floats: C's fmod, exact, without a library. A vector path for quotients that fit a significand,
// and a function with long division for the rest.
#include <llvm/IR/Intrinsics.h>

#include "codegen/expr.h"

namespace cuvil::codegen {

using llvm::Value;

namespace {

struct Layout {
  unsigned bits, fraction;  // of the format
  unsigned step;            // how far a remainder can be shifted in 64 bits
};

}  // namespace

// With significands m and exponents e, |a| = ma * 2^ea and |b| = mb * 2^eb, ea >= eb:
// the result is ((ma << (ea - eb)) mod mb) * 2^eb, computed `step` bits at a time.
llvm::Function* Expr::fmod_function(bool is_double) {
  const char* name = is_double ? "fmod_f64" : "fmod_f32";
  if (llvm::Function* f = u_.module.getFunction(name)) return f;
  const Layout l = is_double ? Layout{64, 52, 11} : Layout{32, 23, 40};
  llvm::Type* real = is_double ? u_.f64 : u_.f32;
  llvm::Type* own = llvm::IntegerType::get(u_.context, l.bits);
  auto* fn = llvm::Function::Create(llvm::FunctionType::get(real, {real, real}, false),
                                    llvm::Function::InternalLinkage, name, u_.module);
  u_.set_attributes(*fn);
  auto* null = llvm::ConstantPointerNull::get(u_.ptr);
  FunctionBuilder f(u_, fn, null, null, false);
  auto& B = f.b;
  auto c = [&](uint64_t v) { return u_.i64_const(static_cast<int64_t>(v)); };
  Value *a = fn->getArg(0), *b = fn->getArg(1);
  uint64_t sign_bit = 1ull << (l.bits - 1), hidden = 1ull << l.fraction;
  uint64_t infinity = (sign_bit - 1) & ~(hidden - 1);
  Value* ua = B.CreateZExt(B.CreateBitCast(a, own), u_.i64);
  Value* ub = B.CreateZExt(B.CreateBitCast(b, own), u_.i64);
  Value* sign = B.CreateAnd(ua, c(sign_bit));
  ua = B.CreateAnd(ua, c(sign_bit - 1));
  ub = B.CreateAnd(ub, c(sign_bit - 1));
  auto leave = [&](Value* condition, Value* result) { f.return_if(condition, result); };
  Value* invalid = B.CreateOr(B.CreateICmpEQ(ub, c(0)), B.CreateICmpUGE(ua, c(infinity)));
  invalid = B.CreateOr(invalid, B.CreateICmpUGT(ub, c(infinity)));
  leave(invalid, llvm::ConstantFP::getNaN(real));
  leave(B.CreateICmpULT(ua, ub), a);
  auto split = [&](Value* bits, Value** m, Value** e) {
    Value* exponent = B.CreateLShr(bits, c(l.fraction));
    Value* subnormal = B.CreateICmpEQ(exponent, c(0));
    Value* fraction = B.CreateAnd(bits, c(hidden - 1));
    *m = B.CreateSelect(subnormal, fraction, B.CreateOr(fraction, c(hidden)));
    *e = B.CreateSelect(subnormal, c(1), exponent);
  };
  Value *ma, *ea, *mb, *eb;
  split(ua, &ma, &ea);
  split(ub, &mb, &eb);
  Value* distance = B.CreateSub(ea, eb);
  llvm::SmallVector<Value*, 1> rest{B.CreateURem(ma, mb)};
  f.loop(c(0), distance, l.step, rest, [&](Value* done, llvm::SmallVectorImpl<Value*>& r) {
    Value* left = B.CreateSub(distance, done);
    Value* by = B.CreateSelect(B.CreateICmpULT(left, c(l.step)), left, c(l.step));
    r[0] = B.CreateURem(B.CreateShl(r[0], by), mb);
  });
  Value* m = rest[0];
  leave(B.CreateICmpEQ(m, c(0)), B.CreateBitCast(B.CreateTrunc(sign, own), real));
  Value* zeros = B.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, m, B.getTrue());
  Value* room = B.CreateSub(zeros, c(63 - l.fraction));
  Value* lowest = B.CreateSub(eb, c(1));
  Value* by = B.CreateSelect(B.CreateICmpULT(room, lowest), room, lowest);
  // The hidden bit, if there is one, adds the last 1 to the exponent.
  Value* bits =
      B.CreateAdd(B.CreateShl(m, by), B.CreateShl(B.CreateSub(lowest, by), c(l.fraction)));
  B.CreateRet(B.CreateBitCast(B.CreateTrunc(B.CreateOr(bits, sign), own), real));
  f.finish();
  return fn;
}

Value* Expr::fmod(DType t, Value* a, Value* b, unsigned width) {
  auto& B = f_.b;
  bool is_double = t == DType::kF64;
  llvm::Function* slow = fmod_function(is_double);
  auto fabs = [&](Value* v) { return B.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v); };
  auto trunc = [&](Value* v) { return B.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, v); };
  Value* fast = nullptr;
  Value* fits = nullptr;
  if (!is_double) {
    // In f64, with a quotient below 2^29, quotient, product and difference are all exact.
    llvm::Type* wide = widen(u_.f64, width);
    Value *x = fabs(B.CreateFPExt(a, wide)), *y = fabs(B.CreateFPExt(b, wide));
    Value* q = B.CreateFDiv(x, y);
    fits = B.CreateAnd(B.CreateFCmpOLT(q, real(wide, 0x1p29)),
                       B.CreateFCmpOLE(y, real(wide, 0x1p128 * (1 - 0x1p-24))));
    fast = B.CreateFPTrunc(B.CreateFSub(x, B.CreateFMul(trunc(q), y)), a->getType());
  } else if (u_.target.has_fma) {
    // The quotient may have been rounded up to an integer; then the remainder comes out as r - b, exactly.
    Value *x = fabs(a), *y = fabs(b);
    Value* q = B.CreateFDiv(x, y);
    fits = B.CreateAnd(B.CreateFCmpOLT(q, real(a->getType(), 0x1p52)),
                       B.CreateFCmpOLT(y, real(a->getType(), 0x1p1000)));
    Value* r = fma(B.CreateFNeg(trunc(q)), y, x);
    fast = B.CreateSelect(B.CreateFCmpOLT(r, real(a->getType(), 0)), B.CreateFAdd(r, y), r);
  }
  auto all_slow = [&]() -> Value* {
    if (width == 1) return B.CreateCall(slow, {a, b});
    Value* out = llvm::PoisonValue::get(a->getType());
    for (unsigned i = 0; i < width; ++i)
      out = B.CreateInsertElement(
          out, B.CreateCall(slow, {B.CreateExtractElement(a, i), B.CreateExtractElement(b, i)}), i);
    return out;
  };
  if (fast == nullptr) return all_slow();
  fast = B.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, fast, a);
  Value* all = fits;
  if (width > 1) {
    auto* bits = llvm::IntegerType::get(u_.context, width);
    all = B.CreateICmpEQ(B.CreateBitCast(fits, bits), llvm::Constant::getAllOnesValue(bits));
  }
  llvm::BasicBlock* before = B.GetInsertBlock();
  llvm::BasicBlock* long_way = f_.block("fmod");
  llvm::BasicBlock* after = f_.block("endmod");
  B.CreateCondBr(all, after, long_way);
  B.SetInsertPoint(long_way);
  Value* exact = all_slow();
  llvm::BasicBlock* from = B.GetInsertBlock();
  B.CreateBr(after);
  B.SetInsertPoint(after);
  llvm::PHINode* out = B.CreatePHI(a->getType(), 2);
  out->addIncoming(fast, before);
  out->addIncoming(exact, from);
  return out;
}

}  // namespace cuvil::codegen
