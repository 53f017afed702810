// Numbers as people read them. Absent and non-finite ones are "-". Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gate/gate.hpp"

namespace paceline::report {

inline constexpr std::string_view k_absent = "-";

/// Two decimals; more where two would hide on which side of `limit` the value lies; powers of ten
/// for what would not fit a column.
std::string ratio_text(std::optional<double> value, double limit);
/// "1.31 [1.18, 1.45]", or without the bounds where there are none.
std::string interval_text(const gate::Estimate& estimate, double limit);
/// Tokens per second, milliseconds: three to four significant digits.
std::string amount_text(std::optional<double> value);
/// A share as "54 %".
std::string percent_text(std::optional<double> share);
/// "8 GiB", "1.5 MiB".
std::string bytes_text(std::uint64_t bytes);
/// "1 prompt", "8 prompts".
std::string counted(std::size_t count, std::string_view noun);
/// "2026-09-28 12:00 UTC", "-" where the seconds are no date of the years 1970 to 9999.
std::string date_text(double unix_seconds);

}  // namespace paceline::report
