#include "runtime/cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "artifact/format.h"

namespace cuvil::runtime {
namespace {

namespace fs = std::filesystem;

class Cache : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/cuvil-cache-test-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory = name + "/cache";
  }
  void TearDown() override { fs::remove_all(fs::path(directory).parent_path()); }
  // An artifact with a blob of n times the same byte.
  static std::vector<uint8_t> bytes(uint8_t fill, size_t n = 1000) {
    artifact::Artifact a;
    a.blob.assign(n, fill);
    return artifact::write_artifact(a);
  }
  static bool is_whole(const std::vector<uint8_t>& file, size_t n) {
    auto blob = artifact::blob_of(file);
    return blob.size() == n && file == bytes(blob[0], n);
  }
  static artifact::Hash key(uint8_t k) { return {k}; }
  std::string directory;
};

TEST_F(Cache, ReadsWhatWasWritten) {
  auto none = read_cached(directory, key(1));
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->empty());
  EXPECT_FALSE(fs::exists(directory));  // looking makes nothing
  ASSERT_TRUE(write_cached(directory, key(1), bytes(7), 1 << 20).ok());
  ASSERT_TRUE(write_cached(directory, key(1), bytes(8), 1 << 20).ok());
  ASSERT_TRUE(write_cached(directory, key(1), bytes(8), 1 << 20).ok());  // the same again
  auto found = read_cached(directory, key(1));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->size(), 2u);
  EXPECT_EQ(read_cached(directory, key(1), 1)->size(), 1u);
  EXPECT_TRUE(read_cached(directory, key(2))->empty());
  EXPECT_EQ(list_cached(directory).size(), 2u);
  EXPECT_EQ(*clear_cached(directory), 2);
  EXPECT_TRUE(list_cached(directory).empty());
}

TEST_F(Cache, TakesTheSameArgumentsAsManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (uint8_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (uint8_t k = 0; k < 30; ++k) {
        if (!write_cached(directory, key(k % 3), bytes(static_cast<uint8_t>(k + t), 5000), 40'000)
                 .ok())
          ++failed;
        auto found = read_cached(directory, key(k % 3));
        if (!found.ok()) {
          ++failed;
          continue;
        }
        for (const auto& f : *found)
          if (!is_whole(f, 5000)) ++failed;
        if (k % 10 == 9) sweep_cached(directory, 20'000);
        if (k % 15 == 14 && !clear_cached(directory).ok()) ++failed;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(failed, 0);
  sweep_cached(directory, 20'000);
  int64_t total = 0;
  for (const auto& f : list_cached(directory)) total += f.bytes;
  EXPECT_LE(total, 20'000);
  for (const auto& e : fs::recursive_directory_iterator(directory))
    EXPECT_TRUE(e.is_directory() || e.path().extension() == ".cuvil") << e.path();
}

TEST_F(Cache, RefusesWhatOthersMayWrite) {
  ASSERT_TRUE(write_cached(directory, key(1), bytes(7), 1 << 20).ok());
  chmod(directory.c_str(), 0720);
  auto found = read_cached(directory, key(1));
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().found.find("others may write"), std::string::npos);
  EXPECT_FALSE(write_cached(directory, key(1), bytes(8), 1 << 20).ok());
  EXPECT_FALSE(clear_cached(directory).ok());
}

TEST_F(Cache, DirectoryFromTheEnvironment) {
  EXPECT_EQ(*cache_directory("/given"), "/given");
  setenv("XDG_CACHE_HOME", "/xdg", 1);
  EXPECT_EQ(*cache_directory(""), "/xdg/cuvil");
  setenv("XDG_CACHE_HOME", "relative", 1);  // to be ignored, says the specification
  setenv("HOME", "/home/me", 1);
  EXPECT_EQ(*cache_directory(""), "/home/me/.cache/cuvil");
  unsetenv("HOME");
  unsetenv("XDG_CACHE_HOME");
  auto found = cache_directory("");
  EXPECT_TRUE(!found.ok() || found->ends_with("/.cache/cuvil"));
}

}  // namespace
}  // namespace cuvil::runtime
