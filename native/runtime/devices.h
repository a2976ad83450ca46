// What this machine offers. Used by cuvil.runtime.list_devices() and by the import check.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/error.h"

namespace cuvil::runtime {

struct CpuDevice {
  std::string name;  // "Intel(R) Xeon(R) ..."
  int cores = 0;     // physical cores among the CPUs that the process may use
  int threads = 0;   // CPUs that the process may use
  std::vector<std::string> vector_extensions;  // narrow to wide: "sse4.2", "avx2", "avx512f"
  int64_t l1_data_bytes = 0, l2_bytes = 0, l3_bytes = 0;  // of the first CPU; 0: unknown
  int64_t memory_bytes = 0;
};

struct CudaDevice {
  int index = 0;
  std::string name;
  int sm = 0;  // 90 for sm_90
  int64_t memory_bytes = 0;
};

CpuDevice cpu_device();
// Empty if there is no driver or no device.
std::vector<CudaDevice> cuda_devices();
// Everything that decides which instructions code for this CPU may use: other texts, other CPUs.
std::string cpu_fingerprint();
// An error if the CPU is below x86-64-v2, for which all code of Cuvil is built.
Result<> check_cpu();

}  // namespace cuvil::runtime
