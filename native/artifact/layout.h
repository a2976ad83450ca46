// Positions in an artifact file, shared by writer and reader.
#pragma once

#include <string_view>

#include "artifact/abi.h"
#include "artifact/format.h"
#include "artifact/hash.h"

namespace cuvil::artifact {

inline constexpr std::array<char, 8> kMagic = {'C', 'U', 'V', 'I', 'L', 'A', 'R', 'T'};

inline uint64_t blob_offset_after(uint64_t metadata_size) {
  return (sizeof(FileHeader) + metadata_size + kBlobAlignment - 1) / kBlobAlignment *
         kBlobAlignment;
}

inline Hash build_hash(std::string_view build_id) {
  return hash128({reinterpret_cast<const uint8_t*>(build_id.data()), build_id.size()}, kKeySeed);
}

}  // namespace cuvil::artifact
