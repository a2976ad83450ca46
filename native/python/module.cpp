// The extension module cuvil._cuvil: what the Python package is built on.
#define CUVIL_IMPORTS_NUMPY
#include <bit>

#include "python/classify.h"
#include "python/code_hash.h"
#include "python/compiled_function.h"
#include "python/constants.h"
#include "python/dispatch.h"
#include "python/dtypes.h"
#include "python/errors.h"
#include "python/host_call.h"
#include "python/request.h"
#include "python/texts.h"
#include "runtime/cache.h"
#include "runtime/devices.h"
#include "runtime/pool.h"
#include "runtime/worker.h"
#include "support/build_id.h"
#include "support/knobs.h"

namespace cuvil::python {
namespace {

// ---- small conversions

PyRef to_py(const std::string& s) { return to_str(s); }
PyRef to_py(const char* s) { return to_str(s); }
PyRef to_py(int64_t v) { return PyRef::steal(PyLong_FromLongLong(v)); }
PyRef to_py(int v) { return to_py(static_cast<int64_t>(v)); }
PyRef to_py(double v) { return PyRef::steal(PyFloat_FromDouble(v)); }
PyRef to_py(bool v) { return PyRef::borrow(v ? Py_True : Py_False); }
PyRef to_py(PyRef v) { return v; }
PyRef to_py(const std::vector<uint8_t>& v) {
  return PyRef::steal(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(v.data()),
                                                static_cast<Py_ssize_t>(v.size())));
}
PyRef to_py(const std::vector<std::string>& items) {
  PyRef list = PyRef::steal(PyList_New(0));
  for (const auto& s : items)
    if (!list || PyList_Append(list.get(), to_py(s).get()) < 0) return {};
  return list;
}

// A dict from keys and values; NULL with the indicator set once one of them failed.
class Dict {
 public:
  template <class T> Dict& set(const char* key, const T& value) {
    PyRef v = to_py(value);
    if (!v || !dict_ || PyDict_SetItemString(dict_.get(), key, v.get()) < 0) dict_ = {};
    return *this;
  }
  PyRef take() { return std::move(dict_); }

 private:
  PyRef dict_ = PyRef::steal(PyDict_New());
};

State* state_of(PyObject* o) {
  if (is_compiled_function(o)) return reinterpret_cast<CompiledFunction*>(o)->state;
  PyErr_Format(PyExc_TypeError, "expected a function decorated with cuvil.jit, got %s",
               Py_TYPE(o)->tp_name);
  return nullptr;
}

// ---- making compiled functions

constexpr const char* kDTypes =
    "use a dtype of bool, int8 to int64, uint8 to uint64, float16, float32 or float64, in this "
    "machine's byte order";

bool read_axis(PyObject* o, AxisHint* out) {
  if (PyLong_Check(o)) {
    out->size = PyLong_AsLongLong(o);
    return !PyErr_Occurred();
  }
  if (PyUnicode_Check(o)) out->symbol = to_string(o);
  return true;
}

// hints: {name: (tuple of int, str or None, dtype or None)}, checked by cuvil/_options.py.
bool read_hints(PyObject* hints, Options* out) {
  PyObject *name, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(hints, &at, &name, &value)) {
    PyObject *axes, *dtype;
    if (!PyArg_ParseTuple(value, "O!O", &PyTuple_Type, &axes, &dtype)) return false;
    ArgHint hint;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(axes); ++i)
      if (!read_axis(PyTuple_GET_ITEM(axes, i), &hint.axes.emplace_back())) return false;
    if (PyArray_DescrCheck(dtype)) {
      hint.dtype = dtype_of(reinterpret_cast<PyArray_Descr*>(dtype));
      if (!hint.dtype) {
        PyRef text = PyRef::steal(PyObject_Str(dtype));
        raise(make_error(
            ErrorClass::kDType,
            "shape_hint['" + to_string(name) + "'] names the dtype " + to_string(text.get()),
            kDTypes));
        return false;
      }
    }
    out->hints[to_string(name)] = std::move(hint);
  }
  return true;
}

PyObject* make(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* kNames[] = {"function", "hints", "device", "target_cpu", "cache", nullptr};
  PyObject *function, *hints;
  const char *device = "cpu", *target_cpu = "";
  int cache = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!|ssp", const_cast<char**>(kNames),
                                   &PyFunction_Type, &function, &PyDict_Type, &hints, &device,
                                   &target_cpu, &cache))
    return nullptr;
  auto knobs = read_knobs();
  if (!knobs.ok()) {
    raise(knobs.error());
    return nullptr;
  }
  auto state = std::make_unique<State>();
  state->function = PyRef::borrow(function);
  state->options.device = device;
  state->options.target_cpu = target_cpu;
  state->options.cache = cache != 0;
  state->disabled = knobs->disable;
  if (!read_hints(hints, &state->options)) return nullptr;
  state->hints = PyRef::borrow(hints);
  state->keywords = kwargs ? PyRef::borrow(kwargs) : PyRef::steal(PyDict_New());
  if (!state->keywords) return nullptr;
  return new_compiled_function(std::move(state));
}

PyObject* arguments(PyObject*, PyObject* o) {
  State* s = state_of(o);
  return s ? Py_BuildValue("(OO)", s->hints.get(), s->keywords.get()) : nullptr;
}

// ---- looking at them

PyRef describe(const State& s, const Entry& e) {
  const auto& a = e.specialisation->artifact();
  PyRef stages = PyRef::steal(PyList_New(0));
  const bool interpreted = e.specialisation->interpreted();
  auto all = e.stages;
  const auto& later = e.specialisation->machine_code_stages();
  all.insert(all.end(), later.begin(), later.end());
  for (const auto& [name, ms] : all) {
    PyRef row = PyRef::steal(Py_BuildValue("(sd)", name.c_str(), ms));
    if (!row || PyList_Append(stages.get(), row.get()) < 0) return {};
  }
  return Dict()
      .set("signature", e.specialisation->signature(s.binder.names(a.call_shape)))
      .set("guards", guard_texts(a, s.binder.names(a.call_shape)))
      .set("reason", e.reason)
      .set("milliseconds", e.milliseconds)
      .set("stages", stages)
      .set("calls", static_cast<int64_t>(e.specialisation->calls))
      .set("target", a.target)
      .set("schedule", a.schedule_text)
      .set("memory", a.memory_text)
      .set("arena_bytes", a.arena_bytes)
      .set("interpreted", interpreted)
      .set("code_bytes",
           interpreted ? int64_t{0}
                       : static_cast<int64_t>(artifact::blob_of(e.specialisation->bytes()).size()))
      .set("releases_gil", a.releases_gil)
      .set("memory_only", a.memory_only)
      .set("cached", e.cached)
      .take();
}

PyObject* specialisations(PyObject*, PyObject* o) {
  State* s = state_of(o);
  if (!s) return nullptr;
  PyRef list = PyRef::steal(PyList_New(0));
  for (const auto& e : s->entries) {
    PyRef d = describe(*s, *e);
    if (!list || !d || PyList_Append(list.get(), d.get()) < 0) return nullptr;
  }
  return list.release();
}

// Binds arguments to look for their specialisation, without running the function. `names` (a tuple of
// str) belong to the last values. False with the indicator set: Python's own TypeError, which calling
// the function raises before its body runs.
bool bind_only(State& s, const std::vector<PyObject*>& values, PyObject* names, BoundArgs* bound) {
  Py_ssize_t keywords = PyTuple_GET_SIZE(names);
  for (Py_ssize_t i = 0; i < keywords; ++i) {
    PyObject* name = PyTuple_GET_ITEM(names, i);
    if (PyUnicode_CheckExact(name) && PyUnicode_AsUTF8AndSize(name, nullptr)) continue;
    PyErr_SetString(PyExc_TypeError, "keywords must be strings");
    return false;
  }
  if (!s.code_is_current() && !s.read_code()) return false;
  size_t n = values.size() - static_cast<size_t>(keywords);
  PyObject* function = s.function.get();
  if (s.binder.bind(function, values.data(), n, names, bound)) return true;
  PyRef ran = PyRef::steal(PyObject_Vectorcall(function, values.data(), n, names));
  if (ran) PyErr_SetString(PyExc_TypeError, "these arguments do not fit the parameters");
  return false;
}

// The entry for arguments (args[1:]), or all entries if there are none. False with the indicator set.
bool select(State& s, PyObject* args, std::vector<Entry*>* out) {
  Py_ssize_t n = PyTuple_GET_SIZE(args) - 1;
  if (n == 0) {
    for (const auto& e : s.entries) out->push_back(e.get());
    return true;
  }
  BoundArgs bound;
  std::vector<PyObject*> values(&PyTuple_GET_ITEM(args, 1), &PyTuple_GET_ITEM(args, 1) + n);
  PyRef names = PyRef::steal(PyTuple_New(0));
  if (!names || !bind_only(s, values, names.get(), &bound)) return false;
  Entry* e = prepare_call(s, bound);
  if (e) out->push_back(e);
  return e != nullptr;
}

PyObject* artifact_bytes(PyObject*, PyObject* args) {
  State* s = PyTuple_GET_SIZE(args) ? state_of(PyTuple_GET_ITEM(args, 0)) : nullptr;
  std::vector<Entry*> entries;
  if (!s || !select(*s, args, &entries)) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "artifact_bytes(function, *args)");
    return nullptr;
  }
  PyRef list = PyRef::steal(PyList_New(0));
  for (Entry* e : entries)
    if (!list || !e->specialisation->finish() ||
        PyList_Append(list.get(), to_py(e->specialisation->bytes()).get()) < 0)
      return nullptr;
  return list.release();
}

// Binds (args, kwargs) of a call. False with the indicator set. `values` are borrowed.
bool bind_call(State* s, PyObject* args, PyObject* kwargs, std::vector<PyObject*>* values,
               BoundArgs* bound) {
  PyRef names = s ? PyRef::steal(PySequence_Tuple(kwargs)) : PyRef();
  if (!names) return false;
  values->assign(&PyTuple_GET_ITEM(args, 0), &PyTuple_GET_ITEM(args, 0) + PyTuple_GET_SIZE(args));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.get()); ++i)
    values->push_back(PyDict_GetItemWithError(kwargs, PyTuple_GET_ITEM(names.get(), i)));
  return bind_only(*s, *values, names.get(), bound);
}

// prepare(function, args, kwargs, wait) -> index of the specialisation, made if need be; with `wait`, also
// its machine code.
PyObject* prepare(PyObject*, PyObject* packed) {
  PyObject *function, *args, *kwargs;
  int wait = 0;
  if (!PyArg_ParseTuple(packed, "OO!O!|p", &function, &PyTuple_Type, &args, &PyDict_Type, &kwargs,
                        &wait))
    return nullptr;
  State* s = state_of(function);
  std::vector<PyObject*> values;
  BoundArgs bound;
  if (!bind_call(s, args, kwargs, &values, &bound)) return nullptr;
  Entry* e = prepare_call(*s, bound);
  for (size_t i = 0; e && i < s->entries.size(); ++i) {
    if (s->entries[i].get() != e) continue;
    return wait && !e->specialisation->finish() ? nullptr : PyLong_FromSize_t(i);
  }
  return nullptr;
}

// look_up(function, args, kwargs) -> whether there is a specialisation for such arguments, on disk or in
// memory.
PyObject* look_up(PyObject*, PyObject* packed) {
  PyObject *function, *args, *kwargs;
  if (!PyArg_ParseTuple(packed, "OO!O!", &function, &PyTuple_Type, &args, &PyDict_Type, &kwargs))
    return nullptr;
  State* s = state_of(function);
  std::vector<PyObject*> values;
  BoundArgs bound;
  if (!bind_call(s, args, kwargs, &values, &bound) || !cuvil::python::look_up(*s, bound))
    return nullptr;
  return PyBool_FromLong(!s->entries.empty());
}

// Index of the specialisation that ran last, or -1.
PyObject* last_index(PyObject*, PyObject* o) {
  State* s = state_of(o);
  if (!s) return nullptr;
  for (size_t i = 0; i < s->entries.size(); ++i)
    if (s->entries[i].get() == s->last_entry) return PyLong_FromSize_t(i);
  return PyLong_FromLong(static_cast<long>(s->entries.size()) - 1);
}

PyObject* texts(PyObject*, PyObject* args) {
  PyObject *function, *given;
  Py_ssize_t index;
  unsigned want;
  if (!PyArg_ParseTuple(args, "OnIO!", &function, &index, &want, &PyTuple_Type, &given))
    return nullptr;
  State* s = state_of(function);
  if (!s) return nullptr;
  if (index < 0 || static_cast<size_t>(index) >= s->entries.size()) {
    PyErr_SetString(PyExc_IndexError, "no such specialisation");
    return nullptr;
  }
  const Entry& e = *s->entries[static_cast<size_t>(index)];
  std::map<std::string, std::string> found;
  BoundArgs bound;
  std::vector<PyObject*> values(&PyTuple_GET_ITEM(given, 0),
                                &PyTuple_GET_ITEM(given, 0) + PyTuple_GET_SIZE(given));
  PyRef names = PyRef::steal(PyTuple_New(0));
  if (!values.empty() && (!names || !bind_only(*s, values, names.get(), &bound))) return nullptr;
  if (!texts_of(*s, e, values.empty() ? nullptr : &bound, want, &found)) return nullptr;
  Dict d;
  for (const auto& [name, text] : found) d.set(name.c_str(), text);
  return d.take().release();
}

PyObject* load_artifact(PyObject*, PyObject* args) {
  PyObject* function;
  Py_buffer buffer;
  if (!PyArg_ParseTuple(args, "Oy*", &function, &buffer)) return nullptr;
  auto* p = static_cast<const uint8_t*>(buffer.buf);
  std::vector<uint8_t> bytes(p, p + buffer.len);
  PyBuffer_Release(&buffer);
  State* s = state_of(function);
  if (!s || (!s->code_is_current() && !s->read_code()) || !add_artifact(*s, std::move(bytes)))
    return nullptr;
  Py_RETURN_NONE;
}

// ---- what tests of classification and hashing look at

PyObject* classify_argument(PyObject*, PyObject* args) {
  PyObject* o;
  const char* name = "x";
  if (!PyArg_ParseTuple(args, "O|s", &o, &name)) return nullptr;
  artifact::ArgSpec spec;
  if (!classify(o, name, &spec)) return nullptr;
  static constexpr const char* kKinds[] = {"array", "int", "float", "static", "object"};
  static constexpr const char* kLayouts[] = {"C", "F", "strided"};
  Dict d;
  d.set("kind", kKinds[static_cast<size_t>(spec.kind)]);
  if (spec.kind == artifact::ArgSpec::Kind::kStatic) d.set("value", to_object(spec.value));
  if (spec.kind == artifact::ArgSpec::Kind::kArray) {
    std::vector<std::string> classes, order;
    for (int i = 0; spec.array.layout == artifact::Layout::kStrided && i < spec.array.rank; ++i) {
      classes.push_back(std::to_string(static_cast<int>(spec.array.stride_class[i])));
      order.push_back(std::to_string(spec.array.order[i]));
    }
    d.set("dtype", std::string(info(spec.array.dtype).numpy_name))
        .set("rank", static_cast<int>(spec.array.rank))
        .set("layout", kLayouts[static_cast<size_t>(spec.array.layout)])
        .set("aligned", spec.array.aligned)
        .set("writeable", spec.array.writeable)
        .set("numpy_scalar", spec.array.numpy_scalar)
        .set("stride_class", classes)
        .set("order", order);
  }
  return d.take().release();
}

PyObject* code_hash(PyObject*, PyObject* o) {
  if (!PyCode_Check(o)) {
    PyErr_SetString(PyExc_TypeError, "code_hash(code object)");
    return nullptr;
  }
  artifact::Hash h = hash_code(o);
  return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(h.data()),
                                   static_cast<Py_ssize_t>(h.size()));
}

// ---- the cache on disk

// Its directory, whether the environment turns it off, what this process did with it.
PyObject* cache_state(PyObject*, PyObject*) {
  auto knobs = read_knobs();
  auto directory =
      knobs.ok() ? runtime::cache_directory(knobs->cache_dir) : Result<std::string>(knobs.error());
  if (!directory.ok()) {
    raise(directory.error());
    return nullptr;
  }
  const runtime::CacheCounters& c = runtime::cache_counters();
  return Dict()
      .set("dir", *directory)
      .set("enabled", knobs->cache)
      .set("max_bytes", knobs->cache_mb << 20)
      .set("hits", c.hits.load())
      .set("misses", c.misses.load())
      .set("evictions", c.evictions.load())
      .take()
      .release();
}

bool text_argument(PyObject* o, std::string* out) {
  if (PyUnicode_Check(o)) *out = to_string(o);
  if (!PyUnicode_Check(o)) PyErr_SetString(PyExc_TypeError, "a path as str is needed");
  return PyUnicode_Check(o);
}

PyObject* cache_files(PyObject*, PyObject* o) {
  std::string directory;
  if (!text_argument(o, &directory)) return nullptr;
  PyRef list = PyRef::steal(PyList_New(0));
  for (const runtime::CachedFile& f : runtime::list_cached(directory)) {
    PyRef row = Dict()
                    .set("key", f.key)
                    .set("path", f.path)
                    .set("bytes", f.bytes)
                    .set("used", f.used)
                    .take();
    if (!list || !row || PyList_Append(list.get(), row.get()) < 0) return nullptr;
  }
  return list.release();
}

PyObject* cache_clear(PyObject*, PyObject* o) {
  std::string directory;
  if (!text_argument(o, &directory)) return nullptr;
  auto removed = runtime::clear_cached(directory);
  if (removed.ok()) return PyLong_FromLongLong(*removed);
  raise(removed.error());
  return nullptr;
}

PyObject* settle(PyObject*, PyObject*) {
  if (!cuvil::python::settle()) return nullptr;
  Py_RETURN_NONE;
}

PyObject* before_fork(PyObject*, PyObject*) {
  if (!cuvil::python::before_fork()) return nullptr;
  Py_RETURN_NONE;
}

PyObject* after_fork(PyObject*, PyObject*) {
  runtime::resume_worker();
  Py_RETURN_NONE;
}

// ---- the machine

PyObject* cpu(PyObject*, PyObject*) {
  runtime::CpuDevice d = runtime::cpu_device();
  return Dict()
      .set("name", d.name)
      .set("cores", d.cores)
      .set("threads", d.threads)
      .set("vector_extensions", d.vector_extensions)
      .set("l1_data_bytes", d.l1_data_bytes)
      .set("l2_bytes", d.l2_bytes)
      .set("l3_bytes", d.l3_bytes)
      .set("memory_bytes", d.memory_bytes)
      .take()
      .release();
}

PyObject* cuda(PyObject*, PyObject*) {
  std::vector<runtime::CudaDevice> devices;
  Py_BEGIN_ALLOW_THREADS  // cuInit takes its time
      devices = runtime::cuda_devices();
  Py_END_ALLOW_THREADS PyRef list = PyRef::steal(PyList_New(0));
  for (const auto& d : devices) {
    PyRef row = Dict()
                    .set("index", d.index)
                    .set("name", d.name)
                    .set("sm", d.sm)
                    .set("memory_bytes", d.memory_bytes)
                    .take();
    if (!list || !row || PyList_Append(list.get(), row.get()) < 0) return nullptr;
  }
  return list.release();
}

PyObject* set_num_threads(PyObject*, PyObject* o) {
  long n = PyLong_Check(o) ? PyLong_AsLong(o) : 0;
  if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_OverflowError)) return nullptr;
  PyErr_Clear();
  if (n < 1 || n > 1024 || PyBool_Check(o)) {
    PyErr_Format(PyExc_ValueError, "the number of threads must be an int from 1 to 1024, got %R",
                 o);
    return nullptr;
  }
  runtime::set_num_threads(static_cast<int>(n));
  Py_RETURN_NONE;
}

PyObject* num_threads(PyObject*, PyObject*) { return PyLong_FromLong(runtime::num_threads()); }

PyObject* knobs(PyObject*, PyObject*) {
  PyRef list = PyRef::steal(PyList_New(0));
  for (const KnobInfo& k : all_knobs()) {
    PyRef row = PyRef::steal(Py_BuildValue("(ss)", k.variable.data(), k.help.data()));
    if (!list || !row || PyList_Append(list.get(), row.get()) < 0) return nullptr;
  }
  return list.release();
}

PyMethodDef functions[] = {
    {"make", reinterpret_cast<PyCFunction>(make), METH_VARARGS | METH_KEYWORDS,
     "make(function, hints, device='cpu', target_cpu='', cache=True) -> CompiledFunction"},
    {"arguments", arguments, METH_O,
     "arguments(function) -> (dict, dict): the hints and the keywords that make was given"},
    {"specialisations", specialisations, METH_O,
     "specialisations(function) -> list of dict, one a specialisation"},
    {"artifact_bytes", artifact_bytes, METH_VARARGS,
     "artifact_bytes(function, *args) -> list of bytes: all artifacts, or the one for args"},
    {"load_artifact", load_artifact, METH_VARARGS,
     "load_artifact(function, bytes): add a specialisation without the compiler"},
    {"prepare", prepare, METH_VARARGS, "prepare(function, args, kwargs, wait=False) -> index"},
    {"look_up", look_up, METH_VARARGS, "look_up(function, args, kwargs) -> bool"},
    {"last_index", last_index, METH_O, "last_index(function) -> int, -1 if there is none"},
    {"texts", texts, METH_VARARGS,
     "texts(function, index, want, args) -> dict of str; args of a call like the first, or ()"},
    {"classify", classify_argument, METH_VARARGS, "classify(object, name='x') -> dict"},
    {"code_hash", code_hash, METH_O, "code_hash(code) -> bytes"},
    {"cache_state", cache_state, METH_NOARGS, "cache_state() -> dict"},
    {"cache_files", cache_files, METH_O, "cache_files(directory) -> list of dict"},
    {"cache_clear", cache_clear, METH_O, "cache_clear(directory) -> number of files removed"},
    {"settle", settle, METH_NOARGS, "settle(): wait for all machine code that is being made"},
    {"before_fork", before_fork, METH_NOARGS, "before_fork(): settle(), then make none"},
    {"after_fork", after_fork, METH_NOARGS, "after_fork(): in the parent, make it again"},
    {"cpu", cpu, METH_NOARGS, "cpu() -> dict"},
    {"cuda", cuda, METH_NOARGS, "cuda() -> list of dict"},
    {"set_num_threads", set_num_threads, METH_O, "set_num_threads(n)"},
    {"num_threads", num_threads, METH_NOARGS, "num_threads() -> int"},
    {"knobs", knobs, METH_NOARGS, "knobs() -> list of (variable, help)"},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "cuvil._cuvil",
    "The native part of Cuvil.",
    -1,
    functions,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
};

// Before cuvil.errors can be imported: builtin classes only.
bool check_environment() {
  if (auto cpu = runtime::check_cpu(); !cpu.ok()) {
    PyErr_SetString(PyExc_ImportError, (cpu.error().found + "\n" + cpu.error().remedy).c_str());
    return false;
  }
  auto knobs = read_knobs();
  if (!knobs.ok()) {
    PyErr_SetString(PyExc_ValueError, (knobs.error().found + "; " + knobs.error().remedy).c_str());
    return false;
  }
  if (knobs->num_threads > 0) runtime::set_num_threads(static_cast<int>(knobs->num_threads));
  return true;
}

}  // namespace
}  // namespace cuvil::python

extern "C" __attribute__((visibility("default"))) PyObject* PyInit__cuvil() {
  using namespace cuvil::python;
  if (!check_environment() || PyArray_ImportNumPyAPI() < 0) return nullptr;
  if (PyType_Ready(&CompiledFunctionType) < 0) return nullptr;
  PyRef m = PyRef::steal(PyModule_Create(&definition));
  if (!m ||
      PyModule_AddObjectRef(m.get(), "CompiledFunction",
                            reinterpret_cast<PyObject*>(&CompiledFunctionType)) < 0 ||
      PyModule_AddStringConstant(m.get(), "build_id", cuvil::build_id()) < 0 ||
      PyModule_AddStringConstant(m.get(), "llvm_version", cuvil::llvm_version()) < 0)
    return nullptr;
  process_part();
  cuvil::runtime::set_python_hooks(python_hooks());
  return m.release();
}
