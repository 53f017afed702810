// Linux readings from made-up /proc and /sys trees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "host/linux/linux_impl.hpp"
#include "support/temporary_folder.hpp"

namespace paceline::host {
namespace {

namespace fs = std::filesystem;

/// A folder that looks like "/" to the readers.
class Tree {
 public:
  explicit Tree(const std::map<std::string, std::string>& files) {
    for (const auto& [path, text] : files) {
      const fs::path place = root() / fs::path(path).relative_path();
      fs::create_directories(place.parent_path());
      std::ofstream(place) << text;
    }
  }
  const fs::path& root() const { return folder_.path(); }

 private:
  test::TemporaryFolder folder_;
};

HostInfo info_of(const Tree& tree, std::size_t cores = 2) {
  HostInfo info;
  info.machine = "x86_64";
  info.cores = cores;
  fill_host_info(info, tree.root(), {0, 1});
  return info;
}

HostState state_of(const Tree& tree) {
  HostState state;
  fill_host_state(state, tree.root(), {0, 1}, 100);
  return state;
}

TEST(LinuxHost, ReadsABareServer) {
  const Tree tree({
      {"/proc/cpuinfo",
       "processor: 0\nmodel name: AMD EPYC\nflags: avx2 fma aperfmperf\ncpu MHz: 3000\n\n"
       "processor: 1\ncpu MHz: 3500\n"},
      {"/proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 1024 kB\n"},
      {"/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0-1\n"},
      {"/sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "0-1\n"},
      {"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"},
      {"/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n"},
  });
  const HostInfo info = info_of(tree);
  EXPECT_EQ(info.cpu_model, "AMD EPYC");
  EXPECT_EQ(info.physical_cores, 1U);
  EXPECT_EQ(info.memory_gib(), 8U);
  EXPECT_EQ(info.governor, "powersave");
  EXPECT_EQ(info.hypervisor, "none");
  EXPECT_EQ(info.chip, "non_apple_silicon");
  EXPECT_FALSE(info.memory_limit_bytes);
  EXPECT_FALSE(info.cpu_quota);
  const HostState state = state_of(tree);
  EXPECT_EQ(state.memory_available_bytes, 1024U * 1024);
  EXPECT_EQ(state.frequency_mhz, 3250);
}

TEST(LinuxHost, SaysNotReadableWhereNothingIsThere) {
  const Tree tree({});
  const HostInfo info = info_of(tree);
  EXPECT_EQ(info.cpu_model, "not readable");
  EXPECT_EQ(info.governor, "not readable");
  EXPECT_EQ(info.hypervisor, "not readable");
  EXPECT_EQ(info.physical_cores, 0U);
  EXPECT_FALSE(info.memory_bytes);
  const HostState state = state_of(tree);
  EXPECT_EQ(state.thermal_state, "not readable");
  EXPECT_FALSE(state.load_1min);
  EXPECT_FALSE(state.memory_available_bytes);
  EXPECT_FALSE(state.frequency_mhz);
  EXPECT_FALSE(state.temperature_celsius);
  EXPECT_FALSE(state.steal_seconds);
  EXPECT_FALSE(state.busy_seconds);
  EXPECT_FALSE(state.cpu_pressure_some_percent);
}

TEST(LinuxHost, NamesTheHypervisor) {
  const std::string guest = "processor: 0\nmodel name: X\nflags: hypervisor\ncpu MHz: 2100\n";
  EXPECT_EQ(info_of(Tree({{"/proc/cpuinfo", guest}})).hypervisor, "unnamed");
  EXPECT_EQ(info_of(Tree({{"/proc/cpuinfo", guest}, {"/sys/class/dmi/id/sys_vendor", "QEMU\n"}}))
                .hypervisor,
            "QEMU");
  EXPECT_EQ(info_of(Tree({{"/sys/hypervisor/type", "xen\n"}})).hypervisor, "xen");
}

TEST(LinuxHost, DoesNotTakeAGuestsNominalFrequencyForAReading) {
  const Tree tree({{"/proc/cpuinfo", "processor: 0\nflags: hypervisor\ncpu MHz: 2100\n"}});
  EXPECT_FALSE(state_of(tree).frequency_mhz);
}

TEST(LinuxHost, PrefersCpufreqOverCpuinfo) {
  const Tree tree({{"/proc/cpuinfo", "processor: 0\nflags: aperfmperf\ncpu MHz: 2100\n"},
                   {"/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "1800000\n"}});
  EXPECT_EQ(state_of(tree).frequency_mhz, 1800);
}

TEST(LinuxHost, CountsTicksInSeconds) {
  const Tree tree({{"/proc/stat", "cpu  100 10 50 900 5 1 2 750 0 0\n"},
                   {"/proc/loadavg", "0.52 0.58 0.59 1/100 12\n"},
                   {"/proc/pressure/cpu", "some avg10=1.25 avg60=0 avg300=0 total=1\n"}});
  const HostState state = state_of(tree);
  EXPECT_DOUBLE_EQ(state.busy_seconds.value(), 1.63);
  EXPECT_DOUBLE_EQ(state.steal_seconds.value(), 7.5);
  EXPECT_EQ(state.load_1min, 0.52);
  EXPECT_EQ(state.cpu_pressure_some_percent, 1.25);
}

TEST(LinuxHost, TakesTheHottestProcessorSensor) {
  const Tree tree({{"/sys/class/thermal/thermal_zone0/type", "acpitz\n"},
                   {"/sys/class/thermal/thermal_zone0/temp", "99000\n"},
                   {"/sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n"},
                   {"/sys/class/thermal/thermal_zone1/temp", "61000\n"},
                   {"/sys/class/thermal/thermal_zone1/trip_point_0_type", "passive\n"},
                   {"/sys/class/thermal/thermal_zone1/trip_point_0_temp", "60000\n"},
                   {"/sys/class/thermal/thermal_zone1/trip_point_1_type", "critical\n"},
                   {"/sys/class/thermal/thermal_zone1/trip_point_1_temp", "0\n"},
                   {"/sys/class/hwmon/hwmon0/name", "nvme\n"},
                   {"/sys/class/hwmon/hwmon0/temp1_input", "88000\n"},
                   {"/sys/class/hwmon/hwmon1/name", "k10temp\n"},
                   {"/sys/class/hwmon/hwmon1/temp1_input", "62500\n"},
                   {"/sys/class/hwmon/hwmon1/temp3_input", "-1500\n"}});
  const HostState state = state_of(tree);
  EXPECT_EQ(state.temperature_celsius, 62.5);
  EXPECT_EQ(state.thermal_state, "fair");
}

TEST(LinuxCgroup, V2TakesTheTightestLimitOnTheWay) {
  const Tree tree({
      {"/proc/self/cgroup", "0::/user.slice/job\n"},
      {"/proc/self/mountinfo", "28 1 0:25 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
      {"/sys/fs/cgroup/user.slice/memory.max", "2147483648\n"},
      {"/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n"},
      {"/sys/fs/cgroup/user.slice/job/memory.max", "4294967296\n"},
      {"/sys/fs/cgroup/user.slice/job/cpu.max", "150000 100000\n"},
      {"/sys/fs/cgroup/other/memory.max", "1\n"},
  });
  const CgroupLimits limits = read_cgroup_limits(tree.root());
  EXPECT_EQ(limits.memory_bytes, 2147483648U);
  EXPECT_EQ(limits.cpu_cores, 1.5);
}

TEST(LinuxCgroup, V1ReadsEachControllerInItsOwnMount) {
  const Tree tree({
      {"/proc/self/cgroup", "4:memory:/box\n3:cpu,cpuacct:/box\n0::/\n"},
      {"/proc/self/mountinfo",
       "30 1 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
       "31 1 0:2 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
      {"/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "1073741824\n"},
      {"/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "50000\n"},
      {"/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n"},
  });
  const CgroupLimits limits = read_cgroup_limits(tree.root());
  EXPECT_EQ(limits.memory_bytes, 1073741824U);
  EXPECT_EQ(limits.cpu_cores, 0.5);
}

TEST(LinuxCgroup, AContainersMountHidesTheHostsPath) {
  const std::string below = "29 1 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  const Tree rooted({{"/proc/self/cgroup", "0::/docker/abc/inner\n"},
                     {"/proc/self/mountinfo", below},
                     {"/sys/fs/cgroup/memory.max", "3000000000\n"},
                     {"/sys/fs/cgroup/inner/memory.max", "2000000000\n"}});
  EXPECT_EQ(read_cgroup_limits(rooted.root()).memory_bytes, 2000000000U);
  const Tree foreign({{"/proc/self/cgroup", "0::/elsewhere\n"},
                      {"/proc/self/mountinfo", below},
                      {"/sys/fs/cgroup/memory.max", "3000000000\n"}});
  EXPECT_EQ(read_cgroup_limits(foreign.root()).memory_bytes, 3000000000U);
}

TEST(LinuxCgroup, TheTightestRoomBelowALimitIsWhatIsAvailable) {
  const std::string memory = "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n";
  const std::string mounts = "28 1 0:25 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  const Tree tight({{"/proc/meminfo", memory},
                    {"/proc/self/cgroup", "0::/slice/job\n"},
                    {"/proc/self/mountinfo", mounts},
                    {"/sys/fs/cgroup/slice/memory.max", "1000000000\n"},
                    {"/sys/fs/cgroup/slice/memory.current", "700000000\n"},
                    {"/sys/fs/cgroup/slice/memory.stat", "anon 5\ninactive_file 100000000\n"},
                    {"/sys/fs/cgroup/slice/job/memory.max", "900000000\n"},
                    {"/sys/fs/cgroup/slice/job/memory.current", "50000000\n"}});
  EXPECT_EQ(state_of(tight).memory_available_bytes, 400000000U);
  // More than the host has free is of no use; a full group has no room.
  const Tree wide(
      {{"/proc/meminfo", memory},
       {"/proc/self/cgroup", "4:memory:/box\n"},
       {"/proc/self/mountinfo", "30 1 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"},
       {"/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "7000000000\n"},
       {"/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "1000\n"}});
  EXPECT_EQ(state_of(wide).memory_available_bytes, std::uint64_t{4194304} * 1024);
  const Tree full(
      {{"/proc/meminfo", memory},
       {"/proc/self/cgroup", "4:memory:/box\n"},
       {"/proc/self/mountinfo", "30 1 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"},
       {"/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "7000\n"},
       {"/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "9000\n"},
       {"/sys/fs/cgroup/memory/box/memory.stat", "total_inactive_file 1000\n"}});
  EXPECT_EQ(state_of(full).memory_available_bytes, 0U);
}

TEST(LinuxAffinity, IsNeverEmptyHere) { EXPECT_FALSE(allowed_processors().empty()); }

}  // namespace
}  // namespace paceline::host
