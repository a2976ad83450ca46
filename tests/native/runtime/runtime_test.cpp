// Loader, scratch, services, gate and devices.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "runtime/devices.h"
#include "runtime/gate.h"
#include "runtime/loader.h"
#include "runtime/scratch.h"
#include "runtime/services.h"

namespace cuvil::runtime {
namespace {

#if defined(__x86_64__)
TEST(Loader, RunsABlob) {
  const uint8_t blob[] = {0xcc, 0x31, 0xc0, 0xc3,   // int3; xor eax, eax; ret
                          0x8b, 0x46, 0x04, 0xc3};  // mov eax, [rsi + 4]; ret
  Result<LoadedCode> code = load_code(blob);
  ASSERT_TRUE(code.ok()) << code.error().found;
  CuvilCall call{.abi_version = 1, .flags = 42};
  EXPECT_EQ(code->entry(1)(services(), &call), 0);
  EXPECT_EQ(code->entry(4)(services(), &call), 42);
  LoadedCode moved = std::move(*code);
  EXPECT_EQ(moved.entry(4)(services(), &call), 42);
}
#endif

std::string permissions_of(const void* p) {
  std::ifstream maps("/proc/self/maps");
  auto at = reinterpret_cast<uintptr_t>(p);
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = std::stoull(line, nullptr, 16);
    uintptr_t end = std::stoull(line.substr(line.find('-') + 1), nullptr, 16);
    if (at >= begin && at < end) return line.substr(line.find(' ') + 1, 4);
  }
  return "";
}

TEST(Loader, MapsExecutableNotWritableAndUnmaps) {
  const uint8_t blob[] = {0xc3};
  const void* at = nullptr;
  {
    Result<LoadedCode> code = load_code(blob);
    ASSERT_TRUE(code.ok());
    at = reinterpret_cast<const void*>(code->entry(0));
    EXPECT_EQ(permissions_of(at), "r-xp");
  }
  EXPECT_NE(permissions_of(at), "r-xp");
}

TEST(Scratch, AlignsNestsAndTrims) {
  Scratch s;
  auto bottom = s.mark();
  void* a = s.lease(10);
  auto mark = s.mark();
  void* b = s.lease(100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 64, 0u);
  EXPECT_EQ(static_cast<std::byte*>(b) - static_cast<std::byte*>(a), 64);
  void* big = s.lease(1 << 20);  // a chunk of its own
  ASSERT_NE(big, nullptr);
  s.release(mark);
  EXPECT_EQ(s.lease(1), b);
  s.release(mark);
  EXPECT_EQ(s.lease(1 << 20), big);  // chunks are kept
  s.release(mark);
  void* huge = s.lease(Scratch::kKeep + 1);
  ASSERT_NE(huge, nullptr);
  static_cast<char*>(huge)[Scratch::kKeep] = 1;
  EXPECT_GT(s.kept_bytes(), Scratch::kKeep);
  s.release(bottom);
  EXPECT_LE(s.kept_bytes(), Scratch::kKeep);
  EXPECT_EQ(s.lease(SIZE_MAX), nullptr);
  EXPECT_NE(s.lease(0), nullptr);
}

TEST(Services, LeasesOfACall) {
  CallState state;
  CuvilCall call{};
  call.host = &state;
  void* p = services()->lease_scratch(&call, 100, CUVIL_SCRATCH_CALL);
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0u);
  EXPECT_EQ(state.failure, CallState::Failure::kNone);
  EXPECT_EQ(services()->lease_scratch(&call, INT64_MAX / 2, CUVIL_SCRATCH_CALL), nullptr);
  EXPECT_EQ(state.failure, CallState::Failure::kOutOfMemory);
  EXPECT_EQ(state.failed_bytes, INT64_MAX / 2);
  EXPECT_EQ(services()->raise(&call, 4), 5);
}

TEST(Services, PollAsksPythonEvery50Milliseconds) {
  static int asked = 0;
  PythonHooks hooks;
  hooks.check_signals = [](CuvilCall*) -> int32_t { return ++asked == 1 ? CUVIL_SITE_PYTHON : 0; };
  set_python_hooks(hooks);
  CallState state;
  CuvilCall call{};
  call.host = &state;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(services()->poll(&call), 0);
  EXPECT_EQ(asked, 0);
  usleep(80'000);
  EXPECT_EQ(services()->poll(&call), CUVIL_SITE_PYTHON);
  EXPECT_EQ(services()->poll(&call), 0);
  EXPECT_EQ(asked, 1);
}

TEST(Gate, MissingLibraryIsNamed) {
  Result<CompileFunction> f = open_compiler("/nowhere/libcuvil_compiler.so");
  ASSERT_FALSE(f.ok());
  EXPECT_EQ(f.error().cls, ErrorClass::kInternal);
  EXPECT_NE(f.error().found.find("/nowhere/libcuvil_compiler.so"), std::string::npos);
  EXPECT_FALSE(f.error().remedy.empty());
}

TEST(Gate, ForeignLibraryIsRefused) {
  Result<CompileFunction> f = open_compiler("libm.so.6");
  ASSERT_FALSE(f.ok());
  EXPECT_NE(f.error().found.find("no compiler library"), std::string::npos);
}

TEST(Devices, CpuIsDescribed) {
  CpuDevice d = cpu_device();
  EXPECT_FALSE(d.name.empty());
  EXPECT_GE(d.cores, 1);
  EXPECT_GE(d.threads, d.cores);
  EXPECT_GT(d.memory_bytes, 1 << 20);
  EXPECT_TRUE(check_cpu().ok());
  cuda_devices();  // with or without a driver
}

}  // namespace
}  // namespace cuvil::runtime
