#include "report/figures_impl.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <format>

namespace paceline::report {

namespace {

constexpr double k_too_wide = 1e6;  // from here on powers of ten

std::string fixed_or_powers(double value, int decimals) {
  if (std::abs(value) >= k_too_wide) return std::format("{:.1e}", value);
  return std::format("{:.{}f}", value, decimals);
}

/// So many that the text lies on the same side of the limit as the value.
int ratio_decimals(double value, double limit) {
  if (std::abs(value) >= 1000) return 0;
  int decimals = std::abs(value) >= 100 ? 1 : 2;
  while (decimals < 5 && value != limit &&
         std::format("{:.{}f}", value, decimals) == std::format("{:.{}f}", limit, decimals)) {
    ++decimals;
  }
  return decimals;
}

bool usable(std::optional<double> value) { return value && std::isfinite(*value); }

}  // namespace

std::string ratio_text(std::optional<double> value, double limit) {
  if (!usable(value)) return std::string(k_absent);
  return fixed_or_powers(*value, ratio_decimals(*value, limit));
}

std::string interval_text(const gate::Estimate& estimate, double limit) {
  if (!usable(estimate.value) || !usable(estimate.low) || !usable(estimate.high)) {
    return ratio_text(estimate.value, limit);
  }
  return std::format("{} [{}, {}]", ratio_text(estimate.value, limit),
                     ratio_text(estimate.low, limit), ratio_text(estimate.high, limit));
}

std::string amount_text(std::optional<double> value) {
  if (!usable(value)) return std::string(k_absent);
  const double size = std::abs(*value);
  return fixed_or_powers(*value, size < 9.995 ? 2 : size < 999.95 ? 1 : 0);
}

std::string percent_text(std::optional<double> share) {
  if (!usable(share)) return std::string(k_absent);
  const double percent = 100 * *share;
  if (percent > 0 && percent < 1) return std::format("{:.1f} %", percent);
  return std::format("{} %", fixed_or_powers(percent, 0));
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> k_units{"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < k_units.size()) {
    value /= 1024;
    ++unit;
  }
  const bool whole = value == std::floor(value) || value >= 100;
  return std::format("{:.{}f} {}", value, whole ? 0 : 1, k_units[unit]);
}

std::string counted(std::size_t count, std::string_view noun) {
  return std::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string date_text(double unix_seconds) {
  constexpr double k_year_10000 = 253402300800;
  if (!(unix_seconds > 0 && unix_seconds < k_year_10000)) return std::string(k_absent);
  const std::chrono::sys_seconds time{
      std::chrono::seconds{static_cast<std::int64_t>(unix_seconds)}};
  return std::format("{:%F %H:%M} UTC", time);
}

}  // namespace paceline::report
