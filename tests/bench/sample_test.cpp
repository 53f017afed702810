// One run of one prompt: its times and counts.
#include "bench/sample.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "bench/scene.hpp"
#include "draft/lookup.hpp"
#include "support/fake_runtime.hpp"
#include "support/matchers.hpp"

namespace paceline::test {
namespace {

using std::chrono::milliseconds;

void expect_sums(const record::Sample& sample) {
  std::int64_t parts = sample.prefill_ns + sample.other_ns;
  std::size_t emitted = 1;
  std::int64_t delivered = sample.prefill_ns;
  for (const record::Round& round : sample.rounds) {
    parts += round.draft_ns + round.verify_ns + round.accept_ns + round.other_ns;
    emitted += round.emitted;
    for (const std::int64_t time :
         {round.draft_ns, round.verify_ns, round.accept_ns, round.other_ns}) {
      EXPECT_GE(time, 0);
    }
    EXPECT_GT(round.delivered_ns, delivered);
    delivered = round.delivered_ns;
    EXPECT_EQ(round.rows, round.drafted + 1);
    EXPECT_LE(round.accepted, round.drafted);
  }
  EXPECT_EQ(parts, sample.elapsed_ns);
  EXPECT_GE(sample.other_ns, 0);
  EXPECT_LE(delivered, sample.elapsed_ns);
  EXPECT_EQ(emitted, sample.tokens.size());
  EXPECT_GT(sample.first_token_ns, 0);
  EXPECT_LE(sample.first_token_ns, sample.prefill_ns);
  EXPECT_LE(sample.streamed_chunks, 1 + sample.rounds.size());
  if (sample.first_text_ns) {
    EXPECT_GE(*sample.first_text_ns, sample.first_token_ns);
  }
}

TEST(Sample, HasTimesThatSumToTheWallTime) {
  Scene scene;
  scene.add_plain();
  scene.add_lookup(3);
  scene.add_draft("toy:7,agree=0.7", 4);
  scene.add_prompts("a", 6);
  ASSERT_THAT(scene.run(), IsOk());
  for (const record::Block& block : scene.record.blocks) {
    for (const record::Sample& sample : block.samples) expect_sums(sample);
  }
}

// Only passes and drafts move this clock, so every part of the record has one right value.
TEST(Sample, PutsEachTimeWhereItWasSpent) {
  Scene scene;
  scene.clock = ManualClock();
  const auto pass = milliseconds(5);
  const auto draft = milliseconds(2);
  scene.target.before_pass = [&](auto, auto) -> Result<void> {
    scene.clock.advance(pass);
    return {};
  };
  FakeDrafter drafter([](std::span<const Token>, std::size_t depth) {
    const auto chain = tokens({1, 2});
    return DraftTree::chain(std::span(chain).first(std::min<std::size_t>(depth, 2)));
  });
  drafter.before_draft = [&]() -> Result<void> {
    scene.clock.advance(draft);
    return {};
  };
  scene.add_plain();
  scene.add_drafter("slow", drafter, 2);
  scene.add_prompts("a", 1);
  scene.setup.prompts.front().tokens.resize(130, Token{9});  // three passes of at most 64 rows
  ASSERT_THAT(scene.run(), IsOk());
  const record::Block& block = scene.record.blocks.front();
  for (const record::Sample& sample : block.samples) {
    const std::int64_t prefill = 3 * Nanoseconds(pass).count();
    EXPECT_EQ(sample.prefill_ns, prefill);
    EXPECT_EQ(sample.first_token_ns, prefill);
    EXPECT_EQ(sample.other_ns, 0);
    std::int64_t delivered = prefill;
    for (std::size_t i = 0; i < sample.rounds.size(); ++i) {
      const record::Round& round = sample.rounds[i];
      // With one token to go there is nothing to draft.
      const bool drafts = sample.arm == "slow" && i + 1 < sample.rounds.size();
      if (i + 1 < sample.rounds.size() || sample.arm == "plain") {
        EXPECT_EQ(round.draft_ns, drafts ? Nanoseconds(draft).count() : 0) << i;
      }
      EXPECT_EQ(round.verify_ns, Nanoseconds(pass).count());
      EXPECT_EQ(round.accept_ns, 0);
      EXPECT_EQ(round.other_ns, 0);
      delivered += round.draft_ns + round.verify_ns;
      EXPECT_EQ(round.delivered_ns, delivered);
    }
    EXPECT_EQ(sample.elapsed_ns, delivered);
    EXPECT_EQ(sample.target_forwards, 3 + sample.rounds.size());
    EXPECT_NEAR(sample.ended_at_unix_seconds - sample.started_at_unix_seconds,
                static_cast<double>(sample.elapsed_ns) * 1e-9, 1e-6);
  }
}

TEST(Sample, CountsItsOwnPassesAndNotThoseBefore) {
  const auto scene = lookup_scene(1, 3);
  ASSERT_THAT(scene->run(), IsOk());
  for (const record::Block& block : scene->record.blocks) {
    for (const record::Sample& sample : block.samples) {
      std::uint64_t rows = sample.prompt_tokens;
      for (const record::Round& round : sample.rounds) rows += round.rows;
      EXPECT_EQ(sample.target_forwards, 1 + sample.rounds.size());
      EXPECT_EQ(sample.target_rows, rows);
      EXPECT_EQ(sample.replayed_rows, 0U);
    }
    EXPECT_LE(sample_of(block, "lookup-3").drafted_at.size(), 3U);
    EXPECT_EQ(sample_of(block, "plain").drafted_at.size(), 0U);
  }
}

TEST(Sample, LeavesNoSequenceAndNoSlotBehind) {
  FakeRuntime target(8, {.sequences = 1, .context = 64, .rows = 16},
                     follow_script(8, tokens({1, 2}), tokens({3, 4, 5, 6}), Token{7}));
  const FakeVocabulary vocabulary({"", "a", "b", "c", "d", "e", "f", "g"}, {Token{0}});
  FakeDrafter drafter(propose_script(
      tokens({1, 2}), tokens({3, 4, 5, 6}), [](std::size_t i) { return i == 2; },
      [](Token) { return Token{7}; }));
  bench::Contender contender{.arm = {}, .target = &target, .drafter = {}};
  contender.arm.num_draft_tokens = 2;
  contender.drafter = [&](const bench::SampleFacts&) -> Result<draft::Drafter*> {
    return &drafter;
  };
  bench::PreparedPrompt prompt;
  prompt.tokens = tokens({1, 2});
  ManualClock clock;
  for (const bool fails : {false, true}) {
    if (fails) {
      target.before = [&](Call call) -> Result<void> {
        if (call == Call::accept && target.passes().back().size() == 1) {
          return fail(ErrorCode::runtime_failed, "cells are lost");
        }
        return {};
      };
    }
    const auto sample = bench::run_sample(contender, prompt, 4, vocabulary, clock, {}, {});
    EXPECT_EQ(sample.has_value(), !fails);
    EXPECT_EQ(target.sequences_in_use(), 0U);
    EXPECT_TRUE(drafter.observed().empty());
  }
}

}  // namespace
}  // namespace paceline::test
