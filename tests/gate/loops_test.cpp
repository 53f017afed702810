// Where a text falls into a loop.
#include <gtest/gtest.h>

#include <vector>

#include "gate/gate.hpp"
#include "gate/scripted_run.hpp"

namespace paceline::gate {
namespace {

using Tokens = std::vector<std::int32_t>;

/// A text without repetition, then `period` tokens over and over, `repeated` tokens in all.
Tokens looping(std::size_t before, std::size_t period, std::size_t repeated) {
  Tokens tokens = test::distinct_tokens(before);
  for (std::size_t i = 0; i < repeated; ++i) {
    tokens.push_back(static_cast<std::int32_t>(1000 + i % period));
  }
  return tokens;
}

TEST(LoopOnset, IsTheFirstTokenOfTheSecondTurn) {
  EXPECT_EQ(loop_onset(looping(20, 6, 30)), 26U);
  EXPECT_EQ(loop_onset(looping(0, 6, 30)), 6U);
  EXPECT_EQ(loop_onset(looping(5, 1, 16)), 6U);
  EXPECT_EQ(loop_onset(looping(7, 48, 144)), 55U);
}

TEST(LoopOnset, NeedsThreeTurns) {
  EXPECT_EQ(loop_onset(looping(10, 8, 23)), std::nullopt);
  EXPECT_EQ(loop_onset(looping(10, 8, 24)), 18U);
}

TEST(LoopOnset, NeedsSixteenTokens) {
  EXPECT_EQ(loop_onset(looping(10, 1, 15)), std::nullopt);
  EXPECT_EQ(loop_onset(looping(10, 1, 16)), 11U);
  EXPECT_EQ(loop_onset(looping(10, 4, 15)), std::nullopt);
  EXPECT_EQ(loop_onset(looping(10, 4, 16)), 14U);
}

TEST(LoopOnset, HasALongestPeriod) {
  EXPECT_EQ(loop_onset(looping(0, 49, 49 * 4)), std::nullopt);
  EXPECT_EQ(loop_onset(looping(0, 48, 48 * 4)), 48U);
}

TEST(LoopOnset, TakesATurnThatIsCutAtTheEnd) {
  EXPECT_EQ(loop_onset(looping(3, 7, 7 * 3 + 4)), 10U);
}

TEST(LoopOnset, IsNotARepetitionThatTheTextLeaves) {
  Tokens tokens = looping(5, 2, 30);
  tokens.push_back(77);
  EXPECT_EQ(loop_onset(tokens), std::nullopt);
}

TEST(LoopOnset, DoesNotTakeAMultipleOfThePeriod) { EXPECT_EQ(loop_onset(looping(9, 3, 60)), 12U); }

TEST(LoopOnset, OfNothingOrOneTokenIsNone) {
  EXPECT_EQ(loop_onset({}), std::nullopt);
  EXPECT_EQ(loop_onset({5}), std::nullopt);
  EXPECT_EQ(loop_onset(test::distinct_tokens(500)), std::nullopt);
}

TEST(LoopOnset, AgreesWithTheDefinitionTakenLiterally) {
  // Every text of 17 tokens over three letters whose first five are fixed to keep it fast.
  const auto literally = [](const Tokens& tokens) -> std::optional<std::size_t> {
    for (std::size_t onset = 1; onset < tokens.size(); ++onset) {
      for (std::size_t period = 1; period <= std::min(k_longest_period, onset); ++period) {
        bool repeats = true;
        for (std::size_t i = onset; i < tokens.size(); ++i) {
          repeats = repeats && tokens[i] == tokens[i - period];
        }
        const std::size_t covered = tokens.size() - onset + period;
        if (repeats && covered >= k_shortest_repeats * period && covered >= k_shortest_loop) {
          return onset;
        }
      }
    }
    return std::nullopt;
  };
  Random random(3);
  std::size_t loops = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::size_t period = 1 + random.below(6);
    Tokens tokens;
    for (std::size_t i = 0; i < random.below(6); ++i) {
      tokens.push_back(static_cast<std::int32_t>(random.below(2)));
    }
    Tokens turn;
    for (std::size_t i = 0; i < period; ++i) {
      turn.push_back(static_cast<std::int32_t>(random.below(2)));
    }
    for (std::size_t i = 0; i < 10 + random.below(20); ++i) tokens.push_back(turn[i % period]);
    if (random.below(3) == 0) tokens[random.below(tokens.size())] = 9;
    EXPECT_EQ(loop_onset(tokens), literally(tokens));
    loops += loop_onset(tokens) ? 1U : 0U;
  }
  EXPECT_GT(loops, 500U);
}

}  // namespace
}  // namespace paceline::gate
