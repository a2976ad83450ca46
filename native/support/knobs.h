// Environment variables (knobs.def), read and checked in one place. Used by the hot side.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "support/error.h"

namespace cuvil {

struct Knobs {
  using Flag = bool;
  using Count = int64_t;
  using Text = std::string;
  enum class Dump : uint8_t { kNothing, kGraph, kAll };
  enum class Interpret : uint8_t { kNever, kAlways, kAuto };
  enum class Level : uint8_t { kWarning, kInfo, kDebug };
#define CUVIL_KNOB(field, variable, type, initial, help) type field = initial;
#include "support/knobs.def"
#undef CUVIL_KNOB
};

// The values as they are now; a ValueError naming the variable if one does not parse.
Result<Knobs> read_knobs();

struct KnobInfo {
  std::string_view variable, type, help;
};
std::span<const KnobInfo> all_knobs();

}  // namespace cuvil
