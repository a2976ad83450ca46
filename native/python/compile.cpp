#include "python/compile.h"

#include <pthread.h>

#include "python/errors.h"
#include "runtime/gate.h"
#include "support/knobs.h"

namespace cuvil::python {
namespace {

thread_local bool compiling = false;

struct Job {
  runtime::CompileFunction compile;
  const compiler::Request* request;
  compiler::Response* response;
  PyObject* context = nullptr;  // a copy of the caller's, on another thread
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;

  // Holding the GIL.
  void run() {
    bool before = std::exchange(compiling, true);
    bool entered = context && PyContext_Enter(context) == 0;
    compile(request, response);
    PyErr_Fetch(&type, &value, &traceback);
    if (entered) PyContext_Exit(context);
    compiling = before;
  }
};

void* thread_main(void* p) {
  PyGILState_STATE gil = PyGILState_Ensure();
  static_cast<Job*>(p)->run();
  PyGILState_Release(gil);
  return nullptr;
}

// The compiler recurses over nested expressions.
constexpr size_t kStackBytes = size_t{8} << 20;
constexpr size_t kEnoughBytes = size_t{3} << 20;

// How much of the calling thread's stack is left; 0 if this is no stack that it knows of.
size_t stack_left() {
  thread_local char* lowest = nullptr;
  if (!lowest) {
    pthread_attr_t attributes;
    void* base = nullptr;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
    if (pthread_attr_getstack(&attributes, &base, &size) != 0) base = nullptr;
    pthread_attr_destroy(&attributes);
    if (!base) return 0;
    lowest = static_cast<char*>(base);
  }
  char* here = static_cast<char*>(__builtin_frame_address(0));
  return here > lowest ? static_cast<size_t>(here - lowest) : 0;
}

bool start(Job* job, pthread_t* thread) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  bool started = pthread_attr_setstacksize(&attributes, kStackBytes) == 0 &&
                 pthread_create(thread, &attributes, thread_main, job) == 0;
  pthread_attr_destroy(&attributes);
  return started;
}

// On a thread with a stack of its own. False if none is to be had.
bool run_elsewhere(Job* job) {
  PyRef context = PyRef::steal(PyContext_CopyCurrent());
  PyErr_Clear();
  job->context = context.get();
  pthread_t thread;
  if (!start(job, &thread)) return false;
  Py_BEGIN_ALLOW_THREADS pthread_join(thread, nullptr);
  Py_END_ALLOW_THREADS return true;
}

}  // namespace

bool on_compile_thread() { return compiling; }

bool run_compiler(const compiler::Request& request, compiler::Response* response) {
  auto knobs = read_knobs();
  if (!knobs.ok()) {
    raise(knobs.error());
    return false;
  }
  auto compile = runtime::open_compiler(knobs->compiler_path);
  if (!compile.ok()) {
    raise(compile.error());
    return false;
  }
  Job job{*compile, &request, response};
  // On the caller's thread, whose locks and thread-local values the function may ask for, if there is room.
  if (compiling || stack_left() >= kEnoughBytes || !run_elsewhere(&job)) job.run();
  PyErr_Restore(job.type, job.value, job.traceback);
  if (response->ok && !PyErr_Occurred()) return true;
  if (!PyErr_Occurred())
    raise(make_error(ErrorClass::kInternal, "the compiler failed without saying why",
                     "please report this with the function"));
  return false;
}

}  // namespace cuvil::python
