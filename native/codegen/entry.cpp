// Statements of a program as code in the entry: allocation, views, host calls, loops, calls of kernels.
#include "codegen/entry.h"

#include "artifact/abi.h"
#include "codegen/kernel.h"

namespace cuvil::codegen {

using llvm::Value;

namespace {

constexpr int64_t kPollEvery_ns = 1'000'000;
constexpr double kLeastIteration_ns = 20;

class EntryEmitter {
 public:
  explicit EntryEmitter(Unit& u) : u_(u), f_(make(u)) {
    if (u.frame_slots > 0) {
      f_.frame = f_.stack(u.ptr, u.frame_slots, 8);
      // A lease in a loop is taken once; its slot says whether it has been.
      for (uint32_t s = 0; s < u.frame_slots; ++s)
        f_.b.CreateStore(null(), f_.frame_address(static_cast<int32_t>(s)));
    } else {
      f_.frame = null();
    }
  }

  void run() {
    block(u_.program.body);
    f_.return_code(0);
    f_.finish();
  }

 private:
  static FunctionBuilder make(Unit& u) {
    auto* fn = llvm::Function::Create(llvm::FunctionType::get(u.i32, {u.ptr, u.ptr}, false),
                                      llvm::Function::ExternalLinkage, kEntryName, u.module);
    u.set_attributes(*fn);
    return FunctionBuilder(u, fn, fn->getArg(1), nullptr, true);
  }

  void block(const schedule::Block& b) {
    for (const schedule::Statement& s : b) std::visit([&](const auto& x) { statement(x); }, s.v);
  }

  void statement(const schedule::Kernel& k) { emit_kernel(f_, k); }

  void statement(const schedule::AllocResult& s) {
    const schedule::Buffer& buffer = u_.program.buffer(s.buffer);
    Value* data = f_.service(offsetof(CuvilServices, alloc_result), u_.ptr,
                             {f_.call, u32(s.result), dims_on_stack(buffer.shape)});
    fail_if_null(data);
    f_.b.CreateStore(data, f_.frame_address(u_.frame_slot[s.buffer.id]));
  }

  void statement(const schedule::ViewResult& s) {
    Value* code = f_.service(offsetof(CuvilServices, view_result), u_.i32,
                             {f_.call, u32(s.result), u32(s.base), f_.dim(s.access.offset),
                              dims_on_stack(s.shape), dims_on_stack(s.access.strides)});
    fail_if_not_zero(code);
  }

  void statement(const schedule::Lease& s) {
    const schedule::Buffer& buffer = u_.program.buffer(s.buffer);
    Value* slot = f_.frame_address(u_.frame_slot[s.buffer.id]);
    auto take = [&] {
      Value* data =
          f_.service(offsetof(CuvilServices, lease_scratch), u_.ptr,
                     {f_.call, f_.dim(buffer.bytes),
                      llvm::ConstantInt::get(u_.i32, static_cast<uint32_t>(CUVIL_SCRATCH_CALL))});
      fail_if_null(data);
      f_.b.CreateStore(data, slot);
    };
    if (u_.dims.depends_on_internal(buffer.bytes))
      take();  // another size each time
    else
      f_.if_then(f_.b.CreateIsNull(f_.b.CreateLoad(u_.ptr, slot)), take);
  }

  void statement(const schedule::CopyBuffer& s) {
    const schedule::Buffer& from = u_.program.buffer(s.from);
    const schedule::Buffer& to = u_.program.buffer(s.to);
    schedule::Kernel k;
    k.name = "copy" + std::to_string(copies_++);
    k.extents = from.shape;
    ir::Dim zero = u_.dims.constant(0);
    k.loads.push_back({s.from, {zero, from.strides}, from.dtype});
    ops::Ref x = k.tape.load(from.dtype, 0);
    k.stores.push_back({x, {s.to, {zero, to.strides}, to.dtype}});
    emit_kernel(f_, k);
  }

  void statement(const schedule::BindDim& s) {
    Value* v = f_.b.CreateAlignedLoad(u_.i64, f_.buffer_address(s.scalar), llvm::Align(1));
    bind(s.symbol, v);
  }

  void statement(const schedule::Check& s) {
    using Op = artifact::Predicate::Op;
    auto& B = f_.b;
    Value* failed = nullptr;
    if (s.fits) {
      // Below 2^63 by more than what rounding adds.
      constexpr double kLimit = 0x1p63 - 0x1p23;
      failed = B.CreateFCmpUGE(f_.magnitude(s.lhs), llvm::ConstantFP::get(B.getDoubleTy(), kLimit));
      return fail_at(s, failed);
    }
    Value *a = f_.dim(s.lhs), *b = f_.dim(s.rhs);
    switch (s.op) {
      case Op::kEq: failed = B.CreateICmpNE(a, b); break;
      case Op::kNe: failed = B.CreateICmpEQ(a, b); break;
      case Op::kLt: failed = B.CreateICmpSGE(a, b); break;
      case Op::kLe: failed = B.CreateICmpSGT(a, b); break;
    }
    fail_at(s, failed);
  }

  void fail_at(const schedule::Check& s, Value* failed) {
    auto& B = f_.b;
    f_.if_then(failed, [&] {
      for (size_t i = 0; i < s.payload.size() && i < 4; ++i)
        f_.store_call_field(f_.dim(s.payload[i]),
                            static_cast<unsigned>(offsetof(CuvilCall, payload) + 8 * i));
      Value* code = f_.service(offsetof(CuvilServices, raise), u_.i32, {f_.call, u32(s.site)});
      // Always non-zero; said so that the block has one way on.
      f_.return_if(B.CreateICmpNE(code, llvm::ConstantInt::get(u_.i32, 0)), code);
    });
  }

  void statement(const schedule::HostCall& s) {
    auto& B = f_.b;
    auto n = static_cast<uint32_t>(s.operands.size());
    Value* operands = f_.stack(u_.i64, std::max<size_t>(1, n) * sizeof(CuvilArray) / 8, 8);
    for (uint32_t i = 0; i < n; ++i) {
      const schedule::HostOperand& o = s.operands[i];
      auto put = [&](Value* v, size_t byte) {
        B.CreateStore(v,
                      B.CreateConstInBoundsGEP1_64(u_.i8, operands, i * sizeof(CuvilArray) + byte));
      };
      put(f_.offset(f_.buffer_address(o.buffer), f_.dim(o.access.offset)),
          offsetof(CuvilArray, data));
      put(dims_on_stack(o.shape), offsetof(CuvilArray, shape));
      put(dims_on_stack(o.access.strides), offsetof(CuvilArray, strides));
      put(null(), offsetof(CuvilArray, object));
    }
    fail_if_not_zero(f_.service(offsetof(CuvilServices, call_host), u_.i32,
                                {f_.call, u32(s.site), operands, u32(n)}));
  }

  void statement(const schedule::For& s) {
    auto& B = f_.b;
    Value* begin = f_.dim(s.begin);
    Value* end = B.CreateAdd(begin, f_.dim(s.trip));
    const int64_t cost = static_cast<int64_t>(block_cost(*s.body) + kLeastIteration_ns);
    f_.loop(begin, end, 1, [&](Value* i) {
      bind(s.induction, i);
      block(*s.body);
      if (s.polls) poll(cost);
    });
  }

  // Once for about every millisecond of work in whatever loops.
  void poll(int64_t cost) {
    auto& B = f_.b;
    if (budget_ == nullptr) {
      budget_ = f_.stack(u_.i64, 1, 8);
      f_.prologue.CreateStore(f_.number(kPollEvery_ns), budget_);
    }
    Value* left = B.CreateSub(B.CreateLoad(u_.i64, budget_), f_.number(cost));
    B.CreateStore(left, budget_);
    f_.if_then(B.CreateICmpSLT(left, f_.number(0)), [&] {
      B.CreateStore(f_.number(kPollEvery_ns), budget_);
      fail_if_not_zero(f_.service(offsetof(CuvilServices, poll), u_.i32, {f_.call}));
    });
  }

  static double block_cost(const schedule::Block& b) {
    double cost = 0;
    for (const schedule::Statement& s : b) {
      if (auto* k = std::get_if<schedule::Kernel>(&s.v))
        cost += std::max(k->cost_ns, kLeastIteration_ns);
      if (std::holds_alternative<schedule::HostCall>(s.v)) cost += 1000;
    }
    return std::min(cost, 1e9);
  }

  void bind(ir::SymbolId s, Value* v) {
    Value* dims = f_.call_field(u_.ptr, offsetof(CuvilCall, dims));
    f_.b.CreateStore(v, f_.b.CreateConstInBoundsGEP1_64(u_.i64, dims, s.id));
  }

  Value* dims_on_stack(const ir::Shape& shape) {
    Value* at = f_.stack(u_.i64, std::max<size_t>(1, shape.size()), 8);
    for (size_t i = 0; i < shape.size(); ++i)
      f_.b.CreateStore(f_.dim(shape[i]), f_.b.CreateConstInBoundsGEP1_64(u_.i64, at, i));
    return at;
  }

  void fail_if_null(Value* p) {
    f_.return_if(f_.b.CreateIsNull(p), llvm::ConstantInt::get(u_.i32, CUVIL_SITE_PYTHON));
  }
  void fail_if_not_zero(Value* code) {
    f_.return_if(f_.b.CreateICmpNE(code, llvm::ConstantInt::get(u_.i32, 0)), code);
  }
  Value* u32(uint32_t v) { return llvm::ConstantInt::get(u_.i32, v); }
  llvm::Constant* null() { return llvm::ConstantPointerNull::get(u_.ptr); }

  Unit& u_;
  FunctionBuilder f_;
  Value* budget_ = nullptr;
  int copies_ = 0;
};

bool computable(DType t) { return !is_complex(t) && t != DType::kBF16; }

Result<> check_tape(const ops::Tape& t, const Target& target, SourceLoc loc) {
  for (const ops::Inst& i : t.insts) {
    if (!computable(i.type))
      return make_error(
          ErrorClass::kUnsupported,
          "arithmetic on " + std::string(info(i.type).numpy_name) + " is not compiled for the CPU",
          "cast to float32 or float64 first", loc);
    if (i.prim == ops::Prim::kFma && i.type == DType::kF64 && !target.has_fma)
      return make_error(ErrorClass::kUnsupported,
                        "a fused multiply-add of float64 on '" + target.cpu + "', which has none",
                        "target a CPU of level x86-64-v3 or higher", loc);
  }
  return Ok{};
}

Result<> check_block(const schedule::Program& p, const schedule::Block& b, const Target& t) {
  for (const schedule::Statement& s : b) {
    if (auto* loop = std::get_if<schedule::For>(&s.v)) CUVIL_CHECK(check_block(p, *loop->body, t));
    auto* k = std::get_if<schedule::Kernel>(&s.v);
    if (k == nullptr) continue;
    CUVIL_CHECK(check_tape(k->tape, t, k->loc));
    CUVIL_CHECK(check_tape(k->epilogue, t, k->loc));
  }
  return Ok{};
}

}  // namespace

void emit_kernel(FunctionBuilder& entry, const schedule::Kernel& k) {
  for (size_t axis = 0; axis < k.result_axes(); ++axis)
    if (entry.unit.dims.is_constant(k.extents[axis], 0)) return;  // no result has an element
  switch (k.kind) {
    case schedule::Kernel::Kind::kMap: return emit_map(entry, k);
    case schedule::Kernel::Kind::kReduce: return emit_reduce(entry, k);
    case schedule::Kernel::Kind::kMatMul: return emit_matmul(entry, k);
  }
}

Result<> check_supported(const schedule::Program& p, const Target& t) {
  return check_block(p, p.body, t);
}

Result<uint32_t> emit_module(const schedule::Program& p, const Target& t, llvm::Module& module) {
  CUVIL_CHECK(check_supported(p, t));
  module.setTargetTriple(kTriple);
  module.setDataLayout(kDataLayout);
  Unit unit(p, t, module);
  EntryEmitter(unit).run();
  return unit.services_size;
}

}  // namespace cuvil::codegen
