// Statistics on paired log ratios. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "gate/gate.hpp"

namespace paceline::gate {

/// Median (mean of the two middle values for an even count). None for an empty list.
std::optional<double> median(std::span<const double> values);
/// Nearest rank: sorted[ceil(p n) - 1]. None for an empty list.
std::optional<double> nearest_rank(std::span<const double> values, double p);
/// The same, reordering the values instead of copying them.
std::optional<double> nearest_rank_of(std::span<double> values, double p);

/// Mean over strata that weigh equally, with its standard error and the degrees of freedom of
/// that error (Welch-Satterthwaite). A stratum of one value borrows the pooled variance of the
/// others. `standard_error` is absent where no stratum has two values.
struct StratifiedMean {
  double mean = 0;
  std::optional<double> standard_error;
  double degrees = 0;
  std::size_t n = 0;
};
/// None where every stratum is empty. Empty strata are ignored.
std::optional<StratifiedMean> stratified_mean(const std::vector<std::vector<double>>& strata);

/// Geometric mean of ratios, with a confidence interval. `strata[c]` holds the log ratios of the
/// prompts of class c (one value per prompt: repetitions are averaged before). Classes weigh
/// equally. The interval is Student's t. Where the prompts are visibly skewed (a few of them gain
/// far more than the rest, as with lookup) and every class has enough of them, it is widened to
/// take in the studentised bootstrap (Efron & Tibshirani 1993, section 12.5), whose far limit is
/// the better one there; alone it covers too little where outliers lie on both sides. Seeded.
Estimate ratio_estimate(const std::vector<std::vector<double>>& strata, double confidence,
                        std::uint64_t seed);

/// The two intervals that `ratio_estimate` chooses from, for tests and simulations.
Estimate t_interval(const std::vector<std::vector<double>>& strata, double confidence);
Estimate bootstrap_t_interval(const std::vector<std::vector<double>>& strata, double confidence,
                              std::uint64_t seed);

/// Percentile bootstrap of any statistic over clusters. `strata_sizes[c]` clusters are drawn with
/// replacement inside each stratum; `statistic` is given the drawn clusters of each stratum, as
/// indices, and may have no value. Returns low and high; none where fewer than two clusters are
/// there or the statistic has no value in more than a tenth of the draws.
using ClusterStatistic =
    std::function<std::optional<double>(const std::vector<std::vector<std::size_t>>&)>;
struct Interval {
  double low = 0;
  double high = 0;
};
std::optional<Interval> percentile_bootstrap(const std::vector<std::size_t>& strata_sizes,
                                             const ClusterStatistic& statistic, double confidence,
                                             std::uint64_t seed);

/// Quantile of Student's t with `degrees` > 0 degrees of freedom.
double t_quantile(double p, double degrees);
/// Quantile of the standard normal distribution.
double normal_quantile(double p);

}  // namespace paceline::gate
