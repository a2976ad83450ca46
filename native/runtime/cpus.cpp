#include "runtime/cpus.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace cuvil::runtime {
namespace {

std::vector<std::string> read_lines(const std::string& path) {
  std::vector<std::string> lines;
  if (std::FILE* f = std::fopen(path.c_str(), "re")) {
    char* line = nullptr;
    size_t room = 0;
    while (getline(&line, &room, f) >= 0) {
      lines.emplace_back(line);
      while (!lines.back().empty() && lines.back().back() == '\n') lines.back().pop_back();
    }
    std::free(line);
    std::fclose(f);
  }
  return lines;
}

// A positive number, or 0: "max", "-1" and what is no number mean that there is no limit.
double positive(const char* text) { return std::max(0.0, std::strtod(text, nullptr)); }

// What is written in one group's own files.
std::optional<double> quota_of(const std::string& group) {
  double quota = 0, period = 0;
  if (auto v2 = read_lines(group + "/cpu.max"); !v2.empty()) {
    quota = positive(v2[0].c_str());
    if (size_t space = v2[0].find(' '); space != std::string::npos)
      period = positive(v2[0].c_str() + space);
  } else {
    auto us = read_lines(group + "/cpu.cfs_quota_us"),
         every = read_lines(group + "/cpu.cfs_period_us");
    if (us.empty() || every.empty()) return std::nullopt;
    quota = positive(us[0].c_str());
    period = positive(every[0].c_str());
  }
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

// Of a group and all above it. In a container the group's name may be one of the machine outside: then
// only what is mounted here counts.
void smallest(const std::string& mount, std::string path, std::optional<double>* out) {
  for (;;) {
    if (auto q = quota_of(mount + path); q && (!*out || *q < **out)) *out = q;
    if (path.empty()) return;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

bool names_cpu(const std::string& controllers) {
  return ("," + controllers + ",").find(",cpu,") != std::string::npos;
}

}  // namespace

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> out;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) out.push_back(i);
  if (out.empty())  // more CPUs than fit into the set
    for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
      out.push_back(static_cast<int>(i));
  return out;
}

std::optional<double> cpu_quota(const std::string& memberships, const std::string& root) {
  std::optional<double> out;
  // "0::/path" is version 2, "4:cpu,cpuacct:/path" version 1.
  for (const std::string& line : read_lines(memberships)) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers.empty())
      smallest(root, path, &out);
    else if (names_cpu(controllers))
      smallest(root + "/cpu", path, &out);
  }
  return out;
}

int useful_threads() {
  const auto allowed = static_cast<double>(allowed_cpus().size());
  return static_cast<int>(std::min(allowed, std::ceil(cpu_quota().value_or(allowed))));
}

}  // namespace cuvil::runtime
