// Speedups and break-even points against values worked out by hand.
#include "plan/break_even.hpp"

#include <gtest/gtest.h>

namespace paceline::plan {
namespace {

TEST(TokensPerRound, IsTheGeometricSum) {
  EXPECT_DOUBLE_EQ(tokens_per_round(0.5, 0), 1);
  EXPECT_DOUBLE_EQ(tokens_per_round(0.5, 3), 1.875);
  EXPECT_DOUBLE_EQ(tokens_per_round(0, 7), 1);
  EXPECT_DOUBLE_EQ(tokens_per_round(1, 7), 8);
}

TEST(Speedup, IsTokensOverCost) {
  EXPECT_DOUBLE_EQ(speedup(0.5, 3, {.pass = 1.25, .draft = 0.25}), 1.25);
  EXPECT_DOUBLE_EQ(speedup(1, 1, {.pass = 1, .draft = 1}), 1);
}

TEST(BreakEven, LiesWhereTheSpeedupIsOne) {
  // One drafted token: 1 + a = 1.4.
  EXPECT_NEAR(break_even_acceptance(1, {.pass = 1.3, .draft = 0.1}).value(), 0.4, 1e-9);
  const RoundCost cost{.pass = 1.8, .draft = 0.6};
  const double acceptance = break_even_acceptance(7, cost).value();
  EXPECT_NEAR(speedup(acceptance, 7, cost), 1, 1e-9);
}

TEST(BreakEven, IsNoneWhereNoAcceptanceIsEnough) {
  EXPECT_FALSE(break_even_acceptance(3, {.pass = 3, .draft = 1.01}).has_value());
  EXPECT_TRUE(break_even_acceptance(3, {.pass = 3, .draft = 0.99}).has_value());
}

TEST(BreakEven, IsZeroWhereTheRoundCostsNoMoreThanAStep) {
  EXPECT_EQ(break_even_acceptance(3, {.pass = 0.9, .draft = 0.1}), 0);
}

}  // namespace
}  // namespace paceline::plan
