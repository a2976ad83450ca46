#include "python/state.h"

#include "python/code_hash.h"

namespace cuvil::python {

bool State::read_code() {
  PyRef now = PyRef::borrow(PyFunction_GET_CODE(function.get()));
  Binder b;
  if (!b.read(now.get())) return false;
  binder = std::move(b);
  artifact::Hash hash = hash_code(now.get());
  if (code && hash != code_hash) {
    for (auto& e : entries) retired.push_back(std::move(e));
    entries.clear();
    looked_up.clear();
    last = nullptr;
    last_entry = nullptr;
  }
  code = std::move(now);
  code_hash = hash;
  return true;
}

int Kept::traverse(visitproc visit, void* arg) const {
  Py_VISIT(object.get());
  for (const PyRef& key : keys) Py_VISIT(key.get());
  for (const Kept& item : items)
    if (int r = item.traverse(visit, arg)) return r;
  return 0;
}

int State::traverse(visitproc visit, void* arg) const {
  Py_VISIT(function.get());
  Py_VISIT(hints.get());
  Py_VISIT(keywords.get());
  Py_VISIT(code.get());
  for (const auto* list : {&entries, &retired})
    for (const auto& e : *list) {
      if (int r = e->specialisation->traverse(visit, arg)) return r;
      if (!e->recipe) continue;
      for (const Kept& k : e->recipe->kept)
        if (int r = k.traverse(visit, arg)) return r;
    }
  return 0;
}

}  // namespace cuvil::python
