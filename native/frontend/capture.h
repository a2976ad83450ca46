// Where values from outside come from (sources) and what a specialisation relies on (guards).
// The tables of the artifact, filled without duplicates. Used by the interpreter.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "compiler/entry.h"
#include "frontend/py.h"

namespace cuvil::frontend {

// The constant an object stands for in guards, static arguments and results; nullopt if none does.
std::optional<artifact::Const> const_of(PyObject* object);
// Whether a guard on an object tells all that Python's own code can make of it: of numbers, texts, classes,
// functions, and lists, tuples, dicts and sets of such. An object with a state of its own has no such guard.
bool told_by_guard(PyObject* object);
// "module:qualname" if importing that gives this very object.
std::optional<std::string> qualified_name(PyObject* object);

class Capture {
 public:
  Capture(artifact::Artifact& facts, std::vector<PyObject*>& identities,
          const compiler::HostTools* tools)
      : facts_(facts), identities_(identities), tools_(tools) {}

  using Kind = artifact::Source::Kind;
  // Index of a source; the same one for the same path.
  int32_t source(Kind kind, int32_t parent, uint32_t index = 0, std::string name = {},
                 std::optional<artifact::Const> key = {});
  int32_t attribute(int32_t parent, const std::string& name) {
    return source(Kind::kAttribute, parent, 0, name);
  }
  // The path as a user writes it: "self.layers[0].w".
  std::string path(int32_t source) const;

  void guard_value(int32_t source, artifact::Const value);
  void guard_qualified(int32_t source, std::string name);
  void guard_code(int32_t source, PyObject* code);
  // Of a tuple, list or dict: what it is, and how long.
  void guard_length(int32_t source, PyObject* object);
  void guard_identity(int32_t source, PyObject* object);
  void guard_missing(int32_t source);
  // The keys of a dict or the items of a set, in order. False if they are no constants.
  bool guard_keys(int32_t source, PyObject* object);
  // A set made by the function is walked: kept in memory only if other processes may walk it otherwise.
  void note_order_of(PyObject* set);
  // What a class is, beyond its name: its bases by name, or itself.
  void guard_bases(int32_t source, PyObject* type);
  void guard_type(int32_t source, PyObject* object);
  artifact::Guard& guard_array(int32_t source, uint32_t slot);
  // Of lists, dicts and tuples also the items; else value, qualified name or identity, whichever says the most that another process can check.
  void guard_object(int32_t source, PyObject* object);
  // Arguments whose value the signature fixes already.
  void mark_fixed(int32_t source) { fixed_.insert({source, true}); }

 private:
  artifact::Guard* add(artifact::Guard::Kind kind, int32_t source);
  // False if the object is no list, dict or tuple that can be told by its items.
  bool guard_items(int32_t source, PyObject* object);

  artifact::Artifact& facts_;
  std::vector<PyObject*>& identities_;
  const compiler::HostTools* tools_;
  std::map<std::pair<int, int32_t>, uint32_t> seen_;
  std::map<int32_t, bool> fixed_;
};

}  // namespace cuvil::frontend
