// The published formulas with the published test vectors.
#include "gate/spec028.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::gate::spec028 {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Sample sample(double tokens_per_second, double milliseconds = 100) {
  Sample result;
  result.tokens_per_second = tokens_per_second;
  result.elapsed_seconds = milliseconds / 1000;
  result.ttft_milliseconds = static_cast<std::int64_t>(milliseconds);
  return result;
}

Sample drafted(Sample from, std::uint64_t drafted_tokens, std::uint64_t accepted_tokens) {
  from.drafted_tokens = drafted_tokens;
  from.accepted_tokens = accepted_tokens;
  return from;
}

/// Base 20 tok/s and 100 ms; spec 28 and 130 ms, 95 of 100 accepted; sustained 27.
Inputs published_vector() {
  return {.baseline = {sample(20, 100)},
          .spec = {drafted(sample(28, 130), 100, 95)},
          .sustained = {sample(27)},
          .sustained_end_unix_seconds = 0};
}

TEST(Spec028, GivesThePublishedVector) {
  const auto result = evaluate(published_vector(), {.max_p95_latency_ratio = 2.0});
  ASSERT_TRUE(result);
  EXPECT_DOUBLE_EQ(result->tps_ratio, 1.4);
  EXPECT_DOUBLE_EQ(*result->ttft_p95_ratio, 1.3);
  EXPECT_DOUBLE_EQ(*result->acceptance_rate, 0.95);
  EXPECT_DOUBLE_EQ(*result->sustained_ratio, 1.35);
  EXPECT_FALSE(result->recommend_enable);
  EXPECT_THAT(result->recommendation_reasons, ElementsAre("p95 TTFT ratio 1.300 > 1.000"));
}

TEST(Spec028, RecommendsWithoutAnyReason) {
  Inputs inputs = published_vector();
  inputs.spec[0].elapsed_seconds = 0.08;
  inputs.spec[0].ttft_milliseconds = 90;
  const auto result = evaluate(inputs, {});
  EXPECT_TRUE(result->recommend_enable);
  EXPECT_THAT(result->recommendation_reasons, IsEmpty());
}

TEST(Spec028, GivesReasonsInThePublishedOrderAndWords) {
  const Inputs inputs = {.baseline = {sample(20, 100)},
                         .spec = {drafted(sample(18.34, 130), 1000, 123)},
                         .sustained = {sample(10)}};
  EXPECT_THAT(evaluate(inputs, {})->recommendation_reasons,
              ElementsAre("TPS ratio 0.917 < 1.150", "p95 latency ratio 1.300 > 1.000",
                          "p95 TTFT ratio 1.300 > 1.000", "acceptance 0.123 < 0.300",
                          "sustained TPS ratio 0.500 < 1.150"));
}

TEST(Spec028, LetsEqualityPass) {
  const Inputs inputs = {.baseline = {sample(20, 100)},
                         .spec = {drafted(sample(25, 100), 100, 30)},
                         .sustained = {sample(25)}};
  const auto result = evaluate(inputs, {.ratio_floor = 1.25});
  EXPECT_TRUE(result->recommend_enable);
}

TEST(Spec028, TakesAbsentAcceptanceForZeroWhichAlwaysFails) {
  const Inputs inputs = {.baseline = {sample(20, 100)}, .spec = {sample(28, 90)}};
  EXPECT_FALSE(evaluate(inputs, {})->acceptance_rate);
  EXPECT_THAT(evaluate(inputs, {})->recommendation_reasons,
              ElementsAre("acceptance 0.000 < 0.300"));
  EXPECT_FALSE(evaluate(inputs, {.acceptance_floor = 0})->recommend_enable);
}

TEST(Spec028, SaysWhenTtftIsUnavailable) {
  Inputs inputs = published_vector();
  inputs.spec[0].ttft_milliseconds.reset();
  const auto result = evaluate(inputs, {.max_p95_latency_ratio = 2.0});
  EXPECT_THAT(result->recommendation_reasons, ElementsAre("p95 TTFT ratio unavailable"));
  EXPECT_TRUE(result->baseline_p95_ttft_ms);
  EXPECT_FALSE(result->spec_p95_ttft_ms);

  inputs = published_vector();
  inputs.baseline[0].ttft_milliseconds = 0;
  EXPECT_FALSE(evaluate(inputs, {})->ttft_p95_ratio) << "0 ms is no denominator";
}

TEST(Spec028, TakesTtftFromTheSamplesThatHaveOne) {
  Inputs inputs = published_vector();
  inputs.spec.push_back(inputs.spec[0]);
  inputs.spec[0].ttft_milliseconds.reset();
  EXPECT_DOUBLE_EQ(*evaluate(inputs, {})->ttft_p95_ratio, 1.3);
}

TEST(Spec028, FailsWithThePublishedErrors) {
  EXPECT_EQ(evaluate({}, {}).error().message, "no baseline throughput");
  EXPECT_EQ(evaluate({.baseline = {sample(0)}, .spec = {sample(1)}}, {}).error().message,
            "no baseline throughput");
  EXPECT_EQ(evaluate({.baseline = {sample(20)}}, {}).error().message, "no spec samples");
}

TEST(Spec028, TakesTheMedianAndTheNearestRank) {
  Inputs inputs;
  for (const double speed : {10, 11, 10, 11})
    inputs.baseline.push_back(sample(speed, 1000 / speed));
  for (const double speed : {15, 16}) inputs.spec.push_back(sample(speed, 1000 / speed));
  const auto result = evaluate(inputs, {});
  EXPECT_DOUBLE_EQ(result->baseline_median_tps, 10.5);
  EXPECT_DOUBLE_EQ(result->spec_median_tps, 15.5);
  EXPECT_DOUBLE_EQ(result->baseline_p95_latency_ms, 100);
  EXPECT_DOUBLE_EQ(result->p95_latency_ratio, (1000.0 / 15) / 100);
}

TEST(Spec028, TakesTheSustainedSamplesThatEndInTheLastWindow) {
  Inputs inputs = published_vector();
  inputs.sustained = {sample(40), sample(22), sample(24)};
  inputs.sustained[0].ended_at_unix_seconds = 69.9;
  inputs.sustained[1].ended_at_unix_seconds = 70;
  inputs.sustained[2].ended_at_unix_seconds = 101;  // it may overshoot
  inputs.sustained_end_unix_seconds = 100;
  EXPECT_DOUBLE_EQ(*evaluate(inputs, {})->sustained_median_tps, 23);
  inputs.sustained_end_unix_seconds = 1000;
  EXPECT_FALSE(evaluate(inputs, {})->sustained_ratio);
}

/// Base 10/11 alternating, five times; spec 15/16; sustained 13/14/15; 45 of 100 accepted.
Inputs canary_vector() {
  Inputs inputs;
  for (const double speed : {10, 11, 10, 11, 10}) inputs.baseline.push_back(sample(speed));
  for (const double speed : {15, 16, 15, 16, 15}) {
    inputs.spec.push_back(drafted(sample(speed), 20, 9));
  }
  for (const double speed : {13, 14, 15}) inputs.sustained.push_back(sample(speed));
  return inputs;
}

TEST(Spec028Canary, PassesThePublishedVector) {
  const auto result = evaluate_canary(canary_vector(), {});
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->passed);
  EXPECT_DOUBLE_EQ(*result->ratio, 1.5);
  EXPECT_DOUBLE_EQ(*result->acceptance_rate, 0.45);
  EXPECT_DOUBLE_EQ(*result->sustained_last_window_ratio, 1.4);
}

TEST(Spec028Canary, FailsThePublishedVectorWithBothReasons) {
  Inputs inputs = canary_vector();
  for (Sample& spec : inputs.spec) spec = drafted(sample(11), 20, 4);
  const auto result = evaluate_canary(inputs, {});
  EXPECT_FALSE(result->passed);
  EXPECT_THAT(result->failure_reasons,
              ElementsAre("spec ratio 1.100 < 1.400", "acceptance 0.200 < 0.300"));
}

TEST(Spec028Canary, NeedsASustainedWindow) {
  Inputs inputs = canary_vector();
  inputs.sustained.clear();
  EXPECT_THAT(evaluate_canary(inputs, {})->failure_reasons,
              ElementsAre("sustained window produced no samples"));
  inputs.sustained = {sample(11)};
  EXPECT_THAT(evaluate_canary(inputs, {})->failure_reasons,
              ElementsAre("sustained ratio 1.100 < 1.200"));
}

TEST(Spec028Canary, HasNoLatencyGate) {
  Inputs inputs = canary_vector();
  for (Sample& spec : inputs.spec) spec.elapsed_seconds = 100;
  EXPECT_TRUE(evaluate_canary(inputs, {})->passed);
}

TEST(Spec028Canary, FailsWithoutSamples) {
  EXPECT_EQ(evaluate_canary({}, {}).error().message, "no baseline throughput");
}

}  // namespace
}  // namespace paceline::gate::spec028
