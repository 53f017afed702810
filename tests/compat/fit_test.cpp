// Sums, headroom, which device decides, the longest context, tiers and sizes with units.
#include "compat/fit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/matchers.hpp"

namespace paceline::compat {
namespace {

using test::FailsWith;
using test::FailsWithWord;
using ::testing::HasSubstr;

constexpr std::uint64_t k_mega = 1'000'000;

ModelNeed model(std::string role, std::uint64_t weights, std::uint64_t kv = 0) {
  return {.role = std::move(role),
          .model = "m",
          .context = 512,
          .devices = {{.device = "host", .weights = weights, .kv = kv}}};
}

MemoryFree free_of(std::uint64_t bytes, std::uint64_t program = 0) {
  return {.host_bytes = bytes, .program_bytes = program, .source = "test"};
}

TEST(JudgeFit, AddsUpTheProgramAndEveryPart) {
  ModelNeed target = model("target", 1000);
  target.devices.front().kv = 200;
  target.devices.front().compute = 30;
  target.devices.front().results = 4;
  target.devices.front().droppable = 50000;
  const ModelNeed draft = model("draft", 100);
  const std::vector<ModelNeed> both{target, draft};
  const FitReport report = judge_fit(both, free_of(1'000'000, 10000));
  ASSERT_EQ(report.devices.size(), 1U);
  EXPECT_EQ(report.devices[0].plain, 11234U);
  EXPECT_EQ(report.devices[0].pair, 11334U);
  EXPECT_EQ(report.peak_resident, 61334U);  // pages that can be dropped are resident for a while
  EXPECT_EQ(report.fit, Fit::fits);
}

TEST(JudgeFit, LeavesTheHeadroomAlone) {
  const std::vector<ModelNeed> just{model("target", 950)};
  EXPECT_EQ(judge_fit(just, free_of(1000)).fit, Fit::fits);
  const std::vector<ModelNeed> over{model("target", 951)};
  EXPECT_EQ(judge_fit(over, free_of(1000)).fit, Fit::does_not_fit);
}

TEST(JudgeFit, TellsAPairThatIsTooLargeFromATargetThatIs) {
  const std::vector<ModelNeed> pair{model("target", 600 * k_mega), model("draft", 500 * k_mega)};
  const FitReport report = judge_fit(pair, free_of(1000 * k_mega, 10 * k_mega));
  EXPECT_EQ(report.fit, Fit::fits_plain_only);
  EXPECT_EQ(report.sentence,
            "fits only without the draft: the pair needs 1.1 GB of 950.0 MB usable on host (1.0 GB "
            "free less 5 % headroom), the target alone 610.0 MB");
  const FitReport none = judge_fit(pair, free_of(600 * k_mega));
  EXPECT_EQ(none.fit, Fit::does_not_fit);
  EXPECT_EQ(none.sentence,
            "does not fit: the target alone needs 600.0 MB of 570.0 MB usable on host (600.0 MB "
            "free less 5 % headroom)");
}

TEST(JudgeFit, JudgesEveryDeviceByItself) {
  ModelNeed target = model("target", 10);
  target.devices.push_back({.device = "CUDA0", .weights = 800, .device_free = 1000});
  ModelNeed draft = model("draft", 10);
  draft.devices.push_back({.device = "CUDA0", .weights = 200, .device_free = 1000});
  const std::vector<ModelNeed> pair{target, draft};
  const FitReport report = judge_fit(pair, free_of(k_mega));
  EXPECT_EQ(report.fit, Fit::fits_plain_only);
  EXPECT_THAT(report.sentence, HasSubstr("on CUDA0"));
  EXPECT_EQ(report.devices.at(1).plain, 800U);
  EXPECT_EQ(report.devices.at(1).pair, 1000U);
}

TEST(JudgeFit, DoesNotJudgeWhatIsNotReadable) {
  const std::vector<ModelNeed> huge{model("target", std::uint64_t{1} << 60)};
  const FitReport report = judge_fit(huge, {});
  EXPECT_EQ(report.fit, Fit::fits);
  EXPECT_THAT(report.sentence, HasSubstr("whose free memory is not readable"));
}

TEST(LargestContext, IsTheLastThatFits) {
  const auto need = [](std::size_t context) -> Result<std::vector<ModelNeed>> {
    return std::vector<ModelNeed>{model("target", 500, context * 10)};
  };
  // 95 % of 1000 less 500 leaves 450.
  EXPECT_EQ(largest_context(8192, free_of(1000), need).value(), 45U);
  EXPECT_EQ(largest_context(45, free_of(1000), need).value(), 45U);
  EXPECT_EQ(largest_context(44, free_of(1000), need).value(), 44U);
  EXPECT_EQ(largest_context(8192, free_of(500), need).value(), 0U);
  EXPECT_EQ(largest_context(0, free_of(1000), need).value(), 0U);
  const auto fails = [](std::size_t) -> Result<std::vector<ModelNeed>> {
    return fail(ErrorCode::io, "gone");
  };
  EXPECT_THAT(largest_context(10, free_of(1000), fails), FailsWith(ErrorCode::io));
}

TEST(DraftContext, FollowsThePublishedTiers) {
  struct Row {
    std::size_t gib;
    std::size_t cap;
  };
  for (const Row& row : {Row{8, 8192}, Row{12, 8192}, Row{13, 20000}, Row{24, 20000},
                         Row{25, 50000}, Row{48, 50000}, Row{49, 120000}, Row{512, 120000}}) {
    const host::RamTier tier = host::ram_tier(row.gib);
    EXPECT_EQ(draft_context(tier, std::nullopt).value(), row.cap) << row.gib;
    EXPECT_EQ(draft_context(tier, row.cap).value(), row.cap) << row.gib;
    EXPECT_EQ(draft_context(tier, 100).value(), 100U) << row.gib;
    EXPECT_THAT(draft_context(tier, row.cap + 1), FailsWithWord("draft_model_capacity_shortfall"));
  }
}

TEST(ParseBytes, KnowsPowersOfTenAndOfTwo) {
  EXPECT_EQ(parse_bytes("64MiB").value(), 64U << 20);
  EXPECT_EQ(parse_bytes("1.5 GB").value(), 1500 * k_mega);
  EXPECT_EQ(parse_bytes("800k").value(), 800'000U);
  EXPECT_EQ(parse_bytes(" 2g ").value(), 2000 * k_mega);
  EXPECT_EQ(parse_bytes("1000").value(), 1000U);
  EXPECT_EQ(parse_bytes("3TiB").value(), std::uint64_t{3} << 40);
  EXPECT_EQ(parse_bytes("7B").value(), 7U);
  for (const char* wrong :
       {"", "GB", "-1", "nan", "inf", "12XB", "1 2", "0x10", "9e30", "1e18 T"}) {
    EXPECT_THAT(parse_bytes(wrong), FailsWith(ErrorCode::invalid_argument)) << wrong;
  }
}

TEST(FormatBytes, HasThreeFiguresOrSo) {
  EXPECT_EQ(format_bytes(0), "0 bytes");
  EXPECT_EQ(format_bytes(999), "999 bytes");
  EXPECT_EQ(format_bytes(98'362'432), "98.4 MB");
  EXPECT_EQ(format_bytes(999'999), "1.0 MB");
  EXPECT_EQ(format_bytes(std::numeric_limits<std::uint64_t>::max()), "18446744.1 TB");
}

}  // namespace
}  // namespace paceline::compat
