#include "python/host_call.h"

#include <cstring>

#include "python/constants.h"
#include "python/dtypes.h"
#include "python/errors.h"
#include "python/results.h"

namespace cuvil::python {

using artifact::HostArgument;
using artifact::HostResult;
using artifact::Site;

namespace {

std::string shape_text(std::span<const int64_t> shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

// A fresh array: what the callee keeps must not change under it, and what it writes must not change
// memory that is planned for other values.
PyRef operand_object(const HostArgument& want, const CuvilArray& have) {
  PyArray_Descr* d = descr_of(want.dtype);
  if (!d) return {};
  if (want.numpy_scalar) return PyRef::steal(PyArray_Scalar(have.data, d, nullptr));
  Py_INCREF(d);
  PyRef view = PyRef::steal(
      PyArray_NewFromDescr(&PyArray_Type, d, want.rank, const_cast<npy_intp*>(have.shape),
                           const_cast<npy_intp*>(have.strides), have.data, 0, nullptr));
  if (!view) return {};
  return PyRef::steal(PyArray_NewCopy(reinterpret_cast<PyArrayObject*>(view.get()), NPY_KEEPORDER));
}

struct Call {
  std::vector<PyRef> positional, keyword_values;
  std::vector<std::string> keywords;

  bool add(const HostArgument& a, PyRef value) {
    if (!value) return false;
    (a.keyword.empty() ? positional : keyword_values).push_back(std::move(value));
    if (!a.keyword.empty()) keywords.push_back(a.keyword);
    return true;
  }
  PyRef run(PyObject* callable) {
    PyRef args = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(positional.size())));
    for (size_t i = 0; args && i < positional.size(); ++i)
      PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), positional[i].release());
    PyRef kwargs = keywords.empty() ? PyRef() : PyRef::steal(PyDict_New());
    for (size_t i = 0; kwargs && i < keywords.size(); ++i)
      if (PyDict_SetItemString(kwargs.get(), keywords[i].c_str(), keyword_values[i].get()) < 0)
        return {};
    return args ? PyRef::steal(PyObject_Call(callable, args.get(), kwargs.get())) : PyRef();
  }
};

// The result is not what the op's shape rule promised: the rest of the code would misread it.
bool refuse(const Site& site, PyObject* got, const HostResult& want,
            std::span<const int64_t> shape) {
  std::string text = Py_TYPE(got)->tp_name;
  if (PyArray_Check(got)) {
    auto* a = reinterpret_cast<PyArrayObject*>(got);
    PyRef dtype = PyRef::steal(PyObject_Str(reinterpret_cast<PyObject*>(PyArray_DESCR(a))));
    text = to_string(dtype.get()) + shape_text({reinterpret_cast<const int64_t*>(PyArray_DIMS(a)),
                                                static_cast<size_t>(PyArray_NDIM(a))});
  }
  PyErr_Clear();
  raise(make_error(ErrorClass::kInternal,
                   "a function called by compiled code returned " + text + " where " +
                       std::string(info(want.dtype).numpy_name) + shape_text(shape) +
                       " was expected" + (site.message.empty() ? "" : " (" + site.message + ")"),
                   "please report this with the function and its arguments"));
  return false;
}

bool accept(Frame& f, const Site& site, const HostResult& want, PyObject* got, CuvilCall* call) {
  const auto& a = f.spec.artifact();
  int64_t shape[artifact::kMaxRank];
  for (int i = 0; i < want.rank; ++i)
    shape[i] = evaluate(want.shape[static_cast<size_t>(i)], std::span(f.dims, a.symbols.size()));
  std::span<const int64_t> expected(shape, want.rank);

  PyRef array;
  if (PyArray_Check(got) || PyArray_IsScalar(got, Generic) || PyFloat_Check(got) ||
      PyLong_Check(got))
    array = PyRef::steal(PyArray_FROM_OF(got, NPY_ARRAY_CARRAY_RO));
  if (!array && PyErr_Occurred()) return false;
  if (!array) return refuse(site, got, want, expected);
  auto* x = reinterpret_cast<PyArrayObject*>(array.get());
  bool fits = PyArray_NDIM(x) == want.rank && dtype_of(PyArray_DESCR(x)) == want.dtype &&
              std::equal(shape, shape + want.rank, PyArray_DIMS(x));
  if (!fits) return refuse(site, array.get(), want, expected);
  call->arrays[want.slot] = {PyArray_DATA(x), reinterpret_cast<const int64_t*>(PyArray_DIMS(x)),
                             reinterpret_cast<const int64_t*>(PyArray_STRIDES(x)), x};
  Py_XDECREF(std::exchange(f.host_results[want.slot], array.release()));
  return true;
}

bool accept_all(Frame& f, const Site& site, PyObject* got, CuvilCall* call) {
  if (site.results.size() == 1 && !PyTuple_Check(got))
    return accept(f, site, site.results[0], got, call);
  PyRef items = PyRef::steal(PySequence_Tuple(got));
  if (!items) return false;
  if (static_cast<size_t>(PyTuple_GET_SIZE(items.get())) != site.results.size()) {
    raise(make_error(ErrorClass::kInternal,
                     "a function called by compiled code returned " +
                         std::to_string(PyTuple_GET_SIZE(items.get())) + " values where " +
                         std::to_string(site.results.size()) + " were expected"));
    return false;
  }
  for (size_t i = 0; i < site.results.size(); ++i)
    if (!accept(f, site, site.results[i], PyTuple_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i)),
                call))
      return false;
  return true;
}

int32_t call_host(CuvilCall* call, uint32_t index, const CuvilArray* operands, uint32_t n) {
  Frame& f = frame_of(call);
  WithGil gil(f);
  const Site& site = f.spec.artifact().sites[index];
  PyObject* callable = f.sources[static_cast<size_t>(site.callable)];
  Call c;
  bool ok = callable != nullptr;
  for (size_t k = 0; ok && k < site.arguments.size(); ++k) {
    const HostArgument& a = site.arguments[k];
    bool constant = a.kind == HostArgument::Kind::kConst;
    if (!constant && a.index >= n) ok = false;
    ok = ok && c.add(a, constant ? PyRef::borrow(f.spec.host_constant(index, k))
                                 : operand_object(a, operands[a.index]));
  }
  PyRef got = ok ? c.run(callable) : PyRef();
  if (got && accept_all(f, site, got.get(), call)) return 0;
  if (!PyErr_Occurred())
    raise(make_error(ErrorClass::kInternal, "a function called by compiled code is not there"));
  add_traceback(site.loc, f.spec.walked_function(f, site.loc.function));
  return CUVIL_SITE_PYTHON;
}

int32_t check_signals(CuvilCall* call) {
  WithGil gil(frame_of(call));
  return PyErr_CheckSignals() == 0 ? 0 : CUVIL_SITE_PYTHON;
}

int32_t warn(CuvilCall* call, uint32_t index) {
  Frame& f = frame_of(call);
  WithGil gil(f);
  return warn_performance(f.spec.artifact().sites[index].message) ? 0 : CUVIL_SITE_PYTHON;
}

}  // namespace

runtime::PythonHooks python_hooks() {
  return {.alloc_result = alloc_result,
          .view_result = view_result,
          .call_host = call_host,
          .check_signals = check_signals,
          .warn = warn};
}

}  // namespace cuvil::python
