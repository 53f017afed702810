// Which columns a width has room for, and what the table says about the others.
#include "report/layout_impl.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/text.hpp"
#include "report/report.hpp"
#include "report/text_impl.hpp"
#include "support/sample_record.hpp"

namespace paceline::report {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

Layout layout_at(std::size_t width, std::string scope = "multilingual") {
  const auto columns = result_columns({});
  Section section;
  section.rows.push_back({{std::move(scope), "8", "100.0", "131.2", "1.31 [1.18, 1.45]", "54 %",
                           "2.10", "1.01", "do_not_enable", "faster"},
                          Tone::neutral,
                          false});
  return lay_out(columns, {&section, 1}, width);
}

std::size_t total(const Layout& layout) {
  std::size_t sum = 0;
  for (const PlacedColumn& column : layout.columns) sum += column.gap + column.width;
  return sum;
}

TEST(Layout, ShowsEverythingWhereThereIsRoom) {
  EXPECT_EQ(layout_at(120).columns.size(), 10U);
  EXPECT_THAT(layout_at(120).left_out, testing::IsEmpty());
}

TEST(Layout, NeverIsWiderThanAsked) {
  for (std::size_t width = 60; width <= 200; ++width) {
    EXPECT_LE(total(layout_at(width)), width);
    EXPECT_LE(total(layout_at(width, std::string(150, 'x'))), width);
  }
}

TEST(Layout, GivesUpTheLeastImportantFirst) {
  const Layout eighty = layout_at(80);
  EXPECT_EQ(eighty.columns.size(), 9U);
  EXPECT_THAT(eighty.left_out, testing::IsEmpty());  // the difference follows from the interval
  const Layout sixty = layout_at(60);
  EXPECT_EQ(sixty.left_out.front(), "TTFT ratio");
  EXPECT_THAT(sixty.left_out, Not(Contains("speed-up")));
  EXPECT_THAT(sixty.left_out, Not(Contains("verdict")));
}

TEST(Table, SaysWhatItHadNoRoomFor) {
  const record::Record record = test::sample_record();
  const auto evaluation = gate::evaluate(record, {});
  EXPECT_THAT(render(record, evaluation, Format::table, {.width = 60}),
              HasSubstr("No room at 60 columns for: TTFT ratio"));
  EXPECT_THAT(render(record, evaluation, Format::table, {.width = 80}), Not(HasSubstr("No room")));
}

TEST(Table, TakesAnyWidthItIsGiven) {
  const record::Record record = test::sample_record();
  const auto evaluation = gate::evaluate(record, {});
  const auto at = [&](std::size_t width) {
    return render(record, evaluation, Format::table, {.width = width});
  };
  EXPECT_EQ(at(0), at(60));
  EXPECT_EQ(at(100000), at(200));
}

TEST(Table, IsTheSameTextWithAndWithoutColour) {
  const record::Record record = test::sample_record();
  const auto evaluation = gate::evaluate(record, {});
  const std::string coloured =
      render(record, evaluation, Format::table, {.width = 80, .colour = true});
  std::string stripped;
  for (std::size_t i = 0; i < coloured.size(); ++i) {
    if (coloured[i] == '\x1b') {
      i = coloured.find('m', i);
    } else {
      stripped += coloured[i];
    }
  }
  EXPECT_EQ(stripped, render(record, evaluation, Format::table));
  EXPECT_EQ(std::ranges::count(coloured, '\x1b') % 2, 0);
}

TEST(Table, HasNoSpacesAtTheEndsOfLines) {
  const record::Record record = test::sample_record();
  const std::string text = render(record, gate::evaluate(record, {}), Format::table);
  for (const std::string_view line : split(text, '\n')) EXPECT_FALSE(line.ends_with(' ')) << line;
}

}  // namespace
}  // namespace paceline::report
