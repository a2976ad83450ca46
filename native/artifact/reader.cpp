// Bytes to artifact. Trusts nothing: sizes before reads, enumerators, nesting, checksum, ranges.
#include <bit>
#include <cstring>
#include <type_traits>

#include "artifact/fields.h"
#include "artifact/layout.h"
#include "artifact/validate.h"

namespace cuvil::artifact {
namespace {

class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : rest_(bytes) {}
  bool ok() const { return ok_; }
  bool done() const { return ok_ && rest_.empty(); }

  template <class... T> void operator()(T&... fields) { (get(fields), ...); }
  std::span<const uint8_t> take(size_t size) {
    if (!ok_ || size > rest_.size()) {
      ok_ = false;
      return {};
    }
    auto out = rest_.first(size);
    rest_ = rest_.subspan(size);
    return out;
  }

 private:
  template <class T>
  requires std::is_arithmetic_v<T>
  void get(T& v) {
    if constexpr (std::is_same_v<T, bool>) {
      uint8_t byte = 0;
      get(byte);
      if (byte > 1) ok_ = false;
      v = byte == 1;
    } else if (auto bytes = take(sizeof v); ok_) {
      std::memcpy(&v, bytes.data(), sizeof v);
    }
  }
  template <class E>
  requires std::is_enum_v<E>
  void get(E& v) {
    static_assert(kEnumCount<E> > 0, "a row in fields.h is missing");
    std::underlying_type_t<E> n = 0;
    get(n);
    if (n >= kEnumCount<E>) {
      ok_ = false;
    } else {
      v = static_cast<E>(n);
    }
  }
  void get(std::string& s) {
    uint32_t size = 0;
    get(size);
    auto bytes = take(size);
    s.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  // Not reserved ahead: a hostile count ends with the bytes, not with the memory.
  template <class T> void get(std::vector<T>& items) {
    uint32_t count = 0;
    get(count);
    if (count > rest_.size()) ok_ = false;
    if (depth_ >= kMaxNesting) ok_ = false;
    ++depth_;
    for (uint32_t i = 0; ok_ && i < count; ++i) get(items.emplace_back());
    --depth_;
  }
  template <class T, size_t N> void get(std::array<T, N>& items) {
    for (T& item : items) get(item);
  }
  template <class T>
  requires std::is_class_v<T>
  void get(T& object) { visit(*this, object); }

  std::span<const uint8_t> rest_;
  size_t depth_ = 0;
  bool ok_ = true;
};

struct TableReader {
  Reader in;
  bool ok = true;
  template <class... T> void operator()(T&... fields) { (table(fields), ...); }
  template <class T> void table(T& field) {
    uint32_t size = 0;
    in(size);
    Reader contents(in.take(size));
    contents(field);
    ok = ok && in.ok() && contents.done();
  }
};

Error damaged(const char* what) {
  return make_error(ErrorClass::kCache, std::string("not a usable artifact: ") + what,
                    "compile the function again");
}

}  // namespace

Result<> check_header(const FileHeader& h, uint64_t size) {
  if (h.magic != kMagic) return damaged("its first bytes are not those of an artifact");
  if (h.format_version != kFormatVersion || h.abi_version != CUVIL_ABI_VERSION)
    return damaged("it was written by another version of Cuvil");
  // Written without overflow: every summand is bounded by the one checked before it.
  bool fits = h.file_size == size && h.metadata_offset == sizeof h && h.metadata_size < size &&
              h.blob_offset == blob_offset_after(h.metadata_size) && h.blob_offset <= size &&
              h.blob_size <= size - h.blob_offset &&
              h.device_offset == h.blob_offset + h.blob_size &&
              h.device_size == size - h.device_offset && h.entry_offset >= h.blob_offset &&
              h.entry_offset < h.device_offset && h.reserved == decltype(h.reserved){};
  if (!fits) return damaged("its sections do not fit its size");
  return Ok{};
}

Result<Artifact> read_artifact(std::span<const uint8_t> bytes) {
  FileHeader h;
  if (bytes.size() < sizeof h) return damaged("it is shorter than a header");
  std::memcpy(&h, bytes.data(), sizeof h);
  CUVIL_CHECK(check_header(h, bytes.size()));
  if (hash128(bytes.subspan(sizeof h), kChecksumSeed) != h.checksum)
    return damaged("its checksum is wrong");

  Artifact a;
  TableReader tables{Reader(bytes.subspan(h.metadata_offset, h.metadata_size))};
  visit(tables, a);
  if (!tables.ok || !tables.in.done()) return damaged("its tables do not fit");
  if (h.build_hash != build_hash(a.build_id)) return damaged("its header names another build");
  if (h.entry_offset != h.blob_offset + a.entry_offset)
    return damaged("its header names another entry");
  CUVIL_CHECK(validate(a, h.blob_size));
  auto image = bytes.subspan(h.device_offset, h.device_size);
  a.device_image.assign(image.begin(), image.end());
  return a;
}

std::span<const uint8_t> blob_of(std::span<const uint8_t> bytes) {
  FileHeader h;
  std::memcpy(&h, bytes.data(), sizeof h);
  return bytes.subspan(h.blob_offset, h.blob_size);
}

}  // namespace cuvil::artifact
