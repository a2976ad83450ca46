// An artifact with something in every table, for the tests of reader and writer.
#pragma once

#include "artifact/format.h"

namespace cuvil::artifact {

inline Const text_const(Const::Kind kind, std::string text) {
  Const c;
  c.kind = kind;
  c.text = std::move(text);
  return c;
}

inline Const int_const(int64_t v) {
  Const c;
  c.kind = Const::Kind::kInt;
  c.integer = v;
  return c;
}

inline Expr constant(int64_t v) { return {{ExprNode::Op::kConst, v}}; }
inline Expr symbol(int64_t k) { return {{ExprNode::Op::kSymbol, k}}; }

// def f(x, n, mode, self): x is f32[n0, 3], strided; one captured array; one host call.
inline Artifact sample() {
  Artifact a;
  a.key = {1, 2, 3};
  a.build_id = "0.1.0-test";
  a.target = "x86_64:x86-64-v3:+avx2";
  a.min_services_size = 96;
  a.memory_only = true;
  a.releases_gil = true;
  a.cost_ns = 12345;
  a.call_shape = {1, {"mode"}};

  ArgSpec x{.kind = ArgSpec::Kind::kArray};
  x.array = {.dtype = DType::kF32, .rank = 2, .layout = Layout::kStrided, .writeable = false};
  x.array.stride_class = {StrideClass::kOther, StrideClass::kUnit};
  x.array.order = {1, 0};
  x.shape = {symbol(0), constant(3)};
  ArgSpec n{.kind = ArgSpec::Kind::kInt};
  ArgSpec mode{.kind = ArgSpec::Kind::kStatic};
  mode.value.kind = Const::Kind::kTuple;
  mode.value.items = {text_const(Const::Kind::kStr, "same"), int_const(-7), Const{}};
  mode.value.items.back().kind = Const::Kind::kFloat;
  mode.value.items.back().real = -0.0;
  ArgSpec self{.kind = ArgSpec::Kind::kObject};
  a.arguments = {x, n, mode, self};

  a.symbols = {{Symbol::Kind::kShape, 0, 0},
               {Symbol::Kind::kStride, 0, 1},
               {Symbol::Kind::kScalar, 0, 0},
               {Symbol::Kind::kInternal, 0, 0}};
  a.predicates = {{Predicate::Op::kLt,
                   {{ExprNode::Op::kConst, 2}, {ExprNode::Op::kSymbol, 2}, {ExprNode::Op::kMul, 0}},
                   symbol(0)}};
  a.aliases = {{0, 1, AliasPredicate::Relation::kDisjoint}};
  a.sources = {{Source::Kind::kArgument, -1, 3, "self", {}},
               {Source::Kind::kAttribute, 0, 0, "w", {}},
               {Source::Kind::kGlobal, -1, 0, "np", {}},
               {Source::Kind::kItem, 2, 0, "", int_const(4)}};
  Guard w{.kind = Guard::Kind::kArray, .source = 1};
  w.array = {.dtype = DType::kI16, .rank = 1};
  w.shape = {constant(8)};
  w.slot = 1;
  Guard code{.kind = Guard::Kind::kCode, .source = 2};
  code.hash = {9, 9, 9};
  Guard identity{.kind = Guard::Kind::kIdentity, .source = 3};
  a.guards = {w, code, identity};
  a.array_slots = 3;
  a.scalar_slots = 1;

  ResultSpec r{.dtype = DType::kF64, .rank = 2};
  r.order = {1, 0};
  a.results = {r, {.dtype = DType::kI64, .rank = 0, .form = ResultSpec::Form::kPyInt}};
  a.tree = {{TreeNode::Kind::kDict, 0, 2},
            {TreeNode::Kind::kResult, 0, 0},
            {TreeNode::Kind::kList, 0, 2},
            {TreeNode::Kind::kExpr, 0, 0},
            {TreeNode::Kind::kConst, 1, 0}};
  a.constants = {text_const(Const::Kind::kStr, "a"), text_const(Const::Kind::kStr, "b")};
  a.exprs = {symbol(3)};
  a.functions = {-1, 2};

  Site bound{.cls = ErrorClass::kIndexError, .message = "index {0}", .remedy = "stay inside"};
  bound.loc = {1, 12, 3};
  Site host{.cls = ErrorClass::kPython, .is_host_call = true, .callable = 2};
  host.arguments = {
      {.kind = HostArgument::Kind::kOperand, .index = 0, .dtype = DType::kF64, .rank = 2},
      {.kind = HostArgument::Kind::kConst, .keyword = "axis", .value = int_const(1)}};
  host.results = {{2, DType::kF64, 1, {symbol(3)}}};
  a.sites = {bound, host};

  a.arena_bytes = 4096;
  a.schedule_text = "kernel k0";
  a.memory_text = "arena 4096";
  a.entry_offset = 3;
  a.blob = {0x90, 0x90, 0x90, 0x31, 0xc0, 0xc3};  // nop nop nop; xor eax, eax; ret
  a.device_image = {7, 7, 7};
  return a;
}

}  // namespace cuvil::artifact
