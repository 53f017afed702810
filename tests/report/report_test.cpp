// Results as text: golden tables, widths, every format for every kind of record.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <format>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"
#include "core/text.hpp"
#include "report/report.hpp"
#include "support/golden.hpp"
#include "support/matchers.hpp"
#include "support/sample_record.hpp"

namespace paceline::report {
namespace {

using testing::HasSubstr;

constexpr Format k_formats[] = {Format::table, Format::markdown, Format::json, Format::jsonl,
                                Format::csv};

std::size_t columns(std::string_view line) {
  return static_cast<std::size_t>(std::ranges::count_if(
      line, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string text_of(const record::Record& record, Format format, Style style = {}) {
  return render(record, gate::evaluate(record, {}), format, style);
}

record::Record two_arms() {
  test::SampleShape shape;
  shape.prompts = 2;
  shape.arms.push_back(test::SampleShape::draft_arm(5));
  return test::sample_record(shape);
}

TEST(Table, IsAsItWas) {
  for (const std::size_t width : {60U, 80U, 120U}) {
    EXPECT_TRUE(
        test::matches_golden(std::format("table-{}.txt", width),
                             text_of(test::sample_record(), Format::table, {.width = width})));
  }
}

TEST(Markdown, IsAsItWas) {
  EXPECT_TRUE(test::matches_golden("result.md", text_of(two_arms(), Format::markdown)));
}

TEST(Csv, IsAsItWas) {
  EXPECT_TRUE(test::matches_golden("result.csv", text_of(two_arms(), Format::csv)));
}

TEST(Table, FitsEveryWidth) {
  const auto records = {test::sample_record(), two_arms(), test::empty_record()};
  for (const record::Record& record : records) {
    const auto evaluation = gate::evaluate(record, {});
    for (std::size_t width = 60; width <= 200; width += 7) {
      const std::string text = render(record, evaluation, Format::table, {.width = width});
      for (const std::string_view line : split(text, '\n')) {
        EXPECT_LE(columns(line), width) << line;
      }
    }
  }
}

TEST(Table, IsColouredOnlyWhenAsked) {
  const record::Record record = test::sample_record();
  EXPECT_EQ(text_of(record, Format::table).find('\x1b'), std::string::npos);
  EXPECT_NE(text_of(record, Format::table, {.width = 80, .colour = true}).find('\x1b'),
            std::string::npos);
}

TEST(EveryFormat, EndsInANewlineAndHasNoNan) {
  for (const record::Record& record : {test::sample_record(), two_arms(), test::empty_record()}) {
    for (const Format format : k_formats) {
      const std::string text = text_of(record, format);
      EXPECT_TRUE(text.empty() || text.ends_with("\n"));
      EXPECT_EQ(text.find("nan"), std::string::npos) << to_string(format);
      EXPECT_EQ(text.find("-inf"), std::string::npos) << to_string(format);
    }
  }
}

TEST(EveryFormat, SurvivesNamesThatAreNoUtf8) {
  record::Record record = two_arms();
  record.environment.target.name = "bad\xff\x1b[31mname";
  record.blocks.front().prompt = "p\xc3";
  for (const Format format : k_formats) {
    const std::string text = text_of(record, format);
    EXPECT_EQ(to_valid_utf8(text), text) << to_string(format);
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << to_string(format);
  }
}

TEST(Document, HoldsTheRecordAndThePublishedPart) {
  const record::Record record = two_arms();
  const Json json = document(record, gate::evaluate(record, {}));
  EXPECT_EQ(json.at("benchmark"), "SPEC-028");
  const auto again = record::from_json(json.at("paceline").at("record"));
  ASSERT_THAT(again, test::IsOk());
  EXPECT_EQ(record::to_json(*again), record::to_json(record));
}

TEST(FormatWords, AreListedInTheError) {
  EXPECT_EQ(test::value_of(parse_format("csv")), Format::csv);
  EXPECT_THAT(parse_format("html"),
              test::FailsWith(ErrorCode::invalid_argument, HasSubstr("markdown")));
}

}  // namespace
}  // namespace paceline::report
