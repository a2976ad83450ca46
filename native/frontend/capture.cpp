// The tables of sources and guards.
#include "frontend/capture.h"

#include <cstring>

namespace cuvil::frontend {

using artifact::Const;
using artifact::Guard;
using artifact::Source;

int32_t Capture::source(Kind kind, int32_t parent, uint32_t index, std::string name,
                        std::optional<Const> key) {
  for (size_t i = 0; i < facts_.sources.size(); ++i) {
    const Source& s = facts_.sources[i];
    if (s.kind == kind && s.parent == parent && s.index == index && s.name == name &&
        (!key || s.key == *key))
      return static_cast<int32_t>(i);
  }
  Source s;
  s.kind = kind;
  s.parent = parent;
  s.index = index;
  s.name = std::move(name);
  if (key) s.key = std::move(*key);
  facts_.sources.push_back(std::move(s));
  return static_cast<int32_t>(facts_.sources.size() - 1);
}

std::string Capture::path(int32_t index) const {
  if (index < 0) return {};
  const Source& s = facts_.sources[static_cast<size_t>(index)];
  switch (s.kind) {
    case Kind::kArgument:
    case Kind::kGlobal:
    case Kind::kClosure:
    case Kind::kDefault:
    case Kind::kKwDefault: return s.name;
    case Kind::kAttribute: return path(s.parent) + "." + s.name;
    case Kind::kItem:
      return path(s.parent) + "[" +
             (s.key.kind == Const::Kind::kInt   ? std::to_string(s.key.integer)
              : s.key.kind == Const::Kind::kStr ? "'" + s.key.text + "'"
                                                : std::string("...")) +
             "]";
    case Kind::kType: return "type(" + path(s.parent) + ")";
    case Kind::kWrapped:
    case Kind::kMethodFunction: return path(s.parent);
    case Kind::kMethodSelf: return path(s.parent) + ".__self__";
  }
  return {};
}

Guard* Capture::add(Guard::Kind kind, int32_t source) {
  if (source < 0) return nullptr;
  auto [it, fresh] =
      seen_.insert({{static_cast<int>(kind), source}, static_cast<uint32_t>(facts_.guards.size())});
  if (!fresh) return nullptr;
  Guard g;
  g.kind = kind;
  g.source = static_cast<uint32_t>(source);
  facts_.guards.push_back(std::move(g));
  return &facts_.guards.back();
}

void Capture::guard_value(int32_t source, Const value) {
  if (fixed_.count(source)) return;
  if (Guard* g = add(Guard::Kind::kValue, source)) g->value = std::move(value);
}

void Capture::guard_qualified(int32_t source, std::string name) {
  if (Guard* g = add(Guard::Kind::kQualified, source)) {
    g->value.kind = Const::Kind::kQualified;
    g->value.text = std::move(name);
  }
}

void Capture::guard_code(int32_t source, PyObject* code) {
  if (Guard* g = add(Guard::Kind::kCode, source)) tools_->hash_code(code, g->hash.data());
}

namespace {

Guard::Container container_of(PyObject* o) {
  using Container = Guard::Container;
  if (is_exactly(o, &PyTuple_Type)) return Container::kTuple;
  if (is_exactly(o, &PyList_Type)) return Container::kList;
  if (is_exactly(o, &PyDict_Type)) return Container::kDict;
  if (is_exactly(o, &PySet_Type)) return Container::kSet;
  if (is_exactly(o, &PyFrozenSet_Type)) return Container::kFrozenSet;
  return Container::kAnyTuple;
}

}  // namespace

void Capture::guard_length(int32_t source, PyObject* object) {
  if (Guard* g = add(Guard::Kind::kLength, source)) {
    g->container = container_of(object);
    g->value.kind = Const::Kind::kInt;
    g->value.integer = PyTuple_Check(object) ? PyTuple_Size(object) : PyObject_Size(object);
  }
}

void Capture::guard_identity(int32_t source, PyObject* object) {
  if (Guard* g = add(Guard::Kind::kIdentity, source)) {
    g->slot = static_cast<uint32_t>(identities_.size());
    identities_.push_back(PyRef::borrow(object).release());
    facts_.memory_only = true;
  }
}

namespace {

// Whether sets of such objects are walked in the same order by all processes: hashes of numbers are of the
// value, those of texts of the process.
bool hashes_alike(PyObject* o) {
  return PyBool_Check(o) || is_exactly(o, &PyLong_Type) || is_exactly(o, &PyFloat_Type);
}

}  // namespace

bool Capture::guard_keys(int32_t source, PyObject* object) {
  PyRef keys = PyRef::steal(PySequence_Tuple(object));
  if (!keys) forgive();
  std::optional<Const> value = keys ? const_of(keys.get()) : std::nullopt;
  if (!value) return false;
  if (!PyDict_Check(object)) note_order_of(keys.get());
  if (Guard* g = add(Guard::Kind::kKeys, source)) {
    g->container = container_of(object);
    g->value = std::move(*value);
  }
  return true;
}

void Capture::note_order_of(PyObject* set) {
  PyRef it = PyRef::steal(PyObject_GetIter(set));
  while (PyRef item = it ? PyRef::steal(PyIter_Next(it.get())) : PyRef())
    facts_.memory_only = facts_.memory_only || !hashes_alike(item.get());
  forgive();
}

bool Capture::guard_items(int32_t source, PyObject* object) {
  constexpr size_t kMostGuards = 4096;
  const bool dict = is_exactly(object, &PyDict_Type);
  const bool sequence = is_exactly(object, &PyList_Type) || is_exactly(object, &PyTuple_Type);
  if ((!dict && !sequence) || facts_.guards.size() > kMostGuards) return false;
  if (!seen_.emplace(std::pair(-1, source), 0).second) return true;  // under way: it holds itself
  if (dict) {
    if (!guard_keys(source, object)) return false;
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &value);)
      guard_object(this->source(Kind::kItem, source, 0, {}, const_of(key)), value);
    return true;
  }
  const Py_ssize_t n = PyObject_Size(object);
  guard_length(source, object);
  for (Py_ssize_t i = 0; i < n; ++i) {
    Const key;
    key.kind = Const::Kind::kInt;
    key.integer = i;
    PyRef item = PyRef::steal(PySequence_GetItem(object, i));
    if (item) guard_object(this->source(Kind::kItem, source, 0, {}, key), item.get());
  }
  return true;
}

void Capture::guard_bases(int32_t source, PyObject* type) {
  if (source < 0) return;
  guard_object(source, type);
  PyRef bases = attr_or_null(type, CUVIL_NAME("__mro__"));
  std::optional<Const> names = bases ? const_of(bases.get()) : std::nullopt;
  if (names)
    guard_value(attribute(source, "__mro__"), std::move(*names));
  else
    guard_identity(source, type);
}

void Capture::guard_missing(int32_t source) { add(Guard::Kind::kMissing, source); }

void Capture::guard_type(int32_t source, PyObject* object) {
  if (source < 0) return;
  int32_t type = this->source(Kind::kType, source);
  guard_object(type, reinterpret_cast<PyObject*>(Py_TYPE(object)));
}

Guard& Capture::guard_array(int32_t source, uint32_t slot) {
  Guard* g = add(Guard::Kind::kArray, source);
  g->slot = slot;
  return *g;
}

void Capture::guard_object(int32_t source, PyObject* object) {
  if (source < 0 || fixed_.count(source)) return;
  if (is_exactly(object, &PySet_Type) && guard_keys(source, object)) return;
  std::optional<Const> c = const_of(object);
  if (c && c->kind != Const::Kind::kQualified) return guard_value(source, std::move(*c));
  if (guard_items(source, object)) return;
  if (std::optional<std::string> name = qualified_name(object);
      name && tools_->is_original(object, name->c_str()))
    return guard_qualified(source, std::move(*name));
  guard_identity(source, object);
}

}  // namespace cuvil::frontend
