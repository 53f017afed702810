// The rules from interval to verdict, and what overrides them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/gate.hpp"
#include "gate/scripted_run.hpp"

namespace paceline::gate {
namespace {

using test::make_run;
using test::sample_of;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

Comparison overall(const record::Record& record, const Policy& policy = {}) {
  return evaluate(record, policy).overall.at(0);
}

record::Record steady(double speedup, double sigma = 0.02, std::size_t prompts = 8) {
  return make_run({.classes = {{.name = "code", .prompts = prompts, .speedup = speedup}},
                   .noise = {.sigma = sigma},
                   .seed = 11});
}

TEST(Verdict, IsEnableWhereTheLowerBoundReachesTheFloor) {
  const Comparison comparison = overall(steady(1.3));
  EXPECT_EQ(comparison.verdict, Verdict::enable);
  EXPECT_EQ(comparison.difference, Difference::faster);
  EXPECT_THAT(comparison.reasons, ElementsAre(HasSubstr("reaches the floor of 1.15")));
  EXPECT_FALSE(comparison.further_pairs);
}

TEST(Verdict, IsDoNotEnableWhereTheUpperBoundIsBelowTheFloor) {
  const Comparison comparison = overall(steady(1.05, 0.01));
  EXPECT_EQ(comparison.verdict, Verdict::do_not_enable);
  EXPECT_EQ(comparison.difference, Difference::faster);
  EXPECT_THAT(comparison.reasons, ElementsAre(HasSubstr("is below the floor of 1.15")));
}

TEST(Verdict, IsInconclusiveInBetweenAndSaysHowManyMoreWouldDo) {
  const Comparison comparison = overall(steady(1.2, 0.1));
  EXPECT_EQ(comparison.verdict, Verdict::inconclusive);
  ASSERT_TRUE(comparison.further_pairs);
  EXPECT_GT(*comparison.further_pairs, 3U);
}

TEST(Verdict, EqualToTheFloorIsEnough) {
  // Without noise the interval is a point; the floor is that point.
  const auto record = make_run({.classes = {{.name = "code", .prompts = 4, .speedup = 1.25}}});
  const double exact = *overall(record).speedup.low;
  EXPECT_EQ(overall(record, {.ratio_floor = exact}).verdict, Verdict::enable);
  EXPECT_EQ(overall(record, {.ratio_floor = exact * 1.000001}).verdict, Verdict::do_not_enable);
}

// The number of further prompts is worth something: with it, most runs are decided.
TEST(Verdict, FurtherPairsProbablyDecide) {
  std::size_t undecided = 0;
  std::size_t then_decided = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    const auto with = [&](std::size_t prompts) {
      return overall(make_run({.classes = {{.name = "code", .prompts = prompts, .speedup = 1.22}},
                               .noise = {.sigma = 0.08},
                               .seed = seed}));
    };
    const Comparison first = with(8);
    if (first.verdict != Verdict::inconclusive || !first.further_pairs ||
        *first.further_pairs > 200) {
      continue;
    }
    ++undecided;
    then_decided += with(8 + *first.further_pairs).verdict == Verdict::inconclusive ? 0U : 1U;
  }
  ASSERT_GT(undecided, 40U);
  EXPECT_GT(static_cast<double>(then_decided) / static_cast<double>(undecided), 0.6);
}

TEST(Verdict, OfOnePromptIsInconclusiveHoweverOftenItIsRepeated) {
  const auto record = make_run({.classes = {{.name = "code", .prompts = 1, .speedup = 2}},
                                .noise = {.sigma = 0.02},
                                .repetitions = 5});
  const Comparison comparison = overall(record);
  EXPECT_EQ(comparison.verdict, Verdict::inconclusive);
  EXPECT_EQ(comparison.difference, Difference::undecided);
  EXPECT_FALSE(comparison.further_pairs);
  EXPECT_THAT(comparison.reasons, ElementsAre(HasSubstr("no interval: one prompt cannot say")));
  EXPECT_THAT(comparison.notes, Contains(HasSubstr("its 5 repetitions range from")));
}

// B2: the draft costs half a step per token. B3: 95 % acceptance, and far slower.
TEST(Verdict, IsJudgedByTimeNotByAcceptance) {
  auto record = make_run({.classes = {{.name = "code", .prompts = 8}}});
  for (record::Block& block : record.blocks) {
    auto& speculative = sample_of(block, "lookup-3");
    speculative =
        test::make_sample({.arm = "lookup-3",
                           .tokens = speculative.tokens,
                           .rounds = std::vector<test::RoundScript>(
                               8, {.drafted = 3, .accepted = 3, .draft_ms = 5, .verify_ms = 140})});
  }
  const Comparison comparison = overall(record);
  EXPECT_EQ(comparison.draft.acceptance_rate, 1.0);
  EXPECT_EQ(comparison.verdict, Verdict::do_not_enable);
  EXPECT_EQ(comparison.difference, Difference::slower);
  EXPECT_THAT(comparison.notes,
              Contains("a round takes 14.50 plain steps (draft 0.50, verify 14.00) and gives 4.00 "
                       "tokens"));
}

// A11, rule 13: nothing drafted is not parity.
TEST(Verdict, OfAnArmThatDraftedNothingIsNotExercised) {
  const auto record =
      make_run({.classes = {{.name = "code", .prompts = 8, .speedup = 1}}, .drafts = false});
  const Comparison comparison = overall(record);
  EXPECT_EQ(comparison.difference, Difference::not_exercised);
  EXPECT_EQ(comparison.verdict, Verdict::do_not_enable);
  EXPECT_THAT(comparison.reasons,
              ElementsAre("lookup-3 drafted nothing in 8 pairs: no passage of the prompts or texts "
                          "came up a second time"));
}

TEST(Verdict, NamesTheLikelyCauseOfNoDrafts) {
  auto record = make_run({.classes = {{.name = "code", .prompts = 2}}, .drafts = false});
  record::Arm& arm = record.plan.arms[1];
  arm.kind = record::ArmKind::draft_model;
  EXPECT_THAT(overall(record).reasons, ElementsAre(HasSubstr("proposed no token")));
  arm.draft_confidence = 0.9;
  EXPECT_THAT(overall(record).reasons,
              ElementsAre(HasSubstr("never surer than the asked-for 0.90")));
  arm.num_draft_tokens = 0;
  EXPECT_THAT(overall(record).reasons, ElementsAre(HasSubstr("its draft depth is 0")));
}

// B12: 1 of 633 drafts accepted.
TEST(Verdict, OfAHopelessDrafterSaysSo) {
  auto record = make_run(
      {.classes = {{.name = "code", .prompts = 7, .speedup = 0.8}}, .tokens = 33, .drafts = false});
  for (record::Block& block : record.blocks) {
    auto& speculative = sample_of(block, "lookup-3");
    for (record::Round& round : speculative.rounds) round.drafted = 3;
    speculative.drafted_at = {32, 32, 32};
    speculative.accepted_at = {0, 0, 0};
  }
  const Comparison comparison = overall(record);
  EXPECT_EQ(comparison.draft.drafted, 672U);
  EXPECT_EQ(comparison.draft.acceptance_rate, 0.0);
  EXPECT_EQ(comparison.verdict, Verdict::do_not_enable);
  EXPECT_THAT(comparison.notes, Contains("0 of 672 drafted tokens were accepted: this drafter does "
                                         "not predict these texts"));
}

// Rule 12: other text is never worth its speed.
TEST(Verdict, OfDifferentTextsIsNeverEnable) {
  auto record = steady(2);
  sample_of(record.blocks[3], "lookup-3").tokens[20] += 7;
  const Comparison comparison = overall(record);
  EXPECT_EQ(comparison.verdict, Verdict::do_not_enable);
  EXPECT_EQ(comparison.difference, Difference::faster);
  EXPECT_EQ(comparison.outputs_different, 1U);
  EXPECT_THAT(comparison.reasons, Contains(HasSubstr("outputs differ: in 1 of 8 pairs")));
}

TEST(Verdict, OfTextsThatPartAtATieMayBeEnable) {
  auto record = steady(2);
  sample_of(record.blocks[3], "lookup-3").tokens[20] += 7;
  record.blocks[3].comparisons.emplace_back();
  record.blocks[3].comparisons[0].arm = "lookup-3";
  record.blocks[3].comparisons[0].baseline = "plain";
  record.blocks[3].comparisons[0].numeric_tie = true;
  const Comparison comparison = overall(record);
  EXPECT_EQ(comparison.verdict, Verdict::enable);
  EXPECT_EQ(comparison.outputs_tied, 1U);
  EXPECT_THAT(comparison.notes, Contains("1 text parts from plain decoding at a numeric tie"));
}

// B18, rule 15.
TEST(Verdict, IsRefusedToDebugAndSanitizerBuilds) {
  auto record = steady(2);
  record.environment.build_type = "Debug";
  Comparison comparison = overall(record);
  EXPECT_EQ(comparison.verdict, Verdict::not_benchmarkable);
  EXPECT_EQ(comparison.difference, Difference::not_measured);
  EXPECT_THAT(comparison.reasons,
              ElementsAre("measured by a Debug build, whose times mean nothing"));
  EXPECT_TRUE(comparison.speedup.value) << "the number itself is kept";

  record.environment.build_type = "RelWithDebInfo";
  EXPECT_EQ(overall(record).verdict, Verdict::enable);
  record.environment.sanitizers = "address,undefined";
  comparison = overall(record);
  EXPECT_EQ(comparison.verdict, Verdict::not_benchmarkable);
  EXPECT_THAT(comparison.reasons, ElementsAre(HasSubstr("sanitizer build (address,undefined)")));
}

TEST(Verdict, OfAScriptedArmIsWhatIfAndNeverRecommended) {
  auto record = steady(2);
  record.plan.arms[1].kind = record::ArmKind::scripted;
  record.plan.arms[1].scripted_acceptance = 0.8;
  const Evaluation evaluation = evaluate(record, Policy{});
  EXPECT_TRUE(evaluation.recommended_arm.empty());
  EXPECT_EQ(evaluation.verdict, Verdict::inconclusive);
  EXPECT_EQ(evaluation.overall[0].difference, Difference::faster);
  EXPECT_THAT(evaluation.overall[0].reasons,
              ElementsAre("a what-if run: acceptance was forced to 0.80, no drafter was measured"));
}

TEST(Verdict, OfClassesCombinesToEnableOnlyWithoutASlowOne) {
  const auto two = [](double second) {
    return make_run({.classes = {{.name = "code", .prompts = 8, .speedup = 1.8},
                                 {.name = "prose", .prompts = 8, .speedup = second}},
                     .noise = {.sigma = 0.01}});
  };
  EXPECT_EQ(overall(two(1.01)).verdict, Verdict::enable)
      << "prose gains nothing, but loses nothing";
  EXPECT_EQ(overall(two(0.95)).verdict, Verdict::do_not_enable);
}

TEST(Verdict, WordsAreThoseOfTheEnums) {
  EXPECT_EQ(to_string(Verdict::do_not_enable), "do_not_enable");
  EXPECT_EQ(to_string(Verdict::not_benchmarkable), "not_benchmarkable");
  EXPECT_EQ(to_string(Difference::not_exercised), "not_exercised");
  EXPECT_EQ(to_string(Difference::parity), "parity");
}

}  // namespace
}  // namespace paceline::gate
