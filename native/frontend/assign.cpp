// Assignments: names, unpacking, items; augmented ones change arrays in place, as Python does.
#include "frontend/interpreter.h"

namespace cuvil::frontend {

Result<Flow> Interpreter::exec_assign(const Node& n) {
  CUVIL_TRY(Value v, eval(n.child(CUVIL_NAME("value"))));
  for (const Node& target : n.children(CUVIL_NAME("targets"))) CUVIL_CHECK(assign(target, v));
  return Flow::kNext;
}

Result<Flow> Interpreter::exec_ann_assign(const Node& n) {
  Node value = n.child(CUVIL_NAME("value"));  // annotations of locals are not evaluated
  if (!value.present()) return Flow::kNext;
  CUVIL_TRY(Value v, eval(value));
  CUVIL_CHECK(assign(n.child(CUVIL_NAME("target")), std::move(v)));
  return Flow::kNext;
}

Result<> Interpreter::assign_name(const std::string& name, Value value) {
  frame().locals[name] = std::move(value);
  return Ok{};
}

Result<> Interpreter::assign(const Node& target, Value value) {
  switch (target.kind()) {
    case NodeKind::kName: return assign_name(target.text(CUVIL_NAME("id")), std::move(value));
    case NodeKind::kTuple:
    case NodeKind::kList: return unpack(target.children(CUVIL_NAME("elts")), value, target);
    case NodeKind::kSubscript: {
      CUVIL_TRY(Value base, eval(target.child(CUVIL_NAME("value"))));
      CUVIL_TRY(Value index, eval(target.child(CUVIL_NAME("slice"))));
      return store_subscript(base, index, value, target);
    }
    case NodeKind::kAttribute:
      return unsupported(
          "assignment to the attribute `." + target.text(CUVIL_NAME("attr")) + "` is not compiled",
          "return the value and assign it outside", target);
    case NodeKind::kStarred: return assign(target.child(CUVIL_NAME("value")), std::move(value));
    default: return refused(target, loc(target));
  }
}

Result<> Interpreter::unpack(const std::vector<Node>& targets, const Value& value, const Node& n) {
  CUVIL_TRY(Values items, items_of(value, n));
  size_t star = targets.size();
  for (size_t k = 0; k < targets.size(); ++k)
    if (targets[k].kind() == NodeKind::kStarred) star = k;
  const bool starred = star < targets.size();
  const size_t fixed = targets.size() - (starred ? 1 : 0);
  if (items.size() < fixed)
    return fail(ErrorClass::kValueError,
                "not enough values to unpack (expected " + std::string(starred ? "at least " : "") +
                    std::to_string(fixed) + ", got " + std::to_string(items.size()) + ")",
                {}, n);
  if (!starred && items.size() > fixed)
    return fail(ErrorClass::kValueError,
                "too many values to unpack (expected " + std::to_string(fixed) + ", got " +
                    std::to_string(items.size()) + ")",
                {}, n);
  const size_t extra = items.size() - fixed;
  for (size_t k = 0, at = 0; k < targets.size(); ++k) {
    if (k == star) {
      Values rest(items.begin() + static_cast<long>(at),
                  items.begin() + static_cast<long>(at + extra));
      CUVIL_CHECK(assign(targets[k], make_container(Container::Kind::kList, std::move(rest))));
      at += extra;
    } else {
      CUVIL_CHECK(assign(targets[k], items[at++]));
    }
  }
  return Ok{};
}

Result<Flow> Interpreter::exec_aug_assign(const Node& n) {
  Node target = n.child(CUVIL_NAME("target")), op = n.child(CUVIL_NAME("op"));
  Node operand = n.child(CUVIL_NAME("value"));
  if (target.kind() == NodeKind::kName) {
    std::string name = target.text(CUVIL_NAME("id"));
    CUVIL_TRY(Value old, lookup(name, target));
    CUVIL_TRY(Value v, eval(operand));
    CUVIL_TRY(Value made, in_place(op, old, v, n));
    CUVIL_CHECK(assign_name(name, std::move(made)));
    return Flow::kNext;
  }
  if (target.kind() != NodeKind::kSubscript) {
    CUVIL_CHECK(assign(target, none()));  // refused with its own message
    return Flow::kNext;
  }
  CUVIL_TRY(Value base, eval(target.child(CUVIL_NAME("value"))));
  CUVIL_TRY(Value index, eval(target.child(CUVIL_NAME("slice"))));
  if (const Tensor* t = base.get<Tensor>(); t && !t->scalar && t->weak == ops::Weak::kNo)
    CUVIL_CHECK(check_writable(*t, n));
  CUVIL_TRY(Value old, subscript(base, index, target));
  CUVIL_TRY(Value v, eval(operand));
  CUVIL_TRY(Value made, in_place(op, old, v, n));
  // A view that was changed in place is stored already; storing it into itself changes nothing.
  const Tensor* view = old.get<Tensor>();
  const Tensor* after = made.get<Tensor>();
  const Tensor* whole = base.get<Tensor>();
  if (view && after && whole && view->cell == whole->cell && after->cell == view->cell &&
      after->steps == view->steps && !view->scalar)
    return Flow::kNext;
  CUVIL_CHECK(store_subscript(base, index, made, target));
  return Flow::kNext;
}

// `target op= operand`: the array itself, changed, or a new value for everything immutable.
Result<Value> Interpreter::in_place(const Node& op, const Value& target, const Value& operand,
                                    const Node& n) {
  const Tensor* t = target.get<Tensor>();
  if (t && !t->scalar && t->weak == ops::Weak::kNo) {
    CUVIL_CHECK(check_writable(*t, n));
    CUVIL_TRY(Value r, binary(op.kind(), target, operand, n));
    const Tensor* result = r.get<Tensor>();
    if (!result) return unsupported("this augmented assignment", "write it out: a = a + b", n);
    static constexpr std::pair<NodeKind, const char*> kUfuncs[] = {
        {NodeKind::kAdd, "add"},           {NodeKind::kSub, "subtract"},
        {NodeKind::kMult, "multiply"},     {NodeKind::kMatMult, "matmul"},
        {NodeKind::kDiv, "divide"},        {NodeKind::kFloorDiv, "floor_divide"},
        {NodeKind::kMod, "remainder"},     {NodeKind::kPow, "power"},
        {NodeKind::kLShift, "left_shift"}, {NodeKind::kRShift, "right_shift"},
        {NodeKind::kBitOr, "bitwise_or"},  {NodeKind::kBitXor, "bitwise_xor"},
        {NodeKind::kBitAnd, "bitwise_and"}};
    std::string name;
    for (auto [kind, ufunc] : kUfuncs)
      if (kind == op.kind()) name = ufunc;
    CUVIL_CHECK(store_result(*result, *t, name, n));
    return target;
  }
  if (Container* c = target.container();
      c && c->kind == Container::Kind::kList && op.kind() == NodeKind::kAdd) {
    CUVIL_CHECK(will_mutate(*c, n));
    CUVIL_TRY(Values more, items_of(operand, n));
    for (const Value& item : more) CUVIL_CHECK(check_acyclic(*c, item, n));
    c->items.insert(c->items.end(), more.begin(), more.end());
    return target;
  }
  if (const Static* s = target.get<Static>(); s && s->source >= 0 && PyList_Check(s->object.get()))
    return unsupported("this changes `" + capture_.path(s->source) + "`, a list from outside",
                       "make a new list: a = a + b", n);
  return binary(op.kind(), target, operand, n);
}

}  // namespace cuvil::frontend
