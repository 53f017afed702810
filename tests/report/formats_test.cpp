// CSV, JSON Lines and Markdown as other programs read them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/text.hpp"
#include "report/report.hpp"
#include "support/matchers.hpp"
#include "support/sample_record.hpp"

namespace paceline::report {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::SizeIs;

std::string text_of(const record::Record& record, Format format) {
  return render(record, gate::evaluate(record, {}), format);
}

record::Record small_record() {
  test::SampleShape shape;
  shape.classes.resize(2);
  shape.prompts = 2;
  shape.tokens = 12;
  return test::sample_record(shape);
}

/// A reader of RFC 4180: rows of cells.
std::vector<std::vector<std::string>> read_csv(std::string_view text) {
  std::vector<std::vector<std::string>> rows{{""}};
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string& cell = rows.back().back();
    if (text[i] == '"' && quoted && i + 1 < text.size() && text[i + 1] == '"') {
      cell += text[i++];
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (text[i] == ',' && !quoted) {
      rows.back().emplace_back();
    } else if (text[i] == '\n' && !quoted) {
      rows.push_back({""});
    } else {
      cell += text[i];
    }
  }
  rows.pop_back();
  return rows;
}

TEST(Csv, HasOneRowPerSampleAndOneForABlockWithout) {
  const record::Record record = small_record();
  std::size_t samples = 0;
  std::size_t empty = 0;
  for (const record::Block& block : record.blocks) {
    samples += block.samples.size();
    empty += block.samples.empty() ? 1U : 0U;
  }
  ASSERT_EQ(empty, 1U);
  samples += record.sustained->samples.size();
  const auto rows = read_csv(text_of(record, Format::csv));
  EXPECT_EQ(rows.size(), 1 + samples + empty);
  EXPECT_THAT(rows, Each(SizeIs(rows.front().size())));
}

TEST(Csv, NamesWithSeparatorsComeBack) {
  record::Record record = small_record();
  record.blocks[0].prompt = "a,b \"c\"\nd";
  record.blocks[0].fixture = " spaces ";
  const auto rows = read_csv(text_of(record, Format::csv));
  EXPECT_EQ(rows[1][1], " spaces ");
  EXPECT_EQ(rows[1][3], "a,b \"c\"\nd");
}

TEST(Csv, UnknownNumbersAreEmptyCells) {
  record::Record record = small_record();
  record.blocks[0].samples[0].first_text_ns.reset();
  const auto rows = read_csv(text_of(record, Format::csv));
  std::size_t column = 0;
  while (rows[0][column] != "first_text_ns") ++column;
  EXPECT_EQ(rows[1][column], "");
  EXPECT_NE(rows[2][column], "");
}

TEST(Csv, OfNothingIsItsHeader) {
  EXPECT_THAT(read_csv(text_of(test::empty_record(), Format::csv)), SizeIs(1));
}

TEST(JsonLines, HasOneLinePerFixtureAndSpeculativeArm) {
  test::SampleShape shape;
  shape.classes.resize(3);
  shape.prompts = 2;
  shape.tokens = 12;
  shape.arms.push_back(test::SampleShape::draft_arm(2));
  const std::string text = text_of(test::sample_record(shape), Format::jsonl);
  const auto lines = split(text, '\n');
  ASSERT_THAT(lines, SizeIs(7));
  EXPECT_EQ(lines.back(), "");
  const Json first = test::value_of(parse_json(lines[0], "line"));
  EXPECT_EQ(first.at("fixtureID"), "code");
  EXPECT_EQ(first.at("arm"), "lookup-3");
  EXPECT_TRUE(first.contains("host"));
  EXPECT_TRUE(first.contains("binaryVersion"));
  EXPECT_EQ(text_of(test::empty_record(), Format::jsonl), "");
}

TEST(Markdown, EscapesWhatWouldBeMarkup) {
  record::Record record = small_record();
  record.environment.target.name = "a|b*c<script>[x](y)`";
  const std::string text = text_of(record, Format::markdown);
  EXPECT_THAT(text, HasSubstr("a\\|b\\*c\\<script\\>\\[x\\](y)\\`"));
}

TEST(Markdown, TablesHaveOneCellPerColumn) {
  const std::string text = text_of(small_record(), Format::markdown);
  std::size_t rows = 0;
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with('|')) continue;
    ++rows;
    EXPECT_EQ(split(line, '|').size(), 12U) << line;  // ten cells and the two ends
  }
  EXPECT_EQ(rows, 5U);
}

TEST(Json, IsTheDocumentWithNumbersOnOneLine) {
  const record::Record record = small_record();
  const auto evaluation = gate::evaluate(record, {});
  const std::string text = render(record, evaluation, Format::json);
  EXPECT_EQ(test::value_of(parse_json(text, "text")), document(record, evaluation));
  EXPECT_THAT(text, HasSubstr("\n        \"drafted\": ["));
  EXPECT_EQ(render(record, evaluation, Format::json), text);
}

TEST(IsResult, KnowsWhatRenderWritesByItsFormat) {
  constexpr Format k_formats[] = {Format::table, Format::markdown, Format::json, Format::jsonl,
                                  Format::csv};
  record::Record control = small_record();
  control.plan.control = true;
  control.plan.arms.back().kind = record::ArmKind::plain;
  for (const record::Record& record : {small_record(), control}) {
    for (const Format written : k_formats) {
      const std::string text = text_of(record, written);
      if (text.empty()) continue;  // jsonl of a control; an empty file holds nothing to lose
      for (const Format asked : k_formats) {
        EXPECT_EQ(is_result(text, asked), asked == written)
            << to_string(written) << " taken for " << to_string(asked) << ":\n"
            << text.substr(0, 300);
      }
    }
  }
  EXPECT_TRUE(is_result(text_of(test::empty_record(), Format::table), Format::table));
  for (const Format format : k_formats) {
    for (const char* text :
         {"", "x", "{}", "[]", "phase,", "# Notes", "{\"benchmark\": 3}", "\xff\xfe"}) {
      EXPECT_FALSE(is_result(text, format)) << text;
    }
  }
}

}  // namespace
}  // namespace paceline::report
