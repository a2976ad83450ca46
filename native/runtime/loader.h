// Executable memory for the blob of an artifact. Used by python/specialisation.
#pragma once

#include <cstdint>
#include <span>

#include "artifact/abi.h"
#include "support/error.h"

namespace cuvil::runtime {

// Owns a mapping that holds a blob; unmapped on destruction.
class LoadedCode {
 public:
  LoadedCode() = default;
  LoadedCode(LoadedCode&& o) noexcept;
  LoadedCode& operator=(LoadedCode&& o) noexcept;
  ~LoadedCode();

  CuvilEntry entry(uint64_t offset) const {
    return reinterpret_cast<CuvilEntry>(static_cast<uint8_t*>(base_) + offset);
  }
  const void* base() const { return base_; }
  size_t mapped_bytes() const { return size_; }

 private:
  friend Result<LoadedCode> load_code(std::span<const uint8_t> blob);
  LoadedCode(void* base, size_t size) : base_(base), size_(size) {}
  void* base_ = nullptr;
  size_t size_ = 0;
};

// Copies the blob into fresh pages, which are never writable and executable at once.
Result<LoadedCode> load_code(std::span<const uint8_t> blob);

}  // namespace cuvil::runtime
