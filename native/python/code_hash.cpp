#include "python/code_hash.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "python/constants.h"

namespace cuvil::python {
namespace {

using artifact::Const;

// Text in which each item has a length or a fixed size, so that no two codes share it.
class Text {
 public:
  void number(int64_t v) { bytes_.append(reinterpret_cast<const char*>(&v), sizeof v); }
  void string(std::string_view s) {
    number(static_cast<int64_t>(s.size()));
    bytes_.append(s);
  }
  void hash(const artifact::Hash& h) {
    bytes_.append(reinterpret_cast<const char*>(h.data()), h.size());
  }
  artifact::Hash result() const {
    return artifact::hash128({reinterpret_cast<const uint8_t*>(bytes_.data()), bytes_.size()},
                             artifact::kKeySeed);
  }

 private:
  std::string bytes_;
};

artifact::Hash hash_constant(PyObject* o) {
  Text t;
  t.string(Py_TYPE(o)->tp_name);
  if (PyCode_Check(o)) {
    t.hash(hash_code(o));
  } else if (PyTuple_CheckExact(o) || PyFrozenSet_CheckExact(o)) {
    std::vector<artifact::Hash> items;
    PyRef list = PyRef::steal(PySequence_List(o));
    if (!list) PyErr_Clear();
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list.get()); ++i)
      items.push_back(hash_constant(PyList_GET_ITEM(list.get(), i)));
    if (PyFrozenSet_CheckExact(o)) std::sort(items.begin(), items.end());  // sets have no order
    t.number(static_cast<int64_t>(items.size()));
    for (const auto& item : items) t.hash(item);
  } else if (std::optional<Const> c = to_const(o)) {
    t.number(c->integer);
    int64_t bits[2];
    std::memcpy(bits, &c->real, sizeof bits[0]);
    std::memcpy(bits + 1, &c->imag, sizeof bits[1]);
    t.number(bits[0]);
    t.number(bits[1]);
    t.string(c->text);
  } else {
    t.string(short_repr(o));  // a str with lone surrogates
  }
  return t.result();
}

}  // namespace

artifact::Hash hash_code(PyObject* code) {
  Text t;
  for (PyObject* name : {CUVIL_NAME("co_argcount"), CUVIL_NAME("co_posonlyargcount"),
                         CUVIL_NAME("co_kwonlyargcount"), CUVIL_NAME("co_flags")}) {
    PyRef v = attr_or_null(code, name);
    t.number(v ? PyLong_AsLong(v.get()) : 0);
  }
  for (PyObject* name : {CUVIL_NAME("co_code"), CUVIL_NAME("co_exceptiontable")}) {
    PyRef v = attr_or_null(code, name);  // no exception table before 3.11
    if (v && PyBytes_Check(v.get()))
      t.string({PyBytes_AS_STRING(v.get()), static_cast<size_t>(PyBytes_GET_SIZE(v.get()))});
  }
  for (PyObject* name :
       {CUVIL_NAME("co_names"), CUVIL_NAME("co_varnames"), CUVIL_NAME("co_freevars"),
        CUVIL_NAME("co_cellvars"), CUVIL_NAME("co_consts")}) {
    PyRef v = attr_or_null(code, name);
    t.hash(v ? hash_constant(v.get()) : artifact::Hash{});
  }
  return t.result();
}

}  // namespace cuvil::python
