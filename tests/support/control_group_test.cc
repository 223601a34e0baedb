#include "collage/support/control_group.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace collage {
namespace {

namespace fs = std::filesystem;

/// A root directory with what the kernel writes.
class ControlGroupTest : public testing::Test {
 protected:
  ControlGroupTest() { Write("proc/self/cgroup", ""); }
  ~ControlGroupTest() override { fs::remove_all(root_); }
  ControlGroupTest(const ControlGroupTest&) = delete;
  ControlGroupTest& operator=(const ControlGroupTest&) = delete;

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  [[nodiscard]] ControlGroupLimits Read() const { return ReadControlGroupLimits(root_); }

 private:
  fs::path root_ = fs::temp_directory_path() / ("control_group_test_" + std::to_string(::getpid()));
};

TEST_F(ControlGroupTest, WhereNothingCanBeReadNothingIsLimited) {
  const ControlGroupLimits limits = Read();
  EXPECT_FALSE(limits.memory);
  EXPECT_FALSE(limits.free_memory);
  EXPECT_FALSE(limits.processors);
}

TEST_F(ControlGroupTest, TheLeastOfAllGroupsAboveCounts) {
  Write("proc/self/cgroup", "0::/pods/one/main\n");
  Write("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  Write("sys/fs/cgroup/pods/memory.max", "8000\n");
  Write("sys/fs/cgroup/pods/memory.current", "6000\n");
  Write("sys/fs/cgroup/pods/memory.stat", "anon 5000\ninactive_file 500\nactive_file 500\n");
  Write("sys/fs/cgroup/pods/one/memory.max", "4000\n");
  Write("sys/fs/cgroup/pods/one/memory.current", "1000\n");
  Write("sys/fs/cgroup/pods/one/main/memory.max", "max\n");
  Write("sys/fs/cgroup/pods/one/main/memory.current", "1000\n");
  Write("sys/fs/cgroup/pods/cpu.max", "350000 100000\n");
  Write("sys/fs/cgroup/pods/one/main/cpu.max", "max 100000\n");
  Write("sys/fs/cgroup/pods/two/memory.max", "10\n");
  const ControlGroupLimits limits = Read();
  EXPECT_EQ(limits.memory, 4000U);
  EXPECT_EQ(limits.free_memory, 2500U);
  EXPECT_EQ(limits.processors, 3.5);
}

TEST_F(ControlGroupTest, AContainerOfVersionOneSeesItsOwnGroupAsTheRoot) {
  Write("proc/self/cgroup", "12:pids:/docker/a1\n5:cpu,cpuacct:/docker/a1\n4:memory:/docker/a1\n1:name=systemd:/docker/a1\n");
  Write("proc/self/mountinfo",
        "20 1 0:1 / / rw - ext4 /dev/vda rw\n"
        "33 31 0:30 /docker/a1 /sys/fs/cgroup/cpu,cpuacct ro master:7 - cgroup cgroup rw,cpu,cpuacct\n"
        "34 31 0:31 /docker/a1 /sys/fs/cgroup/memory ro master:8 - cgroup cgroup rw,memory\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "4096000\n");
  Write("sys/fs/cgroup/memory/memory.usage_in_bytes", "5096000\n");
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000\n");
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  const ControlGroupLimits limits = Read();
  EXPECT_EQ(limits.memory, 4096000U);
  EXPECT_EQ(limits.free_memory, 0U);
  EXPECT_EQ(limits.processors, 1.5);
}

TEST_F(ControlGroupTest, NoQuotaOfVersionOneIsNoLimit) {
  Write("proc/self/cgroup", "5:cpu:/\n");
  Write("proc/self/mountinfo", "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
  Write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  Write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(Read().processors);
}

// The mount shows a group that this process is not in, as when namespaces differ: the root of what is seen is all there is.
TEST_F(ControlGroupTest, AGroupOutsideOfWhatIsSeenIsThatOfTheMount) {
  Write("proc/self/cgroup", "0::/../elsewhere\n");
  Write("proc/self/mountinfo", "31 23 0:28 /pods /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  Write("sys/fs/cgroup/memory.max", "7000\n");
  Write("sys/fs/elsewhere/memory.max", "10\n");
  EXPECT_EQ(Read().memory, 7000U);
}

}  // namespace
}  // namespace collage
