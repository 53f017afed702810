// The chi-square test for tests that draw with a fixed seed.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

namespace paceline::test {

/// Pearson's statistic turned into a standard normal deviate (Wilson and Hilferty 1931). Above 4:
/// the counts do not come from these probabilities. Infinite where something impossible happened.
inline double chi_square_deviate(std::span<const std::size_t> counts,
                                 std::span<const double> probabilities) {
  double total = 0;
  for (const std::size_t count : counts) total += static_cast<double>(count);
  double statistic = 0;
  double freedom = -1;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = total * probabilities[i];
    if (expected <= 0) {
      if (counts[i] > 0) return INFINITY;
      continue;
    }
    const double distance = static_cast<double>(counts[i]) - expected;
    statistic += distance * distance / expected;
    freedom += 1;
  }
  if (freedom < 1) return 0;
  const double spread = 2 / (9 * freedom);
  return (std::cbrt(statistic / freedom) - (1 - spread)) / std::sqrt(spread);
}

}  // namespace paceline::test
