// The CPUs that this process may use: those it may run on, and how much time control groups grant.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cuvil::runtime {

// Never empty.
std::vector<int> allowed_cpus();

// How many CPUs' worth of time the process gets (`docker run --cpus=0.5`, a systemd CPUQuota), the smallest
// of its control groups and those above them; nullopt without a limit. `memberships` is a file like
// /proc/self/cgroup, `root` where control groups are mounted, of version 1, 2 or both.
std::optional<double> cpu_quota(const std::string& memberships = "/proc/self/cgroup",
                                const std::string& root = "/sys/fs/cgroup");

// Threads that are worth having: the CPUs allowed, but no more than the quota, rounded up. More would
// use up the time of a period at once and stand still for the rest of it.
int useful_threads();

}  // namespace cuvil::runtime
