// Which names a function's own assignments make local. Called when a function is walked.
#include "frontend/scope.h"

#include <functional>

namespace cuvil::frontend {
namespace {

void collect(PyObject* o, std::set<std::string>* out, bool top) {
  if (PyList_Check(o)) {
    for (Py_ssize_t i = 0; i < PyList_Size(o); ++i) collect(PyList_GetItem(o, i), out, false);
    return;
  }
  PyRef fields = attr_or_null(o, CUVIL_NAME("_fields"));
  if (!fields || !PyTuple_Check(fields.get())) return;
  Node n(PyRef::borrow(o));
  switch (n.kind()) {
    case NodeKind::kFunctionDef:
      if (!top) {
        out->insert(n.text(CUVIL_NAME("name")));
        return;  // its own scope
      }
      break;
    case NodeKind::kLambda:
      if (!top) return;
      break;
    case NodeKind::kListComp:
    case NodeKind::kSetComp:
    case NodeKind::kDictComp:
    case NodeKind::kGeneratorExp:
      return;  // as good as: a walrus inside is rare and found at run time
    case NodeKind::kName: {
      PyRef context = n.value(CUVIL_NAME("ctx"));
      if (context && type_name(context.get()) != "Load") out->insert(n.text(CUVIL_NAME("id")));
      return;
    }
    default: break;
  }
  for (Py_ssize_t i = 0; i < PyTuple_Size(fields.get()); ++i) {
    PyRef child = attr_or_null(o, PyTuple_GetItem(fields.get(), i));
    if (child && !PyUnicode_Check(child.get())) collect(child.get(), out, false);
  }
}

}  // namespace

std::optional<Node> find_yield(const Node& function) {
  std::optional<Node> found;
  std::function<void(PyObject*, bool)> search = [&](PyObject* o, bool top) {
    if (found) return;
    if (PyList_Check(o)) {
      for (Py_ssize_t i = 0; i < PyList_Size(o); ++i) search(PyList_GetItem(o, i), false);
      return;
    }
    PyRef fields = attr_or_null(o, CUVIL_NAME("_fields"));
    if (!fields || !PyTuple_Check(fields.get())) return;
    Node n(PyRef::borrow(o));
    if (!top && (n.kind() == NodeKind::kFunctionDef || n.kind() == NodeKind::kLambda)) return;
    std::string type = type_name(o);
    if (type == "Yield" || type == "YieldFrom" || type == "Await") {
      found = n;
      return;
    }
    for (Py_ssize_t i = 0; i < PyTuple_Size(fields.get()); ++i) {
      PyRef child = attr_or_null(o, PyTuple_GetItem(fields.get(), i));
      if (child && !PyUnicode_Check(child.get())) search(child.get(), false);
    }
  };
  search(function.object(), true);
  return found;
}

std::vector<std::string> parameter_names(const Node& arguments) {
  std::vector<std::string> names;
  for (PyObject* list : {CUVIL_NAME("posonlyargs"), CUVIL_NAME("args"), CUVIL_NAME("kwonlyargs")})
    for (const Node& a : arguments.children(list)) names.push_back(a.text(CUVIL_NAME("arg")));
  for (PyObject* one : {CUVIL_NAME("vararg"), CUVIL_NAME("kwarg")})
    if (Node a = arguments.child(one); a.present()) names.push_back(a.text(CUVIL_NAME("arg")));
  return names;
}

std::set<std::string> local_names(const Node& function) {
  std::set<std::string> out;
  PyRef body = function.value(CUVIL_NAME("body"));
  if (body && PyList_Check(body.get())) collect(body.get(), &out, true);
  for (std::string& name : parameter_names(function.child(CUVIL_NAME("args"))))
    out.insert(std::move(name));
  return out;
}

}  // namespace cuvil::frontend
