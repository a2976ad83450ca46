#include "runtime/devices.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "runtime/cpus.h"

namespace cuvil::runtime {
namespace {

std::string read_line(const std::string& path) {
  std::string line;
  if (std::FILE* f = std::fopen(path.c_str(), "re")) {
    char buffer[256];
    if (std::fgets(buffer, sizeof buffer, f)) line = buffer;
    std::fclose(f);
  }
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
  return line;
}

// "32K", "2048K", "105M"
int64_t parse_size(const std::string& text) {
  char* end = nullptr;
  int64_t n = std::strtoll(text.c_str(), &end, 10);
  switch (*end) {
    case 'K': return n << 10;
    case 'M': return n << 20;
    case 'G': return n << 30;
    default: return n;
  }
}

void read_caches(int cpu, CpuDevice* d) {
  for (int index = 0; index < 8; ++index) {
    std::string at = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index" +
                     std::to_string(index) + "/";
    std::string level = read_line(at + "level"), type = read_line(at + "type");
    if (level.empty()) break;
    if (type == "Instruction") continue;
    int64_t size = parse_size(read_line(at + "size"));
    if (level == "1") d->l1_data_bytes = size;
    if (level == "2") d->l2_bytes = size;
    if (level == "3") d->l3_bytes = size;
  }
}

int physical_cores(const std::vector<int>& cpus) {
  std::set<std::string> cores;
  for (int cpu : cpus) {
    std::string at = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    std::string siblings = read_line(at + "thread_siblings_list");
    cores.insert(siblings.empty() ? std::to_string(cpu) : siblings);
  }
  return static_cast<int>(cores.size());
}

#if defined(__x86_64__)

struct CpuId {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

CpuId cpuid(unsigned leaf, unsigned subleaf = 0) {
  CpuId r;
  __cpuid_count(leaf, subleaf, r.a, r.b, r.c, r.d);
  return r;
}

std::string cpu_name() {
  char brand[49] = {};
  for (unsigned i = 0; i < 3; ++i) {
    CpuId r = cpuid(0x80000002 + i);
    std::memcpy(brand + 16 * i, &r, 16);
  }
  std::string name = brand;
  size_t begin = name.find_first_not_of(' ');
  return begin == std::string::npos ? "x86-64" : name.substr(begin, name.find_last_not_of(' ') + 1);
}

// __builtin_cpu_supports also asks whether the system saves the wide registers.
std::vector<std::string> vector_extensions() {
  std::vector<std::string> out;
#define CUVIL_EXTENSION(name) \
  if (__builtin_cpu_supports(name)) out.push_back(name);
  CUVIL_EXTENSION("sse4.2")
  CUVIL_EXTENSION("avx")
  CUVIL_EXTENSION("avx2")
  CUVIL_EXTENSION("fma")
  CUVIL_EXTENSION("avx512f")
  CUVIL_EXTENSION("avx512bw")
  CUVIL_EXTENSION("avx512dq")
  CUVIL_EXTENSION("avx512vl")
  CUVIL_EXTENSION("avx512vnni")
  CUVIL_EXTENSION("avx512bf16")
#undef CUVIL_EXTENSION
  return out;
}

bool is_v2() {
  constexpr unsigned kSse3 = 1u << 0, kSsse3 = 1u << 9, kCx16 = 1u << 13, kSse41 = 1u << 19,
                     kSse42 = 1u << 20, kPopcnt = 1u << 23;
  constexpr unsigned kAll = kSse3 | kSsse3 | kCx16 | kSse41 | kSse42 | kPopcnt;
  return (cpuid(1).c & kAll) == kAll;
}

// Each of these traps on a virtual machine and takes up to 10 us there: no more than it takes to tell two
// CPUs apart for whom LLVM makes different code.
std::string fingerprint() {
  std::string out;
  auto add = [&out](const CpuId& r) { out.append(reinterpret_cast<const char*>(&r), sizeof r); };
  CpuId one = cpuid(1);  // family, model, stepping, features
  one.b = 0;             // has the number of the CPU that runs this
  add(one);
  for (unsigned sub : {0u, 1u}) add(cpuid(7, sub));
  add(cpuid(0x80000001));
  if ((one.c >> 27) & 1) {  // which registers the system saves
    CpuId saved;
    asm volatile("xgetbv" : "=a"(saved.a), "=d"(saved.d) : "c"(0));
    add(saved);
  }
  return out;
}

#else

std::string cpu_name() { return read_line("/proc/device-tree/model"); }
std::string fingerprint() { return cpu_name(); }
std::vector<std::string> vector_extensions() { return {}; }
bool is_v2() { return true; }

#endif

}  // namespace

std::string cpu_fingerprint() {
  static const std::string once = fingerprint();
  return once;
}

CpuDevice cpu_device() {
  CpuDevice d;
  std::vector<int> cpus = allowed_cpus();
  d.name = cpu_name();
  d.cores = physical_cores(cpus);
  d.threads = static_cast<int>(cpus.size());
  d.vector_extensions = vector_extensions();
  read_caches(cpus.front(), &d);
  struct sysinfo info;
  if (sysinfo(&info) == 0) d.memory_bytes = static_cast<int64_t>(info.totalram) * info.mem_unit;
  return d;
}

Result<> check_cpu() {
  if (is_v2()) return Ok{};
  return make_error(ErrorClass::kDevice,
                    "this CPU (" + cpu_name() + ") has not the instructions of x86-64-v2",
                    "Cuvil needs SSE4.2 and POPCNT, which CPUs have since about 2009; on a virtual "
                    "machine choose a newer CPU model");
}

}  // namespace cuvil::runtime
