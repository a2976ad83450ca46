// Artifact to bytes. Metadata is the fields of Artifact in the order of fields.h, each as a table:
// its length in bytes (u32), then its contents.
#include <bit>
#include <cstring>
#include <type_traits>

#include "artifact/fields.h"
#include "artifact/hash.h"
#include "artifact/layout.h"

namespace cuvil::artifact {
namespace {

static_assert(std::endian::native == std::endian::little);

class Writer {
 public:
  template <class... T> void operator()(const T&... fields) { (put(fields), ...); }
  std::vector<uint8_t> bytes;

 private:
  void raw(const void* data, size_t size) {
    auto* p = static_cast<const uint8_t*>(data);
    bytes.insert(bytes.end(), p, p + size);
  }
  template <class T>
  requires std::is_arithmetic_v<T>
  void put(T v) {
    if constexpr (std::is_same_v<T, bool>) {
      put(static_cast<uint8_t>(v));
    } else {
      raw(&v, sizeof v);
    }
  }
  template <class E>
  requires std::is_enum_v<E>
  void put(E v) { put(static_cast<std::underlying_type_t<E>>(v)); }
  void put(const std::string& s) {
    put(static_cast<uint32_t>(s.size()));
    raw(s.data(), s.size());
  }
  template <class T> void put(const std::vector<T>& items) {
    put(static_cast<uint32_t>(items.size()));
    for (const T& item : items) put(item);
  }
  template <class T, size_t N> void put(const std::array<T, N>& items) {
    for (const T& item : items) put(item);
  }
  template <class T>
  requires std::is_class_v<T>
  void put(const T& object) { visit(*this, object); }
};

struct TableWriter {
  std::vector<uint8_t> bytes;
  template <class... T> void operator()(const T&... fields) { (table(fields), ...); }
  template <class T> void table(const T& field) {
    Writer w;
    w(field);
    auto size = static_cast<uint32_t>(w.bytes.size());
    auto* p = reinterpret_cast<const uint8_t*>(&size);
    bytes.insert(bytes.end(), p, p + sizeof size);
    bytes.insert(bytes.end(), w.bytes.begin(), w.bytes.end());
  }
};

}  // namespace

std::vector<uint8_t> write_artifact(const Artifact& a) {
  TableWriter metadata;
  visit(metadata, a);

  FileHeader h{};
  h.magic = kMagic;
  h.format_version = kFormatVersion;
  h.abi_version = CUVIL_ABI_VERSION;
  h.metadata_offset = sizeof(FileHeader);
  h.metadata_size = metadata.bytes.size();
  h.blob_offset = blob_offset_after(h.metadata_size);
  h.blob_size = a.blob.size();
  h.entry_offset = h.blob_offset + a.entry_offset;
  h.device_offset = h.blob_offset + h.blob_size;
  h.device_size = a.device_image.size();
  h.file_size = h.device_offset + h.device_size;
  h.build_hash = build_hash(a.build_id);

  std::vector<uint8_t> out(h.file_size);
  auto copy = [&out](uint64_t at, const void* data, size_t size) {
    if (size) std::memcpy(out.data() + at, data, size);
  };
  copy(h.metadata_offset, metadata.bytes.data(), metadata.bytes.size());
  copy(h.blob_offset, a.blob.data(), a.blob.size());
  copy(h.device_offset, a.device_image.data(), a.device_image.size());
  h.checksum = hash128(std::span(out).subspan(sizeof h), kChecksumSeed);
  copy(0, &h, sizeof h);
  return out;
}

}  // namespace cuvil::artifact
