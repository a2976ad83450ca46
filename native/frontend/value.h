// What a Python expression evaluates to while tracing: a static object, or something traced.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "frontend/source.h"
#include "ops/op.h"

namespace cuvil::frontend {

struct Value;
using Values = std::vector<Value>;

// A real Python object. `source` says where it comes from if it is not made by the function itself;
// whatever is decided by it must then be guarded (Interpreter::use).
struct Static {
  PyRef object;
  int32_t source = -1;
};

// Storage of an array: its current SSA version. Cells live in the interpreter, so that loops can take
// snapshots of all of them.
struct Cell {
  ir::ValueId current;
  uint32_t version = 0;
  int32_t input = -1;  // index into Graph::inputs
  bool writeable = true;
  bool written = false;
  int depth = 0;       // traced loops around its creation
  std::string name;    // parameter name or path, for messages
  std::string frozen;  // not empty: why it may no longer be written
};

// A traced array or scalar: a cell and the movement ops that lead from the cell to this view.
// Python scalars (weak) and NumPy scalars are tensors of rank 0 that are never written.
struct Tensor {
  int32_t cell = -1;
  std::vector<ir::OpId> steps;  // emitted once, as patterns to replay on later versions
  bool same_object = true;      // the very object the cell was made for, not a view of it
  bool readonly = false;        // broadcast_to
  int32_t source = -1;          // same_object: where the object itself comes from, if from outside
  ops::Weak weak = ops::Weak::kNo;
  bool scalar = false;
  // The view of one version of the cell, where it was emitted.
  mutable ir::ValueId cached;
  mutable uint32_t cached_version = 0;
  mutable ir::RegionId cached_region;
};

// A tuple, list, dict or named tuple made by the function. Shared like the Python object it stands for.
struct Container {
  enum class Kind : uint8_t { kTuple, kList, kDict, kSet, kNamedTuple } kind = Kind::kTuple;
  Values items;             // values of a dict
  std::vector<PyRef> keys;  // kDict: static keys, in insertion order
  Static type;              // kNamedTuple: the class
  int depth = 0;            // traced loops around its creation
};

struct Frame;

// A function or lambda defined in the body that is walked.
struct LocalFunction {
  Node node;
  std::string name;
  std::shared_ptr<Frame> scope;  // where it was defined
  Values defaults, kw_defaults;  // kw_defaults parallel to kwonlyargs; unset where there is none
};

// A method of a traced value: `x.sum`, `parts.append`.
struct BoundMethod {
  std::shared_ptr<Value> self;
  std::string name;
};

// range() over run-time ints. Static ranges are static objects.
struct RangeValue {
  ir::Dim begin, step, trip;
};

// zip(), enumerate() and reversed() over traced sequences, indexed one item at a time.
struct LazySequence {
  enum class Kind : uint8_t { kZip, kEnumerate, kReversed } kind = Kind::kZip;
  Values parts;
  ir::Dim start;  // kEnumerate
};

// A slice, whose parts may be run-time ints.
struct SliceValue {
  Values parts;  // start, stop, step
};

// A local variable that must not be read: `why` and `remedy` become the error.
struct Poison {
  std::string why, remedy;
};

struct Value {
  struct Unset {};
  std::variant<Unset, Static, Tensor, ir::Dim, std::shared_ptr<Container>,
               std::shared_ptr<LocalFunction>, BoundMethod, RangeValue,
               std::shared_ptr<LazySequence>, std::shared_ptr<SliceValue>, Poison>
      v;
  Value() = default;
  template <class T>
  requires(!std::is_same_v<std::decay_t<T>, Value>) Value(T&& x) : v(std::forward<T>(x)) {}
  template <class T> T* get() { return std::get_if<T>(&v); }
  template <class T> const T* get() const { return std::get_if<T>(&v); }
  template <class T> bool is() const { return std::holds_alternative<T>(v); }
  Container* container() const {
    auto* p = std::get_if<std::shared_ptr<Container>>(&v);
    return p ? p->get() : nullptr;
  }
};

// The local variables of one activation of a function.
struct Frame {
  WalkedFunction* function = nullptr;
  std::shared_ptr<Frame> parent;  // the frame a local function was defined in
  std::map<std::string, Value> locals;
  std::set<std::string> local_names;  // names that assignments make local
  bool comprehension = false;         // a scope inside its parent's function
  Value result;
};

}  // namespace cuvil::frontend
