// Whole records with a known truth: drift, noise, classes, several arms, scopes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "gate/gate.hpp"
#include "gate/scripted_run.hpp"

namespace paceline::gate {
namespace {

using test::ClassScript;
using test::make_run;
using test::sample_of;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

const Comparison& of_class(const Evaluation& evaluation, const std::string& scope) {
  return *std::ranges::find(evaluation.by_class, scope, &Comparison::scope);
}

// G5: heat makes the run 10 % slower from start to end.
TEST(Evaluation, RecoversTheRatioUnderDriftAndNoise) {
  for (const double truth : {0.7, 1.0, 1.4}) {
    const auto record = make_run({.classes = {{.name = "code", .prompts = 24, .speedup = truth},
                                              {.name = "prose", .prompts = 24, .speedup = truth}},
                                  .noise = {.sigma = 0.05, .drift = 0.10},
                                  .seed = 5});
    const Evaluation evaluation = evaluate(record, Policy{});
    const Estimate& speedup = evaluation.overall[0].speedup;
    EXPECT_NEAR(*speedup.value / truth, 1, 0.02) << truth;
    EXPECT_LT(*speedup.low, truth);
    EXPECT_GT(*speedup.high, truth);
    EXPECT_LT(*speedup.high / *speedup.low, 1.06);
  }
}

TEST(Evaluation, OfAPureDriftKeepsAnUnchangedArmAtOne) {
  const auto record = make_run(
      {.classes = {{.name = "code", .prompts = 48, .speedup = 1}}, .noise = {.drift = 0.10}});
  const Comparison comparison = evaluate(record, Policy{}).overall[0];
  EXPECT_NEAR(*comparison.speedup.value, 1, 0.001);
  EXPECT_EQ(comparison.difference, Difference::parity);
}

// G6: 5 % of noise is no win and no loss.
TEST(Evaluation, CallsNoiseAroundOneParityOrUndecided) {
  std::size_t parity = 0;
  std::size_t found = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const auto record = make_run({.classes = {{.name = "code", .prompts = 48, .speedup = 1}},
                                  .noise = {.sigma = 0.05},
                                  .seed = seed});
    const Comparison comparison = evaluate(record, Policy{}).overall[0];
    EXPECT_NE(comparison.verdict, Verdict::enable);
    if (comparison.difference == Difference::parity) ++parity;
    if (comparison.difference == Difference::faster) ++found;
    if (comparison.difference == Difference::slower) ++found;
  }
  EXPECT_GE(parity, 50U);
  EXPECT_LE(found, 8U);
}

// G17: the baseline itself is noisy.
TEST(Evaluation, OfANoisyBaselineIsInconclusiveAndShowsTheNoise) {
  auto record = make_run({.classes = {{.name = "code", .prompts = 8, .speedup = 1.1}}});
  Random random(4);
  for (record::Block& block : record.blocks) {
    test::scale_times(sample_of(block, "plain"), 0.6 + 0.8 * random.unit());
  }
  const Comparison comparison = evaluate(record, Policy{}).overall[0];
  EXPECT_EQ(comparison.verdict, Verdict::inconclusive);
  EXPECT_EQ(comparison.difference, Difference::undecided);
  EXPECT_TRUE(comparison.further_pairs);
  EXPECT_THAT(comparison.notes, Contains(HasSubstr("plain decoding itself ran at")));
}

// G18, B1: 1.35x on code, 0.8x on prose, with one setting.
TEST(Evaluation, KeepsClassesApart) {
  const auto record = make_run({.classes = {{.name = "code", .prompts = 12, .speedup = 1.6},
                                            {.name = "prose", .prompts = 12, .speedup = 0.9}},
                                .noise = {.sigma = 0.02}});
  const Evaluation evaluation = evaluate(record, Policy{});
  EXPECT_EQ(of_class(evaluation, "code").verdict, Verdict::enable);
  EXPECT_EQ(of_class(evaluation, "code").difference, Difference::faster);
  EXPECT_EQ(of_class(evaluation, "prose").verdict, Verdict::do_not_enable);
  EXPECT_EQ(of_class(evaluation, "prose").difference, Difference::slower);
  // Overall the floor is reached (1.20x), but a class is slower.
  EXPECT_GT(*evaluation.overall[0].speedup.low, 1.15);
  EXPECT_EQ(evaluation.overall[0].verdict, Verdict::do_not_enable);
  EXPECT_THAT(evaluation.overall[0].reasons,
              Contains(HasSubstr("slower than plain decoding in: prose 0.9")));
  EXPECT_THAT(evaluation.overall[0].notes, Contains("by class it pays for: code"));
  EXPECT_EQ(evaluation.verdict, Verdict::do_not_enable);
}

TEST(Evaluation, WeighsClassesEquallyHoweverManyPromptsTheyHave) {
  const auto record = make_run({.classes = {{.name = "code", .prompts = 30, .speedup = 2},
                                            {.name = "prose", .prompts = 3, .speedup = 0.5}}});
  EXPECT_NEAR(*evaluate(record, Policy{}).overall[0].speedup.value, 1, 1e-3);
}

TEST(Evaluation, TakesCustomFixturesEachForItself) {
  auto record = make_run({.classes = {{.name = "code", .prompts = 3},
                                      {.name = "mine", .prompts = 3, .speedup = 2},
                                      {.name = "yours", .prompts = 3, .speedup = 0.5}}});
  for (auto& fixture : record.plan.fixtures) {
    if (fixture.id != "code") fixture.content_class = "custom";
  }
  for (auto& block : record.blocks) {
    if (block.fixture != "code") block.content_class = "custom";
  }
  const Evaluation evaluation = evaluate(record, Policy{});
  ASSERT_EQ(evaluation.by_class.size(), 3U);
  EXPECT_NEAR(*of_class(evaluation, "mine").speedup.value, 2, 1e-3);
  EXPECT_NEAR(*of_class(evaluation, "yours").speedup.value, 0.5, 1e-3);
}

TEST(Evaluation, NeverGivesTwoScopesOneName) {
  auto record =
      make_run({.classes = {{.name = "code", .prompts = 2}, {.name = "overall", .prompts = 2}}});
  record.blocks.push_back(record.blocks[0]);
  record.blocks.back().content_class = "custom";  // a file that is called "code"
  const Evaluation evaluation = evaluate(record, Policy{});
  std::vector<std::string> names;
  for (const Comparison& comparison : evaluation.by_class) names.push_back(comparison.scope);
  EXPECT_THAT(names, ElementsAre("code", "class:overall", "custom:code"));
}

TEST(Evaluation, JoinsFixturesOfOneClass) {
  auto record =
      make_run({.classes = {{.name = "code", .prompts = 3}, {.name = "more", .prompts = 3}}});
  for (auto& fixture : record.plan.fixtures) fixture.content_class = "code";
  for (auto& block : record.blocks) block.content_class = "code";
  const Evaluation evaluation = evaluate(record, Policy{});
  ASSERT_EQ(evaluation.by_class.size(), 1U);
  EXPECT_EQ(evaluation.by_class[0].speedup.n, 6U);
}

/// The record with one more arm, whose samples are those of "lookup-3" times `factor`.
void add_arm(record::Record& record, const std::string& id, double factor) {
  record::Arm arm = record.plan.arms[1];
  arm.id = id;
  record.plan.arms.push_back(arm);
  for (record::Block& block : record.blocks) {
    record::Sample sample = sample_of(block, "lookup-3");
    sample.arm = id;
    test::scale_times(sample, factor);
    block.samples.push_back(sample);
  }
}

TEST(Evaluation, RecommendsTheArmWithTheHighestLowerBound) {
  auto record = make_run(
      {.classes = {{.name = "code", .prompts = 8, .speedup = 1.3}}, .noise = {.sigma = 0.02}});
  add_arm(record, "lookup-7", 0.9);
  add_arm(record, "lookup-12", 1.5);
  const Evaluation evaluation = evaluate(record, Policy{});
  ASSERT_EQ(evaluation.overall.size(), 3U);
  EXPECT_EQ(evaluation.recommended_arm, "lookup-7");
  EXPECT_EQ(evaluation.verdict, Verdict::enable);
  EXPECT_THAT(evaluation.sentence, HasSubstr("Enable lookup-7"));
}

TEST(Evaluation, PrefersAnArmThatMayBeEnabledToAFasterOneThatMayNot) {
  auto record = make_run(
      {.classes = {{.name = "code", .prompts = 8, .speedup = 1.3}}, .noise = {.sigma = 0.02}});
  add_arm(record, "lookup-7", 0.7);
  for (record::Block& block : record.blocks) sample_of(block, "lookup-7").tokens.back() += 1;
  const Evaluation evaluation = evaluate(record, Policy{});
  EXPECT_EQ(evaluation.recommended_arm, "lookup-3");
  EXPECT_EQ(evaluation.verdict, Verdict::enable);
}

TEST(Evaluation, ComparesAnArmWithItsOwnBaseline) {
  auto record = make_run({.classes = {{.name = "code", .prompts = 4, .speedup = 1.3}}});
  add_arm(record, "lookup-7", 0.5);
  record.plan.arms[2].baseline = "lookup-3";
  const Evaluation evaluation = evaluate(record, Policy{});
  EXPECT_EQ(evaluation.overall[1].baseline, "lookup-3");
  EXPECT_NEAR(*evaluation.overall[1].speedup.value, 2, 1e-6);
}

TEST(Evaluation, ListsAPlannedClassThatWasNotReached) {
  auto record = make_run({.classes = {{.name = "code", .prompts = 4, .speedup = 1.5}}});
  record.plan.fixtures.push_back(record.plan.fixtures[0]);
  record.plan.fixtures[1].id = "prose";
  record.plan.fixtures[1].content_class = "prose";
  record.complete = false;
  record.incomplete_reason = "the time limit of 180 s was reached after 4 blocks";
  const Evaluation evaluation = evaluate(record, Policy{});
  EXPECT_EQ(of_class(evaluation, "prose").verdict, Verdict::not_benchmarkable);
  EXPECT_THAT(of_class(evaluation, "prose").notes, Contains("prose was planned but not run"));
  EXPECT_THAT(
      evaluation.overall[0].notes,
      Contains("the run is incomplete: the time limit of 180 s was reached after 4 blocks"));
  EXPECT_THAT(evaluation.sentence, HasSubstr("over 4 of 8 prompts"));
}

TEST(Evaluation, OfAnEmptyRecordIsNotBenchmarkable) {
  const Evaluation evaluation = evaluate(record::Record{}, Policy{});
  EXPECT_EQ(evaluation.verdict, Verdict::not_benchmarkable);
  EXPECT_TRUE(evaluation.recommended_arm.empty());
  EXPECT_EQ(evaluation.sentence,
            "Not benchmarkable: the target was not compared with anything: the plan has no arm.");
}

TEST(Evaluation, OfARecordWithoutBlocksSaysSo) {
  auto record = make_run({});
  record.blocks.clear();
  record.complete = false;
  record.incomplete_reason = "the run was broken off";
  const Evaluation evaluation = evaluate(record, Policy{});
  EXPECT_EQ(evaluation.verdict, Verdict::not_benchmarkable);
  EXPECT_TRUE(evaluation.recommended_arm.empty());
  EXPECT_EQ(evaluation.sentence,
            "Not benchmarkable: lookup-3 with smollm2-135m on this host: no pair could be "
            "used.");
}

TEST(Evaluation, CarriesTheWarmUpsComplaints) {
  auto record = make_run({});
  record.warmup.emplace();
  record.warmup->slow_first = true;
  const Comparison comparison = evaluate(record, Policy{}).overall[0];
  EXPECT_THAT(comparison.notes, Contains("the warm-up did not become stable"));
  EXPECT_THAT(comparison.notes,
              Contains("the warm-up's first run was slow, as after a cold start"));
}

}  // namespace
}  // namespace paceline::gate
