// Binds the arguments of a call to the parameters of the function, as Python would.
#pragma once

#include <vector>

#include "artifact/format.h"
#include "python/py.h"

namespace cuvil::python {

// The bound argument vector (artifact::CallShape says its order). Borrowed from the caller of the
// call; defaults are owned, since the function's may be replaced while it runs.
struct BoundArgs {
  static constexpr size_t kInline = 16;

  PyObject* const* values = nullptr;
  size_t count = 0;
  uint32_t varargs = 0;
  PyObject* const* keyword_names = nullptr;  // names of **kwargs, borrowed
  size_t keyword_count = 0;

  BoundArgs() = default;
  BoundArgs(const BoundArgs&) = delete;
  BoundArgs& operator=(const BoundArgs&) = delete;
  ~BoundArgs() {
    for (size_t i = 0; i < owned_count_; ++i) Py_DECREF(owned_[i]);
  }

  // Room for `n` values, all NULL.
  PyObject** reserve(size_t n) {
    PyObject** p = storage_;
    if (n > kInline) {
      heap_.resize(n);
      p = heap_.data();
    }
    std::fill_n(p, n, nullptr);
    values = p;
    count = n;
    return p;
  }
  std::vector<PyObject*>& more_names() { return names_; }
  // Keeps a default alive for the call. At most one a parameter.
  void own(PyObject* o);

  artifact::CallShape shape() const;

 private:
  PyObject* storage_[kInline];
  PyObject* owned_storage_[kInline];
  PyObject** owned_ = owned_storage_;
  size_t owned_count_ = 0;
  std::vector<PyObject*> heap_, owned_heap_, names_;
};

class Binder {
 public:
  // Reads the parameters of a code object. False with the indicator set.
  bool read(PyObject* code);

  // False, without an indicator, if Python would raise TypeError: calling the plain function then
  // raises it, with Python's own text, before any of its body runs. Also for keywords in **kwargs that
  // are no ordinary str (subclasses, lone surrogates): such a call runs as plain Python.
  bool bind(PyObject* function, PyObject* const* args, size_t nargs, PyObject* kwnames,
            BoundArgs* out) const {
    if (simple_ && !kwnames && nargs == static_cast<size_t>(positional_)) {
      out->values = args;
      out->count = nargs;
      return true;
    }
    return bind_any(function, args, nargs, kwnames, out);
  }

  bool matches(const artifact::CallShape& shape, const BoundArgs& args) const;

  // What each element of a bound vector is called: "x", "args[0]", "scale".
  std::vector<std::string> names(const artifact::CallShape& shape) const;

 private:
  bool bind_any(PyObject* function, PyObject* const* args, size_t nargs, PyObject* kwnames,
                BoundArgs* out) const;

  PyRef varnames_;  // parameters first: positional, keyword-only, *args, **kwargs
  Py_ssize_t positional_ = 0, positional_only_ = 0, keyword_only_ = 0;
  bool varargs_ = false, varkeywords_ = false;
  bool simple_ = false;  // positional parameters only
};

}  // namespace cuvil::python
