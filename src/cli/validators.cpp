#include "cli/validators.hpp"

#include <format>
#include <string>

#include "core/text.hpp"

namespace paceline::cli {

namespace {

/// Comparisons with NaN are false, so the bounds are asked for, not excluded.
template <typename T>
CLI::Validator between(T low, T high, const char* kind) {
  return {[=](const std::string& text) -> std::string {
            T value{};
            if (CLI::detail::lexical_cast(text, value) && value >= low && value <= high) return {};
            return std::format("{} is wanted from {} to {}, found \"{}\"", kind, low, high,
                               escape(text, 60));
          },
          std::format("in [{} - {}]", low, high)};
}

}  // namespace

CLI::Validator number_between(double low, double high) { return between(low, high, "a number"); }

CLI::Validator count_between(std::uint64_t low, std::uint64_t high) {
  return between(low, high, "a whole number");
}

}  // namespace paceline::cli
