// Node kinds by class, and the table of refused constructs.
#include "frontend/ast.h"

#include <unordered_map>

namespace cuvil::frontend {
namespace {

struct Refusal {
  const char* found;
  const char* remedy;
};

// Types of `_ast` live as long as the process.
struct Tables {
  std::unordered_map<PyObject*, NodeKind> kinds;
  std::unordered_map<PyObject*, Refusal> refusals;
};

const Tables& tables() {
  static const Tables t = [] {
    Tables made;
    PyRef module = PyRef::steal(PyImport_ImportModule("_ast"));
    auto type_of = [&](const char* name) {
      PyRef o = module ? PyRef::steal(PyObject_GetAttrString(module.get(), name)) : PyRef();
      if (!o) forgive();
      return o.release();  // kept for ever
    };
#define CUVIL_NODE(name) \
  if (PyObject* o = type_of(#name)) made.kinds[o] = NodeKind::k##name;
#include "frontend/nodes.def"
#undef CUVIL_NODE
#define CUVIL_REFUSED(name, found, remedy) \
  if (PyObject* o = type_of(#name)) made.refusals[o] = Refusal{found, remedy};
#include "frontend/refused.def"
#undef CUVIL_REFUSED
    return made;
  }();
  return t;
}

int32_t int_attr(PyObject* o, PyObject* name) {
  PyRef v = attr_or_null(o, name);
  return v && PyLong_Check(v.get()) ? static_cast<int32_t>(PyLong_AsLong(v.get())) : 0;
}

}  // namespace

Node::Node(PyRef object) : object_(std::move(object)) {
  if (!object_) return;
  const auto& kinds = tables().kinds;
  auto it = kinds.find(reinterpret_cast<PyObject*>(Py_TYPE(object_.get())));
  if (it != kinds.end()) kind_ = it->second;
}

Node Node::child(PyObject* name) const {
  PyRef o = value(name);
  if (!o || o.get() == Py_None) return Node();
  return Node(std::move(o));
}

std::vector<Node> Node::children(PyObject* name) const {
  std::vector<Node> out;
  PyRef list = value(name);
  if (!list || !PyList_Check(list.get())) return out;
  Py_ssize_t n = PyList_Size(list.get());
  out.reserve(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PyList_GetItem(list.get(), i);
    out.push_back(item == Py_None ? Node() : Node(PyRef::borrow(item)));
  }
  return out;
}

std::string Node::text(PyObject* name) const {
  PyRef o = value(name);
  return o ? to_string(o.get()) : std::string();
}

PyRef Node::value(PyObject* name) const { return attr_or_null(object_.get(), name); }

SourceLoc Node::loc() const {
  if (!object_) return {};
  PyObject* o = object_.get();
  return SourceLoc{0, int_attr(o, CUVIL_NAME("lineno")), int_attr(o, CUVIL_NAME("col_offset")),
                   int_attr(o, CUVIL_NAME("end_lineno")),
                   int_attr(o, CUVIL_NAME("end_col_offset"))};
}

Error refused(const Node& node, SourceLoc loc) {
  const auto& refusals = tables().refusals;
  auto it = refusals.find(reinterpret_cast<PyObject*>(Py_TYPE(node.object())));
  if (it != refusals.end())
    return make_error(ErrorClass::kUnsupported, it->second.found, it->second.remedy, loc);
  return make_error(ErrorClass::kUnsupported,
                    "this construct (" + type_name(node.object()) + ") is not compiled",
                    "write it with assignments, if, for and NumPy calls", loc);
}

}  // namespace cuvil::frontend
