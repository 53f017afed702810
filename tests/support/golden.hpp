// Comparing text and JSON with files in tests/golden. PACELINE_UPDATE_GOLDEN=1 writes them anew,
// which is refused where CI is set.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace paceline::test {

/// Byte for byte with tests/golden/<name>. A failure shows the first line that differs.
testing::AssertionResult matches_golden(std::string_view name, std::string_view text);
/// Parsed, fractions to nine digits; a failure lists the first differing places.
testing::AssertionResult matches_golden_json(std::string_view name, std::string_view text);

}  // namespace paceline::test
