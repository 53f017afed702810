// Numbers as text, and text in columns.
#include "report/figures_impl.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "report/text_impl.hpp"

namespace paceline::report {
namespace {

using testing::ElementsAre;

constexpr double k_nan = std::numeric_limits<double>::quiet_NaN();
constexpr double k_infinity = std::numeric_limits<double>::infinity();

gate::Estimate estimate(double value, double low, double high) {
  gate::Estimate result;
  result.value = value;
  result.low = low;
  result.high = high;
  return result;
}

TEST(RatioText, StaysOnItsSideOfTheLimit) {
  EXPECT_EQ(ratio_text(1.3149, 1.15), "1.31");
  EXPECT_EQ(ratio_text(1.1496, 1.15), "1.1496");
  EXPECT_EQ(ratio_text(1.152, 1.15), "1.152");
  EXPECT_EQ(ratio_text(1.15, 1.15), "1.15");
}

TEST(RatioText, IsShortForHugeNumbersAndADashForNone) {
  EXPECT_EQ(ratio_text(123.456, 1), "123.5");
  EXPECT_EQ(ratio_text(123456, 1), "123456");
  EXPECT_EQ(ratio_text(1.5e300, 1), "1.5e+300");
  EXPECT_EQ(ratio_text(std::nullopt, 1), "-");
  EXPECT_EQ(ratio_text(k_nan, 1), "-");
  EXPECT_EQ(ratio_text(-k_infinity, 1), "-");
}

TEST(IntervalText, LeavesOutBoundsThatAreNotKnown) {
  EXPECT_EQ(interval_text(estimate(1.31, 1.18, 1.45), 1.15), "1.31 [1.18, 1.45]");
  gate::Estimate single;
  single.value = 1.31;
  EXPECT_EQ(interval_text(single, 1.15), "1.31");
  EXPECT_EQ(interval_text(estimate(1.31, k_nan, 1.45), 1.15), "1.31");
  EXPECT_EQ(interval_text({}, 1.15), "-");
}

TEST(AmountText, HasThreeDigitsOrMore) {
  EXPECT_EQ(amount_text(0.0), "0.00");
  EXPECT_EQ(amount_text(9.994), "9.99");
  EXPECT_EQ(amount_text(9.996), "10.0");
  EXPECT_EQ(amount_text(999.94), "999.9");
  EXPECT_EQ(amount_text(999.96), "1000");
  EXPECT_EQ(amount_text(12345678.0), "1.2e+07");
  EXPECT_EQ(amount_text(std::nullopt), "-");
  EXPECT_EQ(amount_text(k_infinity), "-");
}

TEST(PercentText, DoesNotRoundASmallShareToNothing) {
  EXPECT_EQ(percent_text(0.544), "54 %");
  EXPECT_EQ(percent_text(1.0), "100 %");
  EXPECT_EQ(percent_text(0.004), "0.4 %");
  EXPECT_EQ(percent_text(0.0), "0 %");
  EXPECT_EQ(percent_text(std::nullopt), "-");
}

TEST(BytesText, UsesBinaryUnits) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(1023), "1023 bytes");
  EXPECT_EQ(bytes_text(98362432), "93.8 MiB");
  EXPECT_EQ(bytes_text(std::uint64_t{8} << 30), "8 GiB");
  EXPECT_EQ(bytes_text(~std::uint64_t{0}), "16777216 TiB");
}

TEST(DateText, IsUtcOrADash) {
  EXPECT_EQ(date_text(1790000000), "2026-09-21 14:13 UTC");
  for (const double odd : {0.0, -1.0, 1e30, k_nan, k_infinity}) EXPECT_EQ(date_text(odd), "-");
}

TEST(Fit, CountsCodePoints) {
  EXPECT_EQ(fit("ab", 4, Align::left), "ab  ");
  EXPECT_EQ(fit("ab", 4, Align::right), "  ab");
  EXPECT_EQ(fit("größe", 6, Align::right), " größe");
  EXPECT_EQ(fit("größenordnung", 6, Align::left), "größe…");
  EXPECT_EQ(fit("abc", 0, Align::left), "");
  EXPECT_EQ(display_width("日本語"), 3U);
}

TEST(Wrap, BreaksAtSpacesAndOnlyInsideWordsThatAreTooLong) {
  EXPECT_THAT(wrap("one two three", {.width = 8}), ElementsAre("one two", "three"));
  EXPECT_THAT(wrap("  one   two ", {.width = 80}), ElementsAre("one two"));
  EXPECT_THAT(wrap("abcdefghij", {.width = 4}), ElementsAre("abcd", "efgh", "ij"));
  EXPECT_THAT(wrap("x abcdefghij y", {.width = 4}), ElementsAre("x", "abcd", "efgh", "ij y"));
  EXPECT_THAT(wrap("ääää öö", {.width = 4}), ElementsAre("ääää", "öö"));
  EXPECT_THAT(wrap("", {.width = 4}), ElementsAre(""));
}

TEST(Wrap, IndentsTheFirstLineAndTheOthers) {
  EXPECT_THAT(wrap("one two three", {.width = 8, .indent = 1, .hanging_indent = 3}),
              ElementsAre(" one two", "   three"));
  EXPECT_THAT(wrap("ab", {.width = 2, .indent = 5, .hanging_indent = 5}), ElementsAre("     ab"));
}

}  // namespace
}  // namespace paceline::report
