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
  PyObject* context;  // a copy of the caller's
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

bool start(Job* job, pthread_t* thread) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  bool started = pthread_attr_setstacksize(&attributes, kStackBytes) == 0 &&
                 pthread_create(thread, &attributes, thread_main, job) == 0;
  pthread_attr_destroy(&attributes);
  return started;
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
  PyRef context = PyRef::steal(PyContext_CopyCurrent());
  if (!context) return false;
  Job job{*compile, &request, response, context.get()};
  pthread_t thread;
  if (compiling || !start(&job, &thread)) {
    job.run();  // already on such a thread, or none is to be had
  } else {
    Py_BEGIN_ALLOW_THREADS pthread_join(thread, nullptr);
    Py_END_ALLOW_THREADS
  }
  PyErr_Restore(job.type, job.value, job.traceback);
  if (response->ok && !PyErr_Occurred()) return true;
  if (!PyErr_Occurred())
    raise(make_error(ErrorClass::kInternal, "the compiler failed without saying why",
                     "please report this with the function"));
  return false;
}

}  // namespace cuvil::python
