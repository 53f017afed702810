// The record as JSON and back, and the key that a verdict hangs on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "record/record.hpp"
#include "support/matchers.hpp"
#include "support/sample_record.hpp"

namespace paceline::record {
namespace {

using testing::HasSubstr;

TEST(RecordJson, ComesBackAsItWas) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    test::SampleShape shape;
    shape.seed = seed;
    shape.prompts = seed % 4;
    if (seed % 2 == 0) shape.arms.push_back(test::SampleShape::draft_arm(5));
    const Json json = to_json(test::sample_record(shape));
    const auto again = from_json(json);
    ASSERT_THAT(again, test::IsOk());
    EXPECT_EQ(to_json(*again), json);
    const auto parsed = test::value_of(parse_json(dump_json(json), "record"));
    EXPECT_EQ(to_json(test::value_of(from_json(parsed))), json);
  }
  const Json empty = to_json(test::empty_record());
  EXPECT_EQ(to_json(test::value_of(from_json(empty))), empty);
}

TEST(RecordJson, UnknownNumbersAreNull) {
  Record record = test::sample_record();
  record.environment.target.parameters.reset();
  record.generated_at_unix_seconds = std::numeric_limits<double>::quiet_NaN();
  const Json json = to_json(record);
  EXPECT_TRUE(json.at("environment").at("target").at("parameters").is_null());
  EXPECT_TRUE(json.at("generated_at_unix_seconds").is_null());
}

TEST(RecordJson, RefusesWhatItDoesNotUnderstandByName) {
  const Json good = to_json(test::sample_record());
  Json newer = good;
  newer["schema_version"] = k_schema_version + 1;
  EXPECT_THAT(from_json(newer),
              test::FailsWith(ErrorCode::unsupported, HasSubstr("schema_version")));
  Json missing = good;
  missing["plan"].erase("arms");
  EXPECT_THAT(from_json(missing), test::FailsWith(ErrorCode::bad_format, HasSubstr("arms")));
  Json word = good;
  word["blocks"][0]["status"] = "perhaps";
  EXPECT_THAT(from_json(word), test::FailsWith(ErrorCode::bad_format, HasSubstr("perhaps")));
  Json type = good;
  type["blocks"][0]["samples"][0]["elapsed_ns"] = "long";
  EXPECT_THAT(from_json(type), test::FailsWith(ErrorCode::bad_format, HasSubstr("elapsed_ns")));
  EXPECT_THAT(from_json(Json::array()), test::FailsWith(ErrorCode::bad_format));
}

TEST(EnvironmentKey, ChangesWithEverythingAVerdictDependsOn) {
  const Environment base = test::sample_record().environment;
  const std::vector<std::function<void(Environment&)>> changes = {
      [](Environment& e) { e.build_type = "Debug"; },
      [](Environment& e) { e.compiler += "x"; },
      [](Environment& e) { e.host.cpu_model += "x"; },
      [](Environment& e) { e.host.instruction_sets.pop_back(); },
      [](Environment& e) { ++e.host.cores_allowed; },
      [](Environment& e) { e.target.sha256 = std::string(64, '0'); },
      [](Environment& e) { e.target.chat_template_sha256 = std::string(64, '0'); },
      [](Environment& e) { ++e.target_runtime.threads; },
      [](Environment& e) { ++e.target_runtime.context; },
      [](Environment& e) { e.target_runtime.build += "x"; },
      [](Environment& e) { e.target_runtime.kv_type_v = "q8_0"; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Environment changed = base;
    changes[i](changed);
    EXPECT_NE(changed.key(), base.key()) << "change " << i;
    EXPECT_EQ(environment_differences(base, changed).size(), 1U) << "change " << i;
  }
  Environment moved = base;
  moved.target.path = "/somewhere/else.gguf";
  EXPECT_EQ(moved.key(), base.key());
  EXPECT_TRUE(environment_differences(base, moved).empty());
}

TEST(EnvironmentDifferences, NameThePartWithBothValues) {
  const Environment base = test::sample_record().environment;
  Environment changed = base;
  changed.target_runtime.threads = 77;
  const auto differences = environment_differences(base, changed);
  ASSERT_EQ(differences.size(), 1U);
  EXPECT_THAT(differences[0], HasSubstr("threads"));
  EXPECT_THAT(differences[0], HasSubstr("77"));
}

}  // namespace
}  // namespace paceline::record
