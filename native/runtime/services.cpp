#include "runtime/services.h"

#include <time.h>

#include <cstdlib>

#include "runtime/pool.h"
#include "runtime/scratch.h"

namespace cuvil::runtime {
namespace {

constexpr int64_t kPollEveryNs = 50'000'000;

PythonHooks hooks;

// Python is out of reach on a worker: the calling thread may hold the GIL while it waits.
bool python_in_reach(CuvilCall* call) {
  if (!on_worker_thread()) return true;
  state_of(call).failure = CallState::Failure::kWorkerNeedsPython;
  return false;
}

void* out_of_memory(CuvilCall* call, int64_t bytes) {
  CallState& state = state_of(call);
  state.failed_bytes = bytes;
  state.failure = CallState::Failure::kOutOfMemory;
  return nullptr;
}

void* alloc_result(CuvilCall* call, uint32_t index, const int64_t* shape) {
  return python_in_reach(call) ? hooks.alloc_result(call, index, shape) : nullptr;
}

int32_t view_result(CuvilCall* call, uint32_t index, uint32_t base, int64_t offset,
                    const int64_t* shape, const int64_t* strides) {
  return python_in_reach(call) ? hooks.view_result(call, index, base, offset, shape, strides)
                               : CUVIL_SITE_PYTHON;
}

void* lease_scratch(CuvilCall* call, int64_t bytes, uint32_t scope) {
  void* p = nullptr;
  if (bytes >= 0) {
    p = scope == CUVIL_SCRATCH_THREAD ? Scratch::mine().lease(static_cast<size_t>(bytes))
                                      : state_of(call).lease(bytes);
  }
  return p ? p : out_of_memory(call, bytes);
}

int32_t call_host(CuvilCall* call, uint32_t site, const CuvilArray* operands, uint32_t n) {
  return python_in_reach(call) ? hooks.call_host(call, site, operands, n) : CUVIL_SITE_PYTHON;
}

int32_t poll(CuvilCall* call) {
  if (on_worker_thread()) return 0;
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  int64_t ns = int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  CallState& state = state_of(call);
  if (state.next_poll_ns == 0) state.next_poll_ns = ns + kPollEveryNs;
  if (ns < state.next_poll_ns) return 0;
  state.next_poll_ns = ns + kPollEveryNs;
  return hooks.check_signals(call);
}

int32_t warn(CuvilCall* call, uint32_t site) {
  return python_in_reach(call) ? hooks.warn(call, site) : CUVIL_SITE_PYTHON;
}

// The number of the site and the payload, which is in the call, say all: the exception is made once
// the entry has returned.
int32_t raise_site(CuvilCall*, uint32_t site) { return static_cast<int32_t>(site) + 1; }

// No device: launch, copy and read_scalar are null, and artifacts with a device image are refused.
constexpr CuvilServices kServices = {
    .size = sizeof(CuvilServices),
    .version = CUVIL_ABI_VERSION,
    .alloc_result = alloc_result,
    .view_result = view_result,
    .lease_scratch = lease_scratch,
    .parallel_for = parallel_for,
    .launch = nullptr,
    .copy = nullptr,
    .read_scalar = nullptr,
    .call_host = call_host,
    .poll = poll,
    .warn = warn,
    .raise = raise_site,
};

}  // namespace

void CallState::Free::operator()(void* p) const { std::free(p); }

void* CallState::lease(int64_t bytes) {
  constexpr size_t kAlignment = Scratch::kAlignment;
  size_t size = (static_cast<size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
  void* p = std::aligned_alloc(kAlignment, size ? size : kAlignment);
  if (!p) return nullptr;
  std::lock_guard lock(mutex_);
  leases_.emplace_back(p);
  return p;
}

void set_python_hooks(const PythonHooks& h) { hooks = h; }
const CuvilServices* services() { return &kServices; }

}  // namespace cuvil::runtime
