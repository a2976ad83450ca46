// Element types, shared by both shared objects (signatures, artifacts, IR).
#pragma once

#include <cstdint>
#include <string_view>

namespace cuvil {

enum class DType : uint8_t {
#define CUVIL_DTYPE(id, name, size, chr, kind) id,
#include "support/dtypes.def"
#undef CUVIL_DTYPE
};

struct DTypeInfo {
  std::string_view name;        // CIR spelling: "f32"
  std::string_view numpy_name;  // NumPy spelling: "float32"
  uint8_t size;                 // bytes
  char numpy_char;              // NumPy's type character on LP64 ('l' is int64)
  char kind;                    // b i u f c
};

const DTypeInfo& info(DType t);
inline uint8_t size_of(DType t) { return info(t).size; }
inline bool is_bool(DType t) { return t == DType::kBool; }
inline bool is_signed(DType t) { return info(t).kind == 'i'; }
inline bool is_unsigned(DType t) { return info(t).kind == 'u'; }
inline bool is_int(DType t) { return is_signed(t) || is_unsigned(t); }
inline bool is_float(DType t) { return info(t).kind == 'f'; }
inline bool is_complex(DType t) { return info(t).kind == 'c'; }
// False if no dtype is spelled so. Accepts CIR names only.
bool parse_dtype(std::string_view name, DType* out);

}  // namespace cuvil
