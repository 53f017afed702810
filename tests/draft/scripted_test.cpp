#include "draft/scripted.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_runtime.hpp"
#include "support/matchers.hpp"

namespace paceline::draft {
namespace {

using test::FailsWith;
using test::IsOk;
using test::tokens;
using test::value_of;
using testing::IsEmpty;

constexpr std::size_t k_vocabulary = 50;

ScriptedOptions options_with(std::function<bool(std::size_t)> right, std::size_t decoys = 0) {
  return {.oracle = tokens({10, 11, 12, 13, 14}),
          .prompt_tokens = 2,
          .right = std::move(right),
          .vocabulary = k_vocabulary,
          .decoys_before = decoys};
}

/// The draft after the prompt and `emitted` tokens of the text.
DraftTree draft_after(const ScriptedOptions& options, std::size_t emitted, std::size_t depth) {
  const auto drafter = make_scripted_drafter(options);
  const DraftSlot slot = value_of(drafter->open());
  EXPECT_THAT(drafter->observe(slot, tokens({1, 2})), IsOk());
  EXPECT_THAT(drafter->observe(slot, std::span(options.oracle).first(emitted)), IsOk());
  DraftRequest request{.slot = slot, .depth = depth, .tree = {}};
  EXPECT_THAT(drafter->draft(std::span(&request, 1), {}), IsOk());
  EXPECT_LE(request.tree.leaves(), drafter->max_leaves());
  return request.tree;
}

TEST(ScriptedDrafter, ProposesTheTextAheadWhereItShallBeRight) {
  const auto options = options_with([](std::size_t) { return true; });
  for (std::size_t emitted = 1; emitted <= 5; ++emitted) {
    for (std::size_t depth = 0; depth <= 6; ++depth) {
      const DraftTree tree = draft_after(options, emitted, depth);
      ASSERT_EQ(tree.size(), std::min(depth, 5 - emitted));
      for (std::size_t i = 0; i < tree.size(); ++i) {
        EXPECT_EQ(tree.nodes[i].token, options.oracle[emitted + i]);
      }
    }
  }
}

TEST(ScriptedDrafter, ProposesAnotherTokenWhereItShallBeWrong) {
  const auto options = options_with([](std::size_t index) { return index != 2; });
  const DraftTree tree = draft_after(options, 1, 3);
  ASSERT_EQ(tree.size(), 3U);
  EXPECT_EQ(tree.nodes[0].token, options.oracle[1]);
  EXPECT_NE(tree.nodes[1].token, options.oracle[2]);
  EXPECT_EQ(tree.nodes[2].token, options.oracle[3]);
}

TEST(ScriptedDrafter, PutsWrongSiblingsBeforeEveryNode) {
  const auto options = options_with([](std::size_t) { return true; }, 2);
  const DraftTree tree = draft_after(options, 1, 3);
  ASSERT_EQ(tree.size(), 9U);
  EXPECT_EQ(tree.depth(), 3U);
  EXPECT_EQ(tree.leaves(), 7U);
  for (std::size_t level = 0; level < 3; ++level) {
    const std::int32_t parent = level == 0 ? k_tree_root : static_cast<std::int32_t>(3 * level - 1);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(tree.nodes[3 * level + i].parent, parent);
      EXPECT_EQ(tree.nodes[3 * level + i].token == options.oracle[1 + level], i == 2);
    }
  }
}

TEST(ScriptedDrafter, WritesOneTextAtATime) {
  const auto drafter = make_scripted_drafter(options_with([](std::size_t) { return true; }));
  const DraftSlot slot = value_of(drafter->open());
  EXPECT_THAT(drafter->open(), FailsWith(ErrorCode::busy));
  drafter->close(slot);
  EXPECT_THAT(drafter->open(), IsOk());
}

TEST(ScriptedDrafter, ProposesNothingBeforeTheFirstTokenIsKnown) {
  const auto drafter = make_scripted_drafter(options_with([](std::size_t) { return true; }));
  const DraftSlot slot = value_of(drafter->open());
  DraftRequest request{.slot = slot, .depth = 3, .tree = {}};
  EXPECT_THAT(drafter->draft(std::span(&request, 1), {}), IsOk());
  EXPECT_THAT(request.tree.nodes, IsEmpty());
}

TEST(RightWithProbability, IsTheSameForTheSameSeedAndHasTheProbability) {
  for (const double probability : {0.0, 0.25, 0.8, 1.0}) {
    const auto first = right_with_probability(probability, 3);
    const auto second = right_with_probability(probability, 3);
    std::size_t right = 0;
    for (std::size_t i = 0; i < 20000; ++i) {
      ASSERT_EQ(first(i), second(i));
      if (first(i)) ++right;
    }
    EXPECT_NEAR(static_cast<double>(right) / 20000, probability, 0.01);
  }
}

}  // namespace
}  // namespace paceline::draft
