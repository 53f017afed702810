// What is read of the host: the parsers on invented text, the tiers at their edges, this host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/host.hpp"
#include "host/parse_impl.hpp"

namespace paceline::host {
namespace {

TEST(CpuInfo, NamesModelAndInstructionSets) {
  const CpuInfo info = parse_cpuinfo(
      "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nphysical id\t: 0\ncore id\t: 0\n"
      "flags\t\t: fpu avx2 avx512f avx512_vnni\n\n"
      "processor\t: 1\nmodel name\t: Some CPU @ 2 GHz\nphysical id\t: 0\ncore id\t: 0\n"
      "flags\t\t: fpu avx2 avx512f avx512_vnni\n");
  EXPECT_EQ(info.model, "Some CPU @ 2 GHz");
  EXPECT_EQ(info.physical_cores, 1U);
  EXPECT_TRUE(info.has_flag("avx2"));
  EXPECT_FALSE(info.has_flag("avx"));
  EXPECT_THAT(instruction_sets(info.flags), testing::Contains("avx512_vnni"));
  EXPECT_THAT(instruction_sets(info.flags), testing::Not(testing::Contains("fpu")));
}

TEST(CpuInfo, TranslatesTheWordsOfArm) {
  EXPECT_THAT(instruction_sets({"asimd", "asimddp", "i8mm"}),
              testing::UnorderedElementsAre("neon", "dotprod", "i8mm"));
}

TEST(ProcStat, CountsBusyAndStolenTicks) {
  const auto ticks = parse_proc_stat("cpu  100 10 50 900 5 1 2 7 0 0\ncpu0 1 1 1 1\n");
  ASSERT_TRUE(ticks);
  EXPECT_EQ(ticks->busy, 163U);
  EXPECT_EQ(ticks->steal, 7U);
  EXPECT_FALSE(parse_proc_stat("intr 1 2 3\n"));
}

TEST(Pressure, IsTheTenSecondAverage) {
  EXPECT_EQ(parse_pressure("some avg10=1.25 avg60=0.50 avg300=0.10 total=1\n"), 1.25);
  EXPECT_FALSE(parse_pressure(""));
}

TEST(Cgroup, LimitsAreAbsentWhereThereAreNone) {
  EXPECT_FALSE(parse_memory_limit("max\n"));
  EXPECT_EQ(parse_memory_limit("1073741824\n"), 1073741824U);
  EXPECT_FALSE(parse_cpu_max("max 100000\n"));
  EXPECT_EQ(parse_cpu_max("150000 100000\n"), 1.5);
  EXPECT_FALSE(parse_cfs_quota("-1\n", "100000\n"));
  EXPECT_EQ(parse_cfs_quota("200000\n", "100000\n"), 2.0);
}

TEST(RamTier, ChangesAtThePublishedSizes) {
  const struct {
    std::size_t gib;
    const char* name;
    std::size_t context, draft, concurrency;
  } rows[] = {{1, "8GB", 20000, 8192, 1},       {12, "8GB", 20000, 8192, 1},
              {13, "16GB", 50000, 20000, 2},    {24, "16GB", 50000, 20000, 2},
              {25, "32GB", 120000, 50000, 4},   {48, "32GB", 120000, 50000, 4},
              {49, "64GB+", 200000, 120000, 8}, {1024, "64GB+", 200000, 120000, 8}};
  for (const auto& row : rows) {
    const RamTier tier = ram_tier(row.gib);
    EXPECT_EQ(tier.name, row.name) << row.gib;
    EXPECT_EQ(tier.default_context, row.context) << row.gib;
    EXPECT_EQ(tier.draft_context_cap, row.draft) << row.gib;
    EXPECT_EQ(tier.default_concurrency, row.concurrency) << row.gib;
  }
}

TEST(ThisHost, IsReadSensibly) {
  const HostInfo info = read_host_info();
  EXPECT_GE(info.cores, 1U);
  EXPECT_GE(info.cores_allowed, 1U);
  EXPECT_LE(info.cores_allowed, info.cores);
  EXPECT_EQ(info.cores_allowed, allowed_cores());
  EXPECT_FALSE(info.machine.empty());
  EXPECT_FALSE(info.governor.empty());
  EXPECT_GE(info.memory_gib(), 1U);
  const HostState state = read_host_state();
  EXPECT_GT(state.at_unix_seconds, 1.7e9);
  EXPECT_FALSE(state.thermal_state.empty());
}

}  // namespace
}  // namespace paceline::host
