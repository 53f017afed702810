// Which tokens a pair is timed over, and which pairs are left out, with what words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "gate/gate.hpp"
#include "gate/scripted_run.hpp"

namespace paceline::gate {
namespace {

using test::distinct_tokens;
using test::make_sample;
using test::RoundScript;
using test::sample_of;
using testing::Contains;
using testing::HasSubstr;

Comparison overall(const record::Record& record) {
  const Evaluation evaluation = evaluate(record, Policy{});
  return evaluation.overall.at(0);
}

/// One prompt only: what the speed-up's value is can then be told exactly.
record::Record one_pair() {
  record::Record record = test::make_run({.classes = {{.name = "code", .prompts = 1}}});
  record.blocks[0].samples.clear();
  return record;
}

/// 20 tokens at 10 ms a step after 20 ms of prefill; 210 ms in all.
record::Sample plain_20(std::vector<std::int32_t> tokens = distinct_tokens(20)) {
  const std::size_t rounds = tokens.size() - 1;
  return make_sample({.arm = "plain",
                      .tokens = std::move(tokens),
                      .rounds = std::vector<RoundScript>(rounds, {.verify_ms = 10})});
}

/// Rounds of 12 ms that emit 4 tokens each, after 20 ms of prefill.
record::Sample bursts_of_4(std::vector<std::int32_t> tokens = distinct_tokens(20)) {
  const std::size_t rounds = (tokens.size() - 1 + 3) / 4;
  return make_sample(
      {.arm = "lookup-3",
       .tokens = std::move(tokens),
       .rounds = std::vector<RoundScript>(rounds, {.drafted = 3, .accepted = 3, .verify_ms = 12})});
}

std::vector<std::int32_t> parting_at(std::size_t position, std::size_t size = 20) {
  auto tokens = distinct_tokens(size);
  for (std::size_t i = position; i < size; ++i) tokens[i] += 5000;
  return tokens;
}

TEST(Pairing, OfEqualTextsTakesTheWholeWallTime) {
  auto record = one_pair();
  record.blocks[0].samples = {plain_20(), bursts_of_4()};
  const Comparison comparison = overall(record);
  EXPECT_NEAR(*comparison.speedup.value, 210.0 / 80, 1e-9);
  EXPECT_NEAR(*comparison.decode_speedup.value, 190.0 / 60, 1e-9);
  EXPECT_NEAR(*comparison.ttft_ratio.value, 1, 1e-9);
  EXPECT_EQ(comparison.outputs_equal, 1U);
}

TEST(Pairing, CountsTimeAfterTheLastDelivery) {
  auto record = one_pair();
  record.blocks[0].samples = {plain_20(), bursts_of_4()};
  auto& speculative = sample_of(record.blocks[0], "lookup-3");
  speculative.other_ns += 20'000'000;
  speculative.elapsed_ns += 20'000'000;
  EXPECT_NEAR(*overall(record).speedup.value, 210.0 / 100, 1e-9);
}

TEST(Pairing, OfPartingTextsEndsAtADeliveryBeforeTheyPart) {
  auto record = one_pair();
  // They part at token 15; deliveries lie at 1, 5, 9, 13, 17: so 13 tokens are timed.
  record.blocks[0].samples = {plain_20(), bursts_of_4(parting_at(15))};
  const Comparison comparison = overall(record);
  EXPECT_NEAR(*comparison.speedup.value, (20 + 12 * 10.0) / (20 + 3 * 12.0), 1e-9);
  EXPECT_EQ(comparison.outputs_different, 1U);
}

TEST(Pairing, OfATextThatStopsEarlierTakesTheSharedPart) {
  auto record = one_pair();
  auto shorter = distinct_tokens(20);
  shorter.resize(17);
  record.blocks[0].samples = {plain_20(), bursts_of_4(shorter)};
  EXPECT_NEAR(*overall(record).speedup.value, (20 + 16 * 10.0) / (20 + 4 * 12.0), 1e-9);
}

TEST(Pairing, LeavesOutTextsThatPartBeforeEightTokens) {
  auto record = one_pair();
  record.blocks[0].samples = {plain_20(), bursts_of_4(parting_at(7))};
  const Comparison comparison = overall(record);
  EXPECT_EQ(comparison.pairs, 0U);
  EXPECT_EQ(comparison.pairs_left_out, 1U);
  EXPECT_THAT(comparison.notes, Contains(HasSubstr("the texts share 7 tokens but were delivered "
                                                   "together up to 5 only (code/p1)")));
}

TEST(Pairing, KeepsAShortTextThatIsWhole) {
  auto record = one_pair();
  record.blocks[0].samples = {plain_20(distinct_tokens(3)), bursts_of_4(distinct_tokens(3))};
  EXPECT_NEAR(*overall(record).speedup.value, 40.0 / 32, 1e-9);
}

TEST(Pairing, LeavesOutATextThatEndsAtOnce) {
  for (const std::size_t size : {0U, 1U}) {
    auto record = one_pair();
    record.blocks[0].samples = {
        make_sample({.arm = "plain", .tokens = distinct_tokens(size), .rounds = {}}),
        make_sample({.arm = "lookup-3", .tokens = distinct_tokens(size), .rounds = {}})};
    const Comparison comparison = overall(record);
    EXPECT_EQ(comparison.pairs, 0U);
    EXPECT_FALSE(comparison.speedup.value);
    EXPECT_EQ(comparison.verdict, Verdict::not_benchmarkable);
    EXPECT_THAT(comparison.notes, Contains(HasSubstr("the text ended at once")));
  }
}

// Rule 18: a lookup drafter shines in loops, so the time is taken before.
TEST(Pairing, EndsBeforeTheTextLoops) {
  auto tokens = distinct_tokens(13);
  for (int i = 0; i < 40; ++i) tokens.push_back(9000 + i % 4);
  auto record = one_pair();
  record.blocks[0].samples = {plain_20(tokens), bursts_of_4(tokens)};
  const Comparison comparison = overall(record);
  // The loop's second turn begins at 17, which is a delivery of both.
  EXPECT_NEAR(*comparison.speedup.value, (20 + 16 * 10.0) / (20 + 4 * 12.0), 1e-9);
  EXPECT_NEAR(comparison.looped_share, 36.0 / 53, 1e-12);
  EXPECT_THAT(comparison.notes, Contains(HasSubstr("68 % of plain's tokens lie in loops")));
}

TEST(Pairing, LeavesOutATextThatLoopsFromItsStart) {
  std::vector<std::int32_t> tokens(40, 7);
  auto record = one_pair();
  record.blocks[0].samples = {plain_20(tokens), bursts_of_4(tokens)};
  const Comparison comparison = overall(record);
  EXPECT_EQ(comparison.pairs, 0U);
  EXPECT_THAT(comparison.notes, Contains(HasSubstr("the text loops after 1 token")));
}

// G11: a clock that goes backwards or stands still.
TEST(Pairing, LeavesOutAClockThatGoesBackwards) {
  auto record = one_pair();
  record.blocks[0].samples = {plain_20(), bursts_of_4()};
  sample_of(record.blocks[0], "lookup-3").rounds[2].delivered_ns = 1000;
  EXPECT_THAT(overall(record).notes, Contains(HasSubstr("the clock went backwards")));
  EXPECT_FALSE(overall(record).speedup.value);

  record.blocks[0].samples = {plain_20(), bursts_of_4()};
  sample_of(record.blocks[0], "plain").elapsed_ns = -5;
  EXPECT_THAT(overall(record).notes, Contains(HasSubstr("the clock went backwards")));
}

TEST(Pairing, LeavesOutAClockThatStandsStill) {
  auto record = one_pair();
  record.blocks[0].samples = {plain_20(), bursts_of_4()};
  test::scale_times(sample_of(record.blocks[0], "lookup-3"), 0);
  const Comparison comparison = overall(record);
  EXPECT_FALSE(comparison.speedup.value);
  EXPECT_THAT(comparison.notes, Contains(HasSubstr("the clock stood still")));
}

TEST(Pairing, AveragesRepetitionsOfAPromptBeforePrompts) {
  auto record = test::make_run({.classes = {{.name = "code", .prompts = 2, .speedup = 1}}});
  record.blocks.push_back(record.blocks[0]);
  record.blocks.back().repetition = 1;
  // Prompt 1: ratios 1 and 4, so 2. Prompt 2: ratio 1. The mean is sqrt(2), not cbrt(4).
  test::scale_times(sample_of(record.blocks[2], "lookup-3"), 0.25);
  const Comparison comparison = overall(record);
  EXPECT_NEAR(*comparison.speedup.value, std::sqrt(2.0), 1e-6);
  EXPECT_EQ(comparison.speedup.n, 2U);
  EXPECT_EQ(comparison.pairs, 3U);
}

TEST(Pairing, DoesNotJoinPromptsOfDifferentFixtures) {
  auto record = test::make_run({.classes = {{.name = "code", .prompts = 2}}});
  record.blocks[1].fixture = "other";
  record.blocks[1].prompt = record.blocks[0].prompt;
  EXPECT_EQ(overall(record).speedup.n, 2U);
}

TEST(Pairing, LeavesOutBlocksThatFailedAndSaysWhy) {
  auto record = test::make_run({.classes = {{.name = "code", .prompts = 5}}});
  record.blocks[1].status = record::CellStatus::failed;
  record.blocks[1].reason = "out of memory";
  record.blocks[2].status = record::CellStatus::failed;
  record.blocks[2].reason = "out of memory";
  record.blocks[3].samples.pop_back();
  const Comparison comparison = overall(record);
  EXPECT_EQ(comparison.pairs, 2U);
  EXPECT_THAT(comparison.notes,
              Contains("2 blocks not used: failed: out of memory (code/p2, code/p3)"));
  EXPECT_THAT(comparison.notes,
              Contains("1 block not used: it holds no sample of one of the two arms (code/p4)"));
}

/// What a run notes where an arm's text parts from its baseline's.
record::Comparison noted(bool equal, bool numeric_tie) {
  record::Comparison comparison;
  comparison.arm = "lookup-3";
  comparison.baseline = "plain";
  comparison.equal = equal;
  comparison.numeric_tie = numeric_tie;
  return comparison;
}

// Ties are told from real differences by the run; token ids tell whether there is any.
TEST(Pairing, TellsTiesFromDifferences) {
  auto record = one_pair();
  record.blocks[0].samples = {plain_20(), bursts_of_4(parting_at(15))};
  record.blocks[0].comparisons = {noted(false, true)};
  EXPECT_EQ(overall(record).outputs_tied, 1U);
  EXPECT_EQ(overall(record).outputs_different, 0U);
  record.blocks[0].comparisons[0].numeric_tie = false;
  EXPECT_EQ(overall(record).outputs_different, 1U);
  record.blocks[0].comparisons.clear();
  EXPECT_EQ(overall(record).outputs_different, 1U);
  // A record that calls different texts equal is not believed.
  record.blocks[0].comparisons = {noted(true, false)};
  EXPECT_EQ(overall(record).outputs_different, 1U);
}

// G4: the first sample of a run takes ten times as long.
TEST(ColdStart, IsLeftOutAndNamed) {
  auto record = test::make_run(
      {.classes = {{.name = "code", .prompts = 8, .speedup = 1.3}}, .noise = {.sigma = 0.02}});
  test::scale_times(record.blocks[0].samples[0], 10);
  const Comparison comparison = overall(record);
  EXPECT_EQ(comparison.pairs, 7U);
  EXPECT_THAT(comparison.notes, Contains(HasSubstr("a cold start (code/p1)")));
  EXPECT_NEAR(*comparison.speedup.value, 1.3, 0.04);
  EXPECT_EQ(comparison.verdict, Verdict::enable);
}

TEST(ColdStart, IsOnlySeenInTheFirstSample) {
  auto record = test::make_run({.classes = {{.name = "code", .prompts = 8, .speedup = 1.3}}});
  test::scale_times(record.blocks[0].samples[1], 10);
  EXPECT_EQ(overall(record).pairs, 8U);
}

TEST(ColdStart, IsNotALongText) {
  auto record = test::make_run({.classes = {{.name = "code", .prompts = 8, .speedup = 1.3}}});
  auto longer =
      test::make_run({.classes = {{.name = "code", .prompts = 1, .speedup = 1.3}}, .tokens = 401});
  record.blocks[0] = longer.blocks[0];
  EXPECT_EQ(overall(record).pairs, 8U);
}

TEST(ColdStart, IsNotGuessedFromTooFewSamples) {
  auto record = test::make_run({.classes = {{.name = "code", .prompts = 4, .speedup = 1.3}}});
  test::scale_times(record.blocks[0].samples[0], 10);
  EXPECT_EQ(overall(record).pairs, 4U);
}

}  // namespace
}  // namespace paceline::gate
