// The thread on which machine code is made, while callers go on or wait. It starts with the first task, ends
// when there has been none for a while, and starts again in a forked child.
#pragma once

#include <cstdint>
#include <functional>

namespace cuvil::runtime {

// Tasks run one after the other, on a thread with an 8 MiB stack. They must not touch Python.
// Returns how many have been submitted to the process's worker so far, this one included.
uint64_t submit(std::function<void()> task);
// Before all that are waiting; returns when it is done.
void run_on_worker(std::function<void()> task);
uint64_t submitted();
// Returns true when the first `count` submitted ones are done, false after so many milliseconds (-1: never).
bool wait_for_worker(uint64_t count, int milliseconds = -1);

// Returns when none is running and the thread has ended; none will run until resume_worker().
void pause_worker();
void resume_worker();
// As the process ends: forgets those that wait, and returns when none is running.
void close_worker();

}  // namespace cuvil::runtime
