// A node of Python's own AST, as `compile(..., PyCF_ONLY_AST)` returns it: kind, children, place.
#pragma once

#include <string>
#include <vector>

#include "frontend/py.h"
#include "support/error.h"

namespace cuvil::frontend {

enum class NodeKind : uint8_t {
#define CUVIL_NODE(name) k##name,
#include "frontend/nodes.def"
#undef CUVIL_NODE
  kRefused,  // in refused.def, or unknown
};

// Cheap to copy: an owned reference and its kind.
class Node {
 public:
  Node() = default;
  explicit Node(PyRef object);

  explicit operator bool() const { return kind_ != NodeKind::kRefused || object_; }
  bool present() const { return static_cast<bool>(object_); }
  NodeKind kind() const { return kind_; }
  PyObject* object() const { return object_.get(); }

  // A child node; absent (present() is false) if the attribute is None or not there.
  Node child(PyObject* name) const;
  std::vector<Node> children(PyObject* name) const;  // entries that are None are absent nodes
  std::string text(PyObject* name) const;            // a str attribute; "" if absent
  PyRef value(PyObject* name) const;                 // any attribute
  // Where it stands; line numbers are those of the compiled slice.
  SourceLoc loc() const;

 private:
  PyRef object_;
  NodeKind kind_ = NodeKind::kRefused;
};

// Message and remedy for a node that is not compiled.
Error refused(const Node& node, SourceLoc loc);

}  // namespace cuvil::frontend
