// Medians, percentiles, quantiles and intervals against numbers from tables and textbooks.
#include "gate/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace paceline::gate {
namespace {

using Strata = std::vector<std::vector<double>>;

TEST(Median, OfAnEvenCountIsTheMeanOfTheTwoInTheMiddle) {
  EXPECT_DOUBLE_EQ(*median(std::vector<double>{4, 1, 3, 2}), 2.5);
  EXPECT_DOUBLE_EQ(*median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(*median(std::vector<double>{7}), 7);
}

TEST(Median, OfNothingIsAbsent) { EXPECT_FALSE(median({})); }

TEST(Median, OfTwoHugeValuesDoesNotOverflow) {
  constexpr double huge = std::numeric_limits<double>::max();
  EXPECT_EQ(*median(std::vector<double>{huge, huge}), huge);
}

TEST(NearestRank, IsTheMaximumBelowTwentyValues) {
  std::vector<double> values;
  for (int n = 1; n <= 19; ++n) {
    values.push_back(n);
    EXPECT_EQ(*nearest_rank(values, 0.95), n);
  }
  values.push_back(20);
  EXPECT_EQ(*nearest_rank(values, 0.95), 19);
}

TEST(NearestRank, StaysInTheListForAnyShare) {
  const std::vector<double> values = {3, 1, 2};
  EXPECT_EQ(*nearest_rank(values, 0), 1);
  EXPECT_EQ(*nearest_rank(values, 1), 3);
  EXPECT_EQ(*nearest_rank(values, 0.5), 2);
  EXPECT_FALSE(nearest_rank({}, 0.5));
}

TEST(NormalQuantile, GivesTheValuesOfTheTable) {
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-12);
  EXPECT_NEAR(normal_quantile(0.8), 0.8416212335729143, 1e-12);
  EXPECT_NEAR(normal_quantile(0.001), -3.090232306167814, 1e-12);
  EXPECT_NEAR(normal_quantile(0.5), 0, 1e-12);
}

TEST(TQuantile, GivesTheValuesOfTheTable) {
  EXPECT_NEAR(t_quantile(0.975, 1), 12.706204736432095, 1e-8);
  EXPECT_NEAR(t_quantile(0.975, 2), 4.302652729911275, 1e-9);
  EXPECT_NEAR(t_quantile(0.975, 5), 2.5705818366147395, 1e-8);
  EXPECT_NEAR(t_quantile(0.975, 7), 2.3646242510102993, 1e-8);
  EXPECT_NEAR(t_quantile(0.975, 23), 2.0686576104190406, 1e-8);
  EXPECT_NEAR(t_quantile(0.975, 47), 2.0117405137297668, 1e-8);
  EXPECT_NEAR(t_quantile(0.995, 10), 3.169272672616872, 1e-8);
  EXPECT_NEAR(t_quantile(0.9, 3), 1.6377443536962102, 1e-8);
}

TEST(TQuantile, OfOneDegreeIsCauchys) {
  for (const double p : {0.6, 0.75, 0.9, 0.99, 0.9999}) {
    const double cauchy = std::tan(3.14159265358979323846 * (p - 0.5));
    EXPECT_NEAR(t_quantile(p, 1) / cauchy, 1, 1e-9) << p;
  }
}

TEST(TQuantile, IsOddAndTendsToTheNormal) {
  EXPECT_DOUBLE_EQ(t_quantile(0.025, 6.5), -t_quantile(0.975, 6.5));
  EXPECT_EQ(t_quantile(0.5, 3), 0);
  EXPECT_NEAR(t_quantile(0.975, 1e6), normal_quantile(0.975), 1e-5);
  EXPECT_NEAR(t_quantile(0.975, 1e12), normal_quantile(0.975), 1e-9);
}

TEST(TQuantile, FallsAsDegreesRise) {
  double last = std::numeric_limits<double>::infinity();
  for (double degrees = 0.5; degrees < 300; degrees *= 1.1) {
    const double now = t_quantile(0.975, degrees);
    EXPECT_LT(now, last) << degrees;
    last = now;
  }
}

TEST(StratifiedMean, WeighsClassesEqually) {
  const auto mean = stratified_mean({{1, 1, 1, 1, 1, 1}, {3, 3}});
  ASSERT_TRUE(mean);
  EXPECT_DOUBLE_EQ(mean->mean, 2);
  EXPECT_EQ(mean->n, 8U);
}

TEST(StratifiedMean, OfOneClassHasTheTextbookError) {
  const auto mean = stratified_mean({{1, 2, 3, 4}});
  EXPECT_DOUBLE_EQ(mean->mean, 2.5);
  EXPECT_NEAR(*mean->standard_error, std::sqrt(5.0 / 3 / 4), 1e-15);
  EXPECT_NEAR(mean->degrees, 3, 1e-12);
}

TEST(StratifiedMean, HasWelchsDegreesForTwoClasses) {
  // s^2/n: 1/3 and 4; df = (a + b)^2 / (a^2 / 2 + b^2 / 1).
  const auto mean = stratified_mean({{1, 2, 3}, {0, 5.656854249492381}});
  const double a = 1.0 / 3;
  const double b = 8;
  EXPECT_NEAR(mean->degrees, (a + b) * (a + b) / (a * a / 2 + b * b / 1), 1e-9);
  EXPECT_NEAR(*mean->standard_error, std::sqrt((a + b) / 4), 1e-9);
}

TEST(StratifiedMean, ASinglePromptBorrowsTheOthersVariance) {
  const auto mean = stratified_mean({{1, 2, 3}, {7}});
  EXPECT_DOUBLE_EQ(mean->mean, 4.5);
  // variance 1 for both classes: (1/3 + 1/1) / 4.
  EXPECT_NEAR(*mean->standard_error, std::sqrt((1.0 / 3 + 1) / 4), 1e-12);
  EXPECT_NEAR(mean->degrees, 2, 1e-12);
}

TEST(StratifiedMean, WithoutTwoPromptsAnywhereHasNoError) {
  EXPECT_FALSE(stratified_mean({{1}, {2}, {3}})->standard_error);
  EXPECT_FALSE(stratified_mean({}));
  EXPECT_FALSE(stratified_mean({{}, {}}));
}

TEST(RatioEstimate, OfOnePromptHasNoIntervalAndSaysWhy) {
  const Estimate estimate = ratio_estimate({{std::log(1.3)}}, 0.95, 1);
  EXPECT_NEAR(*estimate.value, 1.3, 1e-12);
  EXPECT_FALSE(estimate.low);
  EXPECT_FALSE(estimate.high);
  EXPECT_EQ(estimate.method, "none");
  EXPECT_EQ(estimate.reason, "one prompt cannot say how much prompts differ");
}

TEST(RatioEstimate, OfOnePromptPerClassHasNoInterval) {
  const Estimate estimate = ratio_estimate({{0.1}, {0.2}}, 0.95, 1);
  EXPECT_EQ(estimate.n, 2U);
  EXPECT_FALSE(estimate.low);
  EXPECT_EQ(estimate.reason, "no class has two prompts, so their spread is not known");
}

TEST(RatioEstimate, OfNothingIsAbsentWithAReason) {
  const Estimate estimate = ratio_estimate({}, 0.95, 1);
  EXPECT_FALSE(estimate.value);
  EXPECT_EQ(estimate.reason, "no pair could be used");
}

TEST(RatioEstimate, OfEqualRatiosIsAPoint) {
  const double log = std::log(1.25);
  const Estimate estimate = ratio_estimate({{log, log, log}}, 0.95, 1);
  EXPECT_NEAR(*estimate.low, 1.25, 1e-12);
  EXPECT_NEAR(*estimate.high, 1.25, 1e-12);
}

TEST(RatioEstimate, IsStudentsIntervalForFewPrompts) {
  // log ratios 0, 0.1, 0.2: mean 0.1, error 0.1 / sqrt(3), t(2) = 4.3027.
  const Estimate estimate = ratio_estimate({{0, 0.1, 0.2}}, 0.95, 1);
  const double half = 4.302652729911275 * 0.1 / std::sqrt(3.0);
  EXPECT_NEAR(*estimate.value, std::exp(0.1), 1e-12);
  EXPECT_NEAR(*estimate.low, std::exp(0.1 - half), 1e-9);
  EXPECT_NEAR(*estimate.high, std::exp(0.1 + half), 1e-9);
  EXPECT_EQ(estimate.method, "t");
}

TEST(RatioEstimate, RefusesAConfidenceThatIsNone) {
  for (const double confidence : {0.0, 1.0, -1.0, 2.0, std::nan("")}) {
    const Estimate estimate = ratio_estimate({{0, 0.1, 0.2}}, confidence, 1);
    EXPECT_FALSE(estimate.low);
    EXPECT_FALSE(estimate.reason.empty());
  }
}

TEST(RatioEstimate, IsAbsentRatherThanInfinite) {
  const Estimate estimate = ratio_estimate({{-40, 40}}, 0.999999, 1);
  EXPECT_TRUE(estimate.value);
  EXPECT_FALSE(estimate.high);
  EXPECT_FALSE(estimate.reason.empty());
}

/// Most prompts gain nothing, a few gain a lot: what lookup does.
Strata skewed() {
  Strata strata(1);
  for (int i = 0; i < 24; ++i) strata[0].push_back(i % 8 == 0 ? 0.9 : 0.01 * (i % 5));
  return strata;
}

TEST(RatioEstimate, WidensTheIntervalOfSkewedPromptsWithTheBootstrap) {
  const Estimate wide = ratio_estimate(skewed(), 0.95, 1);
  const Estimate narrow = t_interval(skewed(), 0.95);
  EXPECT_EQ(wide.method, "bootstrap-t");
  EXPECT_LE(*wide.low, *narrow.low);
  EXPECT_GT(*wide.high, *narrow.high);
}

TEST(RatioEstimate, IsTheSameForTheSameSeed) {
  const Estimate one = ratio_estimate(skewed(), 0.95, 7);
  const Estimate two = ratio_estimate(skewed(), 0.95, 7);
  EXPECT_EQ(*one.low, *two.low);
  EXPECT_EQ(*one.high, *two.high);
  EXPECT_NE(*one.high, *ratio_estimate(skewed(), 0.95, 8).high);
}

TEST(RatioEstimate, IgnoresEmptyClasses) {
  const Estimate with = ratio_estimate({{0, 0.1, 0.2}, {}}, 0.95, 1);
  const Estimate without = ratio_estimate({{0, 0.1, 0.2}}, 0.95, 1);
  EXPECT_EQ(with.low, without.low);
  EXPECT_EQ(with.value, without.value);
}

TEST(PercentileBootstrap, SpansTheStatistic) {
  const std::vector<double> values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const auto mean = [&](const std::vector<std::vector<std::size_t>>& drawn) {
    double sum = 0;
    for (const std::size_t i : drawn[0]) sum += values[i];
    return std::optional(sum / 10);
  };
  const auto interval = percentile_bootstrap({10}, mean, 0.95, 1);
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->low, 3.7, 0.3);
  EXPECT_NEAR(interval->high, 7.3, 0.3);
}

TEST(PercentileBootstrap, OfOneClusterIsAbsent) {
  const auto one = [](const auto&) { return std::optional(1.0); };
  EXPECT_FALSE(percentile_bootstrap({1}, one, 0.95, 1));
  EXPECT_FALSE(percentile_bootstrap({}, one, 0.95, 1));
  EXPECT_TRUE(percentile_bootstrap({1, 1}, one, 0.95, 1));
}

TEST(PercentileBootstrap, OfAStatisticThatIsMostlyAbsentIsAbsent) {
  const auto none = [](const auto&) { return std::optional<double>(); };
  EXPECT_FALSE(percentile_bootstrap({5}, none, 0.95, 1));
}

}  // namespace
}  // namespace paceline::gate
