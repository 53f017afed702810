// Simulations over many seeds: intervals cover the truth, equal arms are not called faster.
#include <gtest/gtest.h>

#include <cmath>
#include <format>
#include <string>
#include <vector>

#include "gate/gate.hpp"
#include "gate/scripted_run.hpp"
#include "gate/statistics.hpp"

namespace paceline::gate {
namespace {

using test::gauss;

constexpr std::size_t k_seeds = 1000;

/// The log ratio of two noisy durations.
struct NoiseOfRatio {
  double sigma = 0.05;       // of either duration
  double outlier_share = 0;  // of either duration
  double outlier_factor = 1.5;

  double draw(Random& random) const {
    const auto one = [&] {
      double value = sigma * gauss(random);
      if (random.unit() < outlier_share) value += std::log(outlier_factor);
      return value;
    };
    return one() - one();
  }
};

struct Shape {
  std::size_t classes = 1;
  std::size_t prompts = 8;
};

double coverage(const Shape& shape, const NoiseOfRatio& noise) {
  constexpr double truth = 1.27;
  std::size_t covered = 0;
  for (std::size_t seed = 0; seed < k_seeds; ++seed) {
    Random random(seed);
    std::vector<std::vector<double>> strata(shape.classes);
    for (std::size_t c = 0; c < shape.classes; ++c) {
      // Classes differ, as they do; their mean is the truth.
      const double offset =
          0.2 * (static_cast<double>(c) - (static_cast<double>(shape.classes) - 1) / 2);
      for (std::size_t i = 0; i < shape.prompts; ++i) {
        strata[c].push_back(std::log(truth) + offset + noise.draw(random));
      }
    }
    const Estimate estimate = ratio_estimate(strata, 0.95, seed);
    covered += *estimate.low <= truth && truth <= *estimate.high ? 1U : 0U;
  }
  return static_cast<double>(covered) / static_cast<double>(k_seeds);
}

void expect_coverage(const NoiseOfRatio& noise) {
  for (const Shape shape : {Shape{1, 8}, Shape{1, 24}, Shape{4, 6}, Shape{3, 8}, Shape{6, 8}}) {
    const double share = coverage(shape, noise);
    const std::string label = std::format("{} x {}", shape.classes, shape.prompts);
    testing::Test::RecordProperty(std::format("covered_{}x{}", shape.classes, shape.prompts),
                                  std::format("{:.3f}", share));
    EXPECT_GE(share, 0.93) << label;
  }
}

TEST(Coverage, IsKeptUnderLogNormalNoise) { expect_coverage({.sigma = 0.05}); }

TEST(Coverage, IsKeptUnderHeavyNoise) { expect_coverage({.sigma = 0.3}); }

TEST(Coverage, IsKeptWithModerateOutliers) {
  expect_coverage({.sigma = 0.05, .outlier_share = 0.05, .outlier_factor = 1.5});
}

TEST(Coverage, IsKeptWithFrequentOutliers) {
  expect_coverage({.sigma = 0.05, .outlier_share = 0.15, .outlier_factor = 2});
}

TEST(Coverage, IsKeptForTheQuickPlan) {
  EXPECT_GE(coverage({.classes = 4, .prompts = 3}, {.sigma = 0.05}), 0.93);
  EXPECT_GE(coverage({.classes = 6, .prompts = 2}, {.sigma = 0.05}), 0.93);
}

// What lookup does: prompts gain by an exponential amount. The t interval alone falls short.
TEST(Coverage, OfSkewedPromptsIsBetterThanTheTIntervals) {
  for (const std::size_t prompts : {24U, 48U}) {
    std::size_t ours = 0;
    std::size_t plain_t = 0;
    for (std::size_t seed = 0; seed < k_seeds; ++seed) {
      Random random(seed);
      std::vector<std::vector<double>> strata(1);
      for (std::size_t i = 0; i < prompts; ++i) {
        strata[0].push_back(-0.2 * std::log(1 - random.unit()) - 0.2);
      }
      const auto covers = [](const Estimate& estimate) {
        return *estimate.low <= 1 && 1 <= *estimate.high ? 1U : 0U;
      };
      ours += covers(ratio_estimate(strata, 0.95, seed));
      plain_t += covers(t_interval(strata, 0.95));
    }
    EXPECT_GE(ours, 930U);
    EXPECT_GT(ours, plain_t);
  }
}

/// Whole evaluations of arms that do not differ, with noise and 10 % of drift.
struct EqualArms {
  std::size_t covered = 0;
  std::size_t enabled_at_one = 0;
  std::size_t enabled_by_default = 0;
};

EqualArms judge_equal_arms(std::size_t classes, std::size_t prompts, double outlier_share) {
  std::vector<test::ClassScript> scripts;
  for (std::size_t c = 0; c < classes; ++c) {
    scripts.push_back({.name = std::format("class-{}", c), .prompts = prompts, .speedup = 1});
  }
  EqualArms count;
  for (std::size_t seed = 0; seed < k_seeds; ++seed) {
    const auto record =
        test::make_run({.classes = scripts,
                        .noise = {.sigma = 0.05, .drift = 0.1, .outlier_share = outlier_share},
                        .seed = seed,
                        .tokens = 17});
    const Evaluation evaluation = evaluate(record, {.ratio_floor = 1.00});
    const Estimate& speedup = evaluation.overall[0].speedup;
    if (*speedup.low <= 1 && 1 <= *speedup.high) ++count.covered;
    if (evaluation.verdict != Verdict::enable) continue;
    ++count.enabled_at_one;
    if (evaluate(record, Policy{}).verdict == Verdict::enable) ++count.enabled_by_default;
  }
  testing::Test::RecordProperty("covered", std::to_string(count.covered));
  testing::Test::RecordProperty("enabled_at_one", std::to_string(count.enabled_at_one));
  return count;
}

// A higher floor enables no more than a lower one, so the default is asked only where 1.00 enables.
void expect_rarely_enabled(const EqualArms& count) {
  EXPECT_GE(count.covered, 930U);
  EXPECT_LE(count.enabled_at_one, 40U);
  EXPECT_EQ(count.enabled_by_default, 0U);
}

TEST(EqualArms, OfEightPromptsAreRarelyEnabled) {
  expect_rarely_enabled(judge_equal_arms(1, 8, 0));
}

TEST(EqualArms, OfThreeTimesEightPromptsAreRarelyEnabled) {
  expect_rarely_enabled(judge_equal_arms(3, 8, 0));
}

TEST(EqualArms, OfSixTimesEightPromptsAreRarelyEnabled) {
  expect_rarely_enabled(judge_equal_arms(6, 8, 0));
}

TEST(EqualArms, WithOutliersAreRarelyEnabled) {
  expect_rarely_enabled(judge_equal_arms(4, 6, 0.05));
}

}  // namespace
}  // namespace paceline::gate
