#include "runtime/pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "runtime/cpus.h"
#include "runtime/scratch.h"
#include "runtime/signals.h"

namespace cuvil::runtime {
namespace {

thread_local bool inside = false;
thread_local bool worker = false;

struct Job {
  CuvilCall* call;
  CuvilBody body;
  void* context;
  int64_t n, piece;
  std::atomic<int64_t> next{0};            // start of the next piece
  std::atomic<int64_t> failed{INT64_MAX};  // start of the lowest failing piece
  std::mutex error_mutex;
  int32_t code = 0;
  int64_t payload[4] = {};

  // Takes pieces until none is left. Starts ascend, so that when a piece fails, all lower ones have
  // been taken already and will be finished.
  void work() {
    for (;;) {
      int64_t begin = next.fetch_add(piece, std::memory_order_relaxed);
      if (begin >= n || begin > failed.load(std::memory_order_relaxed)) return;
      run(begin, std::min(n, begin + piece));
    }
  }
  void run(int64_t begin, int64_t end) {
    CuvilCall mine = *call;
    ScratchScope scope;
    int32_t result = body(&mine, context, begin, end);
    if (result == 0) return;
    std::lock_guard lock(error_mutex);
    if (begin >= failed.load(std::memory_order_relaxed)) return;
    failed.store(begin, std::memory_order_relaxed);
    code = result;
    std::copy_n(mine.payload, 4, payload);
  }
};

class Pool {
 public:
  void run(Job& job, int threads) {
    start(threads - 1);
    {
      std::lock_guard lock(mutex_);
      job_ = &job;
      seats_ = threads - 1;
      ++generation_;
    }
    wake_.notify_all();
    job.work();
    std::unique_lock lock(mutex_);
    job_ = nullptr;  // who has not woken up by now need not
    idle_.wait(lock, [this] { return working_ == 0; });
  }

  std::mutex& owner() { return owner_; }

 private:
  void start(int wanted) {
    for (; started_ < wanted; ++started_) {
      pthread_t thread;
      pthread_attr_t attributes;
      pthread_attr_init(&attributes);
      pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
      pthread_attr_setstacksize(&attributes, size_t{1} << 20);
      auto entry = [](void* self) -> void* {
        static_cast<Pool*>(self)->loop();
        return nullptr;
      };
      WithoutSignals none;
      int failed = pthread_create(&thread, &attributes, entry, this);
      pthread_attr_destroy(&attributes);
      if (failed) return;  // fewer threads do the same work
    }
  }

  void loop() {
    inside = worker = true;
    uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return job_ && generation_ != seen; });
      seen = generation_;
      if (seats_ == 0) continue;
      --seats_;
      ++working_;
      Job* job = job_;
      lock.unlock();
      job->work();
      lock.lock();
      if (--working_ == 0) idle_.notify_all();
    }
  }

  std::mutex owner_;  // held by the thread whose loop runs
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  Job* job_ = nullptr;
  uint64_t generation_ = 0;
  int seats_ = 0, working_ = 0, started_ = 0;
};

// Never destroyed: its threads may wait in it while the process exits. A forked child has none of
// the threads, so it gets a new pool in the place of the old one.
struct Shared {
  Shared() {
    pthread_atfork(nullptr, nullptr, [] { new (storage()) Pool; });
    new (storage()) Pool;
  }
  static void* storage() {
    alignas(Pool) static std::byte bytes[sizeof(Pool)];
    return bytes;
  }
  static Pool& pool() {
    static Shared once;
    return *std::launder(static_cast<Pool*>(storage()));
  }
};

std::atomic<int> threads{0};

int32_t run_inline(CuvilCall* call, CuvilBody body, void* context, int64_t n) {
  ScratchScope scope;
  bool before = inside;
  inside = true;
  int32_t code = body(call, context, 0, n);
  inside = before;
  return code;
}

}  // namespace

bool inside_parallel_for() { return inside; }
bool on_worker_thread() { return worker; }

void set_num_threads(int n) { threads.store(std::max(1, n), std::memory_order_relaxed); }

int num_threads() {
  int n = threads.load(std::memory_order_relaxed);
  if (n == 0) set_num_threads(n = useful_threads());
  return n;
}

int32_t parallel_for(CuvilCall* call, CuvilBody body, void* context, int64_t n, int64_t grain) {
  if (n <= 0) return 0;
  grain = std::max<int64_t>(1, grain);
  auto pieces = n / grain;  // whole ones; fewer than two are not worth a thread
  auto wanted = static_cast<int>(std::min<int64_t>(num_threads(), pieces));
  if (inside || wanted < 2) return run_inline(call, body, context, n);
  Pool& pool = Shared::pool();
  std::unique_lock owner(pool.owner(), std::try_to_lock);
  if (!owner) return run_inline(call, body, context, n);

  // Several pieces a thread, so that a slow one does not hold up the rest.
  constexpr int64_t kPiecesPerThread = 4;
  int64_t even = (n + wanted * kPiecesPerThread - 1) / (wanted * kPiecesPerThread);
  Job job{.call = call, .body = body, .context = context, .n = n, .piece = std::max(grain, even)};
  inside = true;
  pool.run(job, wanted);
  inside = false;
  if (job.code) std::copy_n(job.payload, 4, call->payload);
  return job.code;
}

}  // namespace cuvil::runtime
