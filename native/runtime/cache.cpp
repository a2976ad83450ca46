#include "runtime/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <tuple>
#include <utility>

#include "artifact/format.h"

namespace cuvil::runtime {
namespace {

constexpr std::string_view kSuffix = ".cuvil", kTemporary = ".writing-";
constexpr uint64_t kLargestFile = uint64_t{1} << 28;
constexpr time_t kTouchAfter = 600;       // seconds: how exact "latest used" is
constexpr time_t kAbandonedAfter = 3600;  // a temporary file this old has no writer

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }

 private:
  int fd_;
};

struct CloseDir {
  void operator()(DIR* d) const { closedir(d); }
};
using Dir = std::unique_ptr<DIR, CloseDir>;

Error unusable(const std::string& path, const std::string& why) {
  return make_error(ErrorClass::kCache, "the cache directory " + path + " cannot be used: " + why,
                    "set CUVIL_CACHE_DIR to a directory of your own, or CUVIL_CACHE=0");
}

std::string hex(const artifact::Hash& h) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string s;
  for (uint8_t b : h) {
    s += kDigits[b >> 4];
    s += kDigits[b & 15];
  }
  return s;
}

bool is_hex(std::string_view s) {
  return s.size() == 32 && s.find_first_not_of("0123456789abcdef") == s.npos;
}
bool is_artifact_name(std::string_view s) {
  return s.ends_with(kSuffix) && is_hex(s.substr(0, s.size() - kSuffix.size()));
}

// Why something cannot be trusted; empty if it can.
std::string distrust(const struct stat& st, mode_t kind) {
  if ((st.st_mode & S_IFMT) != kind)
    return kind == S_IFDIR ? "it is no directory" : "it is no file";
  if (st.st_uid != geteuid()) return "it belongs to another user";
  if (st.st_mode & (S_IWGRP | S_IWOTH)) return "others may write to it (chmod go-w)";
  return {};
}

// A directory of ours; `at` is AT_FDCWD for the cache itself, which may be a link.
// `missing`: set if there is none, which a sweep in another process may have brought about.
Result<Fd> open_directory(int at, const std::string& name, const std::string& shown,
                          bool* missing = nullptr) {
  int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (at == AT_FDCWD ? 0 : O_NOFOLLOW);
  Fd fd(openat(at, name.c_str(), flags));
  if (!fd.ok()) {
    if (missing) *missing = errno == ENOENT;
    return unusable(shown, std::strerror(errno));
  }
  struct stat st {};
  if (fstat(fd.get(), &st) != 0) return unusable(shown, std::strerror(errno));
  if (std::string why = distrust(st, S_IFDIR); !why.empty()) return unusable(shown, why);
  return fd;
}

Result<> make_directories(const std::string& path) {
  for (size_t at = 1; at != path.npos;) {
    at = path.find('/', at);
    std::string part = path.substr(0, at);
    if (mkdir(part.c_str(), 0700) != 0) {
      int why = errno;
      struct stat st {};  // a parent that exists on a read-only file system is no fault
      const bool there = stat(part.c_str(), &st) == 0;
      if (!there && lstat(part.c_str(), &st) == 0 && S_ISLNK(st.st_mode))
        return unusable(path, part + " is a link to nothing");
      if (why != EEXIST && why != EISDIR && !(there && S_ISDIR(st.st_mode)))
        return unusable(path, std::strerror(why));
    }
    if (at != path.npos) ++at;
  }
  return Ok{};
}

// Entries of a directory, without "." and "..".
std::vector<std::string> entries(int directory) {
  std::vector<std::string> out;
  int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return out;
  Dir d(fdopendir(copy));
  if (!d) {
    close(copy);
    return out;
  }
  while (const dirent* e = readdir(d.get())) {
    std::string_view name = e->d_name;
    if (name != "." && name != "..") out.emplace_back(name);
  }
  return out;
}

bool read_at(int fd, void* out, size_t size, size_t offset) {
  for (size_t at = 0; at < size;) {
    ssize_t n =
        pread(fd, static_cast<uint8_t*>(out) + at, size - at, static_cast<off_t>(offset + at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<size_t>(n);
  }
  return true;
}

std::optional<std::vector<uint8_t>> read_file(int directory, const std::string& name) {
  Fd fd(openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat st {};
  if (!fd.ok() || fstat(fd.get(), &st) != 0 || !distrust(st, S_IFREG).empty()) return std::nullopt;
  artifact::FileHeader header;
  const auto size = static_cast<uint64_t>(st.st_size);
  if (size > kLargestFile || !read_at(fd.get(), &header, sizeof header, 0) ||
      !artifact::check_header(header, size).ok())
    return std::nullopt;  // before there is memory for all of it
  std::vector<uint8_t> bytes(size);
  std::memcpy(bytes.data(), &header, sizeof header);
  if (!read_at(fd.get(), bytes.data() + sizeof header, size - sizeof header, sizeof header))
    return std::nullopt;
  time_t now = time(nullptr);
  if (now - st.st_mtime > kTouchAfter || st.st_mtime - now > kTouchAfter)
    futimens(fd.get(), nullptr);
  return bytes;
}

bool write_all(int fd, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return true;
}

// One attempt; an errno, or 0.
int publish(int root, const std::string& key, const std::string& name,
            std::span<const uint8_t> bytes) {
  if (mkdirat(root, key.c_str(), 0700) != 0 && errno != EEXIST) return errno;
  bool missing = false;
  auto directory = open_directory(root, key, key, &missing);
  if (!directory.ok()) return missing ? ENOENT : EPERM;
  static std::atomic<unsigned> counter{0};
  std::string temporary = std::string(kTemporary) + std::to_string(getpid()) + "-" +
                          std::to_string(counter++) + "-" + name.substr(0, 16);
  Fd fd(openat(directory->get(), temporary.c_str(),
               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.ok()) return errno;
  int failed = 0;
  if (!write_all(fd.get(), bytes) ||
      renameat(directory->get(), temporary.c_str(), directory->get(), name.c_str()) != 0)
    failed = errno ? errno : EIO;
  if (failed) unlinkat(directory->get(), temporary.c_str(), 0);
  return failed;
}

// Everything under the cache; `visit` gets each directory of a key.
template <class Visit> void each_key(int root, Visit&& visit) {
  for (const std::string& key : entries(root)) {
    if (!is_hex(key)) continue;
    auto directory = open_directory(root, key, key);
    if (directory.ok()) visit(key, directory->get());
  }
}

// Paths are relative to the cache.
std::vector<CachedFile> find_all(int root) {
  std::vector<CachedFile> out;
  each_key(root, [&](const std::string& key, int directory) {
    for (const std::string& name : entries(directory)) {
      struct stat st {};
      if (!is_artifact_name(name) ||
          fstatat(directory, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0)
        continue;
      out.push_back({key, key + "/" + name, st.st_size, st.st_mtime});
    }
  });
  std::sort(out.begin(), out.end(), [](const CachedFile& a, const CachedFile& b) {
    return std::tie(b.used, b.path) < std::tie(a.used, a.path);
  });
  return out;
}

}  // namespace

Result<std::string> cache_directory(const std::string& given) {
  if (!given.empty()) return given;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && xdg[0] == '/')
    return std::string(xdg) + "/cuvil";
  if (const char* home = std::getenv("HOME"); home && home[0] == '/')
    return std::string(home) + "/.cache/cuvil";
  passwd entry{}, *found = nullptr;
  std::vector<char> buffer(4096);
  if (getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found &&
      found->pw_dir && found->pw_dir[0] == '/')
    return std::string(found->pw_dir) + "/.cache/cuvil";
  return make_error(ErrorClass::kCache, "there is no home directory to keep compiled code in",
                    "set CUVIL_CACHE_DIR to a directory of your own, or CUVIL_CACHE=0");
}

Result<std::vector<std::vector<uint8_t>>> read_cached(const std::string& directory,
                                                      const artifact::Hash& key, size_t limit) {
  std::vector<std::vector<uint8_t>> out;
  const std::string name = hex(key);
  bool missing = false;
  auto root = open_directory(AT_FDCWD, directory, directory, &missing);
  if (missing) return out;
  if (!root.ok()) return root.error();
  auto files = open_directory(root->get(), name, directory + "/" + name, &missing);
  if (missing) return out;
  if (!files.ok()) return files.error();
  std::vector<std::pair<time_t, std::string>> found;
  for (std::string& file : entries(files->get())) {
    struct stat st {};
    if (!is_artifact_name(file) ||
        fstatat(files->get(), file.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    found.emplace_back(-st.st_mtime, std::move(file));
  }
  std::sort(found.begin(), found.end());
  for (const auto& [used, file] : found) {
    if (out.size() >= limit) break;
    if (auto bytes = read_file(files->get(), file)) out.push_back(std::move(*bytes));
  }
  return out;
}

Result<> write_cached(const std::string& directory, const artifact::Hash& key,
                      std::span<const uint8_t> bytes, int64_t max_bytes) {
  std::string name = hex(artifact::hash128(bytes, artifact::kChecksumSeed)) + std::string(kSuffix);
  int failed = ENOENT;
  for (int attempt = 0; attempt < 20 && failed == ENOENT; ++attempt) {  // swept meanwhile
    bool missing = false;
    auto root = open_directory(AT_FDCWD, directory, directory, &missing);
    if (missing) {
      CUVIL_CHECK(make_directories(directory));
      continue;
    }
    if (!root.ok()) return root.error();
    failed = publish(root->get(), hex(key), name, bytes);
  }
  if (failed == ENOENT) return Ok{};  // someone clears without end: kept or not, nothing is wrong
  if (failed) return unusable(directory, std::strerror(failed));
  static std::atomic<unsigned> written{0};
  if (written++ % 64 == 0) sweep_cached(directory, max_bytes);
  return Ok{};
}

std::vector<CachedFile> list_cached(const std::string& directory) {
  std::vector<CachedFile> out;
  auto root = open_directory(AT_FDCWD, directory, directory);
  if (!root.ok()) return out;
  out = find_all(root->get());
  for (CachedFile& f : out) f.path = directory + "/" + f.path;
  return out;
}

Result<int64_t> clear_cached(const std::string& directory) {
  int64_t removed = 0;
  bool missing = false;
  auto root = open_directory(AT_FDCWD, directory, directory, &missing);
  if (missing) return removed;
  if (!root.ok()) return root.error();
  each_key(root->get(), [&](const std::string& key, int files) {
    for (const std::string& name : entries(files)) {
      bool ours = is_artifact_name(name);
      if (!ours && !name.starts_with(kTemporary)) continue;
      if (unlinkat(files, name.c_str(), 0) == 0 && ours) ++removed;
    }
    unlinkat(root->get(), key.c_str(), AT_REMOVEDIR);
  });
  return removed;
}

int64_t sweep_cached(const std::string& directory, int64_t max_bytes) {
  auto root = open_directory(AT_FDCWD, directory, directory);
  if (!root.ok()) return 0;
  time_t now = time(nullptr);
  each_key(root->get(), [&](const std::string&, int files) {
    for (const std::string& name : entries(files)) {
      struct stat st {};
      if (name.starts_with(kTemporary) &&
          fstatat(files, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
          now - st.st_mtime > kAbandonedAfter)
        unlinkat(files, name.c_str(), 0);
    }
  });
  std::vector<CachedFile> all = find_all(root->get());
  int64_t total = 0, removed = 0;
  for (const CachedFile& f : all) total += f.bytes;
  if (total <= max_bytes) return 0;
  for (size_t i = all.size(); i-- > 0 && total > max_bytes / 10 * 9;) {
    if (unlinkat(root->get(), all[i].path.c_str(), 0) != 0) continue;
    unlinkat(root->get(), all[i].key.c_str(), AT_REMOVEDIR);  // if that was the last
    total -= all[i].bytes;
    ++removed;
  }
  cache_counters().evictions += removed;
  return removed;
}

CacheCounters& cache_counters() {
  static CacheCounters counters;
  return counters;
}

}  // namespace cuvil::runtime
