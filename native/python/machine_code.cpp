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
  PyRef module = imported("cuvil._cuvil");
  PyRef self = module ? CUVIL_ATTR(module.get(), "settle") : PyRef();
  PyRef before = module ? CUVIL_ATTR(module.get(), "before_fork") : PyRef();
  PyRef after = module ? CUVIL_ATTR(module.get(), "after_fork") : PyRef();
  PyRef none = PyRef::steal(PyTuple_New(0));
  if (!self || !before || !after || !none) return PyErr_Clear();
  auto call = [](PyRef callable, const PyRef& args, PyRef keywords) {
    if (callable && args && keywords)
      PyRef::steal(PyObject_Call(callable.get(), args.get(), keywords.get()));
    PyErr_Clear();
  };
  if (forked) {
    waiting = 0;
  } else {
    PyRef at_exit = imported("atexit", "register");
    if (at_exit) PyRef::steal(PyObject_CallOneArg(at_exit.get(), self.get()));
    // What starts later: by other functions at exit, or by threads that are still there.
    Py_AtExit(runtime::close_worker);
    call(imported("os", "register_at_fork"), none,
         PyRef::steal(
             Py_BuildValue("{sOsO}", "before", before.get(), "after_in_parent", after.get())));
  }
  // Workers of multiprocessing leave without atexit, and forget what was registered before they were made.
  if (PyDict_GetItemString(PyImport_GetModuleDict(), "multiprocessing.util"))
    call(imported("multiprocessing.util", "Finalize"),
         PyRef::steal(Py_BuildValue("(OO)", Py_None, self.get())),
         PyRef::steal(Py_BuildValue("{si}", "exitpriority", 0)));
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
  // A forked child has none of what waits in its parent.
  if (self->done() || std::exchange(self->started_in_, getpid()) == getpid()) return;
  register_hooks();
  ++waiting;
  auto task = [code = self] {
    // Dropped meanwhile, and nothing to keep for others: for nobody.
    if (code.use_count() > 1 || code->place_) code->make();
    code->done_.store(true, std::memory_order_release);
    --waiting;
  };
  if (waiting <= kMostWaiting) {
    self->number_ = runtime::submit(std::move(task));
  } else {
    Py_BEGIN_ALLOW_THREADS runtime::run_on_worker(std::move(task));
    Py_END_ALLOW_THREADS
  }
}

void MachineCode::finish(const std::shared_ptr<MachineCode>& self) {
  start(self);
  Py_BEGIN_ALLOW_THREADS while (!self->done())
      runtime::wait_for_worker(self->number_ ? self->number_ : runtime::submitted());
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
  const uint64_t count = runtime::submitted();
  for (bool done = false; !done;) {
    Py_BEGIN_ALLOW_THREADS done = runtime::wait_for_worker(count, 50);
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

bool before_fork() {
  const bool ok = settle();
  Py_BEGIN_ALLOW_THREADS runtime::pause_worker();
  Py_END_ALLOW_THREADS return ok;
}

Result<compiler::Compiled> compile_now(compiler::Job& job) {
  std::optional<Result<compiler::Compiled>> made;
  Py_BEGIN_ALLOW_THREADS runtime::run_on_worker([&] { made = job.compile(); });
  Py_END_ALLOW_THREADS return std::move(*made);
}

}  // namespace cuvil::python
