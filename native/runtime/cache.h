// The artifact cache on disk: where it lies, look-up, publication, eviction. Used by python/dispatch.
//
//   <directory>/<key, 32 hex digits>/<checksum, 32 hex digits>.cuvil     one immutable file an artifact
//
// The key says what was compiled for which kinds of argument; the files of a key are its
// specialisations. A file appears by rename and is never changed, so that any number of processes may
// read, write and sweep at once without a lock. Code is executed from here, so a directory or file
// that others may write is refused. Whatever is wrong with a file makes it a miss.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "artifact/hash.h"
#include "support/error.h"

namespace cuvil::runtime {

// The directory to use: `given`, else $XDG_CACHE_HOME/cuvil, else ~/.cache/cuvil. Makes nothing.
// A CacheError if there is no home directory.
Result<std::string> cache_directory(const std::string& given);

// The bytes of all files of a key, the latest used first; at most `limit`. They are as found: the
// caller checks them. A CacheError if the directory is there but not to be trusted.
Result<std::vector<std::vector<uint8_t>>> read_cached(const std::string& directory,
                                                      const artifact::Hash& key, size_t limit = 64);

// Publishes an artifact, making the directory if need be. Sweeps now and then: the files not used
// for the longest time go until at most `max_bytes` are left. A CacheError says why it is not kept.
Result<> write_cached(const std::string& directory, const artifact::Hash& key,
                      std::span<const uint8_t> bytes, int64_t max_bytes);

struct CachedFile {
  std::string key, path;
  int64_t bytes = 0;
  int64_t used = 0;  // seconds since the epoch
};
// All files, the latest used first. Empty if there is no directory.
std::vector<CachedFile> list_cached(const std::string& directory);

// Removes the files that this cache made, and its directories if they are empty then. How many files.
Result<int64_t> clear_cached(const std::string& directory);

// Removes what is over `max_bytes`, and left-overs of writers that died. How many files of artifacts.
int64_t sweep_cached(const std::string& directory, int64_t max_bytes);

// Of this process.
struct CacheCounters {
  std::atomic<int64_t> hits{0}, misses{0}, evictions{0};
};
CacheCounters& cache_counters();

}  // namespace cuvil::runtime
