// The evaluation's JSON: names, nulls, numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/json.hpp"
#include "gate/gate.hpp"
#include "gate/scripted_run.hpp"

namespace paceline::gate {
namespace {

using testing::ElementsAre;

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> names;
  for (const auto& [key, value] : object.items()) names.push_back(key);
  return names;
}

Json json_of(const test::RunScript& script) {
  return to_json(evaluate(test::make_run(script), Policy{}));
}

TEST(GateJson, HasTheNamesOfTheStructs) {
  const Json json = json_of({});
  EXPECT_THAT(keys(json), ElementsAre("by_class", "control", "control_difference", "overall",
                                      "policy", "recommended_arm", "sentence", "verdict"));
  EXPECT_THAT(keys(json.at("overall")[0]),
              ElementsAre("arm", "baseline", "cost_plain", "cost_speculative", "decode_speedup",
                          "difference", "draft", "further_pairs", "guards", "longest_gap_plain_ms",
                          "longest_gap_speculative_ms", "looped_share", "notes",
                          "outputs_different", "outputs_equal", "outputs_tied", "pairs",
                          "pairs_left_out", "plain_tokens_per_s", "reasons", "scope",
                          "speculative_tokens_per_s", "speedup", "ttft_ratio", "verdict"));
  EXPECT_THAT(keys(json.at("overall")[0].at("speedup")),
              ElementsAre("high", "low", "method", "n", "reason", "value"));
}

TEST(GateJson, WritesUnknownAsNull) {
  const Json json = json_of({.classes = {{.name = "code", .prompts = 1}}});
  const Json& speedup = json.at("overall")[0].at("speedup");
  EXPECT_TRUE(speedup.at("low").is_null());
  EXPECT_TRUE(speedup.at("high").is_null());
  EXPECT_FALSE(speedup.at("reason").is_null());
  EXPECT_TRUE(json.at("overall")[0].at("further_pairs").is_null());
  EXPECT_TRUE(json.at("control_difference").is_null());
}

TEST(GateJson, SpellsOutTheSustainedFloor) {
  EXPECT_EQ(json_of({}).at("policy").at("sustained_ratio_floor"), 1.15);
}

TEST(GateJson, OfNumbersThatAreNoneIsNull) {
  Evaluation evaluation;
  evaluation.policy.ratio_floor = std::numeric_limits<double>::infinity();
  evaluation.overall.emplace_back();
  evaluation.overall[0].cost_plain.wall_ms = std::numeric_limits<double>::quiet_NaN();
  evaluation.overall[0].speedup.value = -std::numeric_limits<double>::infinity();
  const Json json = to_json(evaluation);
  EXPECT_TRUE(json.at("policy").at("ratio_floor").is_null());
  EXPECT_TRUE(json.at("overall")[0].at("cost_plain").at("wall_ms").is_null());
  EXPECT_TRUE(json.at("overall")[0].at("speedup").at("value").is_null());
}

}  // namespace
}  // namespace paceline::gate
