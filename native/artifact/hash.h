// XXH3-128 as 16 bytes in canonical order. Keys and checksums use different seeds (format.h).
#pragma once

#include <xxhash.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

namespace cuvil::artifact {

using Hash = std::array<uint8_t, 16>;

inline Hash hash128(std::span<const uint8_t> bytes, uint64_t seed) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed));
  Hash out;
  std::memcpy(out.data(), canonical.digest, out.size());
  return out;
}

}  // namespace cuvil::artifact
