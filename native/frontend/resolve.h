// Which dialect row an object stands for, and how a row's parameters take a call's arguments.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/entry.h"
#include "frontend/py.h"
#include "ops/op.h"

namespace cuvil::frontend {

// An object's name by its own account, where it can be found: "numpy.linalg:norm", of the places that
// `known` accepts as "numpy.linalg.norm". "" if there is none. (What stands at a name may be another object
// that was put there.)
std::string own_name(PyObject* callable, std::span<const std::string> places,
                     const compiler::HostTools& tools, bool (*known)(std::string_view));

// The row of a NumPy, SciPy or math function, found by identity; nullptr if it has none. *qualified becomes
// its name for a guard.
const ops::DialectRow* row_of(PyObject* callable, const compiler::HostTools& tools,
                              std::string* qualified);

// A parameter of a row, as DialectRow::params spells it.
struct Parameter {
  enum class Kind : uint8_t { kPositional, kEither, kKeyword, kVariadic } kind = Kind::kEither;
  std::string_view name;
  bool optional = false;
};
const std::vector<Parameter>& parameters(const ops::DialectRow& row);

// Where a row's result shares storage with its first operand, as NumPy's documentation says.
enum class Sharing : uint8_t {
  kFresh,
  kView,
  kReadOnlyView,
  kPackedView,
  kSelf,
  kSelfOrReadOnly,
};
Sharing sharing_of(std::string_view row_name);
// True if the parameter wants plain ints (a shape, an axis), so that NumPy integers count as such.
bool wants_ints(std::string_view parameter);

}  // namespace cuvil::frontend
