#include "support/log.h"

#include <cstdio>

namespace cuvil {

Knobs::Level log_level() {
  auto knobs = read_knobs();
  return knobs.ok() ? knobs->log : Knobs::Level::kWarning;  // bad values raise elsewhere
}

void log(const std::string& text) { std::fprintf(stderr, "cuvil: %s\n", text.c_str()); }

void log_stages(const std::string& what,
                const std::vector<std::pair<std::string, double>>& stages) {
  double sum = 0;
  std::string list;
  char text[96];
  for (const auto& [name, ms] : stages) {
    sum += ms;
    std::snprintf(text, sizeof text, "%s%s %.2f", list.empty() ? "" : ", ", name.c_str(), ms);
    list += text;
  }
  std::snprintf(text, sizeof text, " in %.2f ms (", sum);
  log(what + text + list + ")");
}

}  // namespace cuvil
