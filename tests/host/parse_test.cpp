// The parsers on odd text: other architectures, cut files, numbers that are none.
#include "host/parse_impl.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/identity_impl.hpp"

namespace paceline::host {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ParseNumber, TakesWholeTextsOnly) {
  EXPECT_EQ(parse_unsigned(" 42\n"), 42U);
  EXPECT_EQ(parse_unsigned("18446744073709551615"), 18446744073709551615U);
  for (const char* text : {"", "-1", "4 2", "42x", "18446744073709551616", "0x10"}) {
    EXPECT_FALSE(parse_unsigned(text)) << text;
  }
  EXPECT_EQ(parse_number(" 1.5\n"), 1.5);
  for (const char* text : {"", "nan", "inf", "1.5 2", "max"})
    EXPECT_FALSE(parse_number(text)) << text;
}

TEST(CpuInfo, CountsCoresPerPackage) {
  const CpuInfo info = parse_cpuinfo(
      "processor: 0\nphysical id: 0\ncore id: 0\ncpu MHz: 1000.5\n\n"
      "processor: 1\nphysical id: 0\ncore id: 1\ncpu MHz: 2000\n\n"
      "processor: 2\nphysical id: 1\ncore id: 0\ncpu MHz: ?\n\n"
      "processor: 3\nphysical id: 1\ncore id: 0\n");
  EXPECT_EQ(info.physical_cores, 3U);
  EXPECT_THAT(info.mhz, ElementsAre(std::pair(0U, 1000.5), std::pair(1U, 2000.0)));
}

TEST(CpuInfo, NamesArmCoresByTheirNumbers) {
  const CpuInfo info = parse_cpuinfo(
      "processor\t: 0\nBogoMIPS\t: 243.75\n"
      "Features\t: fp asimd aes asimdhp cpuid asimddp sve i8mm bf16\n"
      "CPU implementer\t: 0x41\nCPU part\t: 0xd40\n");
  EXPECT_EQ(info.model, "ARM implementer 0x41 part 0xd40");
  EXPECT_EQ(info.physical_cores, 0U);
  EXPECT_THAT(instruction_sets(info.flags),
              ElementsAre("neon", "fp16", "dotprod", "i8mm", "bf16", "sve"));
}

TEST(CpuInfo, SaysNothingAboutNothing) {
  for (const char* text : {"", "\n\n", ":::\n", "flags\n", "no colon here"}) {
    const CpuInfo info = parse_cpuinfo(text);
    EXPECT_EQ(info.model, "") << text;
    EXPECT_THAT(info.flags, IsEmpty()) << text;
  }
}

TEST(Meminfo, IsInBytes) {
  const auto values =
      parse_meminfo("MemTotal:        8062492 kB\nHugePages_Total:  3\nOdd: x kB\n");
  EXPECT_EQ(values.at("MemTotal"), 8062492ULL * 1024);
  EXPECT_EQ(values.at("HugePages_Total"), 3U);
  EXPECT_FALSE(values.contains("Odd"));
}

TEST(ProcStat, KnowsOldAndBrokenKernels) {
  const auto old = parse_proc_stat("cpu  100 10 50 900\n");
  ASSERT_TRUE(old);
  EXPECT_EQ(old->busy, 160U);
  EXPECT_FALSE(old->steal);
  EXPECT_FALSE(parse_proc_stat("cpu  1 2\n"));
  EXPECT_FALSE(parse_proc_stat("cpu  1 2 x 4\n"));
  EXPECT_FALSE(parse_proc_stat("cpu0 1 2 3 4\n"));
}

TEST(PeakResident, IsTheHighWaterMark) {
  EXPECT_EQ(parse_peak_resident("Name:\tx\nVmHWM:\t   1234 kB\nVmRSS:\t 1000 kB\n"), 1234U * 1024);
  EXPECT_FALSE(parse_peak_resident("VmRSS:\t 1000 kB\n"));
}

TEST(Cgroup, MountsOfBothVersionsAreFound) {
  const auto mounts = parse_cgroup_mounts(
      "36 35 98:0 / /mnt rw,noatime master:1 - ext3 /dev/root rw\n"
      "28 1 0:25 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 none rw\n"
      "29 1 0:26 /docker/abc /sys/fs/with\\040space rw - cgroup cgroup rw,cpu,cpuacct\n"
      "cut short - cgroup\n");
  ASSERT_EQ(mounts.size(), 2U);
  EXPECT_TRUE(mounts[0].unified);
  EXPECT_EQ(mounts[0].mount_point, "/sys/fs/cgroup/unified");
  EXPECT_EQ(mounts[1].mount_point, "/sys/fs/with space");
  EXPECT_EQ(mounts[1].root, "/docker/abc");
  EXPECT_THAT(mounts[1].controllers, ElementsAre("rw", "cpu", "cpuacct"));
}

TEST(Cgroup, MembershipKeepsColonsInPaths) {
  const auto members = parse_cgroup_membership("4:cpu,cpuacct:/a:b\n0::/user\nodd line\n");
  ASSERT_EQ(members.size(), 3U);
  EXPECT_EQ(members[1].controller, "cpuacct");
  EXPECT_EQ(members[1].path, "/a:b");
  EXPECT_EQ(members[2].controller, "");
}

TEST(Cgroup, TheLargestPageMultipleIsNoLimit) {
  EXPECT_FALSE(parse_memory_limit("9223372036854771712\n"));
  EXPECT_FALSE(parse_memory_limit(""));
  EXPECT_FALSE(parse_cpu_max(""));
  EXPECT_FALSE(parse_cpu_max("1000"));
  EXPECT_FALSE(parse_cfs_quota("1000", "0"));
}

TEST(ThermalState, IsTheWorstSensors) {
  const auto state = [](double celsius) {
    return thermal_state({{"cpu", celsius, 70, {}, 100}, {"cpu", 20, 70, 90, 100}});
  };
  EXPECT_EQ(state(69), "nominal");
  EXPECT_EQ(state(70), "fair");
  EXPECT_EQ(state(95), "serious");
  EXPECT_EQ(state(100), "critical");
  EXPECT_EQ(thermal_state({{"cpu", 91, {}, 90, {}}}), "serious");
  EXPECT_EQ(thermal_state({{"cpu", 91, {}, {}, {}}}), "not readable");
  EXPECT_EQ(thermal_state({}), "not readable");
}

TEST(Chip, IsInThePublishedWords) {
  EXPECT_EQ(chip_name("Apple M1"), "apple_m1");
  EXPECT_EQ(chip_name("Apple M4 Pro"), "apple_m4");
  EXPECT_EQ(chip_name("APPLE M5 MAX"), "apple_m5");
  EXPECT_EQ(chip_name("Apple processor"), "apple_silicon");
  EXPECT_EQ(chip_name("AMD EPYC 9654"), "non_apple_silicon");
  EXPECT_EQ(chip_name("Intel(R) Core(TM) m3-7Y32"), "non_apple_silicon");
  EXPECT_EQ(hardware_model_name("apple_m4", 16), "apple_silicon_16gb");
  EXPECT_EQ(hardware_model_name("non_apple_silicon", 16), "non_apple_silicon");
}

}  // namespace
}  // namespace paceline::host
