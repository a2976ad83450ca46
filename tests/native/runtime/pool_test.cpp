// parallel_for: every iteration once, the lowest error, nesting, other threads, forks.
#include "runtime/pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "runtime/services.h"

namespace cuvil::runtime {
namespace {

struct Threads {
  explicit Threads(int n) : before(num_threads()) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
  int before;
};

template <class F> int32_t loop(F& f, int64_t n, int64_t grain, CuvilCall* call) {
  auto body = [](CuvilCall* c, void* context, int64_t begin, int64_t end) {
    return (*static_cast<F*>(context))(c, begin, end);
  };
  return services()->parallel_for(call, body, &f, n, grain);
}

TEST(Pool, EveryIterationOnce) {
  for (int threads : {1, 2, 5})
    for (int64_t n : {0, 1, 7, 1000, 4096})
      for (int64_t grain : {0, 1, 64, 5000}) {
        Threads scope(threads);
        CuvilCall call{};
        std::vector<std::atomic<int>> count(static_cast<size_t>(n));
        auto f = [&](CuvilCall*, int64_t begin, int64_t end) {
          EXPECT_TRUE(end - begin >= std::min(n, grain) || end == n);
          for (int64_t i = begin; i < end; ++i) ++count[static_cast<size_t>(i)];
          return 0;
        };
        EXPECT_EQ(loop(f, n, grain, &call), 0);
        for (auto& c : count) EXPECT_EQ(c, 1);
      }
}

TEST(Pool, UsesSeveralThreads) {
  Threads scope(3);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  CuvilCall call{};
  for (int tries = 0; tries < 100 && seen.size() < 2; ++tries) {
    auto f = [&](CuvilCall*, int64_t, int64_t) {
      EXPECT_TRUE(inside_parallel_for());
      usleep(1000);
      std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
      return 0;
    };
    loop(f, 12, 1, &call);
  }
  EXPECT_GE(seen.size(), 2u);
  EXPECT_FALSE(inside_parallel_for());
}

TEST(Pool, SmallLoopsStayOnTheCallingThread) {
  Threads scope(4);
  CuvilCall call{};
  auto f = [me = std::this_thread::get_id()](CuvilCall*, int64_t begin, int64_t end) {
    EXPECT_EQ(std::this_thread::get_id(), me);
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 100);
    return 0;
  };
  loop(f, 100, 64, &call);
}

TEST(Pool, ErrorOfTheLowestIterationWins) {
  Threads scope(4);
  for (int round = 0; round < 200; ++round) {
    CuvilCall call{};
    auto f = [&](CuvilCall* c, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        if (i >= 37 && i % 3 == 1) {
          c->payload[0] = i;
          return static_cast<int32_t>(i);
        }
      return 0;
    };
    EXPECT_EQ(loop(f, 1000, 1, &call), 37);
    EXPECT_EQ(call.payload[0], 37);
  }
}

TEST(Pool, NestedLoopsRunInline) {
  Threads scope(3);
  CuvilCall call{};
  std::atomic<int64_t> total = 0;
  auto outer = [&](CuvilCall* c, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      auto me = std::this_thread::get_id();
      auto inner = [&](CuvilCall*, int64_t b, int64_t e) {
        EXPECT_EQ(std::this_thread::get_id(), me);
        total += e - b;
        return 0;
      };
      loop(inner, 10, 1, c);
    }
    return 0;
  };
  EXPECT_EQ(loop(outer, 50, 1, &call), 0);
  EXPECT_EQ(total, 500);
}

TEST(Pool, CallersOfOtherThreadsDoNotWait) {
  Threads scope(2);
  std::vector<std::thread> callers;
  std::atomic<int64_t> total = 0;
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        CuvilCall call{};
        auto f = [&](CuvilCall*, int64_t b, int64_t e) {
          total += e - b;
          return 0;
        };
        loop(f, 100, 1, &call);
      }
    });
  for (auto& t : callers) t.join();
  EXPECT_EQ(total, 4 * 50 * 100);
}

TEST(Pool, WorksInAForkedChild) {
  Threads scope(3);
  CuvilCall call{};
  std::atomic<int64_t> total = 0;
  auto f = [&](CuvilCall*, int64_t b, int64_t e) {
    total += e - b;
    return 0;
  };
  loop(f, 1000, 1, &call);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    for (int i = 0; i < 20; ++i) loop(f, 1000, 1, &call);
    _exit(total == 21000 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  loop(f, 1000, 1, &call);
  EXPECT_EQ(total, 2000);
}

}  // namespace
}  // namespace cuvil::runtime
