// The table of functions that generated code may call (CuvilServices), and the state of one call
// behind it. What needs Python comes in through PythonHooks, set once by python/.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "artifact/abi.h"

namespace cuvil::runtime {

// CuvilCall::host points to one of these; python/ derives its own from it.
struct CallState {
  enum class Failure : uint8_t { kNone, kOutOfMemory, kWorkerNeedsPython };

  uint32_t result_count = 0;
  int64_t next_poll_ns = 0;  // 0: no poll yet
  // A failure on a thread that has no Python error indicator to set. The caller raises it.
  std::atomic<Failure> failure{Failure::kNone};
  std::atomic<int64_t> failed_bytes{0};

  // Scratch of the whole call; from any thread.
  void* lease(int64_t bytes);

 private:
  struct Free {
    void operator()(void* p) const;
  };
  std::mutex mutex_;
  std::vector<std::unique_ptr<void, Free>> leases_;
};

inline CallState& state_of(CuvilCall* call) { return *static_cast<CallState*>(call->host); }

// Called on the calling thread only, which may have released the GIL; they take it as needed.
struct PythonHooks {
  void* (*alloc_result)(CuvilCall*, uint32_t index, const int64_t* shape) = nullptr;
  int32_t (*view_result)(CuvilCall*, uint32_t index, uint32_t base, int64_t offset,
                         const int64_t* shape, const int64_t* strides) = nullptr;
  int32_t (*call_host)(CuvilCall*, uint32_t site, const CuvilArray* operands, uint32_t n) = nullptr;
  int32_t (*check_signals)(CuvilCall*) = nullptr;
  int32_t (*warn)(CuvilCall*, uint32_t site) = nullptr;
};

void set_python_hooks(const PythonHooks& hooks);
const CuvilServices* services();

}  // namespace cuvil::runtime
