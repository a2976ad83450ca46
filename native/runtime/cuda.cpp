// CUDA devices, through the driver library if the machine has one: nothing is linked.
#include <dlfcn.h>

#include "runtime/devices.h"

namespace cuvil::runtime {
namespace {

struct Driver {
#define CUVIL_CUDA(name, ...) int (*name)(__VA_ARGS__) = nullptr;
#include "runtime/cuda_driver.def"
#undef CUVIL_CUDA

  // False if there is no driver. The library stays open: it does not survive being closed.
  bool open() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    bool complete = true;
#define CUVIL_CUDA(name, ...)                                     \
  name = reinterpret_cast<decltype(name)>(dlsym(library, #name)); \
  complete = complete && name;
#include "runtime/cuda_driver.def"
#undef CUVIL_CUDA
    return complete;
  }
};

constexpr int kComputeCapabilityMajor = 75, kComputeCapabilityMinor = 76;

}  // namespace

std::vector<CudaDevice> cuda_devices() {
  std::vector<CudaDevice> out;
  Driver d;
  int count = 0;
  if (!d.open() || d.cuInit(0) != 0 || d.cuDeviceGetCount(&count) != 0) return out;
  for (int i = 0; i < count; ++i) {
    int device = 0, major = 0, minor = 0;
    char name[256] = {};
    size_t bytes = 0;
    if (d.cuDeviceGet(&device, i) != 0 || d.cuDeviceGetName(name, sizeof name - 1, device) != 0 ||
        d.cuDeviceGetAttribute(&major, kComputeCapabilityMajor, device) != 0 ||
        d.cuDeviceGetAttribute(&minor, kComputeCapabilityMinor, device) != 0 ||
        d.cuDeviceTotalMem_v2(&bytes, device) != 0)
      continue;
    out.push_back({i, name, major * 10 + minor, static_cast<int64_t>(bytes)});
  }
  return out;
}

}  // namespace cuvil::runtime
