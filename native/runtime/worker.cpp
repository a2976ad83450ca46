#include "runtime/worker.h"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "runtime/signals.h"

namespace cuvil::runtime {
namespace {

constexpr size_t kStackBytes = size_t{8} << 20;  // LLVM recurses over what it compiles
constexpr auto kPatience = std::chrono::seconds(2);

class Worker {
 public:
  void add(std::function<void()> task, bool first) {
    std::unique_lock lock(mutex_);
    if (first)
      tasks_.push_front(std::move(task));
    else
      tasks_.push_back(std::move(task));
    if (!running_) running_ = start();
    if (running_) {
      more_.notify_one();
      return;
    }
    // No thread is to be had: here, then.
    drain(lock);
  }

  void wait(int milliseconds) {
    std::unique_lock lock(mutex_);
    auto idle = [&] { return is_idle(); };
    if (milliseconds < 0)
      idle_.wait(lock, idle);
    else
      idle_.wait_for(lock, std::chrono::milliseconds(milliseconds), idle);
  }

  bool idle() {
    std::lock_guard lock(mutex_);
    return is_idle();
  }

 private:
  bool is_idle() const { return tasks_.empty() && !busy_; }

  bool start() {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_t thread;
    auto main = [](void* self) -> void* {
      static_cast<Worker*>(self)->work();
      return nullptr;
    };
    WithoutSignals none;
    const bool started = pthread_attr_setstacksize(&attributes, kStackBytes) == 0 &&
                         pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
                         pthread_create(&thread, &attributes, main, this) == 0;
    pthread_attr_destroy(&attributes);
    return started;
  }

  void work() {
    std::unique_lock lock(mutex_);
    // Ends after a while, and with it what LLVM keeps for the thread's next compile.
    while (more_.wait_for(lock, kPatience, [&] { return !tasks_.empty(); })) drain(lock);
    running_ = false;
  }

  void drain(std::unique_lock<std::mutex>& lock) {
    while (!tasks_.empty()) {
      std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      busy_ = true;
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
      busy_ = false;
    }
    idle_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable more_, idle_;
  std::deque<std::function<void()>> tasks_;
  bool busy_ = false, running_ = false;
};

// One a process: a child has none of its parent's threads, and whatever state they left.
Worker& worker() {
  static std::mutex mutex;
  static Worker* current = nullptr;
  static pid_t owner = 0;
  std::lock_guard lock(mutex);
  if (owner != getpid()) {
    current = new Worker;
    owner = getpid();
  }
  return *current;
}

}  // namespace

void submit(std::function<void()> task) { worker().add(std::move(task), false); }

void run_on_worker(std::function<void()> task) {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  worker().add(
      [&] {
        task();
        std::lock_guard lock(mutex);
        done = true;
        changed.notify_one();  // under the lock: the waiter destroys it
      },
      true);
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return done; });
}

void wait_for_worker(int milliseconds) { worker().wait(milliseconds); }
bool worker_is_idle() { return worker().idle(); }

}  // namespace cuvil::runtime
