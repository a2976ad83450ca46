#include "runtime/worker.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
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
  uint64_t add(std::function<void()> task, bool first) {
    std::unique_lock lock(mutex_);
    const uint64_t number = submitted_++;
    if (first && pauses_ > 0) {  // who waits for it may be who paused
      finished_.wait(lock, [&] { return !busy_; });
      run(lock, {std::move(task), number});
    } else {
      tasks_.insert(first ? tasks_.begin() : tasks_.end(), {std::move(task), number});
    }
    go_on(lock);
    return number + 1;
  }

  uint64_t submitted() {
    std::lock_guard lock(mutex_);
    return submitted_;
  }

  bool wait(uint64_t count, int milliseconds) {
    std::unique_lock lock(mutex_);
    auto done = [&] {
      if (busy_ && running_number_ < count) return false;
      return std::none_of(tasks_.begin(), tasks_.end(),
                          [&](const Task& t) { return t.number < count; });
    };
    if (milliseconds >= 0)
      return finished_.wait_for(lock, std::chrono::milliseconds(milliseconds), done);
    finished_.wait(lock, done);
    return true;
  }

  void pause() {
    std::unique_lock lock(mutex_);
    ++pauses_;
    finished_.wait(lock, [&] { return !busy_ && !leaving_; });
    if (!has_thread_) return;
    leaving_ = true;  // Python 3.12 warns of a fork in a process with threads
    more_.notify_one();
    lock.unlock();
    pthread_join(thread_, nullptr);
    lock.lock();
    has_thread_ = leaving_ = false;
    finished_.notify_all();
  }

  void resume() {
    std::unique_lock lock(mutex_);
    if (pauses_ > 0 && --pauses_ == 0) go_on(lock);
  }

  void close() {
    std::unique_lock lock(mutex_);
    ++pauses_;
    auto forgotten = std::move(tasks_);
    tasks_.clear();
    finished_.wait(lock, [&] { return !busy_; });
  }

 private:
  struct Task {
    std::function<void()> run;
    uint64_t number;
  };

  void go_on(std::unique_lock<std::mutex>& lock) {
    if (!ready()) return;
    if (!has_thread_) has_thread_ = start();
    if (has_thread_)
      more_.notify_one();
    else
      drain(lock);  // no thread is to be had: here, then
  }

  bool ready() const { return !tasks_.empty() && !busy_ && pauses_ == 0; }

  bool start() {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    auto main = [](void* self) -> void* {
      static_cast<Worker*>(self)->work();
      return nullptr;
    };
    WithoutSignals none;
    const bool started = pthread_attr_setstacksize(&attributes, kStackBytes) == 0 &&
                         pthread_create(&thread_, &attributes, main, this) == 0;
    pthread_attr_destroy(&attributes);
    return started;
  }

  void work() {
    std::unique_lock lock(mutex_);
    // Ends after a while, and with it what LLVM keeps for the thread's next compile.
    while (more_.wait_for(lock, kPatience, [&] { return ready() || leaving_; }) && !leaving_)
      drain(lock);
    if (leaving_) return;  // and is joined
    pthread_detach(thread_);
    has_thread_ = false;
  }

  void drain(std::unique_lock<std::mutex>& lock) {
    while (ready()) {
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      run(lock, std::move(task));
    }
  }

  void run(std::unique_lock<std::mutex>& lock, Task task) {
    busy_ = true;
    running_number_ = task.number;
    lock.unlock();
    task.run();
    task.run = nullptr;
    lock.lock();
    busy_ = false;
    finished_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable more_, finished_;
  std::deque<Task> tasks_;
  uint64_t submitted_ = 0, running_number_ = 0;
  int pauses_ = 0;
  bool busy_ = false, has_thread_ = false, leaving_ = false;
  pthread_t thread_;
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

uint64_t submit(std::function<void()> task) { return worker().add(std::move(task), false); }

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

uint64_t submitted() { return worker().submitted(); }
bool wait_for_worker(uint64_t count, int milliseconds) {
  return worker().wait(count, milliseconds);
}
void pause_worker() { worker().pause(); }
void resume_worker() { worker().resume(); }
void close_worker() { worker().close(); }

}  // namespace cuvil::runtime
