// The fields of every struct of an artifact, listed once, in the order in which they are stored.
// Writer and reader are visitors over these lists, so they cannot disagree.
#pragma once

#include "artifact/format.h"

namespace cuvil::artifact {

// How many values an enum has: what a reader may accept.
template <class E> inline constexpr size_t kEnumCount = 0;
template <> inline constexpr size_t kEnumCount<DType> = static_cast<size_t>(DType::kC128) + 1;
template <> inline constexpr size_t kEnumCount<ErrorClass> = 0
#define CUVIL_ERROR(id, python) +1
#include "support/errors.def"
#undef CUVIL_ERROR
    ;
template <>
inline constexpr size_t kEnumCount<Const::Kind> = static_cast<size_t>(Const::Kind::kQualified) + 1;
template <>
inline constexpr size_t kEnumCount<Symbol::Kind> = static_cast<size_t>(Symbol::Kind::kInternal) + 1;
template <>
inline constexpr size_t kEnumCount<ExprNode::Op> = static_cast<size_t>(ExprNode::Op::kMax) + 1;
template <>
inline constexpr size_t kEnumCount<Predicate::Op> = static_cast<size_t>(Predicate::Op::kLe) + 1;
template <>
inline constexpr size_t kEnumCount<StrideClass> = static_cast<size_t>(StrideClass::kOther) + 1;
template <> inline constexpr size_t kEnumCount<Layout> = static_cast<size_t>(Layout::kStrided) + 1;
template <>
inline constexpr size_t kEnumCount<ArgSpec::Kind> = static_cast<size_t>(ArgSpec::Kind::kObject) + 1;
template <>
inline constexpr size_t kEnumCount<Source::Kind> = static_cast<size_t>(Source::Kind::kMethodSelf) +
                                                   1;
template <>
inline constexpr size_t kEnumCount<Guard::Kind> = static_cast<size_t>(Guard::Kind::kKeys) + 1;
template <> inline constexpr size_t kEnumCount<Guard::Container> =
    static_cast<size_t>(Guard::Container::kFrozenSet) + 1;
template <> inline constexpr size_t kEnumCount<AliasPredicate::Relation> =
    static_cast<size_t>(AliasPredicate::Relation::kSame) + 1;
template <> inline constexpr size_t kEnumCount<ResultSpec::Form> =
    static_cast<size_t>(ResultSpec::Form::kPyBool) + 1;
template <>
inline constexpr size_t kEnumCount<TreeNode::Kind> = static_cast<size_t>(TreeNode::Kind::kSame) + 1;
template <> inline constexpr size_t kEnumCount<HostArgument::Kind> =
    static_cast<size_t>(HostArgument::Kind::kConst) + 1;

// visit(visitor, object): calls visitor(field...) with the fields in order. `T` is the struct or its
// const version.
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, Const>
void visit(V& v, T& x) { v(x.kind, x.integer, x.real, x.imag, x.text, x.items); }
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, Symbol>
void visit(V& v, T& x) { v(x.kind, x.array, x.axis); }
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, ExprNode>
void visit(V& v, T& x) { v(x.op, x.imm); }
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, Predicate>
void visit(V& v, T& x) { v(x.op, x.lhs, x.rhs); }
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, ArraySpec>
void visit(V& v, T& x) {
  v(x.dtype, x.rank, x.layout, x.aligned, x.writeable, x.numpy_scalar, x.stride_class, x.order);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, ArgSpec>
void visit(V& v, T& x) { v(x.kind, x.array, x.shape, x.value); }
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, CallShape>
void visit(V& v, T& x) { v(x.varargs, x.keyword_names); }
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, Source>
void visit(V& v, T& x) { v(x.kind, x.parent, x.index, x.name, x.key); }
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, Guard>
void visit(V& v, T& x) {
  v(x.kind, x.source, x.value, x.hash, x.array, x.shape, x.slot, x.container);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, AliasPredicate>
void visit(V& v, T& x) { v(x.a, x.b, x.relation); }
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, ResultSpec>
void visit(V& v, T& x) { v(x.dtype, x.rank, x.form, x.view, x.readonly, x.order); }
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, TreeNode>
void visit(V& v, T& x) { v(x.kind, x.index, x.count); }
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, CodeLoc>
void visit(V& v, T& x) { v(x.function, x.instruction, x.line); }
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, HostArgument>
void visit(V& v, T& x) { v(x.kind, x.index, x.dtype, x.rank, x.numpy_scalar, x.keyword, x.value); }
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, HostResult>
void visit(V& v, T& x) { v(x.slot, x.dtype, x.rank, x.shape); }
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, Site>
void visit(V& v, T& x) {
  v(x.cls, x.message, x.remedy, x.loc, x.is_host_call, x.callable, x.arguments, x.results);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, CodeSymbol>
void visit(V& v, T& x) { v(x.name, x.offset, x.size); }
// Blob and device image have sections of their own.
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, Artifact>
void visit(V& v, T& x) {
  v(x.key, x.build_id, x.target, x.min_services_size, x.memory_only, x.releases_gil, x.cost_ns,
    x.call_shape, x.arguments, x.symbols, x.predicates, x.aliases, x.sources, x.guards,
    x.array_slots, x.scalar_slots, x.results, x.tree, x.constants, x.exprs, x.functions, x.sites,
    x.arena_bytes, x.schedule_text, x.memory_text, x.entry_offset, x.code_symbols);
}

}  // namespace cuvil::artifact
