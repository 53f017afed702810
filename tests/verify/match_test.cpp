#include "verify/match.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace paceline::verify {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Token k_truth{7};
constexpr Token k_wrong{3};

/// Walks with a target that always says k_truth and a text that ends after `most` tokens.
struct Walk {
  Match match;
  std::vector<std::int32_t> asked;  // nodes, in order
  std::vector<Token> emitted;
};

Walk walk(const DraftTree& tree, std::size_t most = 1000) {
  Walk walk;
  walk.match = sample_and_match(
      tree,
      [&](std::int32_t node) {
        walk.asked.push_back(node);
        return k_truth;
      },
      [&](Token token) {
        walk.emitted.push_back(token);
        return walk.emitted.size() < most;
      });
  return walk;
}

TEST(SampleAndMatch, WithoutADraftEmitsOneToken) {
  const Walk plain = walk({});
  EXPECT_THAT(plain.match.path, IsEmpty());
  EXPECT_THAT(plain.match.emitted, ElementsAre(k_truth));
  EXPECT_THAT(plain.asked, ElementsAre(k_tree_root));
}

TEST(SampleAndMatch, AcceptsAChainUpToItsFirstWrongTokenForEveryMask) {
  for (std::size_t depth = 0; depth <= 5; ++depth) {
    for (unsigned mask = 0; mask < (1U << depth); ++mask) {
      DraftTree tree;
      std::size_t expected = 0;
      bool right_so_far = true;
      for (std::size_t i = 0; i < depth; ++i) {
        const bool right = ((mask >> i) & 1U) != 0;
        right_so_far = right_so_far && right;
        if (right_so_far) ++expected;
        tree.add(right ? k_truth : k_wrong, static_cast<std::int32_t>(i) - 1);
      }
      const Walk seen = walk(tree);
      ASSERT_EQ(seen.match.path.size(), expected) << depth << " " << mask;
      ASSERT_EQ(seen.match.emitted.size(), expected + 1);
      ASSERT_EQ(seen.match.emitted, seen.emitted);
      for (std::size_t i = 0; i < expected; ++i) {
        ASSERT_EQ(seen.match.path[i], static_cast<std::int32_t>(i));
      }
    }
  }
}

TEST(SampleAndMatch, AsksTheTargetOncePerEmittedTokenAndOnlyAlongThePath) {
  const Walk seen = walk(DraftTree::chain(std::vector{k_truth, k_truth, k_wrong, k_truth}));
  EXPECT_THAT(seen.asked, ElementsAre(k_tree_root, 0, 1));
}

TEST(SampleAndMatch, StopsWhereTheTextEndsForEveryEndInEveryDepth) {
  for (std::size_t depth = 0; depth <= 5; ++depth) {
    for (std::size_t most = 1; most <= depth + 1; ++most) {
      const Walk seen = walk(DraftTree::chain(std::vector<Token>(depth, k_truth)), most);
      ASSERT_EQ(seen.emitted.size(), most);
      // The last emitted token counts as accepted where it had been drafted.
      ASSERT_EQ(seen.match.path.size(), std::min(most, depth));
      ASSERT_EQ(seen.asked.size(), most);
    }
  }
}

TEST(SampleAndMatch, FindsTheRightBranch) {
  DraftTree tree;
  tree.add(k_wrong, k_tree_root);
  const auto right = tree.add(k_truth, k_tree_root);
  tree.add(k_truth, 0);  // below the wrong one
  tree.add(k_wrong, right);
  const auto deeper = tree.add(k_truth, right);
  const Walk seen = walk(tree);
  EXPECT_THAT(seen.match.path, ElementsAre(right, deeper));
  EXPECT_EQ(seen.match.emitted.size(), 3U);
}

TEST(SampleAndMatch, DoesNotMistakeANodeElsewhereForAChild) {
  DraftTree tree;
  const auto first = tree.add(k_wrong, k_tree_root);
  tree.add(k_truth, first);  // right token, wrong parent
  EXPECT_THAT(walk(tree).match.path, IsEmpty());
}

TEST(SampleAndMatch, TakesTheFirstOfTwins) {
  DraftTree tree;
  const auto first = tree.add(k_truth, k_tree_root);
  tree.add(k_truth, k_tree_root);
  EXPECT_THAT(walk(tree).match.path, ElementsAre(first));
}

}  // namespace
}  // namespace paceline::verify
