// Captured state: evaluates the sources of a specialisation once a call and checks its guards.
#pragma once

#include <vector>

#include "artifact/format.h"
#include "python/py.h"

namespace cuvil::python {

// The values of all sources of one call: owned, NULL where a source does not exist.
class SourceValues {
 public:
  explicit SourceValues(PyObject** storage) : values_(storage) {}
  SourceValues(const SourceValues&) = delete;
  SourceValues& operator=(const SourceValues&) = delete;
  ~SourceValues() {
    for (size_t i = 0; i < count_; ++i) Py_XDECREF(values_[i]);
  }
  void push(PyObject* owned) { values_[count_++] = owned; }
  PyObject* operator[](size_t i) const { return values_[i]; }

 private:
  PyObject** values_;
  size_t count_ = 0;
};

class Captured {
 public:
  enum class Check : uint8_t { kHolds, kFails, kError };

  // Makes the objects that guards compare with. False with the indicator set.
  bool prepare(const artifact::Artifact& a, std::vector<PyRef> identities);

  // Evaluates all sources into `out`. False with the indicator set if user code raised something that
  // does not mean "there is no such thing".
  bool evaluate(PyObject* function, PyObject* const* args, SourceValues* out) const;

  // Checks guard k, arrays excepted (the specialisation does those).
  Check check(size_t k, PyObject* value) const;

  int traverse(visitproc visit, void* arg) const;

 private:
  struct Step {
    artifact::Source::Kind kind;
    int32_t parent;
    uint32_t index;
    PyRef key;  // name or key
  };
  struct Test {
    artifact::Guard::Kind kind;
    PyRef expected;           // kValue, kIdentity; kQualified once resolved
    mutable PyRef last_good;  // the object that passed last: kValue, kCode (its code), kQualified
    int64_t length = 0;
    const artifact::Guard* guard = nullptr;
  };
  PyObject* step(const Step& s, PyObject* function, PyObject* const* args,
                 const SourceValues& values) const;
  Check check_code(const Test& t, PyObject* value) const;
  Check check_keys(const Test& t, PyObject* value) const;

  std::vector<Step> steps_;
  std::vector<Test> tests_;
};

}  // namespace cuvil::python
