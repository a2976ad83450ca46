#include "python/machine_code.h"

#include <unistd.h>

#include <mutex>

#include "python/disk_cache.h"
#include "python/errors.h"
#include "runtime/cache.h"
#include "runtime/worker.h"

namespace cuvil::python {
namespace {

// More than these wait for their machine code only if nothing else is to be done.
constexpr int kMostWaiting = 64;
std::atomic<int> waiting{0};

// What could not be written (and where), or made, since the last settle(): the worker has no GIL to warn
// with.
std::mutex failures_mutex;
std::vector<std::pair<std::string, Error>> failures;

// A thread's code to be started, and how many scopes are open.
thread_local std::vector<std::shared_ptr<MachineCode>> later;
thread_local int scopes = 0;

// At exit and before a fork nothing may be under way. Registered when there first is.
void register_hooks() {
  static pid_t process = 0;  // under the GIL
  const bool forked = process != 0;
  if (std::exchange(process, getpid()) == getpid()) return;
  PyRef self = imported("cuvil._cuvil", "settle");
  PyRef none = PyRef::steal(PyTuple_New(0));
  auto call = [&](PyRef callable, PyObject* args, const char* keyword, PyObject* value) {
    PyRef names = PyRef::steal(PyDict_New());
    if (callable && args && names && PyDict_SetItemString(names.get(), keyword, value) == 0)
      PyRef::steal(PyObject_Call(callable.get(), args, names.get()));
    PyErr_Clear();
  };
  if (!self || !none) return PyErr_Clear();
  if (!forked) {
    PyRef at_exit = imported("atexit", "register");
    if (at_exit) PyRef::steal(PyObject_CallOneArg(at_exit.get(), self.get()));
    call(imported("os", "register_at_fork"), none.get(), "before", self.get());
  }
  // Workers of multiprocessing leave without atexit, and forget what was registered before they were made.
  if (PyDict_GetItemString(PyImport_GetModuleDict(), "multiprocessing.util")) {
    PyRef args = PyRef::steal(Py_BuildValue("(OO)", Py_None, self.get()));
    PyRef priority = PyRef::steal(PyLong_FromLong(0));
    call(imported("multiprocessing.util", "Finalize"), args.get(), "exitpriority", priority.get());
  }
}

}  // namespace

void MachineCode::make() {
  auto made = job_->compile();
  auto read = made.ok() ? artifact::read_artifact(made->artifact)
                        : Result<artifact::Artifact>(std::move(made.error()));
  auto loaded = read.ok() ? runtime::load_code(artifact::blob_of(made->artifact))
                          : Result<runtime::LoadedCode>(std::move(read.error()));
  if (!loaded.ok()) {
    error = std::move(loaded.error());
    if (log_ != Knobs::Level::kWarning) log(name_ + ": no machine code: " + error->found);
    std::lock_guard lock(failures_mutex);
    failures.emplace_back(std::string(), *error);
    failures.back().second.found = name_ + "() stays interpreted: " + error->found;
    return;
  }
  if (place_) {
    auto written =
        runtime::write_cached(place_->directory, read->key, made->artifact, place_->most_bytes);
    if (!written.ok()) {
      std::lock_guard lock(failures_mutex);
      failures.emplace_back(place_->directory, std::move(written.error()));
    }
  }
  code = std::move(*loaded);
  entry_offset = read->entry_offset;
  symbols = std::move(read->code_symbols);
  artifact = std::move(made->artifact);
  stages = std::move(made->stages);
  if (log_ == Knobs::Level::kDebug) log_stages(name_ + ": machine code", stages);
}

void MachineCode::start(const std::shared_ptr<MachineCode>& self) {
  if (std::exchange(self->started_, true)) return;
  register_hooks();
  ++waiting;
  auto task = [code = self] {
    // Dropped meanwhile, and nothing to keep for others: for nobody.
    if (code.use_count() > 1 || code->place_) code->make();
    code->done_.store(true, std::memory_order_release);
    --waiting;
  };
  if (waiting <= kMostWaiting) {
    runtime::submit(std::move(task));
  } else {
    Py_BEGIN_ALLOW_THREADS runtime::run_on_worker(std::move(task));
    Py_END_ALLOW_THREADS
  }
}

void MachineCode::finish(const std::shared_ptr<MachineCode>& self) {
  start(self);
  Py_BEGIN_ALLOW_THREADS while (!self->done()) runtime::wait_for_worker();
  Py_END_ALLOW_THREADS
}

StartLater::StartLater() { ++scopes; }
StartLater::~StartLater() {
  if (--scopes > 0) return;
  auto list = std::move(later);
  later.clear();
  if (list.empty()) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  for (const auto& code : list) MachineCode::start(code);
  PyErr_Restore(type, value, traceback);
}
void start_later(std::shared_ptr<MachineCode> code) { later.push_back(std::move(code)); }

bool settle() {
  while (!runtime::worker_is_idle()) {
    Py_BEGIN_ALLOW_THREADS runtime::wait_for_worker(50);
    Py_END_ALLOW_THREADS if (PyErr_CheckSignals() < 0) return false;
  }
  std::vector<std::pair<std::string, Error>> all;
  {
    std::lock_guard lock(failures_mutex);
    all.swap(failures);
  }
  for (const auto& [directory, error] : all)
    if (directory.empty() ? !warn_performance(error.found + "\n  help: " + error.remedy)
                          : !give_up(directory, error))
      return false;
  return true;
}

Result<compiler::Compiled> compile_now(compiler::Job& job) {
  std::optional<Result<compiler::Compiled>> made;
  Py_BEGIN_ALLOW_THREADS runtime::run_on_worker([&] { made = job.compile(); });
  Py_END_ALLOW_THREADS return std::move(*made);
}

}  // namespace cuvil::python
