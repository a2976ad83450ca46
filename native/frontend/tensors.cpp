// Cells and views: reading the current version, writing the next one, and turning other values into
// tensors. Used by every file of the interpreter that touches arrays.
#include <cmath>
#include <cstring>

#include "frontend/interpreter.h"
#include "ops/python_numbers.h"
#include "ops/structural.h"

namespace cuvil::frontend {

namespace attr = ops::attr;

int32_t Interpreter::new_cell(ir::ValueId v) {
  Cell c;
  c.current = v;
  c.depth = loop_depth_;
  cells_.push_back(std::move(c));
  return static_cast<int32_t>(cells_.size() - 1);
}

Tensor Interpreter::fresh(ir::ValueId v, ops::Weak weak, bool scalar) {
  Tensor t;
  t.cell = new_cell(v);
  t.weak = weak;
  t.scalar = scalar;
  return t;
}

ir::ValueId Interpreter::read(const Tensor& t) {
  const Cell& c = cells_[static_cast<size_t>(t.cell)];
  if (t.steps.empty()) return c.current;
  if (t.cached.valid() && t.cached_version == c.version && t.cached_region == region_)
    return t.cached;
  ir::ValueId v = c.current;
  for (ir::OpId step : t.steps) {
    // Copies: adding an op may move the pattern.
    const ir::OpDesc& desc = *g_.op(step).desc;
    std::vector<ir::Attribute> attributes = g_.op(step).attributes;
    ir::ValueId pattern = g_.op(step).results[0];
    ir::Type type = g_.type(pattern);
    std::vector<uint8_t> order = g_.value(pattern).order;
    ir::OpId made =
        g_.add_op(region_, desc, {v}, {std::move(type)}, std::move(attributes), g_.op(step).loc);
    v = g_.op(made).results[0];
    g_.value(v).order = std::move(order);
  }
  t.cached = v;
  t.cached_version = c.version;
  t.cached_region = region_;
  return v;
}

const ir::Type& Interpreter::type_of(const Tensor& t) {
  if (t.steps.empty()) return g_.type(cells_[static_cast<size_t>(t.cell)].current);
  return g_.type(g_.op(t.steps.back()).results[0]);
}

Result<> Interpreter::check_writable(const Tensor& t, const Node& n) {
  const Cell& c = cells_[static_cast<size_t>(t.cell)];
  if (!c.writeable || t.readonly) {
    std::string what = t.readonly       ? "a read-only view (broadcast_to gives one)"
                       : c.name.empty() ? "a read-only array"
                                        : "`" + c.name + "`, a read-only array";
    return fail(ErrorClass::kValueError,
                "assignment destination is read-only: this writes to " + what,
                "write to a copy: make one with .copy()", n);
  }
  if (!c.frozen.empty()) return unsupported(c.frozen, "write to a copy: make one with .copy()", n);
  return Ok{};
}

Result<> Interpreter::write(const Tensor& t, ir::ValueId value, const Node& n) {
  CUVIL_CHECK(check_writable(t, n));
  Cell& c = cells_[static_cast<size_t>(t.cell)];
  ops::Builder b = builder(n);
  // A first write to something that is not storage of its own (an input's value under another name, a
  // view, a shared constant) starts from a copy.
  const ir::Op* def = g_.def(c.current);
  bool carried = !def && g_.value(c.current).region != g_.root();
  const bool views =  // an operand; a concatenation does not
      def && ops::info_of(*def).family == ops::Family::kMovement && def->operands.size() == 1;
  bool own = c.input >= 0 || carried || (def && !views && def->desc->name != "constant");
  if (!own && !c.written) {
    c.current = b.emit("copy", {c.current}, ir::Type(g_.type(c.current)));
    ++c.version;  // views are to be derived from the copy
  }
  ir::ValueId view = read(t);
  c.current = b.emit("store", {c.current, view, value}, ir::Type(g_.type(c.current)));
  c.written = true;
  wrote_for_caller_ = wrote_for_caller_ || c.input >= 0;
  ++c.version;
  return Ok{};
}

namespace {

bool is_python_int(const Value& v) {
  if (v.is<ir::Dim>()) return true;
  if (const Tensor* t = v.get<Tensor>()) return t->weak == ops::Weak::kInt;
  const Static* s = v.get<Static>();
  return s && is_exactly(s->object.get(), &PyLong_Type);
}

}  // namespace

Result<ir::ValueId> Interpreter::fit(const Value& value, const Tensor& target, const Node& n) {
  const ir::Type type = type_of(target);
  ops::Builder b = builder(n);
  ir::ValueId v;
  if (is_python_int(value) && is_int(type.dtype)) {
    CUVIL_TRY(ops::ArgValue number, to_arg(value, n));
    CUVIL_TRY(ops::Operand operand, ops::classify(b, number));
    CUVIL_TRY(v, ops::materialise(b, operand, type.dtype, false));
  } else {
    CUVIL_TRY(Tensor t, as_tensor(value, n));
    v = read(t);
    const Static* s = value.get<Static>();
    const bool known =
        s && PyFloat_Check(s->object.get()) && std::abs(PyFloat_AsDouble(s->object.get())) < 0x1p63;
    if (t.weak == ops::Weak::kFloat && is_int(type.dtype) && !known)
      v = ops::fits_int64(b, v, ErrorClass::kOverflowError,
                          "Python int too large to convert to C long");
  }
  ir::Shape shape = g_.type(v).shape;
  // NumPy's setitem also drops leading axes of length 1.
  while (shape.size() > type.rank() && g_.dims.is_constant(shape[0], 1)) {
    ir::Shape rest(shape.begin() + 1, shape.end());
    v = b.emit("squeeze", {v}, ir::Type{g_.type(v).dtype, rest},
               {{attr::kAxes, std::vector<int64_t>{0}}});
    shape = rest;
  }
  bool fits = shape.size() <= type.rank();
  for (size_t k = 0; fits && k < shape.size(); ++k) {
    ir::Dim want = type.shape[type.rank() - shape.size() + k];
    if (g_.dims.is_constant(shape[k], 1)) continue;
    CUVIL_TRY(bool same, equal(shape[k], want, n));
    fits = same;
  }
  if (!fits)
    return fail(ErrorClass::kShape,
                "could not broadcast input array from shape " + describe_type({type.dtype, shape}) +
                    " into shape " + describe_type(type),
                "assign a value whose shape broadcasts to the destination", n);
  v = b.cast(v, type.dtype);
  return b.broadcast_to(v, type.shape);
}

Result<Tensor> Interpreter::as_tensor(const Value& v, const Node& n) {
  if (const Tensor* t = v.get<Tensor>()) return *t;
  ops::Builder b = builder(n);
  if (const ir::Dim* d = v.get<ir::Dim>()) return fresh(b.dim_value(*d), ops::Weak::kInt);
  if (const Static* s = v.get<Static>()) {
    CUVIL_CHECK(use(*s, n));
    PyObject* o = s->object.get();
    if (PyBool_Check(o)) return fresh(b.constant_int(DType::kBool, o == Py_True), ops::Weak::kBool);
    const bool strong = is_strong_number(o);
    if (PyLong_Check(o)) {
      if (std::optional<int64_t> i = to_int64(o))
        return fresh(b.constant_int(DType::kI64, *i), strong ? ops::Weak::kNo : ops::Weak::kInt);
      return fail(ErrorClass::kOverflowError, "Python int too large to convert to C long",
                  "use an int that fits 64 bits", n);
    }
    if (PyFloat_Check(o))
      return fresh(b.constant(DType::kF64, PyFloat_AsDouble(o)),
                   strong ? ops::Weak::kNo : ops::Weak::kFloat);
    if (PyObject_HasAttrString(o, "dtype") && PyObject_HasAttrString(o, "tobytes")) {
      CUVIL_TRY(Value c, constant_array(o, n));
      return *c.get<Tensor>();
    }
  }
  if (const Container* c = v.container();
      c && c->kind != Container::Kind::kDict && c->kind != Container::Kind::kSet) {
    // A nested list as NumPy sees it: np.array of statics, or a stack of traced parts.
    CUVIL_TRY(std::optional<PyRef> object, as_object(v, n));
    if (object) {
      PyRef numpy = loaded_module("numpy");
      PyRef array = PyRef::steal(PyObject_CallMethod(numpy.get(), "array", "O", object->get()));
      if (!array) return python_error(n);
      CUVIL_TRY(Value made, constant_array(array.get(), n));
      return *made.get<Tensor>();
    }
    if (const ops::DialectRow* stack = ops::find_row("numpy.stack")) {
      Values parts;
      for (const Value& item : c->items) {
        CUVIL_TRY(Tensor part, as_tensor(item, n));
        parts.push_back(part);
      }
      Arguments args;
      args.positional.push_back(make_container(Container::Kind::kList, std::move(parts)));
      CUVIL_TRY(Value stacked, call_row(*stack, nullptr, args, -1, n));
      if (Tensor* t = stacked.get<Tensor>()) return *t;
    }
  }
  return fail(ErrorClass::kTypeError, describe(v) + " is not a number or an array",
              "pass an array or a number", n);
}

// A static NumPy array or scalar that the function made itself: its bytes become a constant.
Result<Value> Interpreter::constant_array(PyObject* array, const Node& n) {
  PyRef numpy = loaded_module("numpy");
  PyRef plain =
      numpy ? PyRef::steal(PyObject_CallMethod(numpy.get(), "ascontiguousarray", "O", array))
            : PyRef();
  PyRef dtype = plain ? CUVIL_ATTR(plain.get(), "dtype") : PyRef();
  PyRef character = dtype ? CUVIL_ATTR(dtype.get(), "char") : PyRef();
  PyRef shape = plain ? CUVIL_ATTR(array, "shape") : PyRef();
  PyRef bytes =
      plain ? PyRef::steal(PyObject_CallMethod(plain.get(), "tobytes", nullptr)) : PyRef();
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (!character || !shape || !bytes || PyBytes_AsStringAndSize(bytes.get(), &data, &size) < 0)
    return python_error(n);
  std::optional<DType> type = dtype_of_char(to_string(character.get()));
  PyRef native = CUVIL_ATTR(dtype.get(), "isnative");
  if (!type || !native || native.get() != Py_True)
    return fail(ErrorClass::kDType,
                "an array of dtype " + short_repr(dtype.get()) + " is not compiled",
                "use a bool, int, unsigned or float dtype in native byte order", n);
  PyRef generic = PyRef::steal(PyObject_GetAttrString(numpy.get(), "generic"));
  bool scalar = generic && PyObject_IsInstance(array, generic.get()) == 1;
  ir::Type t{*type, {}};
  for (Py_ssize_t i = 0; i < PyTuple_Size(shape.get()); ++i)
    t.shape.push_back(g_.dims.constant(to_int64(PyTuple_GetItem(shape.get(), i)).value_or(0)));
  ops::Builder b = builder(n);
  if (t.rank() == 0 && size <= 8) {
    uint64_t bits = 0;
    std::memcpy(&bits, data, static_cast<size_t>(size));
    return Value(fresh(b.constant(*type, bits), ops::Weak::kNo, scalar));
  }
  ir::ValueId v = b.emit("tensor_constant", {}, t,
                         {{attr::kData, std::string(data, static_cast<size_t>(size))}});
  return Value(fresh(v, ops::Weak::kNo, scalar));
}

// True if NumPy, too, gives a view: every step is an affine re-reading of the base's memory.
// Whether a reshape is a view depends on sizes and strides that are known at run time only: they are as
// in this call from here on. The groups of axes are those of ops::reshape_view.
bool Interpreter::settle_reshape(ir::OpId id, const ops::Access& access) {
  ir::DimTable& dims = g_.dims;
  const ir::Dim one = dims.constant(1);
  ir::Shape olds, strides, news;
  const ir::Shape from = g_.type(g_.op(id).operands[0]).shape;
  for (size_t k = 0; k < from.size(); ++k) {
    if (from[k] == one) continue;
    olds.push_back(from[k]);
    strides.push_back(access.strides[k]);
  }
  for (ir::Dim d : ir::Shape(g_.type(g_.op(id).results[0]).shape))
    if (d != one) news.push_back(d);
  ops::Builder b(g_, region_);
  for (size_t i = 0, j = 0; i < olds.size() || j < news.size();) {
    const size_t first = i;
    ir::Dim x = i < olds.size() ? olds[i++] : one, y = j < news.size() ? news[j++] : one;
    for (;;) {
      Result<bool> same = b.equal(x, y);
      if (!same.ok()) return false;
      const bool more_old = i < olds.size(), more_new = j < news.size();
      if (*same || (!more_old && !more_new)) break;
      auto u = dims.example(x), v = dims.example(y);
      if (more_old && (!more_new || (u && v && *u < *v)))
        x = dims.mul(x, olds[i++]);
      else
        y = dims.mul(y, news[j++]);
    }
    for (size_t k = first; k + 1 < i; ++k)
      if (!b.equal(strides[k], dims.mul(olds[k + 1], strides[k + 1])).ok()) return false;
  }
  return true;
}

std::optional<ops::Access> Interpreter::replay(const Tensor& base,
                                               const std::vector<ir::OpId>& steps) {
  const Cell& c = cells_[static_cast<size_t>(base.cell)];
  const ir::Type& type = g_.type(c.current);
  ops::Access access;
  access.offset = g_.dims.constant(0);
  if (c.input >= 0) {
    access.strides = g_.inputs[static_cast<size_t>(c.input)].strides;
  } else {
    access.strides.resize(type.rank());
    const std::vector<uint8_t>& order = g_.value(c.current).order;
    ir::Dim step = g_.dims.constant(size_of(type.dtype));
    for (size_t k = type.rank(); k-- > 0;) {
      size_t axis = order.empty() ? k : order[k];
      access.strides[axis] = step;
      step = g_.dims.mul(step, type.shape[axis]);
    }
  }
  std::vector<ir::OpId> all = base.steps;
  all.insert(all.end(), steps.begin(), steps.end());
  for (ir::OpId id : all) {
    const ops::OpInfo& info = ops::info_of(g_.op(id));
    ops::Access next;
    if (!info.view) return std::nullopt;
    if (!info.view(g_, g_.op(id), access, &next) &&
        (info.name != "reshape" || !settle_reshape(id, access) ||
         !info.view(g_, g_.op(id), access, &next)))
      return std::nullopt;
    access = std::move(next);
  }
  return access;
}

Value Interpreter::dim_or_static(ir::Dim d) {
  if (std::optional<int64_t> v = g_.dims.as_constant(d)) return static_int(*v);
  return Value(d);
}

std::optional<ir::Dim> Interpreter::as_dim(const Value& v) {
  if (const ir::Dim* d = v.get<ir::Dim>()) return *d;
  const Static* s = v.get<Static>();
  if (!s || PyFloat_Check(s->object.get()) || !PyIndex_Check(s->object.get()) ||
      has_own_arithmetic(s->object.get()) ||
      (s->source >= 0 && !told_by_guard(s->object.get())))  // an __index__ of a class of the user's
    return std::nullopt;
  std::optional<int64_t> i = to_int64(s->object.get());
  if (!i) return std::nullopt;
  if (s->source >= 0) capture_.guard_object(s->source, s->object.get());
  return g_.dims.constant(*i);
}

std::string Interpreter::describe_type(const ir::Type& t) {
  std::string s = "(";
  for (size_t k = 0; k < t.shape.size(); ++k) s += (k ? ", " : "") + g_.dims.to_string(t.shape[k]);
  return s + (t.shape.size() == 1 ? ",)" : ")");
}

std::string Interpreter::describe(const Value& v) {
  if (const Tensor* t = v.get<Tensor>()) {
    if (t->weak == ops::Weak::kFloat) return "a run-time float";
    if (t->weak == ops::Weak::kBool) return "a run-time bool";
    if (t->weak == ops::Weak::kInt) return "a run-time int";
    const ir::Type& type = type_of(*t);
    std::string dtype(info(type.dtype).numpy_name);
    if (t->scalar) return "a NumPy scalar of " + dtype;
    return "an array of " + dtype + " with shape " + describe_type(type);
  }
  if (v.is<ir::Dim>()) return "a run-time int";
  if (const Static* s = v.get<Static>())
    return s->object.get() == Py_None
               ? std::string("None")
               : "the " + type_name(s->object.get()) + " " + short_repr(s->object.get());
  if (const Container* c = v.container()) {
    switch (c->kind) {
      case Container::Kind::kTuple: return "a tuple";
      case Container::Kind::kList: return "a list";
      case Container::Kind::kDict: return "a dict";
      case Container::Kind::kSet: return "a set";
      case Container::Kind::kNamedTuple: return "a named tuple";
    }
  }
  if (v.is<RangeValue>()) return "a range";
  if (v.is<std::shared_ptr<LazySequence>>()) return "an iterator";
  if (v.is<std::shared_ptr<LocalFunction>>()) return "a function";
  if (v.is<BoundMethod>()) return "a method";
  return "a value";
}

}  // namespace cuvil::frontend
