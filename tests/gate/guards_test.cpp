// Guard rails: broken only where the whole interval lies beyond the limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "gate/gate.hpp"
#include "gate/scripted_run.hpp"

namespace paceline::gate {
namespace {

using test::make_run;
using test::sample_of;
using testing::Contains;
using testing::HasSubstr;

Comparison overall(const record::Record& record, const Policy& policy = {}) {
  return evaluate(record, policy).overall.at(0);
}

const Guard& guard(const Comparison& comparison, const std::string& name) {
  return *std::ranges::find(comparison.guards, name, &Guard::name);
}

record::Record prompts(std::size_t count, double speedup = 1.5) {
  return make_run({.classes = {{.name = "code", .prompts = count, .speedup = speedup}},
                   .noise = {.sigma = 0.03}});
}

// G12: a percentile from too few samples is not one.
TEST(LatencyGuard, SaysWhatAPercentileOfFewSamplesIs) {
  EXPECT_EQ(guard(overall(prompts(5)), "p95_latency").note,
            "n = 5: the p95 is the maximum, and below 59 pairs a p95 has no 95 % upper bound");
  EXPECT_EQ(guard(overall(prompts(58)), "p95_latency").note,
            "n = 58: below 59 pairs a p95 has no 95 % upper bound");
  EXPECT_EQ(guard(overall(prompts(59)), "p95_latency").note, "");
}

TEST(LatencyGuard, IsTheRatioOfNearestRanks) {
  const Comparison comparison =
      overall(make_run({.classes = {{.name = "code", .prompts = 20, .speedup = 1.25}}}));
  EXPECT_NEAR(*guard(comparison, "p95_latency").ratio.value, 0.8, 1e-3);
  EXPECT_EQ(guard(comparison, "p95_latency").state, "ok");
}

TEST(LatencyGuard, DoesNotBreakForOneSlowPair) {
  auto record = prompts(12);
  test::scale_times(sample_of(record.blocks[5], "lookup-3"), 4);
  const Comparison comparison = overall(record);
  EXPECT_GT(*guard(comparison, "p95_latency").ratio.value, 1.10);
  EXPECT_EQ(guard(comparison, "p95_latency").state, "undecided");
  EXPECT_THAT(comparison.notes, Contains(HasSubstr("guard p95_latency is undecided")));
}

TEST(LatencyGuard, BlocksWhereManyPairsAreSlow) {
  // Most prompts gain threefold, a quarter of them takes 1.6 times as long.
  auto record = prompts(40, 3);
  for (std::size_t i = 0; i < 40; i += 4) {
    test::scale_times(sample_of(record.blocks[i], "lookup-3"), 4.8);
  }
  const Comparison comparison = overall(record);
  EXPECT_GT(*comparison.speedup.low, 1.15);
  EXPECT_EQ(guard(comparison, "p95_latency").state, "broken");
  EXPECT_EQ(comparison.verdict, Verdict::do_not_enable);
  EXPECT_THAT(comparison.reasons, Contains(HasSubstr("p95_latency ratio 1.5")));
}

TEST(TtftGuard, BlocksAClearlyLaterFirstToken) {
  auto record = prompts(8);
  for (record::Block& block : record.blocks) {
    for (record::Sample& sample : block.samples) {
      const std::int64_t later = sample.arm == "plain" ? 10'000'000 : 15'000'000;
      sample.prefill_ns += later;
      sample.first_token_ns += later;
      sample.elapsed_ns += later;
      for (record::Round& round : sample.rounds) round.delivered_ns += later;
    }
  }
  const Comparison comparison = overall(record);
  EXPECT_NEAR(*comparison.ttft_ratio.value, 1.5, 0.01);
  EXPECT_EQ(guard(comparison, "ttft").state, "broken");
  EXPECT_EQ(comparison.verdict, Verdict::do_not_enable);
  EXPECT_EQ(overall(record, {.ttft_guard = 1.6}).verdict, Verdict::enable);
}

TEST(Guards, WithoutAnIntervalAreUndecided) {
  const Comparison comparison = overall(prompts(1));
  EXPECT_EQ(guard(comparison, "p95_latency").state, "undecided");
  EXPECT_EQ(guard(comparison, "ttft").state, "undecided");
  EXPECT_EQ(guard(comparison, "sustained").state, "not_measured");
  EXPECT_EQ(guard(comparison, "sustained").ratio.reason, "no sustained window was run");
}

/// Turns of both arms; the speculative one runs at `ratio` of plain's speed and then, in the last
/// 30 seconds, at `last_ratio`.
record::Sustained sustained(double ratio, double last_ratio, std::size_t turns = 60) {
  const auto block =
      make_run({.classes = {{.name = "code", .prompts = 1, .speedup = 1}}}).blocks[0];
  record::Sustained window;
  window.last_window_seconds = 30;
  double now = 5000;
  Random random(9);
  for (std::size_t turn = 0; turn < turns; ++turn) {
    for (record::Sample sample : block.samples) {
      const double of_plain = turn < turns / 2 ? ratio : last_ratio;
      const double noise = 1 + 0.02 * random.unit();
      test::scale_times(sample, sample.arm == "plain" ? noise : noise / of_plain);
      now += 1;
      sample.ended_at_unix_seconds = now;
      window.samples.push_back(sample);
    }
  }
  window.ended_at_unix_seconds = now;
  return window;
}

TEST(SustainedGuard, TakesTheLastWindow) {
  auto record = prompts(8);
  record.sustained = sustained(2.0, 1.3);
  const Guard guarded = guard(overall(record), "sustained");
  EXPECT_NEAR(*guarded.ratio.value, 1.3, 0.05);
  EXPECT_EQ(guarded.state, "ok");
  EXPECT_EQ(guarded.limit, 1.15);
  EXPECT_EQ(overall(record).verdict, Verdict::enable);
}

TEST(SustainedGuard, BlocksAnArmThatFadesAndShowsTheDrift) {
  auto record = prompts(8);
  record.sustained = sustained(2.0, 1.0);
  const Comparison comparison = overall(record);
  EXPECT_EQ(guard(comparison, "sustained").state, "broken");
  EXPECT_EQ(comparison.verdict, Verdict::do_not_enable);
  EXPECT_THAT(comparison.reasons, Contains(HasSubstr("below the floor of 1.15")));
  EXPECT_THAT(guard(comparison, "sustained").note,
              HasSubstr("speed of the last third over the first: plain 1.0"));
}

TEST(SustainedGuard, HasItsOwnFloorWhereOneIsSet) {
  auto record = prompts(8);
  record.sustained = sustained(1.2, 1.2);
  EXPECT_EQ(guard(overall(record), "sustained").state, "ok");
  Policy policy;
  policy.sustained_ratio_floor = 1.4;
  EXPECT_EQ(guard(overall(record, policy), "sustained").state, "broken");
  policy = {.ratio_floor = 1.4};
  EXPECT_EQ(guard(overall(record, policy), "sustained").limit, 1.4);
}

TEST(SustainedGuard, OfAWindowThatWasBrokenOffUsesWhatItHas) {
  auto record = prompts(8);
  record.sustained = sustained(1.5, 1.5, 4);
  record.sustained->ended_at_unix_seconds = 0;
  EXPECT_NEAR(*guard(overall(record), "sustained").ratio.value, 1.5, 0.05);
  record.sustained->samples.clear();
  EXPECT_EQ(guard(overall(record), "sustained").state, "not_measured");
}

TEST(SustainedGuard, SpeaksOnlyOverall) {
  auto record = prompts(8);
  record.sustained = sustained(1.5, 1.5);
  for (const Guard& one : evaluate(record, Policy{}).by_class[0].guards) {
    EXPECT_NE(one.name, "sustained");
  }
}

}  // namespace
}  // namespace paceline::gate
