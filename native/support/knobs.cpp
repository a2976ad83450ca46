#include "support/knobs.h"

#include <charconv>
#include <cstdlib>

namespace cuvil {
namespace {

bool parse(std::string_view text, bool* out) {
  if (text != "0" && text != "1") return false;
  *out = text == "1";
  return true;
}

bool parse(std::string_view text, int64_t* out) {
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return failed == std::errc() && end == text.data() + text.size() && *out >= 1;
}

bool parse(std::string_view text, Knobs::Dump* out) {
  *out = text == "all" ? Knobs::Dump::kAll
         : text == "1" ? Knobs::Dump::kGraph
                       : Knobs::Dump::kNothing;
  return text == "0" || text == "1" || text == "all";
}

bool parse(std::string_view text, Knobs::Interpret* out) {
  *out = text == "0"   ? Knobs::Interpret::kNever
         : text == "1" ? Knobs::Interpret::kAlways
                       : Knobs::Interpret::kAuto;
  return text == "0" || text == "1" || text == "auto";
}

bool parse(std::string_view text, Knobs::Level* out) {
  *out = text == "debug"  ? Knobs::Level::kDebug
         : text == "info" ? Knobs::Level::kInfo
                          : Knobs::Level::kWarning;
  return text == "debug" || text == "info" || text == "warning";
}

bool parse(std::string_view text, std::string* out) {
  *out = text;
  return true;
}

template <class T> Result<> read(const char* variable, const char* remedy, T* out) {
  const char* text = std::getenv(variable);
  if (!text || !*text || parse(text, out)) return Ok{};
  return make_error(ErrorClass::kValueError,
                    "the environment variable " + std::string(variable) + " is '" + text + "'",
                    remedy);
}

constexpr const char* kFlagRemedy = "set it to 0 or 1";
constexpr const char* kCountRemedy = "set it to an int of at least 1";
constexpr const char* kDumpRemedy = "set it to 0, 1 or all";
constexpr const char* kInterpretRemedy = "set it to 0, 1 or auto";
constexpr const char* kLevelRemedy = "set it to debug, info or warning";
constexpr const char* kTextRemedy = "";

constexpr KnobInfo kKnobs[] = {
#define CUVIL_KNOB(field, variable, type, initial, help) {variable, #type, help},
#include "support/knobs.def"
#undef CUVIL_KNOB
};

}  // namespace

Result<Knobs> read_knobs() {
  Knobs k;
#define CUVIL_KNOB(field, variable, type, initial, help) \
  CUVIL_CHECK(read(variable, k##type##Remedy, &k.field));
#include "support/knobs.def"
#undef CUVIL_KNOB
  return k;
}

std::span<const KnobInfo> all_knobs() { return kKnobs; }

}  // namespace cuvil
