// The canary's report as JSON and as a table.
#include <gtest/gtest.h>

#include "compat/canary.hpp"
#include "core/json.hpp"
#include "core/text.hpp"
#include "support/matchers.hpp"

namespace paceline::test {
namespace {

using compat::CanaryOutcome;
using compat::CanaryReport;
using compat::CanaryResult;
using compat::CanaryStage;
using testing::HasSubstr;

CanaryReport report_with(CanaryOutcome outcome) {
  CanaryReport report;
  compat::CanaryCase fine;
  fine.stage = CanaryStage::chain;
  fine.arm = "lookup";
  fine.depth = 2;
  fine.outcome = CanaryOutcome::equal;
  fine.drafted = 5;
  compat::CanaryCase other = fine;
  other.outcome = outcome;
  if (outcome != CanaryOutcome::equal) {
    other.reason = "tokens_differ";
    other.difference = {.position = 17,
                        .plain = Token{5},
                        .speculative = Token{6},
                        .plain_text = " the",
                        .speculative_text = "\n",
                        .top_two_margin = 0.01,
                        .deviation = 0.02,
                        .width_noise = std::nullopt};
  }
  report.cases = {fine, other};
  report.complete = true;
  return report;
}

TEST(CanaryReport, WeighsDifferentAboveIncompleteAboveTies) {
  EXPECT_EQ(report_with(CanaryOutcome::equal).result(), CanaryResult::equal);
  EXPECT_EQ(report_with(CanaryOutcome::numeric_tie).result(), CanaryResult::numeric_tie);
  EXPECT_EQ(report_with(CanaryOutcome::different).result(), CanaryResult::different);
  EXPECT_EQ(report_with(CanaryOutcome::not_run).result(), CanaryResult::inconclusive);
  CanaryReport broken_off = report_with(CanaryOutcome::numeric_tie);
  broken_off.complete = false;
  EXPECT_EQ(broken_off.result(), CanaryResult::inconclusive);
  broken_off = report_with(CanaryOutcome::different);
  broken_off.complete = false;
  EXPECT_EQ(broken_off.result(), CanaryResult::different);
  for (compat::CanaryCase& c : broken_off.cases) {
    c.outcome = CanaryOutcome::not_run;
    c.drafted = 0;
  }
  EXPECT_THAT(compat::canary_table(broken_off, 80), testing::Not(HasSubstr("no drafts")));
}

TEST(CanaryReport, CallsEqualityWithoutDraftsNoProof) {
  CanaryReport empty = report_with(CanaryOutcome::equal);
  for (compat::CanaryCase& c : empty.cases) c.drafted = 0;
  EXPECT_EQ(empty.result(), CanaryResult::not_exercised);
  EXPECT_THAT(compat::canary_table(empty, 80), HasSubstr("no drafts: "));
  EXPECT_THAT(compat::canary_table(report_with(CanaryOutcome::equal), 80),
              testing::Not(HasSubstr("no drafts")));
  compat::CanaryCase repeated = empty.cases.front();
  repeated.stage = CanaryStage::repeat;  // held against itself, not against plain decoding
  repeated.drafted = 5;
  empty.cases.push_back(repeated);
  EXPECT_EQ(empty.result(), CanaryResult::not_exercised);
  empty.cases.back().outcome = CanaryOutcome::different;
  EXPECT_EQ(empty.result(), CanaryResult::different);
}

TEST(CanaryReport, ShowsTheFirstDifferenceWithBothTokens) {
  const std::string table = compat::canary_table(report_with(CanaryOutcome::different), 80);
  for (const char* words : {"token 17", "5 \" the\"", "6 \"\\n\"", "0.01", "result: different"}) {
    EXPECT_THAT(table, HasSubstr(words));
  }
  for (const std::string_view line : split(table, '\n')) EXPECT_LE(line.size(), 80U) << line;
}

TEST(CanaryReport, HasNullForWhatIsNotKnown) {
  const Json json = compat::to_json(report_with(CanaryOutcome::numeric_tie));
  EXPECT_EQ(json.at("result"), "numeric_tie");
  EXPECT_TRUE(json.at("cases").at(0).at("difference").is_null());
  const Json& difference = json.at("cases").at(1).at("difference");
  EXPECT_EQ(difference.at("plain").at("id"), 5);
  EXPECT_EQ(difference.at("top_two_margin"), 0.01);
  EXPECT_TRUE(difference.at("width_noise").is_null());
}

TEST(CanarySchema, IsJsonAndDescribesEveryMember) {
  const Json schema = value_of(parse_json(compat::canary_schema(), "schema"));
  const Json document = compat::to_json(report_with(CanaryOutcome::different));
  const auto expect_members = [&](const Json& object, const char* definition) {
    const Json& properties = schema.at("definitions").at(definition).at("properties");
    for (const auto& [key, value] : object.items()) EXPECT_TRUE(properties.contains(key)) << key;
    for (const auto& [key, value] : properties.items()) EXPECT_TRUE(object.contains(key)) << key;
  };
  expect_members(document, "equality");
  expect_members(document.at("cases").at(1), "case");
  expect_members(document.at("cases").at(1).at("difference"), "difference");
}

}  // namespace
}  // namespace paceline::test
