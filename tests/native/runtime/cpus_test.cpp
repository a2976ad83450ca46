// Quotas of control groups, read from files as systemd and containers lay them out.
#include "runtime/cpus.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace cuvil::runtime {
namespace {

namespace fs = std::filesystem;

class CpuQuota : public ::testing::Test {
 protected:
  CpuQuota() { root_ = fs::path(testing::TempDir()) / "cuvil_cgroups"; }
  ~CpuQuota() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }
  std::optional<double> quota() { return cpu_quota((root_ / "self").string(), root_.string()); }

  fs::path root_;
};

TEST_F(CpuQuota, None) {
  EXPECT_EQ(quota(), std::nullopt);
  write("self", "0::/");
  EXPECT_EQ(quota(), std::nullopt);
  write("cpu.max", "max 100000");
  EXPECT_EQ(quota(), std::nullopt);
  write("self", "nonsense");
  EXPECT_EQ(quota(), std::nullopt);
}

TEST_F(CpuQuota, OfAContainer) {
  write("self", "0::/");
  write("cpu.max", "50000 100000");
  EXPECT_EQ(quota(), 0.5);
  write("self", "0::/docker/1234");  // a name of the machine outside
  EXPECT_EQ(quota(), 0.5);
}

TEST_F(CpuQuota, SmallestOfAllAbove) {
  write("self", "0::/a.slice/b.service");
  write("a.slice/cpu.max", "150000 100000");
  write("a.slice/b.service/cpu.max", "max 100000");
  EXPECT_EQ(quota(), 1.5);
  write("a.slice/b.service/cpu.max", "20000 10000");
  EXPECT_EQ(quota(), 1.5);
}

TEST_F(CpuQuota, Version1) {
  write("self", "9:memory:/m\n4:cpu,cpuacct:/docker/1\n0::/");
  write("cpu/docker/1/cpu.cfs_quota_us", "-1");
  write("cpu/docker/1/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota(), std::nullopt);
  write("cpu/docker/1/cpu.cfs_quota_us", "250000");
  EXPECT_EQ(quota(), 2.5);
}

TEST_F(CpuQuota, OnlyOfTheCpuController) {
  write("self", "4:cpuset,cpuacct:/x");
  write("cpu/x/cpu.cfs_quota_us", "100000");
  write("cpu/x/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota(), std::nullopt);
}

TEST(Cpus, AtLeastOne) {
  EXPECT_FALSE(allowed_cpus().empty());
  EXPECT_GE(useful_threads(), 1);
  EXPECT_LE(useful_threads(), static_cast<int>(allowed_cpus().size()));
}

}  // namespace
}  // namespace cuvil::runtime
