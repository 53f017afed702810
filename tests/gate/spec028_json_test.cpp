// A record in the published report's shape.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/hash.hpp"
#include "core/json.hpp"
#include "gate/scripted_run.hpp"
#include "gate/spec028.hpp"

namespace paceline::gate::spec028 {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

record::Record a_run() {
  auto record = test::make_run({.classes = {{.name = "code", .prompts = 2, .speedup = 1.5},
                                            {.name = "prose", .prompts = 3, .speedup = 0.9}}});
  record.generated_at_unix_seconds = 1234.5;
  record.environment.host.machine = "x86_64";
  record.environment.host.chip = "non_apple_silicon";
  record.environment.host.hardware_model = "non_apple_silicon";
  record.environment.host.memory_bytes = (std::uint64_t{16} << 30) - 5;
  record.environment.target.path = "/models/smol.gguf";
  record.environment.target.bytes = 98'362'432;
  record.plan.max_context_tokens = 8192;
  return record;
}

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> names;
  for (const auto& [key, value] : object.items()) names.push_back(key);
  return names;
}

TEST(Spec028Report, HasThePublishedEnvelope) {
  const Json json = report(a_run(), Policy{});
  EXPECT_THAT(keys(json), ElementsAre("benchmark", "binaryVersion", "fixtures",
                                      "generatedAtUnixSeconds", "host"));
  EXPECT_EQ(json.at("benchmark"), "SPEC-028");
  EXPECT_EQ(json.at("host"), Json({{"machine", "x86_64"},
                                   {"chip", "non_apple_silicon"},
                                   {"hardwareModel", "non_apple_silicon"},
                                   {"memoryGB", 16}}));
  ASSERT_EQ(json.at("fixtures").size(), 2U);
  EXPECT_EQ(json.at("fixtures")[0].at("fixtureID"), "code");
  EXPECT_EQ(json.at("fixtures")[1].at("fixtureID"), "prose");
}

TEST(Spec028Report, HasThePublishedFixtureFields) {
  const Json json = fixture_result(a_run(), Policy{}, "code", "lookup-3");
  EXPECT_THAT(keys(json),
              ElementsAre("arm", "baselineSamples", "draftLoadPath", "draftModel", "evaluation",
                          "fixtureID", "maxContextTokens", "numDraftTokens", "request",
                          "specSamples", "sustainedSamples", "targetLoadPath", "targetModel"));
  EXPECT_EQ(json.at("targetModel"), "smollm2-135m");
  EXPECT_EQ(json.at("draftModel"), "prompt-lookup");
  EXPECT_EQ(json.at("draftLoadPath"), "unknown");
  EXPECT_EQ(json.at("numDraftTokens"), 3);
  EXPECT_EQ(json.at("maxContextTokens"), 8192);
  EXPECT_EQ(json.at("request"),
            Json({{"stream", false}, {"temperature", 0.0}, {"topP", 1.0}, {"maxTokens", 33}}));
  EXPECT_EQ(json.at("baselineSamples").size(), 2U);
  EXPECT_EQ(json.at("specSamples").size(), 2U);
  EXPECT_EQ(json.at("sustainedSamples").size(), 0U);
}

TEST(Spec028Report, LeavesAbsentNumbersOut) {
  const Json evaluation = fixture_result(a_run(), Policy{}, "code", "lookup-3").at("evaluation");
  EXPECT_THAT(keys(evaluation),
              ElementsAre("acceptanceRate", "baselineMedianTPS", "baselineP95LatencyMS",
                          "baselineP95TTFTMS", "p95LatencyRatio", "recommendEnable",
                          "recommendationReasons", "specMedianTPS", "specP95LatencyMS",
                          "specP95TTFTMS", "tpsRatio"))
      << "no ttftP95Ratio, as the scripted first token takes 0 ms; no sustained values";
  EXPECT_NEAR(evaluation.at("tpsRatio").get<double>(), 1.5, 1e-3);
  EXPECT_EQ(evaluation.at("recommendationReasons"), Json({"p95 TTFT ratio unavailable"}));
}

TEST(Spec028Report, HasThePublishedSampleFields) {
  auto record = a_run();
  auto& sample = test::sample_of(record.blocks[0], "lookup-3");
  sample.first_token_ns = 123'999'999;
  sample.elapsed_ns = 2'000'000'000;
  sample.ended_at_unix_seconds = 77.25;
  sample.streamed_chunks = 9;
  const Json json = fixture_result(record, Policy{}, "code", "lookup-3").at("specSamples")[0];
  EXPECT_EQ(json, Json({{"phase", "spec"},
                        {"promptTokens", 40},
                        {"completionTokens", 33},
                        {"elapsedSeconds", 2.0},
                        {"tokensPerSecond", 16.5},
                        {"ttftMilliseconds", 123},
                        {"draftedTokens", 48},
                        {"acceptedTokens", 16},
                        {"streamedChunks", 9},
                        {"endedAtUnixSeconds", 77.25},
                        {"thermalState", "nominal"}}));
}

TEST(Spec028Report, NeverInventsAThermalStateOrAFirstToken) {
  auto record = a_run();
  auto& sample = test::sample_of(record.blocks[0], "lookup-3");
  sample.thermal_state = "not readable";
  sample.tokens.clear();
  const Json json = fixture_result(record, Policy{}, "code", "lookup-3").at("specSamples")[0];
  EXPECT_FALSE(json.contains("thermalState"));
  EXPECT_FALSE(json.contains("ttftMilliseconds"));
}

TEST(Spec028Report, TakesAtLeastAMillisecond) {
  auto record = a_run();
  auto& sample = test::sample_of(record.blocks[0], "plain");
  sample.elapsed_ns = -7;
  const Json json = fixture_result(record, Policy{}, "code", "lookup-3").at("baselineSamples")[0];
  EXPECT_EQ(json.at("elapsedSeconds"), 0.001);
}

TEST(Spec028Report, PrintsTheRestWhereTheEvaluationFails) {
  auto record = a_run();
  for (record::Block& block : record.blocks) {
    if (block.fixture == "code") block.status = record::CellStatus::failed;
  }
  const Json json = report(record, Policy{}).at("fixtures");
  EXPECT_FALSE(json[0].contains("evaluation"));
  EXPECT_EQ(json[0].at("evaluationError"), "no baseline throughput");
  EXPECT_TRUE(json[1].contains("evaluation"));
}

TEST(Spec028Report, HasOneEntryPerFixtureAndSpeculativeArm) {
  auto record = a_run();
  record.plan.arms.push_back(record.plan.arms[1]);
  record.plan.arms[2].id = "draft-3";
  record.plan.arms[2].kind = record::ArmKind::draft_model;
  record.plan.arms[2].draft_model = "tiny";
  record.environment.drafts.emplace_back();
  record.environment.drafts[0].name = "tiny";
  record.environment.drafts[0].path = "/models/tiny.gguf";
  const Json fixtures = report(record, Policy{}).at("fixtures");
  ASSERT_EQ(fixtures.size(), 4U);
  EXPECT_EQ(fixtures[1].at("draftModel"), "tiny");
  EXPECT_EQ(fixtures[1].at("draftLoadPath"),
            "local:" + sha256_hex("/models/tiny.gguf").substr(0, 32));
  EXPECT_EQ(fixtures[1].at("evaluationError"), "no spec samples");
}

TEST(Spec028Report, UsesTheTargetsPathWhereItDraftsForItself) {
  auto record = a_run();
  record.plan.arms[1].kind = record::ArmKind::draft_model;
  record.plan.arms[1].draft_model = "smollm2-135m";
  const Json json = fixture_result(record, Policy{}, "code", "lookup-3");
  EXPECT_EQ(json.at("draftLoadPath"), json.at("targetLoadPath"));
}

TEST(Spec028Report, RedactsLoadPaths) {
  const auto path_of = [](const std::string& path, bool from_file) {
    auto record = a_run();
    record.environment.target.path = path;
    record.environment.target.bytes.reset();
    if (from_file) record.environment.target.sha256 = "abc";
    return fixture_result(record, Policy{}, "code", "lookup-3")
        .at("targetLoadPath")
        .get<std::string>();
  };
  const auto local = [](const std::string& path) {
    return "local:" + sha256_hex(path).substr(0, 32);
  };
  EXPECT_EQ(path_of("/a/b.gguf", true), local("/a/b.gguf"));
  EXPECT_EQ(path_of(" /a//x/.././b.gguf/ ", true), local("/a/b.gguf"));
  EXPECT_EQ(path_of("Qwen/Qwen2.5-7B", false), "Qwen/Qwen2.5-7B");
  EXPECT_EQ(path_of("models/x.gguf", true), local("models/x.gguf")) << "a file of that name";
  EXPECT_EQ(path_of("../x", false), local("../x"));
  EXPECT_EQ(path_of("plain-name", false), local("plain-name"));
  EXPECT_EQ(path_of("a/b/c", false), local("a/b/c"));
  EXPECT_EQ(path_of("", false), "unknown");
  EXPECT_EQ(path_of("  ", false), "unknown");
}

TEST(Spec028Report, GivesTheSustainedWindowToAFixtureThatIsAlone) {
  auto record = test::make_run({.classes = {{.name = "code", .prompts = 2, .speedup = 1.5}}});
  record.sustained.emplace();
  record.sustained->last_window_seconds = 30;
  record.sustained->ended_at_unix_seconds = 2000;
  record.sustained->samples = record.blocks[0].samples;
  for (auto& sample : record.sustained->samples) sample.ended_at_unix_seconds = 1990;
  const Json alone = fixture_result(record, Policy{}, "code", "lookup-3");
  ASSERT_EQ(alone.at("sustainedSamples").size(), 1U);
  EXPECT_EQ(alone.at("sustainedSamples")[0].at("phase"), "sustained");
  EXPECT_NEAR(alone.at("evaluation").at("sustainedRatio").get<double>(), 1.5, 1e-3);

  record.plan.fixtures.push_back(record.plan.fixtures[0]);
  record.plan.fixtures[1].id = "prose";
  EXPECT_EQ(fixture_result(record, Policy{}, "code", "lookup-3").at("sustainedSamples").size(), 0U);
}

TEST(Spec028Report, PassesTheUsersThresholds) {
  Policy policy;
  policy.ratio_floor = 1.6;
  policy.spec028_latency_limit = 0.5;
  policy.acceptance_floor = 0.5;
  EXPECT_THAT(fixture_result(a_run(), policy, "code", "lookup-3")
                  .at("evaluation")
                  .at("recommendationReasons")
                  .get<std::vector<std::string>>(),
              ElementsAre("TPS ratio 1.500 < 1.600", "p95 latency ratio 0.667 > 0.500",
                          "p95 TTFT ratio unavailable", "acceptance 0.333 < 0.500"));
}

TEST(Spec028Report, LineOfJsonLinesCarriesHostAndVersion) {
  const auto record = a_run();
  const Json line = jsonl_line(record, Policy{}, "code", "lookup-3");
  EXPECT_EQ(line.at("benchmark"), "SPEC-028");
  EXPECT_EQ(line.at("binaryVersion"), "0.1.0");
  EXPECT_EQ(line.at("host"), report(record, Policy{}).at("host"));
  EXPECT_EQ(line.at("evaluation"),
            fixture_result(record, Policy{}, "code", "lookup-3").at("evaluation"));
  EXPECT_EQ(dump_json(line).find('\n'), std::string::npos);
}

TEST(Spec028Report, OfAControlRunHasNoFixtures) {
  EXPECT_EQ(report(test::make_run({.control = true}), Policy{}).at("fixtures").size(), 0U);
}

TEST(Spec028Report, OfAnUnknownArmSaysSo) {
  EXPECT_EQ(fixture_result(a_run(), Policy{}, "code", "nobody").at("evaluationError"),
            "the plan has no arm \"nobody\"");
  EXPECT_TRUE(report(record::Record{}, Policy{}).at("fixtures").empty());
}

}  // namespace
}  // namespace paceline::gate::spec028
