// Reading is strict: what is wrong is named by its place, the value seen and the value wanted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/json.hpp"
#include "record/record.hpp"
#include "support/matchers.hpp"
#include "support/sample_record.hpp"

namespace paceline::record {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Json good() {
  test::SampleShape shape;
  shape.prompts = 1;
  return to_json(test::sample_record(shape));
}

/// The message of reading the sample record with one value replaced.
std::string message_with(const char* pointer, const Json& value) {
  Json json = good();
  json[Json::json_pointer(pointer)] = value;
  const auto record = from_json(json);
  EXPECT_FALSE(record) << pointer;
  return record ? "" : record.error().message;
}

TEST(StrictReading, NamesThePlaceTheValueAndTheWantedOne) {
  EXPECT_THAT(message_with("/blocks/2/samples/0/order", -1),
              AllOf(HasSubstr("record.blocks[2].samples[0].order"),
                    HasSubstr("whole number from 0"), HasSubstr("found -1")));
  EXPECT_THAT(message_with("/environment/host/cpu_model", 7),
              AllOf(HasSubstr("record.environment.host.cpu_model"), HasSubstr("a text")));
  EXPECT_THAT(message_with("/plan/arms/1/kind", "guess"),
              AllOf(HasSubstr("record.plan.arms[1].kind"), HasSubstr("plain, lookup, draft_model"),
                    HasSubstr("\"guess\"")));
  EXPECT_THAT(message_with("/plan/control", 0), HasSubstr("true or false"));
  EXPECT_THAT(message_with("/blocks", Json::object()), HasSubstr("record.blocks: an array"));
  EXPECT_THAT(message_with("/warmup/first_arm_ms/1", "x"),
              HasSubstr("record.warmup.first_arm_ms[1]: a number"));
}

TEST(StrictReading, KeepsNumbersInTheirRange) {
  EXPECT_THAT(message_with("/blocks/0/samples/0/tokens/0", 2147483648),
              HasSubstr("from -2147483648 to 2147483647"));
  EXPECT_THAT(message_with("/blocks/0/samples/0/tokens/0", 1.5), HasSubstr("found 1.5"));
  EXPECT_THAT(message_with("/blocks/0/samples/0/rounds/rows/3", -1),
              HasSubstr("record.blocks[0].samples[0].rounds.rows[3]"));
}

TEST(StrictReading, NullIsForUnknownNumbersOnly) {
  EXPECT_THAT(message_with("/generated_at_unix_seconds", nullptr),
              HasSubstr("record.generated_at_unix_seconds: a number is wanted, found null"));
  Json json = good();
  json["environment"]["host"]["memory_bytes"] = nullptr;
  const auto record = from_json(json);
  ASSERT_THAT(record, test::IsOk());
  EXPECT_FALSE(record->environment.host.memory_bytes);
}

TEST(StrictReading, RefusesUnknownMembers) {
  EXPECT_THAT(message_with("/plan/arms/0/colour", "red"),
              HasSubstr("record.plan.arms[0]: unknown member \"colour\""));
  EXPECT_THAT(message_with("/blocks/0/samples/0/rounds/extra", Json::array()),
              HasSubstr("rounds: unknown member \"extra\""));
}

TEST(StrictReading, EveryMissingMemberIsNamed) {
  const Json whole = good();
  for (const auto& [key, value] : whole.items()) {
    Json json = whole;
    json.erase(key);
    EXPECT_THAT(from_json(json), test::FailsWith(ErrorCode::bad_format, HasSubstr(key))) << key;
  }
}

TEST(StrictReading, ColumnsOfRoundsHaveOneLength) {
  Json json = good();
  json["blocks"][0]["samples"][1]["rounds"]["emitted"].push_back(1);
  EXPECT_THAT(from_json(json),
              test::FailsWith(ErrorCode::bad_format,
                              AllOf(HasSubstr("samples[1].rounds"), HasSubstr("entries"))));
  EXPECT_THAT(message_with("/blocks/0/samples/0/rounds/rows", 4),
              HasSubstr("rounds.rows: an array is wanted"));
}

TEST(StrictReading, SchemaVersionsAreCheckedFirst) {
  Json newer = good();
  newer["schema_version"] = 99;
  newer["something_new"] = true;
  EXPECT_THAT(from_json(newer), test::FailsWithWord("record_schema_newer"));
  newer["schema_version"] = 0;
  EXPECT_THAT(from_json(newer), test::FailsWith(ErrorCode::bad_format, HasSubstr("found 0")));
  newer["schema_version"] = "1";
  EXPECT_THAT(from_json(newer), test::FailsWith(ErrorCode::bad_format));
  newer.erase("schema_version");
  EXPECT_THAT(from_json(newer), test::FailsWith(ErrorCode::bad_format));
  for (const Json& no_object : {Json(nullptr), Json(3), Json::array(), Json("record")}) {
    EXPECT_THAT(from_json(no_object), test::FailsWith(ErrorCode::bad_format));
  }
}

TEST(StrictReading, LongWrongValuesAreCutInTheMessage) {
  EXPECT_LT(message_with("/plan/control", std::string(10000, 'x')).size(), 300U);
}

/// Every value of the record in turn becomes something of another type: never a crash, always an
/// error that names the place, or a value that the member may have.
TEST(StrictReading, SurvivesAnyWrongValue) {
  test::SampleShape shape;
  shape.classes.resize(2);
  shape.prompts = 2;
  shape.tokens = 9;
  const Json whole = to_json(test::sample_record(shape));
  const Json flat = whole.flatten();
  std::size_t step = 0;
  for (const auto& [pointer, value] : flat.items()) {
    if (++step % 3 != 0) continue;
    for (const Json& wrong : {Json(nullptr), Json("x"), Json(-5), Json::array({1}), Json(1e300)}) {
      Json json = whole;
      json[Json::json_pointer(pointer)] = wrong;
      const auto record = from_json(json);
      if (record) continue;
      EXPECT_THAT(record.error().message, testing::StartsWith("record")) << pointer;
    }
  }
}

TEST(RecordJson, StoresRoundsByColumn) {
  const Json json = good();
  const Json& sample = json["blocks"][0]["samples"][1];
  const Json& rounds = sample["rounds"];
  EXPECT_EQ(rounds.size(), 9U);
  EXPECT_GT(rounds["rows"].size(), 10U);
  for (const auto& [key, column] : rounds.items()) {
    EXPECT_EQ(column.size(), rounds["rows"].size()) << key;
  }
  EXPECT_LT(dump_json(sample).size(), 60 * rounds["rows"].size() + 2000);
}

TEST(RecordJson, KeepsEmptyColumnsForASampleWithoutRounds) {
  const Json json = to_json(Sample{});
  EXPECT_EQ(json["rounds"]["rows"], Json::array());
  EXPECT_EQ(json["rounds"].size(), 9U);
}

TEST(RecordJson, IsValidTextWhateverTheNames) {
  Record record = test::sample_record();
  record.environment.target.name = "caf\xe9 \xff";
  record.environment.packages["p\xc3"] = "\x80";
  const Json json = to_json(record);
  EXPECT_NO_THROW(static_cast<void>(json.dump()));
  const auto again = from_json(json);
  ASSERT_THAT(again, test::IsOk());
  EXPECT_EQ(again->environment.target.name, "caf\xef\xbf\xbd \xef\xbf\xbd");
}

}  // namespace
}  // namespace paceline::record
