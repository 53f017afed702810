// What the numbers of all options must be.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace paceline::cli {

/// A number from `low` to `high`; NaN is none.
CLI::Validator number_between(double low, double high);

/// A whole number from `low` to `high`.
CLI::Validator count_between(std::uint64_t low, std::uint64_t high);

}  // namespace paceline::cli
