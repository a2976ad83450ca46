// Instruction by instruction, in the order of the blocks: see code.h for what comes out.
#include "interpret/translate.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>

#include <cstring>

namespace cuvil::interpret {
namespace {

using llvm::cast;
using llvm::dyn_cast;
using llvm::isa;

// Marks a place that counts from the end of the constants, whose number is known last.
constexpr uint32_t kValue = 0x80000000u;

uint32_t lanes_of(const llvm::Type* t) {
  auto* v = dyn_cast<llvm::FixedVectorType>(t);
  return v ? v->getNumElements() : 1;
}

bool is_i1(const llvm::Type* t) { return t->getScalarType()->isIntegerTy(1); }

Kind kind_of(const llvm::Type* type) {
  const llvm::Type* t = type->getScalarType();
  if (t->isFloatTy()) return Kind::kF32;
  if (t->isDoubleTy()) return Kind::kF64;
  if (t->isHalfTy()) return Kind::kHalf;
  switch (t->isIntegerTy() ? t->getIntegerBitWidth() : 64) {
    case 1:
    case 8: return Kind::kI8;
    case 16: return Kind::kI16;
    case 32: return Kind::kI32;
    default: return Kind::kI64;  // also masks as numbers, whose bits are as many as there are lanes
  }
}

uint32_t element_bytes(const llvm::Type* t) {
  switch (kind_of(t)) {
    case Kind::kI8: return 1;
    case Kind::kI16:
    case Kind::kHalf: return 2;
    case Kind::kI32:
    case Kind::kF32: return 4;
    default: return 8;
  }
}

uint32_t bytes_of(const llvm::Type* t) { return element_bytes(t) * lanes_of(t); }

// What the module's functions have in common.
struct Context {
  Context(Code& c, const llvm::DataLayout& l) : code(c), layout(l) {}

  Code& code;
  const llvm::DataLayout& layout;
  llvm::DenseMap<const llvm::Function*, Function*> functions;
  llvm::DenseMap<const llvm::GlobalVariable*, const void*> tables;

  const void* table(const llvm::GlobalVariable* g) {
    const void*& at = tables[g];
    if (at != nullptr) return at;
    const llvm::Constant* initial = g->getInitializer();
    const uint64_t size = layout.getTypeAllocSize(initial->getType());
    auto& memory = code.tables.emplace_back(size / 8 + 9);  // zeros
    auto* start =
        reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) & ~uintptr_t{63});
    if (!initial->isNullValue())
      std::memcpy(start, cast<llvm::ConstantDataSequential>(initial)->getRawDataValues().data(),
                  size);
    return at = start;
  }
};

class FunctionTranslator {
 public:
  FunctionTranslator(Context& context, const llvm::Function& from, Function& to)
      : context_(context), from_(from), to_(to) {}

  // False: something is not known here.
  bool run() {
    for (const llvm::BasicBlock& block : from_) {
      starts_[&block] = to_.code.size();
      for (const llvm::Instruction& i : block)
        if (!isa<llvm::PHINode>(i) && !instruction(i)) return false;
    }
    finish();
    return known_;
  }

 private:
  // ---- Places ----------------------------------------------------------------------------------

  uint32_t reserve(uint32_t bytes, uint32_t alignment = 8) {
    while (alignment < 64 && alignment < bytes) alignment *= 2;
    top_ = (top_ + alignment - 1) / alignment * alignment;
    const uint32_t place = top_;
    top_ += std::max(bytes, 8u);
    return place | kValue;
  }

  void write(const llvm::Constant* c, std::byte* to) {
    uint64_t bits = 0;
    if (auto* i = dyn_cast<llvm::ConstantInt>(c)) {
      bits = i->getZExtValue();
    } else if (auto* f = dyn_cast<llvm::ConstantFP>(c)) {
      bits = f->getValueAPF().bitcastToAPInt().getZExtValue();
    } else if (c->getType()->isPointerTy() &&
               !isa<llvm::ConstantPointerNull, llvm::UndefValue>(c)) {
      llvm::APInt distance(64, 0);
      auto* base = dyn_cast<llvm::GlobalVariable>(
          c->stripAndAccumulateConstantOffsets(context_.layout, distance, true));
      if (base == nullptr) {
        known_ = false;
        return;
      }
      bits = reinterpret_cast<uintptr_t>(context_.table(base)) + distance.getZExtValue();
    } else if (!isa<llvm::ConstantPointerNull, llvm::UndefValue>(c)) {
      known_ = false;
    }
    std::memcpy(to, &bits, element_bytes(c->getType()));
  }

  uint32_t constant(const llvm::Constant* c) {
    auto [at, fresh] = places_.try_emplace(c);
    if (!fresh) return at->second;
    const uint32_t bytes = bytes_of(c->getType()), lanes = lanes_of(c->getType());
    auto& image = to_.constants;
    uint32_t alignment = 8;
    while (alignment < 64 && alignment < bytes) alignment *= 2;
    const size_t offset = (image.size() + alignment - 1) / alignment * alignment;
    image.resize(offset + std::max(bytes, 8u));
    const uint32_t place = at->second = static_cast<uint32_t>(sizeof(FrameHead) + offset);
    for (uint32_t k = 0; k < lanes; ++k) {
      const llvm::Constant* lane = c->getType()->isVectorTy() ? c->getAggregateElement(k) : c;
      if (lane == nullptr)
        known_ = false;
      else
        write(lane, image.data() + offset + size_t{k} * element_bytes(c->getType()));
    }
    return place;
  }

  uint32_t place(const llvm::Value* v) {
    if (auto* c = dyn_cast<llvm::Constant>(v)) return constant(c);
    if (auto* a = dyn_cast<llvm::Argument>(v))
      // The entry is called with services and call, and reads the services from the call.
      return static_cast<uint32_t>(offsetof(FrameHead, arguments) + 8 * a->getArgNo());
    if (auto known = places_.find(v); known != places_.end()) return known->second;
    const llvm::PHINode* carried = carried_in(v);
    const uint32_t fresh = carried ? place(carried) : reserve(bytes_of(v->getType()));
    return places_[v] = fresh;
  }

  // The phi whose next value `v` is and that nothing but `v` reads, in a loop of one block: the two can
  // share a place, as `v` is made lane by lane of what it replaces. Most accumulators are of this kind.
  static const llvm::PHINode* carried_in(const llvm::Value* v) {
    auto* i = dyn_cast<llvm::Instruction>(v);
    if (i == nullptr) return nullptr;
    auto* call = dyn_cast<llvm::IntrinsicInst>(i);
    if (!isa<llvm::BinaryOperator>(i) && !(call && call->getIntrinsicID() == llvm::Intrinsic::fma))
      return nullptr;
    for (const llvm::Use& operand : i->operands()) {
      auto* phi = dyn_cast<llvm::PHINode>(operand.get());
      if (phi && phi->getParent() == i->getParent() && phi->hasOneUse() &&
          phi->getBasicBlockIndex(i->getParent()) >= 0 &&
          phi->getIncomingValueForBlock(i->getParent()) == v)
        return phi;
    }
    return nullptr;
  }

  // ---- Instructions ----------------------------------------------------------------------------

  Inst& push(Opcode op, const llvm::Type* type, const llvm::Type* from, uint32_t size) {
    Inst& i = to_.code.emplace_back();
    i.run = context_.code.level->pick(op, kind_of(type), kind_of(from), size);
    i.lanes = size;
    known_ = known_ && i.run != nullptr;
    return i;
  }

  // An instruction whose result and operands are those of `i`, lane by lane.
  bool simple(Opcode op, const llvm::Instruction& i, const llvm::Type* type,
              llvm::ArrayRef<const llvm::Value*> operands) {
    uint32_t at[3] = {};
    for (size_t k = 0; k < operands.size(); ++k) at[k] = place(operands[k]);
    const uint32_t dst = place(&i);
    Inst& out = push(op, type, operands[0]->getType(), lanes_of(i.getType()));
    out.dst = dst;
    out.a = at[0], out.b = at[1], out.c = at[2];
    return true;
  }

  void copy(uint32_t to, uint32_t from, const llvm::Type* type) {
    Inst& i = push(Opcode::kCopy, type, type, bytes_of(type));
    i.dst = to;
    i.a = from;
  }

  bool instruction(const llvm::Instruction& i) {
    using llvm::Instruction;
    const llvm::Value* a = i.getNumOperands() > 0 ? i.getOperand(0) : nullptr;
    const llvm::Value* b = i.getNumOperands() > 1 ? i.getOperand(1) : nullptr;
    const llvm::Type* type = i.getType();
    auto binary = [&](Opcode op) { return simple(op, i, type, {a, b}); };
    auto unary = [&](Opcode op) { return simple(op, i, type, {a}); };
    switch (i.getOpcode()) {
      case Instruction::Add: return binary(Opcode::kAdd);
      case Instruction::Sub: return binary(Opcode::kSub);
      case Instruction::Mul: return binary(Opcode::kMul);
      case Instruction::And: return binary(Opcode::kAnd);
      case Instruction::Or: return binary(Opcode::kOr);
      case Instruction::Xor: return binary(Opcode::kXor);
      case Instruction::Shl: return binary(Opcode::kShl);
      case Instruction::LShr: return binary(Opcode::kLShr);
      case Instruction::AShr: return binary(Opcode::kAShr);
      case Instruction::UDiv: return binary(Opcode::kUDiv);
      case Instruction::SDiv: return binary(Opcode::kSDiv);
      case Instruction::URem: return binary(Opcode::kURem);
      case Instruction::SRem: return binary(Opcode::kSRem);
      case Instruction::FAdd: return binary(Opcode::kFAdd);
      case Instruction::FSub: return binary(Opcode::kFSub);
      case Instruction::FMul: return binary(Opcode::kFMul);
      case Instruction::FDiv: return binary(Opcode::kFDiv);
      case Instruction::FNeg: return unary(Opcode::kFNeg);
      case Instruction::ZExt: return unary(Opcode::kZExt);
      case Instruction::SExt: return unary(is_i1(a->getType()) ? Opcode::kSExtBool : Opcode::kSExt);
      case Instruction::Trunc: return unary(is_i1(type) ? Opcode::kTruncToBool : Opcode::kSExt);
      case Instruction::UIToFP: return unary(Opcode::kUIToFP);
      case Instruction::SIToFP: return unary(Opcode::kSIToFP);
      case Instruction::FPToUI: return unary(Opcode::kFPToUI);
      case Instruction::FPToSI: return unary(Opcode::kFPToSI);
      case Instruction::FPExt:
      case Instruction::FPTrunc: return unary(Opcode::kFPCast);
      case Instruction::BitCast: return bitcast(i, a);
      case Instruction::ICmp:
      case Instruction::FCmp: return compare(cast<llvm::CmpInst>(i));
      case Instruction::Select: return select(cast<llvm::SelectInst>(i));
      case Instruction::ExtractElement: return extract(i);
      case Instruction::InsertElement: return insert(i);
      case Instruction::ShuffleVector: return shuffle(cast<llvm::ShuffleVectorInst>(i));
      case Instruction::Load: return load(cast<llvm::LoadInst>(i));
      case Instruction::Store: return store(cast<llvm::StoreInst>(i));
      case Instruction::GetElementPtr: return address(cast<llvm::GetElementPtrInst>(i));
      case Instruction::Alloca: return stack(cast<llvm::AllocaInst>(i));
      case Instruction::Call: return call(cast<llvm::CallInst>(i));
      case Instruction::Br: return branch(cast<llvm::BranchInst>(i));
      case Instruction::Ret: {
        const uint32_t from = place(a);
        push(Opcode::kReturn, a->getType(), a->getType(), 1).a = from;
        return true;
      }
      default: return false;
    }
  }

  bool bitcast(const llvm::Instruction& i, const llvm::Value* a) {
    const bool from_mask = is_i1(a->getType()) && a->getType()->isVectorTy();
    const bool to_mask = is_i1(i.getType()) && i.getType()->isVectorTy();
    if (from_mask || to_mask) {
      const uint32_t from = place(a), to = place(&i);
      Inst& out = push(from_mask ? Opcode::kLanesToBits : Opcode::kBitsToLanes, i.getType(),
                       a->getType(), lanes_of(from_mask ? a->getType() : i.getType()));
      out.dst = to;
      out.a = from;
      return true;
    }
    const uint32_t from = place(a);
    // A phi's place changes; and who comes earlier in the order of the blocks may have asked for one.
    if (isa<llvm::PHINode>(a) || places_.count(&i))
      copy(place(&i), from, i.getType());
    else
      places_[&i] = from;
    return true;
  }

  bool compare(const llvm::CmpInst& i) {
    using P = llvm::CmpInst::Predicate;
    const llvm::Value *a = i.getOperand(0), *b = i.getOperand(1);
    auto as = [&](Opcode op) { return simple(op, i, a->getType(), {a, b}); };
    auto swapped = [&](Opcode op) { return simple(op, i, a->getType(), {b, a}); };
    switch (i.getPredicate()) {
      case P::ICMP_EQ: return as(Opcode::kIEq);
      case P::ICMP_NE: return as(Opcode::kINe);
      case P::ICMP_ULT: return as(Opcode::kULt);
      case P::ICMP_ULE: return as(Opcode::kULe);
      case P::ICMP_UGT: return swapped(Opcode::kULt);
      case P::ICMP_UGE: return swapped(Opcode::kULe);
      case P::ICMP_SLT: return as(Opcode::kSLt);
      case P::ICMP_SLE: return as(Opcode::kSLe);
      case P::ICMP_SGT: return swapped(Opcode::kSLt);
      case P::ICMP_SGE: return swapped(Opcode::kSLe);
      case P::FCMP_OEQ: return as(Opcode::kOEq);
      case P::FCMP_OLT: return as(Opcode::kOLt);
      case P::FCMP_OLE: return as(Opcode::kOLe);
      case P::FCMP_OGT: return swapped(Opcode::kOLt);
      case P::FCMP_OGE: return swapped(Opcode::kOLe);
      case P::FCMP_ONE: return as(Opcode::kONe);
      case P::FCMP_ORD: return as(Opcode::kOrd);
      case P::FCMP_UEQ: return as(Opcode::kUEq);
      case P::FCMP_ULT: return as(Opcode::kFULt);
      case P::FCMP_ULE: return as(Opcode::kFULe);
      case P::FCMP_UGT: return swapped(Opcode::kFULt);
      case P::FCMP_UGE: return swapped(Opcode::kFULe);
      case P::FCMP_UNE: return as(Opcode::kUNe);
      case P::FCMP_UNO: return as(Opcode::kUno);
      default: return false;
    }
  }

  // A scalar in every lane.
  void splat(uint32_t to, uint32_t from, const llvm::Type* element, uint32_t lanes) {
    Inst& i = push(Opcode::kSplat, element, element, lanes);
    i.dst = to;
    i.a = from;
  }

  bool select(const llvm::SelectInst& i) {
    const llvm::Value* c = i.getCondition();
    uint32_t condition = place(c);
    const uint32_t lanes = lanes_of(i.getType());
    if (lanes > 1 && !c->getType()->isVectorTy()) {
      const uint32_t all = reserve(lanes);
      splat(all, condition, c->getType(), lanes);
      condition = all;
    }
    const uint32_t x = place(i.getTrueValue()), y = place(i.getFalseValue()), to = place(&i);
    Inst& out = push(Opcode::kSelect, i.getType(), i.getType(), lanes);
    out.dst = to;
    out.a = condition, out.b = x, out.c = y;
    return true;
  }

  bool extract(const llvm::Instruction& i) {
    auto* lane = dyn_cast<llvm::ConstantInt>(i.getOperand(1));
    if (lane == nullptr) return false;
    const uint32_t from = place(i.getOperand(0)), to = place(&i);
    Inst& out = push(Opcode::kExtract, i.getType(), i.getType(), 1);
    out.dst = to;
    out.a = from;
    out.imm = lane->getSExtValue();
    return true;
  }

  bool insert(const llvm::Instruction& i) {
    auto* lane = dyn_cast<llvm::ConstantInt>(i.getOperand(2));
    if (lane == nullptr) return false;
    // Of a scalar that is about to be splatted only the scalar is needed.
    if (i.hasOneUse() && splatted(i.user_back()) != nullptr) return true;
    const uint32_t from = place(i.getOperand(0)), scalar = place(i.getOperand(1)), to = place(&i);
    Inst& out = push(Opcode::kInsert, i.getType(), i.getType(), lanes_of(i.getType()));
    out.dst = to;
    out.a = from, out.b = scalar;
    out.imm = lane->getSExtValue();
    return true;
  }

  // The scalar of IRBuilder's CreateVectorSplat: lane 0 of nothing else, shuffled to all lanes.
  static const llvm::Value* splatted(const llvm::Value* v) {
    auto* s = dyn_cast<llvm::ShuffleVectorInst>(v);
    if (s == nullptr || !s->isZeroEltSplat()) return nullptr;
    auto* first = dyn_cast<llvm::InsertElementInst>(s->getOperand(0));
    if (first == nullptr || !isa<llvm::UndefValue>(first->getOperand(0))) return nullptr;
    auto* lane = dyn_cast<llvm::ConstantInt>(first->getOperand(2));
    return lane && lane->isZero() ? first->getOperand(1) : nullptr;
  }

  bool shuffle(const llvm::ShuffleVectorInst& i) {
    const uint32_t lanes = lanes_of(i.getType());
    if (const llvm::Value* scalar = splatted(&i)) {
      if (const llvm::LoadInst* l = splatted_load(scalar, i)) {
        const llvm::GetElementPtrInst* g = indexed(*l);
        const uint32_t base = place(g->getPointerOperand()), by = place(g->getOperand(1)),
                       to = place(&i);
        Inst& out = push(Opcode::kSplatAt, i.getType(), i.getType(), lanes);
        out.dst = to;
        out.a = base, out.b = by;
        out.imm = stride(*g);
        return true;
      }
      const uint32_t from = place(scalar);
      splat(place(&i), from, i.getType(), lanes);
      return true;
    }
    llvm::ArrayRef<int> mask = i.getShuffleMask();
    // Neighbouring lanes of the first operand are a copy.
    const llvm::Type* in = i.getOperand(0)->getType();
    bool slice = mask[0] >= 0 && mask[0] + lanes <= lanes_of(in);
    for (uint32_t k = 0; slice && k < lanes; ++k) slice = mask[k] == mask[0] + static_cast<int>(k);
    if (slice) {
      const uint32_t from = place(i.getOperand(0)), to = place(&i);
      copy(to, from + static_cast<uint32_t>(mask[0]) * element_bytes(in), i.getType());
      return true;
    }
    auto& list = context_.code.lane_lists.emplace_back();
    for (int m : mask) list.push_back(static_cast<uint8_t>(m < 0 ? 0 : m));
    const uint32_t x = place(i.getOperand(0)), y = place(i.getOperand(1)), to = place(&i);
    Inst& out = push(Opcode::kShuffle, i.getType(), i.getType(), lanes);
    out.dst = to;
    out.a = x, out.b = y;
    out.c = lanes_of(in);
    out.lane_list = list.data();
    return true;
  }

  // ---- Memory ----------------------------------------------------------------------------------

  // An address that is another plus a constant, as both.
  std::pair<uint32_t, int64_t> at(const llvm::Value* address) {
    llvm::APInt distance(64, 0);
    if (auto* g = dyn_cast<llvm::GetElementPtrInst>(address);
        g && g->accumulateConstantOffset(context_.layout, distance))
      return {place(g->getPointerOperand()), distance.getSExtValue()};
    return {place(address), 0};
  }

  // The one index of an address that only one load reads, right where it is made.
  const llvm::GetElementPtrInst* indexed(const llvm::LoadInst& i) const {
    auto* g = dyn_cast<llvm::GetElementPtrInst>(i.getPointerOperand());
    const bool fits = g && g->hasOneUse() && g->getParent() == i.getParent() &&
                      g->getNumIndices() == 1 && !g->hasAllConstantIndices() &&
                      g->getOperand(1)->getType()->isIntegerTy(64);
    return fits ? g : nullptr;
  }
  int64_t stride(const llvm::GetElementPtrInst& g) const {
    return static_cast<int64_t>(context_.layout.getTypeAllocSize(g.getSourceElementType()));
  }
  // A load that is done where its value is put into all lanes of a vector: a few instructions further on,
  // none of which writes.
  const llvm::LoadInst* splatted_load(const llvm::Value* scalar,
                                      const llvm::Instruction& splat) const {
    auto* l = dyn_cast<llvm::LoadInst>(scalar);
    if (l == nullptr || !l->hasOneUse() || l->getParent() != splat.getParent() || !indexed(*l))
      return nullptr;
    const llvm::Instruction* at = l;
    for (int steps = 0; at != nullptr && steps < 16; ++steps, at = at->getNextNode()) {
      if (at == &splat) return l;
      if (at->mayWriteToMemory()) return nullptr;
    }
    return nullptr;
  }

  bool load(const llvm::LoadInst& i) {
    if (is_i1(i.getType())) return false;
    if (const llvm::GetElementPtrInst* g = indexed(i)) {
      if (i.hasOneUse())
        if (auto* first = dyn_cast<llvm::InsertElementInst>(i.user_back());
            first && first->hasOneUse() && splatted(first->user_back()) == &i &&
            splatted_load(&i, *first->user_back()))
          return true;
      const uint32_t base = place(g->getPointerOperand()), by = place(g->getOperand(1)),
                     to = place(&i);
      Inst& out = push(Opcode::kLoadAt, i.getType(), i.getType(), bytes_of(i.getType()));
      out.dst = to;
      out.a = base, out.b = by;
      out.imm = stride(*g);
      return true;
    }
    const auto [from, distance] = at(i.getPointerOperand());
    const uint32_t to = place(&i);
    Inst& out = push(Opcode::kLoad, i.getType(), i.getType(), bytes_of(i.getType()));
    out.dst = to;
    out.a = from;
    out.imm = distance;
    return true;
  }

  bool store(const llvm::StoreInst& i) {
    const llvm::Value* v = i.getValueOperand();
    if (is_i1(v->getType())) return false;
    const uint32_t from = place(v);
    const auto [to, distance] = at(i.getPointerOperand());
    Inst& out = push(Opcode::kStore, v->getType(), v->getType(), bytes_of(v->getType()));
    out.a = from;
    out.b = to;
    out.imm = distance;
    return true;
  }

  bool address(const llvm::GetElementPtrInst& i) {
    llvm::APInt distance(64, 0);
    if (i.accumulateConstantOffset(context_.layout, distance)) {
      // Loads and stores add the distance themselves.
      bool needed = false;
      for (const llvm::User* user : i.users()) {
        auto* s = dyn_cast<llvm::StoreInst>(user);
        needed = needed || !(isa<llvm::LoadInst>(user) || (s && s->getValueOperand() != &i));
      }
      if (!needed) return true;
      const uint32_t from = place(i.getPointerOperand()), to = place(&i);
      Inst& out = push(Opcode::kOffset, i.getType(), i.getType(), 1);
      out.dst = to;
      out.a = from;
      out.imm = distance.getSExtValue();
      return true;
    }
    if (i.hasOneUse())
      if (auto* only = dyn_cast<llvm::LoadInst>(i.user_back()); only && indexed(*only) == &i)
        return true;
    const llvm::Value* index = i.getOperand(1);
    if (i.getNumIndices() != 1 || !index->getType()->isIntegerTy(64)) return false;
    const uint32_t from = place(i.getPointerOperand()), by = place(index), to = place(&i);
    Inst& out = push(Opcode::kIndex, i.getType(), i.getType(), 1);
    out.dst = to;
    out.a = from, out.b = by;
    out.imm = stride(i);
    return true;
  }

  bool stack(const llvm::AllocaInst& i) {
    auto size = i.getAllocationSize(context_.layout);
    if (!size) return false;
    const uint32_t memory = reserve(static_cast<uint32_t>(size->getFixedValue()), 64),
                   to = place(&i);
    Inst& out = push(Opcode::kStack, i.getType(), i.getType(), 1);
    out.dst = to;
    out.a = memory;
    return true;
  }

  // ---- Calls -----------------------------------------------------------------------------------

  bool call(const llvm::CallInst& i) {
    if (auto* intrinsic = dyn_cast<llvm::IntrinsicInst>(&i)) return this->intrinsic(*intrinsic);
    if (const llvm::Function* f = i.getCalledFunction())
      return call_function(Opcode::kCall, i, f, i.getArgOperand(0), i.getArgOperand(1), nullptr);
    // A field of the table of services.
    auto* field = dyn_cast<llvm::LoadInst>(i.getCalledOperand());
    auto* entry = field ? dyn_cast<llvm::GetElementPtrInst>(field->getPointerOperand()) : nullptr;
    llvm::APInt byte(64, 0);
    if (entry == nullptr || !entry->accumulateConstantOffset(context_.layout, byte)) return false;
    if (byte == offsetof(CuvilServices, parallel_for))
      return call_function(Opcode::kCallOver, i, dyn_cast<llvm::Function>(i.getArgOperand(1)),
                           i.getArgOperand(0), i.getArgOperand(2), i.getArgOperand(3));
    switch (byte.getZExtValue()) {
      case offsetof(CuvilServices, alloc_result):
      case offsetof(CuvilServices, view_result):
      case offsetof(CuvilServices, lease_scratch):
      case offsetof(CuvilServices, call_host):
      case offsetof(CuvilServices, poll):
      case offsetof(CuvilServices, raise): break;
      default: return false;
    }
    ServiceCall& s = context_.code.services.emplace_back();
    s.byte = static_cast<uint32_t>(byte.getZExtValue());
    for (unsigned k = 0; k < i.arg_size(); ++k) s.arguments[k] = place(i.getArgOperand(k));
    services_.push_back(&s);
    const uint32_t to = place(&i);
    Inst& out = push(Opcode::kService, i.getType(), i.getType(), 1);
    out.dst = to;
    out.service = &s;
    return true;
  }

  bool call_function(Opcode op, const llvm::CallInst& i, const llvm::Function* f,
                     const llvm::Value* call, const llvm::Value* frame, const llvm::Value* count) {
    auto callee = context_.functions.find(f);
    if (callee == context_.functions.end()) return false;
    to_.callees.push_back(callee->second);
    const uint32_t a = place(call), b = place(frame), c = count ? place(count) : 0, to = place(&i);
    calls_.push_back(to_.code.size());
    Inst& out = push(op, i.getType(), i.getType(), 1);
    out.dst = to;
    out.a = a, out.b = b, out.c = c;
    out.function = callee->second;
    return true;
  }

  bool intrinsic(const llvm::IntrinsicInst& i) {
    const llvm::Type* type = i.getType();
    const llvm::Value* a = i.getArgOperand(0);
    auto unary = [&](Opcode op) { return simple(op, i, type, {a}); };
    switch (i.getIntrinsicID()) {
      case llvm::Intrinsic::fma:
        return simple(Opcode::kFma, i, type, {a, i.getArgOperand(1), i.getArgOperand(2)});
      case llvm::Intrinsic::copysign:
        return simple(Opcode::kCopySign, i, type, {a, i.getArgOperand(1)});
      case llvm::Intrinsic::sqrt: return unary(Opcode::kSqrt);
      case llvm::Intrinsic::floor: return unary(Opcode::kFloor);
      case llvm::Intrinsic::ceil: return unary(Opcode::kCeil);
      case llvm::Intrinsic::trunc: return unary(Opcode::kTruncate);
      case llvm::Intrinsic::rint: return unary(Opcode::kRint);
      case llvm::Intrinsic::fabs: return unary(Opcode::kFAbs);
      case llvm::Intrinsic::abs: return unary(Opcode::kAbs);
      case llvm::Intrinsic::ctlz: return unary(Opcode::kCtlz);
      case llvm::Intrinsic::vector_reduce_or: {
        if (!is_i1(type)) return false;
        const uint32_t from = place(a), to = place(&i);
        Inst& out = push(Opcode::kAnyLane, type, type, lanes_of(a->getType()));
        out.dst = to;
        out.a = from;
        return true;
      }
      case llvm::Intrinsic::masked_load: {
        const uint32_t from = place(a), mask = place(i.getArgOperand(2)),
                       otherwise = place(i.getArgOperand(3)), to = place(&i);
        Inst& out = push(Opcode::kMaskedLoad, type, type, lanes_of(type));
        out.dst = to;
        out.a = from, out.b = mask, out.c = otherwise;
        return true;
      }
      case llvm::Intrinsic::masked_store: {
        const llvm::Type* stored = a->getType();
        const uint32_t from = place(a), to = place(i.getArgOperand(1)),
                       mask = place(i.getArgOperand(3));
        Inst& out = push(Opcode::kMaskedStore, stored, stored, lanes_of(stored));
        out.a = from, out.b = to, out.c = mask;
        return true;
      }
      default: return false;
    }
  }

  // ---- Control ---------------------------------------------------------------------------------

  // Gives the phis of a block their values on the way there from another.
  void enter(const llvm::BasicBlock* from, const llvm::BasicBlock* to) {
    struct Move {
      uint32_t to, from;
      const llvm::Type* type;
    };
    llvm::SmallVector<Move, 16> moves;
    for (const llvm::PHINode& phi : to->phis()) {
      Move m{place(&phi), place(phi.getIncomingValueForBlock(from)), phi.getType()};
      if (m.to != m.from) moves.push_back(m);
    }
    bool overwritten = false;
    for (size_t k = 1; k < moves.size(); ++k)
      for (size_t before = 0; before < k; ++before)
        overwritten = overwritten || moves[k].from == moves[before].to;
    if (overwritten)
      for (Move& m : moves) {
        const uint32_t aside = reserve(bytes_of(m.type));
        copy(aside, m.from, m.type);
        m.from = aside;
      }
    for (const Move& m : moves) copy(m.to, m.from, m.type);
  }

  void jump(const llvm::BasicBlock* to) {
    jumps_.push_back({to_.code.size(), to, false});
    push(Opcode::kJump, i64(), i64(), 1);
  }

  bool branch(const llvm::BranchInst& i) {
    const llvm::BasicBlock* here = i.getParent();
    if (i.isUnconditional()) {
      enter(here, i.getSuccessor(0));
      if (here->getNextNode() != i.getSuccessor(0)) jump(i.getSuccessor(0));
      return true;
    }
    const uint32_t condition = place(i.getCondition());
    const size_t at = to_.code.size();
    push(Opcode::kBranch, i64(), i64(), 1).a = condition;
    for (unsigned k = 0; k < 2; ++k) {
      const llvm::BasicBlock* to = i.getSuccessor(k);
      if (to->phis().empty()) {
        jumps_.push_back({at, to, k == 1});
        continue;
      }
      const auto distance = static_cast<int64_t>(to_.code.size() - at);
      if (k == 0)
        to_.code[at].imm = distance;
      else
        to_.code[at].otherwise = static_cast<int32_t>(distance);
      enter(here, to);
      jump(to);
    }
    return true;
  }

  const llvm::Type* i64() const { return llvm::Type::getInt64Ty(from_.getContext()); }

  void finish() {
    for (const Jump& j : jumps_) {
      const auto distance = static_cast<int64_t>(starts_[j.to]) - static_cast<int64_t>(j.at);
      if (j.otherwise)
        to_.code[j.at].otherwise = static_cast<int32_t>(distance);
      else
        to_.code[j.at].imm = distance;
    }
    const auto base =
        static_cast<uint32_t>((sizeof(FrameHead) + to_.constants.size() + 63) / 64 * 64);
    auto settle = [&](uint32_t& place) {
      if (place & kValue) place = (place & ~kValue) + base;
    };
    for (Inst& i : to_.code)
      for (uint32_t* place : {&i.dst, &i.a, &i.b, &i.c}) settle(*place);
    for (ServiceCall* s : services_)
      for (uint32_t& place : s->arguments) settle(place);
    to_.frame_bytes = (base + top_ + 63) / 64 * 64;
    for (size_t at : calls_) to_.code[at].lanes = to_.frame_bytes;
    known_ = known_ && top_ < kMostBytes;
  }

  static constexpr uint32_t kMostBytes = 16u << 20;

  struct Jump {
    size_t at;
    const llvm::BasicBlock* to;
    bool otherwise;
  };

  Context& context_;
  const llvm::Function& from_;
  Function& to_;
  llvm::DenseMap<const llvm::Value*, uint32_t> places_;
  llvm::DenseMap<const llvm::BasicBlock*, size_t> starts_;
  std::vector<Jump> jumps_;
  std::vector<size_t> calls_;
  std::vector<ServiceCall*> services_;
  uint32_t top_ = 0;
  bool known_ = true;
};

// A callee's frame lies behind its caller's. Nothing calls itself.
size_t deepest(const Function& f) {
  size_t most = 0;
  for (const Function* callee : f.callees) most = std::max(most, deepest(*callee));
  return f.frame_bytes + most;
}

}  // namespace

std::unique_ptr<Code> translate(const llvm::Module& module, llvm::StringRef entry,
                                const Level& level) {
  auto code = std::make_unique<Code>();
  code->level = &level;
  Context context(*code, module.getDataLayout());
  const llvm::Function* first = module.getFunction(entry);
  std::vector<std::pair<const llvm::Function*, Function*>> all;
  auto add = [&](const llvm::Function* f) {
    all.emplace_back(f, &code->functions.emplace_back());
    context.functions[f] = all.back().second;
  };
  add(first);
  for (const llvm::Function& f : module)
    if (&f != first && !f.isDeclaration()) add(&f);
  for (auto [from, to] : all)
    if (!FunctionTranslator(context, *from, *to).run()) return nullptr;
  code->frame_bytes = deepest(code->functions.front());
  return code;
}

}  // namespace cuvil::interpret
