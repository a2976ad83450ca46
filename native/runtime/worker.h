// The thread on which machine code is made, while callers go on or wait. It starts with the first task, ends
// when there has been none for a while, and starts again in a forked child.
#pragma once

#include <functional>

namespace cuvil::runtime {

// Tasks run one after the other, on a thread with an 8 MiB stack. They must not touch Python.
void submit(std::function<void()> task);
// Before all that are waiting; returns when it is done.
void run_on_worker(std::function<void()> task);
// Returns when nothing is running or waiting, or after so many milliseconds (-1: however long).
void wait_for_worker(int milliseconds = -1);
bool worker_is_idle();

}  // namespace cuvil::runtime
