#include "python/request.h"

#include <algorithm>
#include <cstring>

#include "python/classify.h"
#include "python/code_hash.h"
#include "python/compiled_function.h"
#include "python/constants.h"
#include "python/dtypes.h"
#include "python/errors.h"
#include "python/overlap.h"
#include "runtime/devices.h"
#include "support/build_id.h"

namespace cuvil::python {

using artifact::AliasPredicate;
using artifact::ArgSpec;
using artifact::ExprNode;
using compiler::ArgRequest;
using compiler::AxisRequest;

namespace {

const compiler::HostTools& host_tools() {
  static constexpr compiler::HostTools kTools = {
      .classify_array =
          [](PyObject* o, artifact::ArraySpec* spec, int64_t* shape, int64_t* strides) {
            if (!is_plain_array(o)) return false;
            auto* a = reinterpret_cast<PyArrayObject*>(o);
            if (!array_spec(a, spec)) return false;
            std::copy_n(PyArray_DIMS(a), PyArray_NDIM(a), shape);
            std::copy_n(PyArray_STRIDES(a), PyArray_NDIM(a), strides);
            return true;
          },
      .hash_code =
          [](PyObject* code, uint8_t out[16]) {
            artifact::Hash h = hash_code(code);
            std::memcpy(out, h.data(), h.size());
          },
      .is_original = [](PyObject* o, const char* name) { return is_original(o, name); },
      .wrapped_function = wrapped_function,
  };
  return kTools;
}

bool is_dim(int64_t size) { return size >= 2; }  // 0 and 1 are always constants

// Specs that differ in nothing but sizes.
bool same_but_sizes(const ArgSpec& a, const ArgRequest& b, const ArgSpec& b_spec) {
  if (a.kind != b.kind) return false;
  if (a.kind == ArgSpec::Kind::kArray) return a.array == b.array;
  return a.kind != ArgSpec::Kind::kStatic || a.value == b_spec.value;
}

// Without a hint an axis becomes symbolic at its second size: when a specialisation exists that
// differs in sizes only, and has another constant there (or a symbol already).
void follow_history(const State& s, const std::vector<ArgSpec>& specs, compiler::Request* out) {
  for (const auto& e : s.entries) {
    const auto& a = e->specialisation->artifact();
    if (!(a.call_shape == out->call_shape) || a.arguments.size() != out->arguments.size()) continue;
    bool alike = true;
    for (size_t i = 0; alike && i < specs.size(); ++i)
      alike = same_but_sizes(a.arguments[i], out->arguments[i], specs[i]);
    if (!alike) continue;
    for (size_t i = 0; i < specs.size(); ++i)
      for (size_t k = 0; k < out->arguments[i].shape.size(); ++k) {
        AxisRequest& axis = out->arguments[i].shape[k];
        const ExprNode& had = a.arguments[i].shape[k][0];
        if (!is_dim(axis.size) || (had.op == ExprNode::Op::kConst && !is_dim(had.imm))) continue;
        if (had.op == ExprNode::Op::kSymbol || had.imm != axis.size) axis.symbolic = true;
      }
  }
}

std::string ordinal_axes(size_t n) { return std::to_string(n) + (n == 1 ? " axis" : " axes"); }

bool check_hint(const ArgHint& hint, const ArgRequest& a) {
  if (hint.axes.size() != a.shape.size()) {
    raise(make_error(ErrorClass::kShape,
                     "argument '" + a.name + "' has " + ordinal_axes(a.shape.size()) +
                         ", its shape_hint has " + std::to_string(hint.axes.size()),
                     "pass an array of that rank, or change shape_hint['" + a.name + "']"));
    return false;
  }
  if (hint.dtype && *hint.dtype != a.array.dtype) {
    raise(make_error(ErrorClass::kDType,
                     "argument '" + a.name + "' is of dtype " +
                         std::string(info(a.array.dtype).numpy_name) + ", its shape_hint says " +
                         std::string(info(*hint.dtype).numpy_name),
                     "convert the array, or change shape_hint['" + a.name + "']"));
    return false;
  }
  return true;
}

// Names are bound to the size at which they are first met; an axis of another size under the same
// name contradicts the hint and gets a symbol of its own.
void apply_hint(const ArgHint& hint, std::map<std::string, int64_t>* names, ArgRequest* a) {
  for (size_t k = 0; k < hint.axes.size(); ++k) {
    const AxisHint& want = hint.axes[k];
    AxisRequest& axis = a->shape[k];
    axis.symbolic = is_dim(axis.size) && axis.size != want.size;
    if (!axis.symbolic || want.symbol.empty()) continue;
    if (names->emplace(want.symbol, axis.size).first->second == axis.size)
      axis.symbol = want.symbol;
  }
}

ArgRequest describe(const std::string& name, PyObject* o, const ArgSpec& spec) {
  ArgRequest a{.name = name, .kind = spec.kind, .array = spec.array, .object = o};
  if (spec.kind != ArgSpec::Kind::kArray || spec.array.numpy_scalar) return a;
  auto* x = reinterpret_cast<PyArrayObject*>(o);
  for (int i = 0; i < PyArray_NDIM(x); ++i) a.shape.push_back({PyArray_DIM(x, i), false, {}});
  a.strides.assign(PyArray_STRIDES(x), PyArray_STRIDES(x) + PyArray_NDIM(x));
  return a;
}

CuvilArray as_array(const ArgRequest& a) {
  auto* x = reinterpret_cast<PyArrayObject*>(a.object);
  return {PyArray_DATA(x), reinterpret_cast<const int64_t*>(PyArray_DIMS(x)), a.strides.data(),
          a.object};
}

// What is so between arrays of this call. Overlapping ones that are not the same view are listed as
// disjoint, too: code that writes to neither does not care, and all other code will not fit the call,
// which then runs as plain Python.
void list_aliases(compiler::Request* r) {
  std::vector<const ArgRequest*> slots;
  for (const ArgRequest& a : r->arguments)
    if (a.kind == ArgSpec::Kind::kArray) slots.push_back(&a);
  for (uint32_t i = 0; i < slots.size(); ++i)
    for (uint32_t k = i + 1; k < slots.size(); ++k) {
      const ArgRequest &a = *slots[i], &b = *slots[k];
      if (a.array.numpy_scalar || b.array.numpy_scalar) continue;
      if (!a.array.writeable && !b.array.writeable) continue;
      Overlap o = overlap_of(as_array(a), size_of(a.array.dtype), a.array.rank, as_array(b),
                             size_of(b.array.dtype), b.array.rank);
      r->aliases.push_back({i, k,
                            o == Overlap::kSame && a.array.dtype == b.array.dtype
                                ? AliasPredicate::Relation::kSame
                                : AliasPredicate::Relation::kDisjoint});
    }
}

void fill_options(const State& s, compiler::Request* out) {
  out->function = s.function.get();
  out->device = s.options.device;
  out->target_cpu = s.options.target_cpu;
  out->tools = &host_tools();
}

const std::string& numpy_version() {
  // Not by a static's initialiser: it runs Python, which may hand the GIL to a thread that would then
  // wait here with it.
  static std::string version;
  if (version.empty()) {
    PyRef v = imported("numpy", "__version__");
    if (!v) PyErr_Clear();
    version = v ? to_string(v.get()) : "?";
  }
  return version;
}

}  // namespace

const std::string& process_part() {
  static std::string part;  // made under the GIL, at import
  if (!part.empty()) return part;
  const int64_t numbers[] = {artifact::kFormatVersion, PyImport_GetMagicNumber()};
  part.append(reinterpret_cast<const char*>(numbers), sizeof numbers);
  for (const std::string& text :
       {std::string(build_id()), runtime::cpu_fingerprint(), numpy_version()})
    part += std::to_string(text.size()) + ":" + text;
  return part;
}

artifact::Hash key_of(const State& s, const std::vector<ArgSpec>& arguments) {
  std::string text;
  auto number = [&text](int64_t v) { text.append(reinterpret_cast<const char*>(&v), sizeof v); };
  auto string = [&](std::string_view v) {
    number(static_cast<int64_t>(v.size()));
    text.append(v);
  };
  text += process_part();
  text.append(reinterpret_cast<const char*>(s.code_hash.data()), s.code_hash.size());
  string(s.options.device);
  string(s.options.target_cpu);
  for (const ArgSpec& a : arguments) {
    number(static_cast<int64_t>(a.kind));
    if (a.kind != ArgSpec::Kind::kArray) continue;
    number(static_cast<int64_t>(a.array.dtype));
    number(a.array.rank);
  }
  return artifact::hash128({reinterpret_cast<const uint8_t*>(text.data()), text.size()},
                           artifact::kKeySeed);
}

bool make_request(const State& s, const BoundArgs& args, compiler::Request* out) {
  out->call_shape = args.shape();
  std::vector<std::string> names = s.binder.names(out->call_shape);
  std::vector<ArgSpec> specs(args.count);
  for (size_t i = 0; i < args.count; ++i) {
    if (!classify(args.values[i], names[i], &specs[i])) return false;
    out->arguments.push_back(describe(names[i], args.values[i], specs[i]));
  }
  follow_history(s, specs, out);
  std::map<std::string, int64_t> symbols;
  // Items of **kwargs come last; one may have the name of a positional-only parameter.
  for (size_t i = 0; i < args.count - args.keyword_count; ++i) {
    ArgRequest& a = out->arguments[i];
    auto hint = s.options.hints.find(a.name);
    if (hint == s.options.hints.end() || a.kind != ArgSpec::Kind::kArray) continue;
    if (!check_hint(hint->second, a)) return false;
    apply_hint(hint->second, &symbols, &a);
  }
  list_aliases(out);
  out->key = key_of(s, specs);
  fill_options(s, out);
  return true;
}

void follow_artifact(const artifact::Artifact& a, compiler::Request* out) {
  for (size_t i = 0; i < out->arguments.size() && i < a.arguments.size(); ++i)
    for (size_t k = 0; k < out->arguments[i].shape.size() && k < a.arguments[i].shape.size(); ++k)
      out->arguments[i].shape[k].symbolic = a.arguments[i].shape[k][0].op == ExprNode::Op::kSymbol;
}

namespace {

bool is_named_tuple(PyObject* o) {
  return PyTuple_Check(o) &&
         attr_or_null(reinterpret_cast<PyObject*>(Py_TYPE(o)), CUVIL_NAME("_fields"));
}

Kept keep(PyObject* o, int depth = 0) {
  constexpr int kDeepest = 32;  // a list may hold itself
  using Kind = Kept::Kind;
  Kept k;
  if (depth > kDeepest) return k;
  artifact::ArraySpec spec;
  if (is_plain_array(o) && array_spec(reinterpret_cast<PyArrayObject*>(o), &spec)) {
    k.kind = Kind::kArray;
    k.array =
        describe("", o, {.kind = ArgSpec::Kind::kArray, .array = spec, .shape = {}, .value = {}});
    k.array->object = nullptr;
  } else if (PyTuple_CheckExact(o) || is_named_tuple(o)) {
    k.kind = Kind::kTuple;
    k.object = PyRef::borrow(reinterpret_cast<PyObject*>(Py_TYPE(o)));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
      k.items.push_back(keep(PyTuple_GET_ITEM(o, i), depth + 1));
  } else if (PyList_CheckExact(o)) {
    k.kind = Kind::kList;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i)
      k.items.push_back(keep(PyList_GET_ITEM(o, i), depth + 1));
  } else if (PyDict_CheckExact(o)) {
    k.kind = Kind::kDict;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);) {
      k.keys.push_back(PyRef::borrow(key));
      k.items.push_back(keep(value, depth + 1));
    }
  } else if ((k.object = PyRef::steal(PyWeakref_NewRef(o, nullptr)))) {
    k.kind = Kind::kWeak;
  } else {
    PyErr_Clear();
    const bool heap = Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE;
    if (PyObject_IS_GC(o) && (heap || PySequence_Check(o) || PyMapping_Check(o) || PyIter_Check(o)))
      return k;  // may hold arrays
    k.kind = Kind::kObject;
    k.object = PyRef::borrow(o);
  }
  return k;
}

}  // namespace

Recipe recipe_of(const compiler::Request& r) {
  Recipe out{r.call_shape, r.arguments, {}, r.aliases};
  for (ArgRequest& a : out.arguments) {
    PyObject* o = std::exchange(a.object, nullptr);
    if (a.kind == ArgSpec::Kind::kArray) {
      out.kept.emplace_back();
    } else if (a.kind == ArgSpec::Kind::kObject) {
      out.kept.push_back(keep(o));
    } else {
      out.kept.push_back({.kind = Kept::Kind::kObject,
                          .object = PyRef::borrow(o),
                          .array = {},
                          .keys = {},
                          .items = {}});
    }
  }
  return out;
}

namespace {

// An array that looks like one of an earlier call: its memory is never touched.
PyRef stand_in(const ArgRequest& a) {
  PyArray_Descr* d = descr_of(a.array.dtype);
  if (a.array.numpy_scalar) {
    int64_t zero[2] = {};
    return PyRef::steal(PyArray_Scalar(zero, d, nullptr));
  }
  npy_intp below = 0, bytes = size_of(a.array.dtype);
  std::vector<npy_intp> shape;
  for (size_t i = 0; i < a.shape.size(); ++i) {
    shape.push_back(a.shape[i].size);
    npy_intp reach = a.strides[i] * std::max<npy_intp>(0, shape[i] - 1);
    bytes += std::abs(reach);
    if (reach < 0) below -= reach;
  }
  npy_intp misalign = a.array.aligned || size_of(a.array.dtype) == 1 ? 0 : 1;
  bytes += misalign;
  PyRef memory = PyRef::steal(PyArray_SimpleNew(1, &bytes, NPY_UBYTE));
  if (!memory) return {};
  char* data = PyArray_BYTES(reinterpret_cast<PyArrayObject*>(memory.get())) + below + misalign;
  Py_INCREF(d);
  PyRef array = PyRef::steal(PyArray_NewFromDescr(
      &PyArray_Type, d, static_cast<int>(shape.size()), shape.data(),
      const_cast<npy_intp*>(reinterpret_cast<const npy_intp*>(a.strides.data())), data,
      a.array.writeable ? NPY_ARRAY_WRITEABLE : 0, nullptr));
  if (array) PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array.get()), memory.release());
  return array;
}

// The object that was kept, or one like it. NULL without an indicator if it is gone.
PyRef restored(const Kept& k) {
  using Kind = Kept::Kind;
  std::vector<PyRef> items;
  for (const Kept& item : k.items) {
    items.push_back(restored(item));
    if (!items.back()) return {};
  }
  switch (k.kind) {
    case Kind::kGone: return {};
    case Kind::kObject: return k.object;
    case Kind::kWeak: {
      PyRef o = PyRef::steal(PyObject_CallNoArgs(k.object.get()));
      return o.get() == Py_None ? PyRef() : o;
    }
    case Kind::kArray: return stand_in(*k.array);
    case Kind::kTuple:
    case Kind::kList: {
      PyRef list = PyRef::steal(PyList_New(0));
      for (const PyRef& item : items)
        if (!list || PyList_Append(list.get(), item.get()) < 0) return {};
      if (k.kind == Kind::kList || !list) return list;
      PyRef tuple = PyRef::steal(PyList_AsTuple(list.get()));
      bool plain = k.object.get() == reinterpret_cast<PyObject*>(&PyTuple_Type);
      return plain || !tuple ? tuple
                             : PyRef::steal(PyObject_Call(k.object.get(), tuple.get(), nullptr));
    }
    case Kind::kDict: {
      PyRef dict = PyRef::steal(PyDict_New());
      for (size_t i = 0; i < items.size(); ++i)
        if (!dict || PyDict_SetItem(dict.get(), k.keys[i].get(), items[i].get()) < 0) return {};
      return dict;
    }
  }
  return {};
}

}  // namespace

bool request_again(const State& s, const Recipe& recipe, const BoundArgs* given,
                   std::vector<PyRef>* hold, compiler::Request* out) {
  out->call_shape = recipe.call_shape;
  out->arguments = recipe.arguments;
  out->aliases = recipe.aliases;
  std::vector<PyRef> slots;
  for (size_t i = 0; i < out->arguments.size(); ++i) {
    ArgRequest& a = out->arguments[i];
    PyRef o;
    if (a.kind == ArgSpec::Kind::kArray) {
      for (const AliasPredicate& p : recipe.aliases)
        if (p.relation == AliasPredicate::Relation::kSame && p.b == slots.size()) o = slots[p.a];
      if (!o) o = stand_in(a);
      slots.push_back(o);
    } else if (given && given->count == out->arguments.size()) {
      o = PyRef::borrow(given->values[i]);
    } else {
      o = restored(recipe.kept[i]);
      if (!o && !PyErr_Occurred())
        PyErr_Format(PyExc_ReferenceError,
                     "the object that was argument '%s' is gone; give get_compiled_module the "
                     "arguments of a call",
                     a.name.c_str());
    }
    if (!o) return false;
    a.object = o.get();
    hold->push_back(std::move(o));
  }
  fill_options(s, out);
  return true;
}

}  // namespace cuvil::python
