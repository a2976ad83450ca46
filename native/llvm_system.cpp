// What LLVM's libraries reference of the system and Cuvil does not take from there. Linked after LLVM
// (llvm.cmake), hidden like all the rest.
//
// zlib, zstd: they only compress debug sections and profiles, which Cuvil never asks for, and as
// libraries to load they cost 0.1 ms each of every dlopen. So compression fails, as it may.
// arc4random: needs glibc 2.36, and the floor is 2.35. It seeds names of temporary files.
#include <sys/random.h>

#include <cstddef>
#include <cstdint>

extern "C" {

// zlib: Z_STREAM_ERROR.
int compress2(uint8_t*, unsigned long*, const uint8_t*, unsigned long, int) { return -2; }
int uncompress(uint8_t*, unsigned long*, const uint8_t*, unsigned long) { return -2; }
unsigned long compressBound(unsigned long size) { return size; }

unsigned long crc32(unsigned long crc, const uint8_t* data, unsigned size) {
  uint32_t rest = ~static_cast<uint32_t>(crc);
  for (unsigned i = 0; i < size; ++i) {
    rest ^= data[i];
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ (0xEDB88320u & (0u - (rest & 1)));
  }
  return static_cast<uint32_t>(~rest);
}

// zstd: every size is the code of a generic error.
void* ZSTD_createCCtx() { return nullptr; }
size_t ZSTD_freeCCtx(void*) { return 0; }
size_t ZSTD_CCtx_setParameter(void*, int, int) { return static_cast<size_t>(-1); }
size_t ZSTD_compress2(void*, void*, size_t, const void*, size_t) { return static_cast<size_t>(-1); }
size_t ZSTD_compressBound(size_t size) { return size; }
size_t ZSTD_decompress(void*, size_t, const void*, size_t) { return static_cast<size_t>(-1); }
unsigned ZSTD_isError(size_t code) { return code == static_cast<size_t>(-1); }
const char* ZSTD_getErrorName(size_t) { return "compression is not built in"; }

uint32_t arc4random() {
  uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != sizeof value) {}
  return value;
}

}  // extern "C"
