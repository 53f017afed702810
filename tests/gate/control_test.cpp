// Plain against plain: speaks of the harness and the host, never of a drafter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json.hpp"
#include "gate/gate.hpp"
#include "gate/scripted_run.hpp"

namespace paceline::gate {
namespace {

using test::make_run;
using test::sample_of;
using testing::Contains;
using testing::HasSubstr;

record::Record control(double sigma, std::size_t prompts = 12) {
  return make_run({.classes = {{.name = "code", .prompts = prompts}},
                   .noise = {.sigma = sigma},
                   .seed = 2,
                   .control = true});
}

TEST(Control, OfAFairHarnessIsParity) {
  const Evaluation evaluation = evaluate(control(0.01), Policy{});
  EXPECT_TRUE(evaluation.control);
  EXPECT_EQ(evaluation.control_difference, Difference::parity);
  EXPECT_TRUE(evaluation.recommended_arm.empty());
  EXPECT_THAT(evaluation.sentence, testing::StartsWith("No bias shown: plain against plain 1.0"));
}

TEST(Control, WithMuchNoiseIsUndecided) {
  const Evaluation evaluation = evaluate(control(0.2), Policy{});
  EXPECT_EQ(evaluation.control_difference, Difference::undecided);
  EXPECT_THAT(evaluation.sentence, testing::StartsWith("Undecided whether the harness is biased"));
}

TEST(Control, FindsABias) {
  auto record = control(0.01);
  for (record::Block& block : record.blocks) test::scale_times(sample_of(block, "plain-2"), 0.9);
  const Evaluation evaluation = evaluate(record, Policy{});
  EXPECT_EQ(evaluation.control_difference, Difference::faster);
  EXPECT_THAT(evaluation.sentence,
              testing::StartsWith("The harness or this host is biased: plain against plain 1.1"));
}

TEST(Control, HasNoVerdictInItsJson) {
  const Json json = to_json(evaluate(control(0.01), Policy{}));
  EXPECT_TRUE(json.at("verdict").is_null());
  EXPECT_TRUE(json.at("overall").at(0).at("verdict").is_null());
  EXPECT_TRUE(json.at("by_class").at(0).at("verdict").is_null());
  EXPECT_EQ(json.at("control_difference"), "parity");
}

TEST(Control, ThatDraftsNothingIsStillMeasured) {
  EXPECT_NE(evaluate(control(0.01), Policy{}).overall[0].difference, Difference::not_exercised);
}

TEST(Control, ReportsTextsThatDiffer) {
  auto record = control(0.01);
  sample_of(record.blocks[0], "plain-2").tokens[20] += 1;
  EXPECT_THAT(evaluate(record, Policy{}).overall[0].reasons,
              Contains(HasSubstr("outputs differ: in 1 of 12 pairs")));
}

TEST(Control, OfADebugBuildIsNotMeasured) {
  auto record = control(0.01);
  record.environment.build_type = "Debug";
  const Evaluation evaluation = evaluate(record, Policy{});
  EXPECT_EQ(evaluation.control_difference, Difference::not_measured);
  EXPECT_THAT(evaluation.sentence, HasSubstr("measured by a Debug build"));
}

TEST(Control, WithoutBlocksIsNotMeasured) {
  auto record = control(0.01);
  record.blocks.clear();
  EXPECT_EQ(evaluate(record, Policy{}).control_difference, Difference::not_measured);
}

}  // namespace
}  // namespace paceline::gate
