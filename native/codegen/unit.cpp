// Unit and FunctionBuilder: see unit.h. Fixed offsets are those of artifact/abi.h.
#include "codegen/unit.h"

#include <cmath>

#include "artifact/abi.h"
#include "support/dtype.h"

namespace cuvil::codegen {

using llvm::Value;

Unit::Unit(const schedule::Program& p, const Target& t, llvm::Module& m)
    : program(p),
      dims(p.graph->dims),
      target(t),
      module(m),
      context(m.getContext()),
      i1(llvm::Type::getInt1Ty(context)),
      i8(llvm::Type::getInt8Ty(context)),
      i16(llvm::Type::getInt16Ty(context)),
      i32(llvm::Type::getInt32Ty(context)),
      i64(llvm::Type::getInt64Ty(context)),
      f32(llvm::Type::getFloatTy(context)),
      f64(llvm::Type::getDoubleTy(context)),
      ptr(llvm::PointerType::get(context, 0)),
      frame_slot(p.buffers.size(), -1),
      constants_(p.buffers.size(), nullptr) {
  for (size_t i = 0; i < p.buffers.size(); ++i) {
    const schedule::Buffer& b = p.buffers[i];
    bool leased = b.scope == schedule::MemoryScope::kArena && b.offset < 0;
    if (leased || b.scope == schedule::MemoryScope::kResult)
      frame_slot[i] = static_cast<int32_t>(frame_slots++);
  }
}

void Unit::set_attributes(llvm::Function& f) const {
  f.addFnAttr(llvm::Attribute::NoUnwind);
  f.addFnAttr("target-cpu", target.cpu);
  f.addFnAttr("target-features", target.features);
  f.addFnAttr("prefer-vector-width", std::to_string(target.vector_bytes * 8));
  f.addFnAttr("no-builtins");
  f.setDSOLocal(true);
}

llvm::Function* Unit::make_function(const llvm::Twine& name,
                                    llvm::ArrayRef<llvm::Type*> parameters) {
  auto* f = llvm::Function::Create(llvm::FunctionType::get(i32, parameters, false),
                                   llvm::Function::InternalLinkage, name, module);
  set_attributes(*f);
  return f;
}

llvm::GlobalVariable* Unit::constant(schedule::BufferId id) {
  llvm::GlobalVariable*& g = constants_[id.id];
  if (g != nullptr) return g;
  const std::vector<uint8_t>& data = program.buffer(id).data;
  llvm::StringRef bytes(reinterpret_cast<const char*>(data.data()), data.size());
  auto* init = llvm::ConstantDataArray::getRaw(bytes, data.size(), i8);
  g = new llvm::GlobalVariable(module, init->getType(), true, llvm::GlobalValue::PrivateLinkage,
                               init, "constant");
  g->setAlignment(llvm::Align(64));
  return g;
}

llvm::ConstantInt* Unit::i64_const(int64_t v) const {
  return llvm::ConstantInt::get(llvm::cast<llvm::IntegerType>(i64), static_cast<uint64_t>(v));
}

std::optional<int64_t> as_const(Value* v) {
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(v)) return c->getSExtValue();
  return std::nullopt;
}

FunctionBuilder::FunctionBuilder(Unit& u, llvm::Function* f, Value* call, Value* frame,
                                 bool rereads_dims)
    : unit(u),
      function(f),
      call(call),
      frame(frame),
      b(u.context),
      prologue(u.context),
      rereads_dims_(rereads_dims) {
  prologue.SetInsertPoint(llvm::BasicBlock::Create(u.context, "prologue", f));
  body_ = block("body");
  b.SetInsertPoint(body_);
}

void FunctionBuilder::finish() { prologue.CreateBr(body_); }

llvm::BasicBlock* FunctionBuilder::block(const llvm::Twine& name) {
  return llvm::BasicBlock::Create(unit.context, name, function);
}

// ---- Dims ------------------------------------------------------------------------------------

Value* FunctionBuilder::dim(ir::Dim d) {
  if (auto c = unit.dims.as_constant(d)) return number(*c);
  if (rereads_dims_) return emit_dim(b, d);
  if (auto it = dims_.find(d.id); it != dims_.end()) return it->second;
  Value* v = emit_dim(prologue, d);
  dims_[d.id] = v;
  return v;
}

Value* FunctionBuilder::magnitude(ir::Dim d) {
  llvm::IRBuilder<>& at = rereads_dims_ ? b : prologue;
  llvm::Type* f64 = at.getDoubleTy();
  std::vector<ir::DimTable::Term> terms(unit.dims.terms(d).begin(), unit.dims.terms(d).end());
  Value* sum = llvm::ConstantFP::get(f64, 0.0);
  for (const auto& t : terms) {
    Value* product = llvm::ConstantFP::get(f64, std::fabs(static_cast<double>(t.coefficient)));
    for (int32_t a : t.atoms) {
      Value* v = at.CreateSIToFP(emit_atom(at, a), f64);
      product = at.CreateFMul(product, at.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v));
    }
    sum = at.CreateFAdd(sum, product);
  }
  return sum;
}

Value* FunctionBuilder::emit_dim(llvm::IRBuilder<>& at, ir::Dim d) {
  if (auto c = unit.dims.as_constant(d)) return number(*c);
  // By value: emitting an atom never interns, but terms() is a view into the table.
  std::vector<ir::DimTable::Term> terms(unit.dims.terms(d).begin(), unit.dims.terms(d).end());
  Value* sum = nullptr;
  for (const auto& t : terms) {
    Value* product = t.coefficient == 1 && !t.atoms.empty() ? nullptr : number(t.coefficient);
    for (int32_t a : t.atoms) {
      Value* v = emit_atom(at, a);
      product = product != nullptr ? at.CreateMul(product, v) : v;
    }
    sum = sum != nullptr ? at.CreateAdd(sum, product) : product;
  }
  return sum != nullptr ? sum : number(0);
}

Value* FunctionBuilder::emit_atom(llvm::IRBuilder<>& at, int32_t id) {
  if (!rereads_dims_)
    if (auto it = atoms_.find(id); it != atoms_.end()) return it->second;
  const ir::DimTable::Atom atom = unit.dims.atom(id);
  using Kind = ir::DimTable::Atom::Kind;
  Value* v = nullptr;
  if (atom.kind == Kind::kSymbol) {
    Value* dims = at.CreateLoad(
        unit.ptr, at.CreateConstInBoundsGEP1_64(unit.i8, call, offsetof(CuvilCall, dims)));
    v = at.CreateLoad(unit.i64, at.CreateConstInBoundsGEP1_64(unit.i64, dims, atom.symbol.id));
  } else {
    Value* x = emit_dim(at, atom.a);
    Value* y = emit_dim(at, atom.b);
    switch (atom.kind) {
      case Kind::kMin: v = at.CreateSelect(at.CreateICmpSLT(x, y), x, y); break;
      case Kind::kMax: v = at.CreateSelect(at.CreateICmpSGT(x, y), x, y); break;
      case Kind::kFloorDiv:
      case Kind::kMod: {
        // Python's: towards minus infinity. By zero gives 0; -1 is taken apart because of MIN / -1.
        Value* zero = at.CreateICmpEQ(y, number(0));
        Value* minus_one = at.CreateICmpEQ(y, number(-1));
        Value* safe = at.CreateSelect(at.CreateOr(zero, minus_one), number(1), y);
        Value* q = at.CreateSDiv(x, safe);
        Value* r = at.CreateSub(x, at.CreateMul(q, safe));
        Value* off = at.CreateAnd(at.CreateICmpNE(r, number(0)),
                                  at.CreateICmpSLT(at.CreateXor(r, safe), number(0)));
        if (atom.kind == Kind::kFloorDiv) {
          Value* floored = at.CreateSub(q, at.CreateZExt(off, unit.i64));
          floored = at.CreateSelect(minus_one, at.CreateNeg(x), floored);
          v = at.CreateSelect(zero, number(0), floored);
        } else {
          v = at.CreateAdd(r, at.CreateSelect(off, safe, number(0)));
        }
        break;
      }
      case Kind::kSymbol: break;
    }
  }
  if (!rereads_dims_) atoms_[id] = v;
  return v;
}

// ---- Addresses -----------------------------------------------------------------------------------

Value* FunctionBuilder::frame_address(int32_t slot) {
  return b.CreateConstInBoundsGEP1_64(unit.ptr, frame, static_cast<uint64_t>(slot));
}

Value* FunctionBuilder::buffer_address(schedule::BufferId id) {
  if (rereads_dims_) return emit_address(b, id);
  if (auto it = addresses_.find(id.id); it != addresses_.end()) return it->second;
  Value* v = emit_address(prologue, id);
  addresses_[id.id] = v;
  return v;
}

Value* FunctionBuilder::emit_address(llvm::IRBuilder<>& at, schedule::BufferId id) {
  const schedule::Buffer& buffer = unit.program.buffer(id);
  auto field = [&](unsigned byte) {
    return at.CreateLoad(unit.ptr, at.CreateConstInBoundsGEP1_64(unit.i8, call, byte));
  };
  if (int32_t slot = unit.frame_slot[id.id]; slot >= 0)
    return at.CreateLoad(unit.ptr, at.CreateConstInBoundsGEP1_64(unit.ptr, frame, slot));
  switch (buffer.scope) {
    case schedule::MemoryScope::kArgument:
    case schedule::MemoryScope::kHost:
      return at.CreateLoad(
          unit.ptr, at.CreateConstInBoundsGEP1_64(unit.i8, field(offsetof(CuvilCall, arrays)),
                                                  buffer.index * sizeof(CuvilArray)));
    case schedule::MemoryScope::kScalar:
      return at.CreateConstInBoundsGEP1_64(unit.i64, field(offsetof(CuvilCall, scalars)),
                                           buffer.index);
    case schedule::MemoryScope::kArena:
      return at.CreateConstInBoundsGEP1_64(unit.i8, field(offsetof(CuvilCall, arena)),
                                           static_cast<uint64_t>(buffer.offset));
    case schedule::MemoryScope::kConstant: return unit.constant(id);
    case schedule::MemoryScope::kResult: break;  // has a slot
  }
  return llvm::ConstantPointerNull::get(unit.ptr);
}

// ---- Arithmetic ----------------------------------------------------------------------------------

Value* FunctionBuilder::add(Value* x, Value* y) {
  if (as_const(x) == 0) return y;
  if (as_const(y) == 0) return x;
  return b.CreateAdd(x, y);
}

Value* FunctionBuilder::sub(Value* x, Value* y) { return as_const(y) == 0 ? x : b.CreateSub(x, y); }

Value* FunctionBuilder::mul(Value* x, Value* y) {
  if (as_const(x) == 1) return y;
  if (as_const(y) == 1) return x;
  if (as_const(x) == 0 || as_const(y) == 0) return number(0);
  return b.CreateMul(x, y);
}

Value* FunctionBuilder::offset(Value* base, Value* bytes) {
  return as_const(bytes) == 0 ? base : b.CreateGEP(unit.i8, base, bytes);
}

// ---- The process -----------------------------------------------------------------------------------

Value* FunctionBuilder::call_field(llvm::Type* t, unsigned byte) {
  return b.CreateLoad(t, b.CreateConstInBoundsGEP1_64(unit.i8, call, byte));
}

Value* FunctionBuilder::store_call_field(Value* v, unsigned byte) {
  return b.CreateStore(v, b.CreateConstInBoundsGEP1_64(unit.i8, call, byte));
}

Value* FunctionBuilder::service(unsigned byte, llvm::Type* result,
                                llvm::ArrayRef<Value*> arguments) {
  unit.services_size = std::max(unit.services_size, byte + 8);
  Value* table = call_field(unit.ptr, offsetof(CuvilCall, services));
  Value* f = b.CreateLoad(unit.ptr, b.CreateConstInBoundsGEP1_64(unit.i8, table, byte));
  llvm::SmallVector<llvm::Type*, 8> types;
  for (Value* a : arguments) types.push_back(a->getType());
  auto* c = b.CreateCall(llvm::FunctionType::get(result, types, false), f, arguments);
  c->addFnAttr(llvm::Attribute::NoUnwind);
  return c;
}

// ---- Control -------------------------------------------------------------------------------------

void FunctionBuilder::loop(Value* begin, Value* end, int64_t step,
                           llvm::function_ref<void(Value*)> body) {
  llvm::SmallVector<Value*, 1> none;
  loop(begin, end, step, none, [&](Value* i, llvm::SmallVectorImpl<Value*>&) { body(i); });
}

void FunctionBuilder::loop(Value* begin, Value* end, int64_t step,
                           llvm::SmallVectorImpl<Value*>& carried,
                           llvm::function_ref<void(Value*, llvm::SmallVectorImpl<Value*>&)> body) {
  auto first = as_const(begin), last = as_const(end);
  bool runs = false;
  if (first && last) {
    if (*first >= *last) return;
    if (*first + step >= *last) {
      body(begin, carried);
      return;
    }
    runs = true;
  }
  llvm::BasicBlock* before = b.GetInsertBlock();
  llvm::BasicBlock* head = block("loop");
  llvm::BasicBlock* after = block("after");
  if (runs)
    b.CreateBr(head);
  else
    b.CreateCondBr(b.CreateICmpSLT(begin, end), head, after);
  b.SetInsertPoint(head);
  llvm::PHINode* i = b.CreatePHI(unit.i64, 2);
  i->addIncoming(begin, before);
  llvm::SmallVector<Value*, 8> initial(carried.begin(), carried.end());
  llvm::SmallVector<llvm::PHINode*, 8> phis;
  for (Value*& v : carried) {
    llvm::PHINode* p = b.CreatePHI(v->getType(), 2);
    p->addIncoming(v, before);
    phis.push_back(p);
    v = p;
  }
  body(i, carried);
  llvm::BasicBlock* latch = b.GetInsertBlock();
  Value* next = b.CreateAdd(i, number(step), "", /*NUW=*/false, /*NSW=*/true);
  i->addIncoming(next, latch);
  for (size_t k = 0; k < phis.size(); ++k) phis[k]->addIncoming(carried[k], latch);
  b.CreateCondBr(b.CreateICmpSLT(next, end), head, after);
  b.SetInsertPoint(after);
  if (runs) return;
  for (size_t k = 0; k < phis.size(); ++k) {
    llvm::PHINode* p = b.CreatePHI(phis[k]->getType(), 2);
    p->addIncoming(initial[k], before);
    p->addIncoming(carried[k], latch);
    carried[k] = p;
  }
}

void FunctionBuilder::if_then(Value* condition, llvm::function_ref<void()> then) {
  if (auto c = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
    if (c->isOne()) then();
    return;
  }
  llvm::BasicBlock* yes = block("then");
  llvm::BasicBlock* after = block("endif");
  b.CreateCondBr(condition, yes, after);
  b.SetInsertPoint(yes);
  then();
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

void FunctionBuilder::return_if(Value* condition, Value* code) {
  llvm::BasicBlock* leave = block("leave");
  llvm::BasicBlock* on = block("on");
  b.CreateCondBr(condition, leave, on);
  b.SetInsertPoint(leave);
  b.CreateRet(code);
  b.SetInsertPoint(on);
}

void FunctionBuilder::return_code(int32_t code) {
  b.CreateRet(llvm::ConstantInt::get(unit.i32, static_cast<uint32_t>(code)));
}

void FunctionBuilder::raise_if(Value* condition, uint32_t site) {
  llvm::BasicBlock* leave = block("raise");
  llvm::BasicBlock* on = block("on");
  b.CreateCondBr(condition, leave, on);
  b.SetInsertPoint(leave);
  b.CreateRet(service(offsetof(CuvilServices, raise), unit.i32,
                      {call, llvm::ConstantInt::get(unit.i32, site)}));
  b.SetInsertPoint(on);
}

llvm::AllocaInst* FunctionBuilder::stack(llvm::Type* t, uint64_t count, uint64_t alignment) {
  auto* a = prologue.CreateAlloca(t, number(static_cast<int64_t>(count)));
  a->setAlignment(llvm::Align(alignment));
  return a;
}

}  // namespace cuvil::codegen
