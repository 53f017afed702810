// What a reader is told, on evaluations made by hand: guards, outputs, loops, nothing measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "report/report.hpp"
#include "support/sample_record.hpp"

namespace paceline::report {
namespace {

using testing::HasSubstr;
using testing::Not;

record::Record record_of(std::size_t prompts) {
  test::SampleShape shape;
  shape.prompts = prompts;
  return test::sample_record(shape);
}

/// One arm, one class, everything fine.
gate::Evaluation evaluation() {
  gate::Comparison comparison;
  comparison.arm = "lookup-3";
  comparison.baseline = "plain";
  comparison.scope = "overall";
  comparison.verdict = gate::Verdict::enable;
  comparison.difference = gate::Difference::faster;
  comparison.speedup.value = 1.5;
  comparison.speedup.low = 1.4;
  comparison.speedup.high = 1.6;
  comparison.speedup.n = 8;
  comparison.outputs_equal = 8;
  gate::Evaluation result;
  result.overall = {comparison};
  result.verdict = gate::Verdict::enable;
  result.sentence = "Enable it.";
  return result;
}

std::string table_of(const record::Record& record, const gate::Evaluation& evaluation) {
  return render(record, evaluation, Format::table, {.width = 200});
}

TEST(Context, InflatedModelsAreNamedAsSuch) {
  record::Record record = record_of(1);
  EXPECT_THAT(table_of(record, evaluation()), Not(HasSubstr("inflated")));
  record.environment.target.inflation =
      record::Inflation{.source = "Small 135M", .shape = "7b", .noise = 0};
  EXPECT_THAT(table_of(record, evaluation()), HasSubstr(", Small 135M inflated to 7b\n"));
  record.environment.target.inflation->noise = 0.25;
  EXPECT_THAT(table_of(record, evaluation()),
              HasSubstr(", Small 135M inflated to 7b, noise 0.25\n"));
  record.environment.target.inflation->random = true;
  const std::string markdown = render(record, evaluation(), Format::markdown, {});
  EXPECT_THAT(markdown, HasSubstr("random weights in 7b shape"));
}

TEST(Findings, GuardsAreNamedByTheirState) {
  gate::Evaluation result = evaluation();
  gate::Guard broken{"p95_latency", "broken", {}, 1.10, "on 59 pairs"};
  broken.ratio.value = 1.32;
  broken.ratio.low = 1.21;
  broken.ratio.high = 1.44;
  gate::Guard undecided{"ttft", "undecided", {}, 1.10, ""};
  gate::Guard fine{"sustained", "ok", {}, 1.15, ""};
  fine.ratio.value = 1.4;
  gate::Guard unmeasured{"sustained", "not_measured", {}, 1.15, ""};
  result.overall.front().guards = {broken, undecided, fine, unmeasured};
  const std::string text = table_of(record_of(1), result);
  EXPECT_THAT(text, HasSubstr("p95 latency is broken: 1.32 [1.21, 1.44], limit 1.10; on 59 pairs"));
  EXPECT_THAT(text, HasSubstr("TTFT is undecided: -, limit 1.10"));
  EXPECT_THAT(text, HasSubstr("sustained 1.40"));
  EXPECT_THAT(text, Not(HasSubstr("not_measured")));
}

TEST(Findings, DifferentOutputsShowWhereTheyPart) {
  record::Record record = record_of(1);
  record::Comparison& comparison = record.blocks.front().comparisons.front();
  comparison.equal = false;
  comparison.first_difference = 17;
  comparison.top_two_margin = 3.25;
  gate::Evaluation result = evaluation();
  result.overall.front().outputs_equal = 7;
  result.overall.front().outputs_different = 1;
  EXPECT_THAT(table_of(record, result),
              HasSubstr("7 equal, 1 DIFFERENT: code code-1 at token 17 (margin 3.25)"));
}

TEST(Findings, LoopsAreTold) {
  gate::Evaluation result = evaluation();
  EXPECT_THAT(table_of(record_of(1), result), Not(HasSubstr("loops")));
  result.overall.front().looped_share = 0.041;
  EXPECT_THAT(table_of(record_of(1), result), HasSubstr("4 % of the plain tokens repeat in loops"));
}

TEST(Findings, AnArmThatDraftedNothingIsNotExercised) {
  gate::Evaluation result = evaluation();
  gate::Comparison chat = result.overall.front();
  chat.scope = "chat";
  chat.difference = gate::Difference::not_exercised;
  result.by_class = {chat};
  EXPECT_THAT(table_of(record_of(1), result),
              HasSubstr("nothing was drafted in chat: not exercised there"));
}

TEST(Findings, TheCostSplitIsPerToken) {
  gate::Evaluation result = evaluation();
  gate::Comparison& overall = result.overall.front();
  overall.draft.emitted_by_rounds = 10;
  overall.cost_speculative = {.wall_ms = 200,
                              .prefill_ms = 75,
                              .draft_ms = 1,
                              .verify_ms = 120,
                              .accept_ms = 2,
                              .other_ms = 2};
  EXPECT_THAT(table_of(record_of(1), result),
              HasSubstr("12.5 ms = draft 0.10 + verify 12.0 + accept 0.20 + other 0.20; plain 1"));
}

TEST(Context, TellsAnIncompleteRunAndADebugBuild) {
  record::Record record = record_of(2);
  EXPECT_THAT(table_of(record, evaluation()), Not(HasSubstr("incomplete")));
  record.complete = false;
  record.incomplete_reason = "the time limit of 180 s";
  record.blocks.resize(3);
  record.environment.build_type = "Debug";
  record.environment.sanitizers = "address";
  const std::string text = table_of(record, evaluation());
  EXPECT_THAT(text, HasSubstr("3 of 12 blocks measured: the time limit of 180 s"));
  EXPECT_THAT(text, HasSubstr("Debug, address"));
}

TEST(Context, SaysNotReadableWhereNothingCouldBeRead) {
  record::Record record = record_of(1);
  record.environment.host.memory_bytes.reset();
  *record.host_at_start = {};
  *record.host_at_end = {};
  const std::string text = table_of(record, evaluation());
  EXPECT_THAT(text, HasSubstr("memory not readable"));
  EXPECT_THAT(text, HasSubstr("not readable: load, stolen time, frequency, temperature"));
}

TEST(Context, SurvivesAClockThatRanBackwards) {
  record::Record record = record_of(1);
  record.host_at_end->at_unix_seconds = record.host_at_start->at_unix_seconds - 5;
  EXPECT_THAT(table_of(record, evaluation()), HasSubstr("not readable: stolen time"));
}

TEST(Warnings, HaveCauseAndHint) {
  const record::Record record = record_of(1);
  const std::string text = table_of(record, evaluation());
  EXPECT_THAT(text, HasSubstr("2 prompts have fewer than 16 tokens"));
  EXPECT_THAT(text, HasSubstr("prompts of the length you really use"));
}

TEST(Table, TheVerdictIsTheLastLine) {
  const std::string text = table_of(record_of(1), evaluation());
  EXPECT_TRUE(text.ends_with("\n\nEnable it.\n")) << text;
}

TEST(Table, AControlRunShowsDifferencesAndNoVerdict) {
  gate::Evaluation result = evaluation();
  result.control = true;
  result.overall.front().difference = gate::Difference::parity;
  result.control_difference = gate::Difference::parity;
  const std::string text = table_of(record_of(1), result);
  EXPECT_THAT(text, HasSubstr("parity"));
  EXPECT_THAT(text, Not(HasSubstr("verdict")));
  EXPECT_THAT(text, Not(HasSubstr("enable")));
}

TEST(Table, HugeNumbersKeepTheirColumns) {
  gate::Evaluation result = evaluation();
  gate::Comparison& overall = result.overall.front();
  overall.speedup.value = std::numeric_limits<double>::max();
  overall.speedup.low = 1e9;
  overall.speedup.high = std::numeric_limits<double>::max();
  overall.plain_tokens_per_s = 1e18;
  overall.draft.tokens_per_round = std::numeric_limits<double>::infinity();
  overall.ttft_ratio.value = std::numeric_limits<double>::quiet_NaN();
  const std::string text = render(record_of(1), result, Format::table, {.width = 80});
  EXPECT_THAT(text, HasSubstr("1.8e+308 [1.0e+09, 1.8e+308]"));
  EXPECT_THAT(text, Not(HasSubstr("inf")));
}

}  // namespace
}  // namespace paceline::report
