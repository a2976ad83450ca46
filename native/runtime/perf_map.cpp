#include "runtime/perf_map.h"

#include <fcntl.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>

#include "support/knobs.h"

namespace cuvil::runtime {

void note_in_perf_map(const void* base, std::span<const artifact::CodeSymbol> symbols) {
  auto knobs = read_knobs();
  if (!knobs.ok() || !knobs->perf || symbols.empty()) return;
  // https://github.com/torvalds/linux/blob/master/tools/perf/Documentation/jit-interface.txt
  std::string lines;
  char numbers[64];
  for (const artifact::CodeSymbol& s : symbols) {
    std::snprintf(numbers, sizeof numbers, "%" PRIx64 " %" PRIx64 " ",
                  reinterpret_cast<uint64_t>(base) + s.offset, s.size);
    lines += numbers + s.name + "\n";
  }
  const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  // Not through a link that someone else put there.
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = write(file, lines.data(), lines.size());
  close(file);
}

}  // namespace cuvil::runtime
