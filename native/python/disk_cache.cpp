#include "python/disk_cache.h"

#include <algorithm>
#include <chrono>

#include "python/errors.h"
#include "runtime/cache.h"
#include "support/build_id.h"

namespace cuvil::python {
namespace {

std::string given_up;

}  // namespace

bool give_up(const std::string& directory, const Error& e) {
  if (std::exchange(given_up, directory) == directory) return true;
  return warn_performance(e.found +
                          "\n  compiled code is not kept for later processes\n  help: " + e.remedy);
}

std::optional<CachePlace> cache_for(const State& s, const Knobs& knobs) {
  if (!knobs.cache || !s.options.cache) return std::nullopt;
  auto directory = runtime::cache_directory(knobs.cache_dir);
  if (!directory.ok() || *directory == given_up) return std::nullopt;
  constexpr int64_t kMost = INT64_MAX >> 20;
  return CachePlace{*directory, std::min(knobs.cache_mb, kMost) << 20};
}

bool load_cached(State& s, const std::string& directory, const artifact::Hash& key, bool* added) {
  *added = false;
  if (std::find(s.looked_up.begin(), s.looked_up.end(), key) != s.looked_up.end()) return true;
  s.looked_up.push_back(key);
  auto start = std::chrono::steady_clock::now();
  auto files = runtime::read_cached(directory, key);
  if (!files.ok()) return give_up(directory, files.error());
  for (auto file = files->rbegin(); file != files->rend(); ++file) {  // the latest is tried first
    if (s.entries.size() >= State::kMaxEntries) break;
    auto e = std::make_unique<Entry>();
    e->specialisation = Specialisation::load(std::move(*file), {});
    if (!e->specialisation) {  // damaged
      PyErr_Clear();
      continue;
    }
    const auto& a = e->specialisation->artifact();
    if (a.build_id != build_id() || a.key != key || a.memory_only) continue;
    e->reason = "found in the cache";
    e->cached = true;
    e->milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    e->stages = {{"cache", e->milliseconds}};
    s.entries.push_back(std::move(e));
    *added = true;
  }
  return true;
}

}  // namespace cuvil::python
