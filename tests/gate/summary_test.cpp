// Sums over samples: drafting, cost, gaps, speed, and records that contradict themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/gate.hpp"
#include "gate/scripted_run.hpp"

namespace paceline::gate {
namespace {

using test::distinct_tokens;
using test::make_sample;
using test::sample_of;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Optional;

/// 12 tokens in rounds of (drafted, accepted): (3, 3) (3, 1) (2, 2) (1, 0) (3, 0).
record::Record known_counts() {
  auto record = test::make_run({.classes = {{.name = "code", .prompts = 1}}, .tokens = 12});
  record.blocks[0].samples = {
      make_sample({.arm = "plain",
                   .tokens = distinct_tokens(12),
                   .prefill_ms = 20,
                   .rounds = std::vector<test::RoundScript>(11, {.verify_ms = 10})}),
      make_sample({.arm = "lookup-3",
                   .tokens = distinct_tokens(12),
                   .prefill_ms = 20,
                   .other_ms = 2,
                   .rounds = {{.drafted = 3, .accepted = 3, .draft_ms = 1, .verify_ms = 14},
                              {.drafted = 3, .accepted = 1, .draft_ms = 1, .verify_ms = 14},
                              {.drafted = 2, .accepted = 2, .draft_ms = 1, .verify_ms = 12},
                              {.drafted = 1, .draft_ms = 1, .verify_ms = 31, .accept_ms = 3},
                              {.drafted = 3, .draft_ms = 1, .verify_ms = 14}}})};
  return record;
}

Comparison overall(const record::Record& record) {
  return evaluate(record, Policy{}).overall.at(0);
}

// G9: the definitions, on counts that can be checked by hand.
TEST(DraftStatistics, AreRatiosOfSums) {
  const DraftStatistics draft = overall(known_counts()).draft;
  EXPECT_EQ(draft.rounds, 5U);
  EXPECT_EQ(draft.drafted, 12U);
  EXPECT_EQ(draft.accepted, 6U);
  EXPECT_EQ(draft.emitted_by_rounds, 11U);
  EXPECT_EQ(draft.emitted, 12U);
  EXPECT_EQ(draft.target_forwards, 6U);
  EXPECT_THAT(draft.acceptance_rate, Optional(0.5));
  EXPECT_THAT(draft.tokens_per_round, Optional(11.0 / 5));
  EXPECT_THAT(draft.rows_per_token, Optional(17.0 / 11));
}

TEST(DraftStatistics, ByPositionAreConditionalAndUnconditional) {
  const DraftStatistics draft = overall(known_counts()).draft;
  // Position 0: drafted in 5 rounds, accepted in 3. Position 1: drafted in 4 rounds, in 3 of them
  // after an accepted token, accepted in 2. Position 2: drafted after two accepted once, accepted.
  EXPECT_THAT(draft.acceptance_at,
              ElementsAre(Optional(3.0 / 5), Optional(2.0 / 3), Optional(1.0)));
  EXPECT_THAT(draft.unconditional_at,
              ElementsAre(Optional(3.0 / 5), Optional(2.0 / 5), Optional(1.0 / 5)));
}

TEST(DraftStatistics, OfNoDraftsAreAbsentNotZero) {
  auto record = known_counts();
  record.blocks[0].samples[1].rounds.clear();
  record.blocks[0].samples[1].drafted_at = {0};
  record.blocks[0].samples[1].accepted_at = {0};
  const DraftStatistics draft = overall(record).draft;
  EXPECT_FALSE(draft.acceptance_rate);
  EXPECT_FALSE(draft.tokens_per_round);
  EXPECT_FALSE(draft.rows_per_token);
  EXPECT_THAT(draft.acceptance_at, ElementsAre(std::nullopt));
}

TEST(CostSplit, SumsToTheWall) {
  const Comparison comparison = overall(known_counts());
  const CostSplit& cost = comparison.cost_speculative;
  EXPECT_NEAR(cost.wall_ms, 115, 1e-9);
  EXPECT_NEAR(cost.prefill_ms, 20, 1e-9);
  EXPECT_NEAR(cost.draft_ms, 5, 1e-9);
  EXPECT_NEAR(cost.verify_ms, 85, 1e-9);
  EXPECT_NEAR(cost.accept_ms, 3, 1e-9);
  EXPECT_NEAR(cost.other_ms, 2, 1e-9);
  EXPECT_NEAR(comparison.cost_plain.wall_ms, 130, 1e-9);
}

TEST(Gaps, AreBetweenDeliveriesAfterTheFirst) {
  const Comparison comparison = overall(known_counts());
  EXPECT_NEAR(*comparison.longest_gap_plain_ms, 10, 1e-9);
  EXPECT_NEAR(*comparison.longest_gap_speculative_ms, 35, 1e-9);
}

TEST(Speeds, LeaveTheFirstTokenOut) {
  const Comparison comparison = overall(known_counts());
  EXPECT_NEAR(*comparison.plain_tokens_per_s, 100, 1e-9);
  EXPECT_NEAR(*comparison.speculative_tokens_per_s, 11 / 0.095, 1e-6);
}

/// The notes when `spoil` is done to the speculative sample.
template <typename Spoil>
std::vector<std::string> notes_after(const Spoil& spoil) {
  auto record = known_counts();
  spoil(sample_of(record.blocks[0], "lookup-3"));
  return overall(record).notes;
}

TEST(Identities, HoldInASoundRecord) {
  EXPECT_THAT(notes_after([](record::Sample&) {}), Not(Contains(HasSubstr("contradicts"))));
}

TEST(Identities, AreCheckedOneByOne) {
  const auto says = [](const char* words) { return Contains(HasSubstr(words)); };
  EXPECT_THAT(notes_after([](record::Sample& s) { s.rounds[3].accepted = 2; }),
              says("the record contradicts itself in 1 of 1 samples of lookup-3: more tokens were "
                   "accepted than drafted"));
  EXPECT_THAT(notes_after([](record::Sample& s) { s.rounds[0].emitted = 5; }),
              says("a round emitted fewer tokens than it accepted, or more than those and one"));
  EXPECT_THAT(notes_after([](record::Sample& s) { s.tokens.push_back(1); }),
              says("the text is not the first token and what the rounds emitted"));
  EXPECT_THAT(notes_after([](record::Sample& s) { s.accepted_at[1] += 1; }),
              says("accepted tokens by position do not sum to accepted tokens by round"));
  EXPECT_THAT(notes_after([](record::Sample& s) { s.target_forwards = 2; }),
              says("there were fewer target forwards than rounds"));
  EXPECT_THAT(notes_after([](record::Sample& s) { s.rounds[1].verify_ns += 1; }),
              says("prefill, draft, verify, accept and other do not sum to the wall time"));
  EXPECT_THAT(notes_after([](record::Sample& s) {
                s.rounds[1].draft_ns -= 2'000'000;
                s.rounds[1].verify_ns += 2'000'000;
              }),
              says("a time is negative or earlier than the one before it"));
}

// A record that misses a part still gives a split that sums to the wall.
TEST(CostSplit, OfARecordThatMissesAPartGivesItToOther) {
  auto record = known_counts();
  sample_of(record.blocks[0], "lookup-3").rounds[0].verify_ns -= 4'000'000;
  const CostSplit cost = overall(record).cost_speculative;
  EXPECT_NEAR(cost.other_ms, 6, 1e-9);
  EXPECT_NEAR(cost.prefill_ms + cost.draft_ms + cost.verify_ms + cost.accept_ms + cost.other_ms,
              cost.wall_ms, 1e-9);
}

}  // namespace
}  // namespace paceline::gate
