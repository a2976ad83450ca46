#include "python/bind.h"

#include <algorithm>

namespace cuvil::python {
namespace {

Py_ssize_t int_attribute(PyObject* code, PyObject* name) {
  PyRef v = PyRef::steal(PyObject_GetAttr(code, name));
  return v ? PyLong_AsSsize_t(v.get()) : -1;
}

bool same_name(PyObject* a, PyObject* b) { return a == b || PyUnicode_Compare(a, b) == 0; }

// A key of **kwargs that a call shape can hold: UTF-8, and no subclass of str.
bool is_plain_name(PyObject* name) {
  if (PyUnicode_CheckExact(name) && PyUnicode_AsUTF8AndSize(name, nullptr)) return true;
  PyErr_Clear();
  return false;
}

}  // namespace

void BoundArgs::own(PyObject* o) {
  Py_INCREF(o);
  if (owned_count_ == kInline && owned_ == owned_storage_) {
    owned_heap_.assign(owned_storage_, owned_storage_ + kInline);
    owned_heap_.resize(count + kInline);
    owned_ = owned_heap_.data();
  }
  owned_[owned_count_++] = o;
}

artifact::CallShape BoundArgs::shape() const {
  artifact::CallShape s;
  s.varargs = varargs;
  for (size_t i = 0; i < keyword_count; ++i) s.keyword_names.push_back(to_string(keyword_names[i]));
  return s;
}

bool Binder::read(PyObject* code) {
  positional_ = int_attribute(code, CUVIL_NAME("co_argcount"));
  positional_only_ = int_attribute(code, CUVIL_NAME("co_posonlyargcount"));
  keyword_only_ = int_attribute(code, CUVIL_NAME("co_kwonlyargcount"));
  Py_ssize_t flags = int_attribute(code, CUVIL_NAME("co_flags"));
  varnames_ = CUVIL_ATTR(code, "co_varnames");
  if (!varnames_ || PyErr_Occurred()) return false;
  varargs_ = flags & CO_VARARGS;
  varkeywords_ = flags & CO_VARKEYWORDS;
  simple_ = !varargs_ && !varkeywords_ && keyword_only_ == 0;
  return true;
}

bool Binder::bind_any(PyObject* function, PyObject* const* args, size_t nargs, PyObject* kwnames,
                      BoundArgs* out) const {
  const auto given = static_cast<Py_ssize_t>(nargs);
  const Py_ssize_t taken = std::min(given, positional_);
  const Py_ssize_t extra = given - taken;
  if (extra > 0 && !varargs_) return false;
  const Py_ssize_t parameters = positional_ + keyword_only_;
  const Py_ssize_t keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;

  // First by parameter (positional, then keyword-only); *args and **kwargs find their place below.
  PyObject* by_parameter[BoundArgs::kInline] = {};
  std::vector<PyObject*> many;
  PyObject** value = by_parameter;
  if (parameters > static_cast<Py_ssize_t>(BoundArgs::kInline)) {
    many.resize(static_cast<size_t>(parameters));
    value = many.data();
  }
  std::copy_n(args, taken, value);

  std::vector<PyObject*>& names = out->more_names();
  std::vector<PyObject*> rest;
  PyObject* const varnames = varnames_.get();
  for (Py_ssize_t k = 0; k < keywords; ++k) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, k);
    Py_ssize_t p = positional_only_;
    while (p < parameters && !same_name(PyTuple_GET_ITEM(varnames, p), name)) ++p;
    if (p < parameters) {
      if (value[p]) return false;  // multiple values
      value[p] = args[given + k];
    } else if (varkeywords_ && is_plain_name(name)) {
      names.push_back(name);
      rest.push_back(args[given + k]);
    } else {
      return false;
    }
  }

  const size_t total = static_cast<size_t>(parameters + extra) + rest.size();
  out->count = total;
  PyObject* defaults = PyFunction_GET_DEFAULTS(function);
  const Py_ssize_t default_count = defaults ? PyTuple_GET_SIZE(defaults) : 0;
  for (Py_ssize_t p = taken; p < positional_; ++p) {
    if (value[p]) continue;
    Py_ssize_t d = p - (positional_ - default_count);
    if (d < 0) return false;
    out->own(value[p] = PyTuple_GET_ITEM(defaults, d));
  }
  PyObject* kwdefaults = PyFunction_GET_KW_DEFAULTS(function);
  for (Py_ssize_t p = positional_; p < parameters; ++p) {
    if (value[p]) continue;
    PyObject* d =
        kwdefaults ? PyDict_GetItemWithError(kwdefaults, PyTuple_GET_ITEM(varnames, p)) : nullptr;
    if (!d) {
      PyErr_Clear();
      return false;
    }
    out->own(value[p] = d);
  }

  PyObject** at = out->reserve(total);
  at = std::copy_n(value, positional_, at);
  at = std::copy_n(args + taken, extra, at);
  at = std::copy_n(value + positional_, keyword_only_, at);
  std::copy(rest.begin(), rest.end(), at);
  out->varargs = static_cast<uint32_t>(extra);
  out->keyword_names = names.data();
  out->keyword_count = names.size();
  return true;
}

bool Binder::matches(const artifact::CallShape& shape, const BoundArgs& args) const {
  if (!varargs_ && !varkeywords_) return true;
  if (shape.varargs != args.varargs || shape.keyword_names.size() != args.keyword_count)
    return false;
  for (size_t i = 0; i < args.keyword_count; ++i)
    if (to_string(args.keyword_names[i]) != shape.keyword_names[i]) return false;
  return true;
}

std::vector<std::string> Binder::names(const artifact::CallShape& shape) const {
  std::vector<std::string> out;
  auto name = [&](Py_ssize_t i) { return to_string(PyTuple_GET_ITEM(varnames_.get(), i)); };
  for (Py_ssize_t i = 0; i < positional_; ++i) out.push_back(name(i));
  for (uint32_t k = 0; k < shape.varargs; ++k)
    out.push_back(name(positional_ + keyword_only_) + "[" + std::to_string(k) + "]");
  for (Py_ssize_t i = 0; i < keyword_only_; ++i) out.push_back(name(positional_ + i));
  out.insert(out.end(), shape.keyword_names.begin(), shape.keyword_names.end());
  return out;
}

}  // namespace cuvil::python
