// The thread pool behind parallel_for of generated code. Threads start at the first loop that is worth
// them, and again in a forked child. One loop uses the pool at a time: a nested loop, or one of
// another Python thread meanwhile, runs on its own thread.
#pragma once

#include <cstdint>

#include "artifact/abi.h"

namespace cuvil::runtime {

// Runs body over [0, n) in pieces of at least `grain`, in ascending order of their start. Each piece
// works on its own copy of `*call`, so payloads don't race. Returns 0, or the code of the failing
// piece with the lowest iterations, whose payload is then in call->payload.
int32_t parallel_for(CuvilCall* call, CuvilBody body, void* context, int64_t n, int64_t grain);

// True while the calling thread runs a piece of a parallel_for.
bool inside_parallel_for();
// True on the pool's own threads.
bool on_worker_thread();

// How many threads a call may use, the calling one included. Default: useful_threads().
void set_num_threads(int n);
int num_threads();

}  // namespace cuvil::runtime
