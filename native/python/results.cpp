#include "python/results.h"

#include <cstring>

#include "python/dtypes.h"
#include "python/errors.h"

namespace cuvil::python {

using artifact::ResultSpec;
using artifact::TreeNode;

namespace {

bool in_c_order(const ResultSpec& r) {
  for (int i = 0; i < r.rank; ++i)
    if (r.order[i] != i) return false;
  return true;
}

// Strides of a fresh array whose axes lie from slow to fast as `order` says.
void fresh_strides(const ResultSpec& r, const int64_t* shape, npy_intp* out) {
  npy_intp step = size_of(r.dtype);
  for (int i = r.rank - 1; i >= 0; --i) {
    out[r.order[i]] = step;
    step *= shape[r.order[i]] > 0 ? shape[r.order[i]] : 1;
  }
}

PyObject* new_array(PyArray_Descr* d, const ResultSpec& r, const int64_t* shape) {
  npy_intp strides[artifact::kMaxRank];
  bool plain = in_c_order(r);
  if (!plain) fresh_strides(r, shape, strides);
  Py_INCREF(d);
  return PyArray_NewFromDescr(&PyArray_Type, d, r.rank, const_cast<npy_intp*>(shape),
                              plain ? nullptr : strides, nullptr, 0, nullptr);
}

void fill(CuvilArray* out, PyObject* array) {
  auto* a = reinterpret_cast<PyArrayObject*>(array);
  *out = {PyArray_DATA(a), reinterpret_cast<const int64_t*>(PyArray_DIMS(a)),
          reinterpret_cast<const int64_t*>(PyArray_STRIDES(a)), array};
}

}  // namespace

void* alloc_result(CuvilCall* call, uint32_t index, const int64_t* shape) {
  Frame& f = frame_of(call);
  const ResultSpec& r = f.spec.artifact().results[index];
  CuvilArray& out = f.results[index];
  if (r.form != ResultSpec::Form::kArray) {
    out.data = f.scalar_results + 16 * index;
    return out.data;
  }
  WithGil gil(f);
  PyObject* array = new_array(f.spec.result_descr(index), r, shape);
  if (!array) {
    if (PyErr_ExceptionMatches(PyExc_MemoryError)) {
      int64_t bytes = size_of(r.dtype);
      for (int i = 0; i < r.rank; ++i)
        if (__builtin_mul_overflow(bytes, shape[i], &bytes)) bytes = INT64_MAX;
      PyErr_Clear();
      raise(make_error(ErrorClass::kOutOfMemory,
                       "no memory for a result of " + std::to_string(bytes) + " bytes",
                       "work on smaller arrays, or free memory first"));
    }
    return nullptr;
  }
  if (r.readonly) PyArray_CLEARFLAGS(reinterpret_cast<PyArrayObject*>(array), NPY_ARRAY_WRITEABLE);
  Py_XDECREF(static_cast<PyObject*>(std::exchange(out.object, nullptr)));
  fill(&out, array);
  return out.data;
}

int32_t view_result(CuvilCall* call, uint32_t index, uint32_t base, int64_t offset,
                    const int64_t* shape, const int64_t* strides) {
  Frame& f = frame_of(call);
  bool of_result = base & 0x80000000u;
  CuvilArray& from = of_result ? f.results[base & 0x7fffffffu] : f.arrays[base];
  const ResultSpec& r = f.spec.artifact().results[index];
  WithGil gil(f);
  auto* object = static_cast<PyObject*>(from.object);
  if (!object || !PyArray_Check(object)) {
    raise(make_error(ErrorClass::kInternal, "a result is a view of something that is no array"));
    return CUVIL_SITE_PYTHON;
  }
  auto* whole = reinterpret_cast<PyArrayObject*>(object);
  // A view of a memmap is one, too; its __array_finalize__ gets the array that it comes from.
  PyTypeObject* type = Py_TYPE(object);
  bool plain = type == &PyArray_Type;
  PyArray_Descr* d = f.spec.result_descr(index);
  if (dtype_of(PyArray_DESCR(whole)) == r.dtype) d = PyArray_DESCR(whole);
  Py_INCREF(d);
  int flags = PyArray_ISWRITEABLE(whole) && !r.readonly ? NPY_ARRAY_WRITEABLE : 0;
  PyObject* view = PyArray_NewFromDescr(
      type, d, r.rank, const_cast<npy_intp*>(shape), const_cast<npy_intp*>(strides),
      static_cast<char*>(from.data) + offset, flags, plain ? nullptr : object);
  if (!view) return CUVIL_SITE_PYTHON;
  Py_INCREF(object);
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(view), object) < 0) {
    Py_DECREF(view);
    return CUVIL_SITE_PYTHON;
  }
  CuvilArray& out = f.results[index];
  Py_XDECREF(static_cast<PyObject*>(std::exchange(out.object, nullptr)));
  fill(&out, view);
  return 0;
}

namespace {

template <class T> T read_as(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

PyObject* python_int(DType t, const void* p) {
  switch (t) {
    case DType::kBool: return PyLong_FromLong(read_as<uint8_t>(p));
    case DType::kI8: return PyLong_FromLong(read_as<int8_t>(p));
    case DType::kI16: return PyLong_FromLong(read_as<int16_t>(p));
    case DType::kI32: return PyLong_FromLong(read_as<int32_t>(p));
    case DType::kI64: return PyLong_FromLongLong(read_as<int64_t>(p));
    case DType::kU8: return PyLong_FromLong(read_as<uint8_t>(p));
    case DType::kU16: return PyLong_FromLong(read_as<uint16_t>(p));
    case DType::kU32: return PyLong_FromUnsignedLong(read_as<uint32_t>(p));
    case DType::kU64: return PyLong_FromUnsignedLongLong(read_as<uint64_t>(p));
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
    case DType::kF64:
    case DType::kC64:
    case DType::kC128: break;
  }
  PyErr_SetString(PyExc_SystemError, "not an integer result");
  return nullptr;
}

PyObject* scalar_result(Frame& f, uint32_t index) {
  const ResultSpec& r = f.spec.artifact().results[index];
  void* data = f.results[index].data;
  if (!data) {
    raise(make_error(ErrorClass::kInternal, "compiled code made no result"));
    return nullptr;
  }
  switch (r.form) {
    case ResultSpec::Form::kNumpyScalar:
      return PyArray_Scalar(data, f.spec.result_descr(index), nullptr);
    case ResultSpec::Form::kPyInt: return python_int(r.dtype, data);
    case ResultSpec::Form::kPyFloat:
      return PyFloat_FromDouble(r.dtype == DType::kF32 ? read_as<float>(data)
                                                       : read_as<double>(data));
    case ResultSpec::Form::kPyBool: return PyBool_FromLong(read_as<uint8_t>(data));
    case ResultSpec::Form::kArray: break;
  }
  return nullptr;
}

PyObject* array_result(Frame& f, uint32_t index) {
  auto* o = static_cast<PyObject*>(f.results[index].object);
  if (!o) raise(make_error(ErrorClass::kInternal, "compiled code made no result"));
  Py_XINCREF(o);
  return o;
}

class TreeBuilder {
 public:
  explicit TreeBuilder(Frame& f) : frame_(f), tree_(f.spec.artifact().tree) {}

  PyRef next() {
    const size_t self = at_++;
    PyRef o = node(tree_[self]);
    if (frame_.spec.returns_same()) made_.emplace_back(self, o);
    return o;
  }

 private:
  PyRef node(const TreeNode& n) {
    const auto& a = frame_.spec.artifact();
    switch (n.kind) {
      case TreeNode::Kind::kTuple: return tuple(n.count);
      case TreeNode::Kind::kList: {
        PyRef t = tuple(n.count);
        return t ? PyRef::steal(PySequence_List(t.get())) : PyRef();
      }
      case TreeNode::Kind::kDict: return dict(n);
      case TreeNode::Kind::kCall: {
        PyRef args = tuple(n.count);
        PyObject* type = frame_.sources[n.index];
        if (!args || !type) return missing();
        return PyRef::steal(PyObject_CallObject(type, args.get()));
      }
      case TreeNode::Kind::kResult:
        return PyRef::steal(a.results[n.index].form == ResultSpec::Form::kArray
                                ? array_result(frame_, n.index)
                                : scalar_result(frame_, n.index));
      case TreeNode::Kind::kSource: {
        PyRef o = PyRef::borrow(frame_.sources[n.index]);
        return o ? o : missing();
      }
      case TreeNode::Kind::kConst: return PyRef::borrow(frame_.spec.constant(n.index));
      case TreeNode::Kind::kExpr:
        return PyRef::steal(PyLong_FromLongLong(
            evaluate(a.exprs[n.index], std::span(frame_.dims, a.symbols.size()))));
      case TreeNode::Kind::kSame:
        for (const auto& [at, o] : made_)
          if (at == n.index) return o;
        return missing();
    }
    return {};
  }
  static PyRef missing() {
    if (!PyErr_Occurred())
      raise(make_error(ErrorClass::kInternal, "an object that is returned does not exist"));
    return {};
  }
  PyRef tuple(uint32_t count) {
    PyRef t = PyRef::steal(PyTuple_New(count));
    for (uint32_t i = 0; t && i < count; ++i) {
      PyRef item = next();
      if (!item) return {};
      PyTuple_SET_ITEM(t.get(), i, item.release());
    }
    return t;
  }
  PyRef dict(const TreeNode& n) {
    PyRef d = PyRef::steal(PyDict_New());
    for (uint32_t i = 0; d && i < n.count; ++i) {
      PyRef item = next();
      if (!item || PyDict_SetItem(d.get(), frame_.spec.constant(n.index + i), item.get()) < 0)
        return {};
    }
    return d;
  }

  Frame& frame_;
  const std::vector<TreeNode>& tree_;
  size_t at_ = 0;
  std::vector<std::pair<size_t, PyRef>> made_;  // filled only if the tree refers to nodes
};

}  // namespace

PyObject* build_result(Frame& f) {
  const auto& a = f.spec.artifact();
  const TreeNode& root = a.tree[0];
  if (root.kind == TreeNode::Kind::kResult &&
      a.results[root.index].form == ResultSpec::Form::kArray && f.results[root.index].object)
    return static_cast<PyObject*>(std::exchange(f.results[root.index].object, nullptr));
  return TreeBuilder(f).next().release();
}

}  // namespace cuvil::python
