// The small parts of core: draft trees, checks, the clock, the log.
#include <gtest/gtest.h>

#include "core/check.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/tree.hpp"
#include "support/manual_clock.hpp"
#include "support/matchers.hpp"

namespace paceline {
namespace {

TEST(DraftTree, OfNothingHasNeitherLeavesNorDepth) {
  const DraftTree tree;
  EXPECT_TRUE(tree.empty());
  EXPECT_EQ(tree.leaves(), 0U);
  EXPECT_EQ(tree.depth(), 0U);
  EXPECT_TRUE(DraftTree::chain({}).empty());
}

TEST(DraftTree, AsAChainHasOneLeaf) {
  const DraftTree tree = DraftTree::chain(std::vector<Token>{Token{5}, Token{6}, Token{7}});
  ASSERT_EQ(tree.size(), 3U);
  EXPECT_EQ(tree.leaves(), 1U);
  EXPECT_EQ(tree.depth(), 3U);
  EXPECT_EQ(tree.nodes[0].parent, k_tree_root);
  EXPECT_EQ(tree.nodes[2].parent, 1);
  EXPECT_EQ(tree.nodes[2].token, Token{7});
}

TEST(DraftTree, CountsLeavesAndDepthOfBranches) {
  DraftTree tree;
  const auto a = tree.add(Token{1}, k_tree_root);
  tree.add(Token{2}, k_tree_root);
  const auto c = tree.add(Token{3}, a);
  tree.add(Token{4}, a);
  tree.add(Token{5}, c);
  EXPECT_EQ(tree.leaves(), 3U);
  EXPECT_EQ(tree.depth(), 3U);
}

TEST(CheckDeathTest, PrintsReasonConditionAndPlaceAndAborts) {
  EXPECT_DEATH(PACELINE_CHECK(1 + 1 == 3, "arithmetic broke"),
               "arithmetic broke \\(1 \\+ 1 == 3\\) at .*small_parts_test");
}

TEST(Check, DoesNothingWhenTheConditionHolds) {
  int evaluated = 0;
  PACELINE_CHECK(++evaluated == 1, "evaluated once");
  EXPECT_EQ(evaluated, 1);
}

TEST(Clock, TurnsDurationsIntoMilliseconds) {
  EXPECT_EQ(to_ms(Nanoseconds{1'500'000}), 1.5);
  EXPECT_EQ(to_ms(Nanoseconds{-1'000'000}), -1.0);
}

TEST(SystemClock, DoesNotGoBackwards) {
  SystemClock clock;
  Nanoseconds last = clock.now();
  for (int i = 0; i < 1000; ++i) {
    const Nanoseconds now = clock.now();
    ASSERT_GE(now, last);
    last = now;
  }
  EXPECT_GT(clock.unix_seconds(), 1.7e9);
}

TEST(ManualClock, MovesByItsStepAtEveryReading) {
  test::ManualClock clock{Nanoseconds{3}};
  const Nanoseconds first = clock.now();
  EXPECT_EQ(clock.now() - first, Nanoseconds{3});
  clock.advance(Nanoseconds{10});
  EXPECT_EQ(clock.now() - first, Nanoseconds{16});
}

TEST(Log, WritesToStderrWhatReachesItsLevel) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  log_debug("hidden {}", 1);
  log_warning("seen {}", 2);
  log(LogLevel::info, "braces {} stay");
  set_log_level(LogLevel::warning);
  log_info("hidden too");
  set_log_level(LogLevel::info);
  const std::string out = testing::internal::GetCapturedStdout();
  const std::string err = testing::internal::GetCapturedStderr();
  EXPECT_EQ(out, "");
  EXPECT_EQ(err, "warning: seen 2\ninfo: braces {} stay\n");
}

}  // namespace
}  // namespace paceline
