#include "runtime/loader.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace cuvil::runtime {
namespace {

Error refused(const char* what) {
  return make_error(
      ErrorClass::kInternal,
      std::string("the system refused ") + what + " for compiled code: " + std::strerror(errno),
      "check memory limits, and policies that forbid executable memory (SELinux execmem)");
}

}  // namespace

LoadedCode::LoadedCode(LoadedCode&& o) noexcept
    : base_(std::exchange(o.base_, nullptr)), size_(std::exchange(o.size_, 0)) {}

LoadedCode& LoadedCode::operator=(LoadedCode&& o) noexcept {
  std::swap(base_, o.base_);
  std::swap(size_, o.size_);
  return *this;
}

LoadedCode::~LoadedCode() {
  if (base_) munmap(base_, size_);
}

Result<LoadedCode> load_code(std::span<const uint8_t> blob) {
  constexpr size_t kPage = 4096;
  size_t size = (blob.size() + kPage - 1) / kPage * kPage;
  void* base = mmap(nullptr, size ? size : kPage, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return refused("memory");
  LoadedCode code(base, size ? size : kPage);
  std::memcpy(base, blob.data(), blob.size());
  if (mprotect(base, code.size_, PROT_READ | PROT_EXEC) != 0)
    return refused("permission to execute");
  __builtin___clear_cache(static_cast<char*>(base), static_cast<char*>(base) + code.size_);
  return code;
}

}  // namespace cuvil::runtime
