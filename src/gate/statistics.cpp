// Medians, quantiles and intervals for ratios (see statistics.hpp).
#include "gate/statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <format>
#include <limits>
#include <numbers>
#include <numeric>

#include "core/random.hpp"

namespace paceline::gate {
namespace {

constexpr std::size_t k_draws = 1000;        // of a bootstrap
constexpr std::size_t k_bootstrap_from = 6;  // prompts of every class, see ratio_estimate
constexpr double k_visible_skewness = 1.0;

using Strata = std::vector<std::vector<double>>;

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double squared_deviations(std::span<const double> values, double mean) {
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum;
}

Strata without_empty(const Strata& strata) {
  Strata kept;
  for (const auto& stratum : strata) {
    if (!stratum.empty()) kept.push_back(stratum);
  }
  return kept;
}

bool usable_confidence(double confidence) { return confidence > 0 && confidence < 1; }

/// Lanczos, g = 7, nine terms (std::lgamma writes a global).
double log_gamma(double x) {
  static constexpr std::array<double, 9> k_terms = {
      0.99999999999980993,  676.5203681218851,     -1259.1392167224028,
      771.32342877765313,   -176.61502916214059,   12.507343278686905,
      -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7};
  if (x < 0.5) {
    return std::log(std::numbers::pi / std::sin(std::numbers::pi * x)) - log_gamma(1 - x);
  }
  double sum = k_terms[0];
  for (std::size_t i = 1; i < k_terms.size(); ++i)
    sum += k_terms[i] / (x - 1 + static_cast<double>(i));
  const double t = x - 1 + 7.5;
  return 0.5 * std::log(2 * std::numbers::pi) + (x - 0.5) * std::log(t) - t + std::log(sum);
}

/// Continued fraction of the incomplete beta function (Lentz), for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double tiny = 1e-300;
  double c = 1;
  double d = 1 - (a + b) * x / (a + 1);
  d = 1 / (std::abs(d) < tiny ? tiny : d);
  double result = d;
  for (int m = 1; m <= 500; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double step = 1;
    for (const double numerator : {even, odd}) {
      d = 1 + numerator * d;
      d = 1 / (std::abs(d) < tiny ? tiny : d);
      c = 1 + numerator / c;
      if (std::abs(c) < tiny) c = tiny;
      step = c * d;
      result *= step;
    }
    if (std::abs(step - 1) < 1e-15) break;
  }
  return result;
}

double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * std::log(x) +
                                b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/// Upper tail of Student's t for t >= 0.
double t_tail(double t, double degrees) {
  return 0.5 * incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

/// Value, low and high from logarithms. What a double cannot hold is absent, with the reason.
Estimate from_logs(double mean, double low, double high, std::size_t n, std::string method) {
  Estimate estimate;
  estimate.n = n;
  estimate.value = std::exp(mean);
  estimate.low = std::exp(low);
  estimate.high = std::exp(high);
  estimate.method = std::move(method);
  if (!std::isfinite(*estimate.value)) estimate.value.reset();
  if (!std::isfinite(*estimate.low) || !std::isfinite(*estimate.high) || !estimate.value) {
    estimate.low.reset();
    estimate.high.reset();
    estimate.method = "none";
    estimate.reason = "the ratios spread so widely that the interval is not a number";
  }
  return estimate;
}

Estimate without_interval(const std::optional<StratifiedMean>& mean, std::string reason) {
  Estimate estimate;
  estimate.method = "none";
  estimate.reason = std::move(reason);
  if (mean) {
    estimate.n = mean->n;
    const double value = std::exp(mean->mean);
    if (std::isfinite(value)) estimate.value = value;
  }
  return estimate;
}

/// The estimate without an interval, where there can be none.
std::optional<Estimate> refused(const std::optional<StratifiedMean>& mean, double confidence) {
  if (!mean) return without_interval(mean, "no pair could be used");
  if (!usable_confidence(confidence)) {
    return without_interval(mean, "the confidence must lie between 0 and 1");
  }
  if (!mean->standard_error) {
    return without_interval(mean, mean->n == 1
                                      ? "one prompt cannot say how much prompts differ"
                                      : "no class has two prompts, so their spread is not known");
  }
  return std::nullopt;
}

/// Skewness of the residuals about their strata's means, 0 where they do not vary.
double residual_skewness(const Strata& strata) {
  double squares = 0;
  double cubes = 0;
  std::size_t n = 0;
  for (const auto& stratum : strata) {
    const double mean = mean_of(stratum);
    for (const double value : stratum) {
      squares += std::pow(value - mean, 2);
      cubes += std::pow(value - mean, 3);
      ++n;
    }
  }
  if (n == 0 || squares <= 0) return 0;
  const double count = static_cast<double>(n);
  return (cubes / count) / std::pow(squares / count, 1.5);
}

}  // namespace

std::optional<double> median(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const std::size_t middle = sorted.size() / 2;
  if (sorted.size() % 2 == 1) return sorted[middle];
  return sorted[middle - 1] / 2 + sorted[middle] / 2;
}

std::optional<double> nearest_rank_of(std::span<double> values, double p) {
  if (values.empty()) return std::nullopt;
  const auto last = static_cast<double>(values.size());
  const double rank = std::clamp(std::ceil(p * last), 1.0, last);
  const auto index = static_cast<std::size_t>(rank) - 1;
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(index));
  return values[index];
}

std::optional<double> nearest_rank(std::span<const double> values, double p) {
  std::vector<double> copy(values.begin(), values.end());
  return nearest_rank_of(copy, p);
}

double normal_quantile(double p) {
  if (!(p > 0)) return -std::numeric_limits<double>::infinity();
  if (!(p < 1)) return std::numeric_limits<double>::infinity();
  if (p > 0.5) return -normal_quantile(1 - p);
  // Hastings' approximation (Abramowitz & Stegun 26.2.23), then Newton on the distribution.
  const double t = std::sqrt(-2 * std::log(p));
  double x = -(t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                       (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))));
  for (int i = 0; i < 4; ++i) {
    const double below = 0.5 * std::erfc(-x / std::numbers::sqrt2);
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    if (density <= 0) break;
    x -= (below - p) / density;
  }
  return x;
}

double t_quantile(double p, double degrees) {
  if (!(p > 0)) return -std::numeric_limits<double>::infinity();
  if (!(p < 1)) return std::numeric_limits<double>::infinity();
  if (p == 0.5) return 0;
  if (p < 0.5) return -t_quantile(1 - p, degrees);
  if (!(degrees < 1e8)) return normal_quantile(p);
  const double tail = 1 - p;
  double low = 0;
  double high = std::max(1.0, normal_quantile(p));
  while (t_tail(high, degrees) > tail && high < 1e300) high *= 2;
  const double log_constant = log_gamma((degrees + 1) / 2) - log_gamma(degrees / 2) -
                              0.5 * std::log(degrees * std::numbers::pi);
  double x = std::clamp(normal_quantile(p), low, high);
  for (int i = 0; i < 200; ++i) {
    const double excess = t_tail(x, degrees) - tail;
    (excess > 0 ? low : high) = x;
    const double density = std::exp(log_constant - (degrees + 1) / 2 * std::log1p(x * x / degrees));
    double next = x + excess / density;
    if (!(next > low && next < high)) next = (low + high) / 2;
    if (std::abs(next - x) <= 1e-14 * std::abs(next)) return next;
    x = next;
  }
  return x;
}

std::optional<StratifiedMean> stratified_mean(const Strata& strata) {
  const double classes = static_cast<double>(
      std::ranges::count_if(strata, [](const auto& stratum) { return !stratum.empty(); }));
  if (classes == 0) return std::nullopt;

  StratifiedMean result;
  double pooled_degrees = 0;
  double single = 0;
  for (const auto& stratum : strata) {
    if (stratum.empty()) continue;
    result.n += stratum.size();
    result.mean += mean_of(stratum) / classes;
    pooled_degrees += static_cast<double>(stratum.size() - 1);
    if (stratum.size() == 1) ++single;
  }
  if (pooled_degrees == 0) return result;

  // variance = sum of coefficient * s_c^2, where strata of one value borrow the pooled variance.
  double variance = 0;
  double below = 0;
  for (const auto& stratum : strata) {
    if (stratum.size() < 2) continue;
    const double degrees = static_cast<double>(stratum.size() - 1);
    const double s2 = squared_deviations(stratum, mean_of(stratum)) / degrees;
    const double coefficient =
        (1 / static_cast<double>(stratum.size()) + single * degrees / pooled_degrees) /
        (classes * classes);
    variance += coefficient * s2;
    below += std::pow(coefficient * s2, 2) / degrees;
  }
  result.standard_error = std::sqrt(variance);
  result.degrees = below > 0 ? variance * variance / below : pooled_degrees;
  return result;
}

Estimate t_interval(const Strata& strata, double confidence) {
  const auto mean = stratified_mean(strata);
  if (auto refusal = refused(mean, confidence)) return *refusal;
  const double half = *mean->standard_error == 0
                          ? 0
                          : t_quantile(0.5 + confidence / 2, mean->degrees) * *mean->standard_error;
  return from_logs(mean->mean, mean->mean - half, mean->mean + half, mean->n, "t");
}

Estimate bootstrap_t_interval(const Strata& strata_in, double confidence, std::uint64_t seed) {
  const Strata strata = without_empty(strata_in);
  const auto mean = stratified_mean(strata);
  if (auto refusal = refused(mean, confidence)) return *refusal;
  if (*mean->standard_error == 0) return t_interval(strata, confidence);

  Random random(seed);
  std::vector<double> studentised;
  studentised.reserve(k_draws);
  Strata drawn = strata;
  for (std::size_t draw = 0; draw < k_draws; ++draw) {
    for (std::size_t c = 0; c < strata.size(); ++c) {
      for (double& value : drawn[c]) value = strata[c][random.below(strata[c].size())];
    }
    const auto again = stratified_mean(drawn);
    const double error = *again->standard_error;
    if (error <= *mean->standard_error * 1e-6) continue;  // one value drawn all the time
    studentised.push_back((again->mean - mean->mean) / error);
  }
  const auto low = nearest_rank(studentised, 0.5 - confidence / 2);
  const auto high = nearest_rank(studentised, 0.5 + confidence / 2);
  if (!low || !high) return t_interval(strata, confidence);
  return from_logs(mean->mean, mean->mean - *high * *mean->standard_error,
                   mean->mean - *low * *mean->standard_error, mean->n, "bootstrap-t");
}

Estimate ratio_estimate(const Strata& strata, double confidence, std::uint64_t seed) {
  const Estimate plain = t_interval(strata, confidence);
  const bool enough = std::ranges::all_of(strata, [](const auto& stratum) {
    return stratum.empty() || stratum.size() >= k_bootstrap_from;
  });
  if (!plain.low || !enough || std::abs(residual_skewness(strata)) <= k_visible_skewness) {
    return plain;
  }
  Estimate wider = bootstrap_t_interval(strata, confidence, seed);
  if (!wider.low) return plain;
  wider.low = std::min(*wider.low, *plain.low);
  wider.high = std::max(*wider.high, *plain.high);
  return wider;
}

std::optional<Interval> percentile_bootstrap(const std::vector<std::size_t>& strata_sizes,
                                             const ClusterStatistic& statistic, double confidence,
                                             std::uint64_t seed) {
  const std::size_t n = std::accumulate(strata_sizes.begin(), strata_sizes.end(), std::size_t{0});
  if (n < 2 || !usable_confidence(confidence)) return std::nullopt;
  Random random(seed);
  std::vector<double> values;
  values.reserve(k_draws);
  std::vector<std::vector<std::size_t>> drawn;
  for (const std::size_t size : strata_sizes) drawn.emplace_back(size);
  for (std::size_t draw = 0; draw < k_draws; ++draw) {
    for (std::size_t c = 0; c < strata_sizes.size(); ++c) {
      for (std::size_t& index : drawn[c]) index = random.below(strata_sizes[c]);
    }
    const auto value = statistic(drawn);
    if (value && std::isfinite(*value)) values.push_back(*value);
  }
  if (values.size() * 10 < k_draws * 9) return std::nullopt;
  return Interval{.low = *nearest_rank(values, 0.5 - confidence / 2),
                  .high = *nearest_rank(values, 0.5 + confidence / 2)};
}

}  // namespace paceline::gate
