// Operators and comparisons: on statics as Python does, on run-time ints as dims, on arrays by row.
#include <cmath>

#include "frontend/interpreter.h"

namespace cuvil::frontend {
namespace {

struct BinaryRow {
  NodeKind kind;
  std::string_view row;
  PyObject* (*python)(PyObject*, PyObject*);
  const char* symbol;
};

PyObject* power(PyObject* a, PyObject* b) { return PyNumber_Power(a, b, Py_None); }

constexpr BinaryRow kBinary[] = {
    {NodeKind::kAdd, "operator.add", PyNumber_Add, "+"},
    {NodeKind::kSub, "operator.sub", PyNumber_Subtract, "-"},
    {NodeKind::kMult, "operator.mul", PyNumber_Multiply, "*"},
    {NodeKind::kMatMult, "operator.matmul", PyNumber_MatrixMultiply, "@"},
    {NodeKind::kDiv, "operator.truediv", PyNumber_TrueDivide, "/"},
    {NodeKind::kFloorDiv, "operator.floordiv", PyNumber_FloorDivide, "//"},
    {NodeKind::kMod, "operator.mod", PyNumber_Remainder, "%"},
    {NodeKind::kPow, "operator.pow", power, "**"},
    {NodeKind::kLShift, "operator.lshift", PyNumber_Lshift, "<<"},
    {NodeKind::kRShift, "operator.rshift", PyNumber_Rshift, ">>"},
    {NodeKind::kBitOr, "operator.or_", PyNumber_Or, "|"},
    {NodeKind::kBitXor, "operator.xor", PyNumber_Xor, "^"},
    {NodeKind::kBitAnd, "operator.and_", PyNumber_And, "&"},
};

const BinaryRow& binary_row(NodeKind k) {
  for (const BinaryRow& r : kBinary)
    if (r.kind == k) return r;
  return kBinary[0];
}

struct UnaryRow {
  NodeKind kind;
  std::string_view row;
  PyObject* (*python)(PyObject*);
};
constexpr UnaryRow kUnary[] = {
    {NodeKind::kUSub, "operator.neg", PyNumber_Negative},
    {NodeKind::kUAdd, "operator.pos", PyNumber_Positive},
    {NodeKind::kInvert, "operator.invert", PyNumber_Invert},
};

struct CompareRow {
  NodeKind kind;
  std::string_view row;
  int python;
};
constexpr CompareRow kCompare[] = {
    {NodeKind::kEq, "operator.eq", Py_EQ}, {NodeKind::kNotEq, "operator.ne", Py_NE},
    {NodeKind::kLt, "operator.lt", Py_LT}, {NodeKind::kLtE, "operator.le", Py_LE},
    {NodeKind::kGt, "operator.gt", Py_GT}, {NodeKind::kGtE, "operator.ge", Py_GE},
};

bool is_traced_number(const Value& v) { return v.is<Tensor>() || v.is<ir::Dim>(); }

bool equals_no_number(PyObject* o) {
  return o == Py_None || o == Py_Ellipsis || o == Py_NotImplemented ||
         is_exactly(o, &PyUnicode_Type) || is_exactly(o, &PyBytes_Type);
}

// None, or of a class that takes == from object.
bool equals_itself_alone(PyObject* o) {
  return o == Py_None || PyType_GetSlot(Py_TYPE(o), Py_tp_richcompare) ==
                             PyType_GetSlot(&PyBaseObject_Type, Py_tp_richcompare);
}

bool is_static_float(const Value& v) {
  const Static* s = v.get<Static>();
  return s && PyFloat_Check(s->object.get());
}

}  // namespace

// Python's own arithmetic: beside a run-time int or float a number of a subclass is a plain one.
Result<Value> Interpreter::beside(const Value& v, const Value& other, const Node& n) {
  const Static* s = v.get<Static>();
  const Tensor* t = other.get<Tensor>();
  const bool python = other.is<ir::Dim>() || (t && t->weak != ops::Weak::kNo);
  if (!s || !python || !is_strong_number(s->object.get())) return v;
  CUVIL_CHECK(use(*s, n));
  PyObject* o = s->object.get();
  PyRef plain = PyRef::steal(PyLong_Check(o) ? PyNumber_Long(o) : PyNumber_Float(o));
  if (!plain) return python_error(n);
  return static_of(std::move(plain));
}

Result<Value> Interpreter::eval_bin_op(const Node& n) {
  CUVIL_TRY(Value a, eval(n.child(CUVIL_NAME("left"))));
  CUVIL_TRY(Value b, eval(n.child(CUVIL_NAME("right"))));
  return binary(n.child(CUVIL_NAME("op")).kind(), a, b, n);
}

Result<Value> Interpreter::binary(NodeKind op, const Value& given_a, const Value& given_b,
                                  const Node& n) {
  const BinaryRow& row = binary_row(op);
  CUVIL_TRY(const Value a, beside(given_a, given_b, n));
  CUVIL_TRY(const Value b, beside(given_b, given_a, n));
  if (a.is<Tensor>() || b.is<Tensor>()) return call_operator(row.row, {a, b}, n);
  if (a.is<ir::Dim>() || b.is<ir::Dim>()) {
    std::optional<ir::Dim> x = as_dim(a), y = as_dim(b);
    if (x && y) return dim_binary(op, *x, *y, a, b, n);
    if (is_static_float(a) || is_static_float(b)) return call_operator(row.row, {a, b}, n);
    // A sequence repeated a run-time number of times, a str formatted with one: static.
    const Value& other = x ? b : a;
    CUVIL_TRY(Value fixed, specialise(*(a.is<ir::Dim>() ? a : b).get<ir::Dim>(), n));
    if (other.is<ir::Dim>()) return unsupported("this operator is not compiled here", {}, n);
    return a.is<ir::Dim>() ? binary(op, fixed, b, n) : binary(op, a, fixed, n);
  }
  CUVIL_TRY(std::optional<PyRef> x, as_object(a, n));
  CUVIL_TRY(std::optional<PyRef> y, as_object(b, n));
  if (x && y) {
    PyRef r = PyRef::steal(row.python(x->get(), y->get()));
    if (!r) return python_error(n);
    return wrap(std::move(r));
  }
  // Sequences with traced parts.
  const Container* left = a.container();
  const Container* right = b.container();
  if (op == NodeKind::kAdd && (left || right)) {
    auto is_list = [](const Value& v) {
      const Static* s = v.get<Static>();
      return s ? PyList_Check(s->object.get()) != 0
               : v.container() && v.container()->kind == Container::Kind::kList;
    };
    if (is_list(a) == is_list(b)) {
      CUVIL_TRY(Values items, items_of(a, n));
      CUVIL_TRY(Values more, items_of(b, n));
      items.insert(items.end(), more.begin(), more.end());
      return make_container(is_list(a) ? Container::Kind::kList : Container::Kind::kTuple,
                            std::move(items));
    }
  }
  if (op == NodeKind::kMult && (left || right)) {
    const Value& sequence = left ? a : b;
    std::optional<ir::Dim> count = as_dim(left ? b : a);
    std::optional<int64_t> times = count ? g_.dims.as_constant(*count) : std::nullopt;
    if (times) {
      Values items;
      for (int64_t k = 0; k < *times; ++k)
        items.insert(items.end(), sequence.container()->items.begin(),
                     sequence.container()->items.end());
      return make_container(sequence.container()->kind, std::move(items));
    }
  }
  return fail(ErrorClass::kTypeError,
              std::string("unsupported operand type(s) for ") + row.symbol + ": " + describe(a) +
                  " and " + describe(b),
              "use numbers or arrays", n);
}

Result<Value> Interpreter::dim_binary(NodeKind op, ir::Dim a, ir::Dim b, const Value& va,
                                      const Value& vb, const Node& n) {
  ir::DimTable& dims = g_.dims;
  // Python ints do not overflow: keep run-time ones small enough that int64 does not either.
  for (ir::Dim d : {a, b}) {
    std::vector<ir::SymbolId> symbols;
    dims.collect_symbols(d, &symbols);
    for (ir::SymbolId s : symbols) {
      const ir::DimTable::SymbolInfo info = dims.info(s);
      constexpr int64_t kLimit = int64_t{1} << 31;
      if (info.kind != artifact::Symbol::Kind::kScalar ||
          (info.range.lo >= -kLimit && info.range.hi <= kLimit))
        continue;
      ir::Dim v = dims.symbol(s);
      CUVIL_TRY(bool above, less(dims.constant(-kLimit - 1), v, n));
      CUVIL_TRY(bool below, less(v, dims.constant(kLimit + 1), n));
      if (above && below) continue;
      // A large one: static arithmetic, exact.
      std::optional<int64_t> x = dims.example(a), y = dims.example(b);
      if (!x || !y) return unsupported("arithmetic on an int beyond 32 bits", "use float64", n);
      CUVIL_TRY(Value fa, specialise(a, n));
      CUVIL_TRY(Value fb, specialise(b, n));
      return binary(op, fa, fb, n);
    }
  }
  if (op == NodeKind::kFloorDiv || op == NodeKind::kMod || op == NodeKind::kDiv) {
    ir::Dim zero = dims.constant(0);
    bool proven = provably_less(zero, b) || provably_less(b, zero);
    if (!proven) {
      const char* text = op == NodeKind::kDiv   ? "division by zero"
                         : op == NodeKind::kMod ? "integer modulo by zero"
                                                : "integer division or modulo by zero";
      if (dims.depends_on_internal(b)) {
        ops::Builder here = builder(n);
        const ir::OpDesc* check = ops::find_desc("check");
        g_.add_op(region_, *check, {}, {},
                  {{"op", int64_t{static_cast<int>(artifact::Predicate::Op::kNe)}},
                   {"lhs", ir::Shape{b}},
                   {"rhs", ir::Shape{zero}},
                   {"error", int64_t{static_cast<int>(ErrorClass::kZeroDivisionError)}},
                   {"message", std::string(text)},
                   {"remedy", std::string("test the divisor before the division")},
                   {"payload", ir::Shape{}}},
                  here.loc);
      } else {
        CUVIL_TRY(bool is_zero, equal(b, zero, n));
        if (is_zero)
          return fail(ErrorClass::kZeroDivisionError, text, "test the divisor before the division",
                      n);
      }
    }
  }
  std::optional<ir::Dim> result;
  switch (op) {
    case NodeKind::kAdd: result = dims.add_exactly(a, b); break;
    case NodeKind::kSub:
      result = dims.mul_exactly(b, dims.constant(-1));
      if (result) result = dims.add_exactly(a, *result);
      break;
    case NodeKind::kMult: result = dims.mul_exactly(a, b); break;
    case NodeKind::kFloorDiv: result = dims.floordiv(a, b); break;
    case NodeKind::kMod: result = dims.mod(a, b); break;
    case NodeKind::kDiv: return call_operator("operator.truediv", {va, vb}, n);
    case NodeKind::kPow:
      if (dims.is_constant(b, 0)) result = dims.constant(1);
      if (dims.is_constant(b, 1)) result = a;
      if (dims.is_constant(b, 2)) result = dims.mul_exactly(a, a);
      break;
    default: break;
  }
  CUVIL_TRY(result, fitting(result, n));
  if (result) return dim_or_static(*result);
  // Bits, shifts, large powers and large numbers: as static ints of the present call.
  CUVIL_TRY(Value fa, specialise(a, n));
  CUVIL_TRY(Value fb, specialise(b, n));
  return binary(op, fa, fb, n);
}

Result<Value> Interpreter::eval_unary_op(const Node& n) {
  NodeKind op = n.child(CUVIL_NAME("op")).kind();
  CUVIL_TRY(Value a, eval(n.child(CUVIL_NAME("operand"))));
  if (op == NodeKind::kNot) {
    CUVIL_TRY(bool v, truth(a, n, "`not`"));
    return static_bool(!v);
  }
  return unary(op, a, n);
}

Result<Value> Interpreter::unary(NodeKind op, const Value& a, const Node& n) {
  const UnaryRow* row = nullptr;
  for (const UnaryRow& r : kUnary)
    if (r.kind == op) row = &r;
  if (const ir::Dim* d = a.get<ir::Dim>()) {
    if (op == NodeKind::kUAdd) return a;
    std::optional<ir::Dim> result = g_.dims.mul_exactly(*d, g_.dims.constant(-1));
    if (result && op == NodeKind::kInvert)
      result = g_.dims.add_exactly(*result, g_.dims.constant(-1));
    CUVIL_TRY(result, fitting(result, n));
    if (result) return dim_or_static(*result);
    CUVIL_TRY(Value fixed, specialise(*d, n));
    return unary(op, fixed, n);
  }
  if (a.is<Tensor>()) return call_operator(row->row, {a}, n);
  CUVIL_TRY(std::optional<PyRef> x, as_object(a, n));
  if (!x)
    return fail(ErrorClass::kTypeError, "bad operand type for a unary operator: " + describe(a),
                "use numbers or arrays", n);
  PyRef r = PyRef::steal(row->python(x->get()));
  if (!r) return python_error(n);
  return wrap(std::move(r));
}

Result<Value> Interpreter::eval_compare(const Node& n) {
  CUVIL_TRY(Value left, eval(n.child(CUVIL_NAME("left"))));
  std::vector<Node> ops = n.children(CUVIL_NAME("ops"));
  std::vector<Node> comparators = n.children(CUVIL_NAME("comparators"));
  Value result;
  for (size_t k = 0; k < ops.size(); ++k) {
    if (k > 0) {
      // a < b < c is `a < b and b < c`.
      CUVIL_TRY(bool so_far, truth(result, n, "a chained comparison"));
      if (!so_far) return result;
    }
    CUVIL_TRY(Value right, eval(comparators[k]));
    CUVIL_TRY(Value r, compare(ops[k].kind(), left, right, n));
    result = std::move(r);
    left = std::move(right);
  }
  return result;
}

Result<Value> Interpreter::compare(NodeKind op, const Value& a, const Value& b, const Node& n) {
  if (op == NodeKind::kIs || op == NodeKind::kIsNot) {
    CUVIL_TRY(bool same, is_same(a, b, n));
    return static_bool(same == (op == NodeKind::kIs));
  }
  if (op == NodeKind::kIn || op == NodeKind::kNotIn) {
    CUVIL_TRY(bool in, contains(a, b, n));
    return static_bool(in == (op == NodeKind::kIn));
  }
  const CompareRow* row = nullptr;
  for (const CompareRow& r : kCompare)
    if (r.kind == op) row = &r;
  auto is_none = [](const Value& v) {
    const Static* s = v.get<Static>();
    return s && s->object.get() == Py_None;
  };
  if (a.is<Tensor>() || b.is<Tensor>()) {
    // A Python or NumPy number equals no str, None, ...
    const Value& other = a.is<Tensor>() ? b : a;
    const Tensor& t = *(a.is<Tensor>() ? a : b).get<Tensor>();
    const bool number = t.weak != ops::Weak::kNo || t.scalar;
    const bool equality = op == NodeKind::kEq || op == NodeKind::kNotEq;
    if (const Static* s = other.get<Static>();
        s && number && equality && equals_no_number(s->object.get())) {
      CUVIL_CHECK(use(*s, n));
      return static_bool(op == NodeKind::kNotEq);
    }
    if (!is_none(a) && !is_none(b)) return call_operator(row->row, {a, b}, n);
    return unsupported("comparing an array with None", "use `is None`", n);
  }
  if (a.is<ir::Dim>() || b.is<ir::Dim>()) {
    std::optional<ir::Dim> x = as_dim(a), y = as_dim(b);
    if (x && y) {
      bool swap = op == NodeKind::kGt || op == NodeKind::kLtE;
      bool negate = op == NodeKind::kGtE || op == NodeKind::kLtE || op == NodeKind::kNotEq;
      bool equality = op == NodeKind::kEq || op == NodeKind::kNotEq;
      Result<bool> r = equality ? equal(*x, *y, n) : swap ? less(*y, *x, n) : less(*x, *y, n);
      if (r.ok()) return static_bool(*r != negate);
      return call_operator(row->row, {a, b}, n);  // a loop index: known at run time only
    }
    const Value& other = a.is<ir::Dim>() ? b : a;
    if (is_static_float(other)) {
      ir::Dim d = *(a.is<ir::Dim>() ? a : b).get<ir::Dim>();
      if (g_.dims.depends_on_internal(d)) return call_operator(row->row, {a, b}, n);
      CUVIL_TRY(Value fixed, specialise(d, n));
      return a.is<ir::Dim>() ? compare(op, fixed, b, n) : compare(op, a, fixed, n);
    }
    if (other.is<Static>() && (op == NodeKind::kEq || op == NodeKind::kNotEq)) {
      CUVIL_CHECK(use(*other.get<Static>(), n));
      return static_bool(op == NodeKind::kNotEq);  // an int equals no str, None, ...
    }
  }
  if (op == NodeKind::kEq || op == NodeKind::kNotEq) {
    const Static *p = a.get<Static>(), *q = b.get<Static>();
    if (p && q && equals_itself_alone(p->object.get()) && equals_itself_alone(q->object.get())) {
      CUVIL_TRY(bool same, is_same(a, b, n));
      return static_bool(same == (op == NodeKind::kEq));
    }
  }
  CUVIL_TRY(std::optional<PyRef> x, as_object(a, n));
  CUVIL_TRY(std::optional<PyRef> y, as_object(b, n));
  if (x && y) {
    PyRef r = PyRef::steal(PyObject_RichCompare(x->get(), y->get(), row->python));
    if (!r) return python_error(n);
    return wrap(std::move(r));
  }
  bool equality = op == NodeKind::kEq || op == NodeKind::kNotEq;
  if (equality && (a.container() || b.container())) {
    // Shapes: tuples of ints, some of them run-time.
    CUVIL_TRY(Values left, items_of(a, n));
    CUVIL_TRY(Values right, items_of(b, n));
    bool same = left.size() == right.size();
    for (size_t k = 0; same && k < left.size(); ++k) {
      CUVIL_TRY(Value e, compare(NodeKind::kEq, left[k], right[k], n));
      CUVIL_TRY(bool t, truth(e, n, "a comparison of sequences"));
      same = t;
    }
    return static_bool(same == (op == NodeKind::kEq));
  }
  return fail(ErrorClass::kTypeError, "cannot compare " + describe(a) + " with " + describe(b),
              "compare numbers or arrays", n);
}

Result<bool> Interpreter::is_same(const Value& a, const Value& b, const Node& n) {
  const Static* x = a.get<Static>();
  const Static* y = b.get<Static>();
  if (x && y) {
    // Against None, True, False, ... the type or value decides; other identities are guarded as such.
    for (auto [s, other] : {std::pair{x, y}, std::pair{y, x}}) {
      if (s->source < 0) continue;
      if (other->object.get() == Py_None && s->object.get() != Py_None)
        capture_.guard_type(s->source, s->object.get());
      else if (!const_of(s->object.get()) && !PyType_Check(s->object.get()))
        capture_.guard_identity(s->source, s->object.get());
      else
        CUVIL_CHECK(use(*s, n));
    }
    return x->object.get() == y->object.get();
  }
  if (x || y) {
    CUVIL_CHECK(use(x ? *x : *y, n));
    return false;  // a traced value is never a static object
  }
  const Tensor* s = a.get<Tensor>();
  const Tensor* t = b.get<Tensor>();
  if (s && t) return s->same_object && t->same_object && s->cell == t->cell && s->steps == t->steps;
  if (a.container() && b.container()) return a.container() == b.container();
  if (is_traced_number(a) != is_traced_number(b)) return false;
  return unsupported("`is` between " + describe(a) + " and " + describe(b), "use ==", n);
}

Result<bool> Interpreter::contains(const Value& item, const Value& container, const Node& n) {
  CUVIL_TRY(std::optional<PyRef> x, as_object(item, n));
  if (const Static* s = container.get<Static>(); s && x) {
    PyObject* o = s->object.get();
    if (s->source >= 0 && is_exactly(o, &PyDict_Type)) {
      // Only this key matters: guard its presence, not the dict.
      std::optional<artifact::Const> key = const_of(x->get());
      int in = key ? PySequence_Contains(o, x->get()) : -1;
      if (in >= 0) {
        capture_.guard_type(s->source, o);
        int32_t source = capture_.source(Capture::Kind::kItem, s->source, 0, {}, key);
        if (!in) {
          capture_.guard_missing(source);
        } else {
          PyRef v = PyRef::steal(PyObject_GetItem(o, x->get()));
          if (v) capture_.guard_type(source, v.get());
        }
        return in == 1;
      }
      forgive();
    }
  }
  if (const Container* c = container.container(); c && c->kind == Container::Kind::kDict && x) {
    for (const PyRef& key : c->keys) {
      int r = PyObject_RichCompareBool(key.get(), x->get(), Py_EQ);
      if (r < 0) return python_error(n);
      if (r) return true;
    }
    return false;
  }
  CUVIL_TRY(std::optional<PyRef> c, as_object(container, n));
  if (c && x) {
    int r = PySequence_Contains(c->get(), x->get());
    if (r < 0) return python_error(n);
    return r == 1;
  }
  if (container.is<Tensor>())
    return unsupported("`in` over the elements of an array", "use np.any(array == value)", n);
  CUVIL_TRY(Values items, items_of(container, n));
  for (const Value& v : items) {
    CUVIL_TRY(Value e, compare(NodeKind::kEq, item, v, n));
    CUVIL_TRY(bool same, truth(e, n, "`in`"));
    if (same) return true;
  }
  return false;
}

}  // namespace cuvil::frontend
