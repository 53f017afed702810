// Every document fits the published schema, and a broken one does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json-schema.hpp>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "report/report.hpp"
#include "support/golden.hpp"
#include "support/matchers.hpp"
#include "support/sample_record.hpp"

namespace paceline::report {
namespace {

Json schema_json() { return test::value_of(parse_json(schema(), "schema")); }

class ErrorList : public nlohmann::json_schema::basic_error_handler {
 public:
  void error(const Json::json_pointer& place, const Json& instance,
             const std::string& message) override {
    basic_error_handler::error(place, instance, message);
    errors.push_back(place.to_string() + ": " + message);
  }
  std::vector<std::string> errors;
};

std::vector<std::string> schema_errors(const Json& document) {
  static const nlohmann::json_schema::json_validator validator(schema_json());
  ErrorList list;
  validator.validate(document, list);
  return list.errors;
}

Json document_of(const record::Record& record) {
  return document(record, gate::evaluate(record, {}));
}

record::Record small_record() {
  test::SampleShape shape;
  shape.classes.resize(2);
  shape.prompts = 2;
  shape.tokens = 12;
  return test::sample_record(shape);
}

TEST(Schema, FitsWholePartialAndEmptyRecords) {
  record::Record no_samples = small_record();
  no_samples.blocks.clear();
  no_samples.sustained.reset();
  no_samples.warmup.reset();
  record::Record control = small_record();
  control.plan.control = true;
  test::SampleShape shape;
  shape.prompts = 1;
  shape.arms.push_back(test::SampleShape::draft_arm(4));
  for (const record::Record& record :
       {small_record(), no_samples, control, test::sample_record(shape), test::empty_record()}) {
    EXPECT_THAT(schema_errors(document_of(record)), testing::IsEmpty());
  }
}

TEST(Schema, RefusesMissingUnknownAndWrongMembers) {
  const Json whole = document_of(small_record());
  const auto broken = [&](const char* place, const Json& value) {
    Json json = whole;
    json[Json::json_pointer(place)] = value;
    return schema_errors(json);
  };
  using testing::Not;
  EXPECT_THAT(broken("/paceline/record/extra", 1), Not(testing::IsEmpty()));
  EXPECT_THAT(broken("/paceline/record/schema_version", 2), Not(testing::IsEmpty()));
  EXPECT_THAT(broken("/paceline/record/blocks/0/status", "perhaps"), Not(testing::IsEmpty()));
  EXPECT_THAT(broken("/paceline/record/blocks/0/samples/0/rounds/rows/0", -1),
              Not(testing::IsEmpty()));
  EXPECT_THAT(broken("/paceline/evaluation/overall/0/verdict", "yes"), Not(testing::IsEmpty()));
  EXPECT_THAT(broken("/paceline/environment_key", "short"), Not(testing::IsEmpty()));
  EXPECT_THAT(broken("/fixtures/0/evaluation/tpsRatio", nullptr), Not(testing::IsEmpty()));
  EXPECT_THAT(broken("/benchmark", "other"), Not(testing::IsEmpty()));
}

/// Taking any member of our part away must be noticed: everything there is required.
TEST(Schema, RequiresEveryMemberOfOurPart) {
  const Json whole = document_of(small_record());
  const auto check = [&](const char* object) {
    const Json::json_pointer place(object);
    for (const auto& [key, value] : whole[place].items()) {
      Json json = whole;
      json[place].erase(key);
      EXPECT_FALSE(schema_errors(json).empty()) << object << "/" << key;
    }
  };
  for (const char* object : {"/paceline",
                             "/paceline/record",
                             "/paceline/record/environment",
                             "/paceline/record/environment/host",
                             "/paceline/record/environment/target",
                             "/paceline/record/environment/target_runtime",
                             "/paceline/record/plan",
                             "/paceline/record/plan/arms/0",
                             "/paceline/record/plan/fixtures/0",
                             "/paceline/record/plan/sampling",
                             "/paceline/record/warmup",
                             "/paceline/record/blocks/0",
                             "/paceline/record/blocks/0/samples/0",
                             "/paceline/record/blocks/0/samples/0/rounds",
                             "/paceline/record/blocks/0/comparisons/0",
                             "/paceline/record/blocks/0/host_before",
                             "/paceline/record/sustained",
                             "/paceline/record/warnings/0",
                             "/paceline/evaluation",
                             "/paceline/evaluation/policy",
                             "/paceline/evaluation/overall/0",
                             "/paceline/evaluation/overall/0/speedup",
                             "/paceline/evaluation/overall/0/draft",
                             "/paceline/evaluation/overall/0/cost_plain",
                             "/paceline/evaluation/overall/0/guards/0"}) {
    check(object);
  }
}

void expect_described(const Json& node, const std::string& place) {
  if (node.contains("properties")) {
    EXPECT_EQ(node.value("additionalProperties", Json(true)), Json(false)) << place;
    for (const auto& [key, property] : node.at("properties").items()) {
      EXPECT_TRUE(property.contains("description") || property.contains("$ref"))
          << place << "/" << key;
      expect_described(property, place + "/" + key);
    }
  }
  if (node.contains("items")) expect_described(node.at("items"), place + "[]");
}

TEST(Schema, DescribesEveryMember) {
  const Json json = schema_json();
  EXPECT_EQ(json.at("$schema"), "http://json-schema.org/draft-07/schema#");
  expect_described(json, "");
  for (const auto& [name, definition] : json.at("definitions").items()) {
    EXPECT_TRUE(definition.contains("description")) << name;
    expect_described(definition, name);
  }
}

TEST(Document, IsAsItWas) {
  const record::Record record = small_record();
  EXPECT_TRUE(test::matches_golden_json("document.json",
                                        render(record, gate::evaluate(record, {}), Format::json)));
}

TEST(Document, KeepsItsKeyAndItsRecord) {
  const record::Record record = small_record();
  const Json json = document_of(record);
  EXPECT_EQ(json.at("paceline").at("environment_key"), record.environment.key());
  const auto again = record::from_json(json.at("paceline").at("record"));
  ASSERT_THAT(again, test::IsOk());
  EXPECT_TRUE(*again == record);
  EXPECT_EQ(document(*again, gate::evaluate(*again, {})), json);
}

/// A clock that ran backwards gives negative times, which are kept as they are.
TEST(Document, SurvivesNegativeTimesAndNoTokens) {
  record::Record record = small_record();
  for (record::Block& block : record.blocks) {
    for (record::Sample& sample : block.samples) {
      sample.tokens.clear();
      sample.rounds.clear();
      sample.elapsed_ns = -5;
      sample.first_token_ns = -7;
    }
  }
  const Json json = document_of(record);
  EXPECT_THAT(schema_errors(json), testing::IsEmpty());
  EXPECT_THAT(record::from_json(json.at("paceline").at("record")), test::IsOk());
}

}  // namespace
}  // namespace paceline::report
