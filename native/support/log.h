// Lines on standard error for CUVIL_LOG=info and debug. From any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support/knobs.h"

namespace cuvil {

// What the environment asks for now.
Knobs::Level log_level();

// "cuvil: <text>"
void log(const std::string& text);
// "cuvil: <what> in 3.2 ms (trace 1.20, schedule 0.11, ...)"
void log_stages(const std::string& what, const std::vector<std::pair<std::string, double>>& stages);

}  // namespace cuvil
