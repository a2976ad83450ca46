// What the function returns (the tree and its array leaves), relations between arrays that are written,
// and the facts about arguments. The last step of a trace.
#include "frontend/interpreter.h"

namespace cuvil::frontend {

using artifact::TreeNode;

Result<> Interpreter::finish(const Value& result, const Node& n) {
  count_leaves(result);
  CUVIL_CHECK(add_result_tree(result, n));
  finish_aliases();

  artifact::Artifact& facts = traced_.facts;
  facts.array_slots = static_cast<uint32_t>(slots_.size());
  number_symbols();
  for (const auto& [index, shape] : argument_shapes_)
    for (ir::Dim d : shape) facts.arguments[index].shape.push_back(g_.dims.to_expr(d));
  for (auto& [d, index] : result_dims_) facts.exprs[index] = g_.dims.to_expr(d);
  return Ok{};
}

// The caller binds the first symbols: moves the ones that captured arrays brought late to the front.
void Interpreter::number_symbols() {
  std::vector<int32_t> to(g_.dims.symbol_count());
  int32_t next = 0;
  for (bool internal : {false, true}) {
    for (size_t s = 0; s < to.size(); ++s) {
      bool is = g_.dims.info(ir::SymbolId{static_cast<int32_t>(s)}).kind ==
                artifact::Symbol::Kind::kInternal;
      if (is == internal) to[s] = next++;
    }
  }
  bool changed = false;
  for (size_t s = 0; s < to.size(); ++s) changed = changed || to[s] != static_cast<int32_t>(s);
  if (!changed) return;
  g_.dims.renumber_symbols(to);
  for (size_t k = 0; k < g_.op_count(); ++k)
    for (ir::Attribute& a : g_.op(ir::OpId{static_cast<int32_t>(k)}).attributes)
      if (a.key == "symbol")
        if (int64_t* s = std::get_if<int64_t>(&a.value)) *s = to[static_cast<size_t>(*s)];
}

// How many different views of each cell are returned: one alone becomes a result of its own.
void Interpreter::count_leaves(const Value& v) {
  if (const Tensor* t = v.get<Tensor>()) {
    auto& views = leaves_[t->cell];
    for (const auto& [steps, same] : views)
      if (steps == t->steps && same == t->same_object) return;
    views.push_back({t->steps, t->same_object});
  } else if (const Container* c = v.container()) {
    for (const Value& item : c->items) count_leaves(item);
  }
}

Result<> Interpreter::add_tensor_result(const Tensor& t, const Node& n) {
  artifact::Artifact& facts = traced_.facts;
  using Form = artifact::ResultSpec::Form;
  if (t.same_object && t.source >= 0) {
    facts.tree.push_back({TreeNode::Kind::kSource, static_cast<uint32_t>(t.source), 0});
    return Ok{};
  }
  // The same object twice is one result.
  for (const ReturnedView& r : returned_) {
    if (r.cell == t.cell && r.steps == t.steps && r.same_object && t.same_object) {
      facts.tree.push_back({TreeNode::Kind::kResult, r.result, 0});
      return Ok{};
    }
  }
  ir::Result r;
  switch (t.weak) {
    case ops::Weak::kFloat: r.form = Form::kPyFloat; break;
    case ops::Weak::kBool: r.form = Form::kPyBool; break;
    case ops::Weak::kInt: r.form = Form::kPyInt; break;
    case ops::Weak::kComplex:
      return unsupported("a complex result", "return real and imaginary parts", n);
    case ops::Weak::kNo: r.form = t.scalar ? Form::kNumpyScalar : Form::kArray; break;
  }
  const Cell& c = cells_[static_cast<size_t>(t.cell)];
  const bool array = r.form == Form::kArray;
  if (array && c.input >= 0) {
    r.kind = ir::Result::Kind::kViewOfInput;
    r.base = static_cast<uint32_t>(c.input);
  } else if (array && leaves_[t.cell].size() > 1) {
    // Several views of one array: a result for the array itself, the views share its memory.
    auto base = base_results_.find(t.cell);
    if (base == base_results_.end()) {
      ir::Result whole;
      whole.value = c.current;
      base = base_results_.emplace(t.cell, static_cast<uint32_t>(g_.results.size())).first;
      g_.results.push_back(whole);
    }
    if (t.steps.empty() && t.same_object) {
      returned_.push_back({t.cell, t.steps, true, base->second});
      facts.tree.push_back({TreeNode::Kind::kResult, base->second, 0});
      return Ok{};
    }
    r.kind = ir::Result::Kind::kViewOfResult;
    r.base = base->second;
  }
  r.value = read(t);
  r.readonly = array && t.readonly;
  const auto index = static_cast<uint32_t>(g_.results.size());
  g_.results.push_back(r);
  returned_.push_back({t.cell, t.steps, t.same_object, index});
  facts.tree.push_back({TreeNode::Kind::kResult, index, 0});
  return Ok{};
}

Result<> Interpreter::add_result_tree(const Value& v, const Node& n) {
  artifact::Artifact& facts = traced_.facts;
  if (const Tensor* t = v.get<Tensor>()) return add_tensor_result(*t, n);
  if (const ir::Dim* d = v.get<ir::Dim>()) {
    if (!g_.dims.depends_on_internal(*d)) {
      result_dims_.push_back({*d, facts.exprs.size()});
      facts.tree.push_back({TreeNode::Kind::kExpr, static_cast<uint32_t>(facts.exprs.size()), 0});
      facts.exprs.emplace_back();
      return Ok{};
    }
    return add_tensor_result(fresh(builder(n).dim_value(*d), ops::Weak::kInt), n);
  }
  if (const Static* s = v.get<Static>()) {
    if (s->source >= 0) {
      facts.tree.push_back({TreeNode::Kind::kSource, static_cast<uint32_t>(s->source), 0});
      return Ok{};
    }
    PyObject* o = s->object.get();
    if (std::optional<artifact::Const> c = const_of(o)) {
      facts.tree.push_back(
          {TreeNode::Kind::kConst, static_cast<uint32_t>(facts.constants.size()), 0});
      facts.constants.push_back(std::move(*c));
      return Ok{};
    }
    if (PyObject_HasAttrString(o, "__array_interface__")) {
      CUVIL_TRY(Value c, constant_array(o, n));
      return add_result_tree(c, n);
    }
    return unsupported("returning " + describe(v) + ", an object made by the compiled function",
                       "return arrays, numbers, strings, tuples, lists or dicts", n);
  }
  if (const Container* c = v.container()) {
    auto [known, fresh] = tree_nodes_.emplace(c, static_cast<uint32_t>(facts.tree.size()));
    if (!fresh) {
      facts.tree.push_back({TreeNode::Kind::kSame, known->second, 0});
      return Ok{};
    }
    TreeNode node;
    node.count = static_cast<uint32_t>(c->items.size());
    switch (c->kind) {
      case Container::Kind::kTuple: node.kind = TreeNode::Kind::kTuple; break;
      case Container::Kind::kList: node.kind = TreeNode::Kind::kList; break;
      case Container::Kind::kDict:
        node.kind = TreeNode::Kind::kDict;
        node.index = static_cast<uint32_t>(facts.constants.size());
        for (const PyRef& key : c->keys) {
          std::optional<artifact::Const> k = const_of(key.get());
          if (!k)
            return unsupported("a dict key " + short_repr(key.get()) + " in the result",
                               "use a str", n);
          facts.constants.push_back(std::move(*k));
        }
        break;
      case Container::Kind::kNamedTuple:
        if (c->type.source < 0)
          return unsupported("returning a named tuple whose class is made inside",
                             "define it outside", n);
        node.kind = TreeNode::Kind::kCall;
        node.index = static_cast<uint32_t>(c->type.source);
        break;
      case Container::Kind::kSet: {
        return unsupported("returning a set", "return a tuple or list", n);
      }
    }
    facts.tree.push_back(node);
    for (const Value& item : c->items) CUVIL_CHECK(add_result_tree(item, n));
    return Ok{};
  }
  return unsupported("returning " + describe(v),
                     "return arrays, numbers, strings, tuples, lists or dicts", n);
}

namespace {

// First and one-past-last byte of an array, from its data pointer.
struct Extent {
  int64_t begin = 0, end = 0;
};
std::optional<Extent> extent_of(PyObject* array, const std::vector<int64_t>& shape,
                                const std::vector<int64_t>& strides, int64_t item) {
  PyRef interface = attr_or_null(array, CUVIL_NAME("__array_interface__"));
  PyObject* data = interface ? PyDict_GetItemString(interface.get(), "data") : nullptr;
  PyObject* address = data && PyTuple_Check(data) ? PyTuple_GetItem(data, 0) : nullptr;
  std::optional<int64_t> at = address ? to_int64(address) : std::nullopt;
  if (!at) return std::nullopt;
  Extent e{*at, *at + item};
  for (size_t k = 0; k < shape.size(); ++k) {
    if (shape[k] == 0) return Extent{*at, *at};
    int64_t reach = (shape[k] - 1) * strides[k];
    (reach < 0 ? e.begin : e.end) += reach;
  }
  return e;
}

}  // namespace

// For every array that is written: what must hold between it and every other one, as a predicate.
// Arrays that overlap in any other way than as one view get code for disjoint ones: it fits if their
// elements interleave (which the dispatcher finds out), else the call runs as plain Python.
void Interpreter::finish_aliases() {
  using Relation = artifact::AliasPredicate::Relation;
  auto is_shared = [&](uint32_t a, uint32_t b) {
    for (auto [x, y] : shared_)
      if ((x == a && y == b) || (x == b && y == a)) return true;
    return false;
  };
  for (uint32_t b = 0; b < slots_.size(); ++b) {
    for (uint32_t a = 0; a < b; ++a) {
      const ArraySlot &x = slots_[a], &y = slots_[b];
      if (is_shared(a, b)) {
        traced_.facts.aliases.push_back({a, b, Relation::kSame});
        continue;
      }
      if (!cells_[static_cast<size_t>(x.cell)].written &&
          !cells_[static_cast<size_t>(y.cell)].written)
        continue;
      if (x.spec.numpy_scalar || y.spec.numpy_scalar) continue;
      auto ex = extent_of(x.object.get(), x.shape, x.strides, size_of(x.spec.dtype));
      auto ey = extent_of(y.object.get(), y.shape, y.strides, size_of(y.spec.dtype));
      if (!ex || !ey) continue;
      const bool empty = ex->begin == ex->end || ey->begin == ey->end;
      if (!empty && x.spec == y.spec && x.shape == y.shape && x.strides == y.strides &&
          ex->begin == ey->begin)
        must_share_.push_back({a, b});
      else
        traced_.facts.aliases.push_back({a, b, Relation::kDisjoint});
    }
  }
}

}  // namespace cuvil::frontend
