#include "support/dtype.h"

namespace cuvil {
namespace {

constexpr std::string_view numpy_name(std::string_view cir) {
  constexpr std::string_view kPairs[][2] = {
      {"bool", "bool"},   {"i8", "int8"},       {"i16", "int16"},      {"i32", "int32"},
      {"i64", "int64"},   {"u8", "uint8"},      {"u16", "uint16"},     {"u32", "uint32"},
      {"u64", "uint64"},  {"f16", "float16"},   {"bf16", "bfloat16"},  {"f32", "float32"},
      {"f64", "float64"}, {"c64", "complex64"}, {"c128", "complex128"}};
  for (const auto& p : kPairs)
    if (p[0] == cir) return p[1];
  return {};
}

constexpr DTypeInfo kInfo[] = {
#define CUVIL_DTYPE(id, name, size, chr, kind) {name, numpy_name(name), size, chr, kind},
#include "support/dtypes.def"
#undef CUVIL_DTYPE
};

}  // namespace

const DTypeInfo& info(DType t) { return kInfo[static_cast<size_t>(t)]; }

bool parse_dtype(std::string_view name, DType* out) {
  for (size_t i = 0; i < sizeof kInfo / sizeof kInfo[0]; ++i) {
    if (kInfo[i].name != name) continue;
    *out = static_cast<DType>(i);
    return true;
  }
  return false;
}

}  // namespace cuvil
