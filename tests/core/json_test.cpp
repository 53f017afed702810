#include "core/json.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/text.hpp"
#include "support/matchers.hpp"

namespace paceline {
namespace {

using test::FailsWith;
using test::IsOk;
using test::value_of;
using testing::AllOf;
using testing::HasSubstr;

TEST(ParseJson, ReadsValues) {
  const auto value = parse_json(R"({"a": [1, 2.5, null, "\u00fc"]})", "test");
  ASSERT_THAT(value, IsOk());
  EXPECT_EQ((*value)["a"][3], "\xc3\xbc");
}

TEST(ParseJson, NamesSourceAndPlaceOfAFault) {
  EXPECT_THAT(
      parse_json("{\n \"a\": }", "request.json"),
      FailsWith(ErrorCode::bad_format, AllOf(HasSubstr("request.json"), HasSubstr("line 2"))));
}

TEST(ParseJson, ShowsSomeOfWhatStandsThere) {
  const auto error = parse_json("[\"" + std::string(100000, 'x'), "\"a.json\"").error();
  EXPECT_LT(error.message.size(), 400U);
  EXPECT_TRUE(error.message.starts_with("\"a.json\": not valid JSON: "));
  EXPECT_TRUE(error.message.ends_with("..."));
  const std::string wide =
      parse_json("[\"" + std::string(300, '\xc3') + "\xbc", "b").error().message;
  EXPECT_EQ(to_valid_utf8(wide), wide);
}

TEST(ParseJson, NeverThrows) {
  const std::vector<std::string> bad{"",
                                     " ",
                                     "{",
                                     "[1,]",
                                     "nul",
                                     "{\"a\":1}x",
                                     "\"\xff\"",
                                     "'a'",
                                     "1e99999",
                                     "-1e99999",
                                     "[1e400]",
                                     "\"\\ud800\"",
                                     "01",
                                     "+1",
                                     "NaN",
                                     "\x01",
                                     "{\"a\"}",
                                     "\"\\uzzzz\"",
                                     "{\"a\":1e999}",
                                     std::string("\0", 1),
                                     "\xef\xbb",
                                     "[",
                                     "]"};
  for (const std::string& text : bad) {
    EXPECT_THAT(parse_json(text, "here"), FailsWith(ErrorCode::bad_format, HasSubstr("here")))
        << text;
  }
}

TEST(ParseJson, SurvivesDeepNesting) {
  EXPECT_THAT(parse_json(std::string(100000, '['), "deep"), FailsWith(ErrorCode::bad_format));
  // Whole and deep: printing or comparing it would use the whole stack.
  const auto nested = [](std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  EXPECT_THAT(parse_json(nested(512), "deep"), IsOk());
  EXPECT_THAT(parse_json(nested(513), "deep"), FailsWith(ErrorCode::bad_format));
  EXPECT_THAT(parse_json("[\"" + std::string(600, '[') + "\\\"[\"]", "text"), IsOk());
}

TEST(DumpJson, ReplacesBytesThatAreNoText) {
  EXPECT_EQ(dump_json(Json{{"a", "x\xff"}}), "{\"a\":\"x\xef\xbf\xbd\"}");
}

TEST(DumpJson, IndentsWhenAsked) { EXPECT_EQ(dump_json(Json{{"a", 1}}, 2), "{\n  \"a\": 1\n}"); }

TEST(Read, GivesMembers) {
  const Json object{{"i", 7}, {"d", 2.5}, {"s", "x"}, {"b", true}, {"n", -3}};
  EXPECT_EQ(value_of(read<std::size_t>(object, "i", "r")), 7U);
  EXPECT_EQ(value_of(read<int>(object, "n", "r")), -3);
  EXPECT_EQ(value_of(read<double>(object, "d", "r")), 2.5);
  EXPECT_EQ(value_of(read<double>(object, "i", "r")), 7.0);
  EXPECT_EQ(value_of(read<std::string>(object, "s", "r")), "x");
  EXPECT_EQ(value_of(read<bool>(object, "b", "r")), true);
}

TEST(Read, NamesPathAndBothTypes) {
  const Json object{{"a", "text"}};
  EXPECT_THAT(read<double>(object, "a", "record.host"),
              FailsWith(ErrorCode::bad_format, AllOf(HasSubstr("record.host.a"),
                                                     HasSubstr("string"), HasSubstr("number"))));
  EXPECT_THAT(
      read<double>(object, "b", "record.host"),
      FailsWith(ErrorCode::bad_format, AllOf(HasSubstr("record.host"), HasSubstr("\"b\""))));
  EXPECT_THAT(read<double>(Json::array(), "b", "record"),
              FailsWith(ErrorCode::bad_format, HasSubstr("array")));
}

TEST(Read, DoesNotBendNumbers) {
  const Json object{{"negative", -1}, {"fraction", 1.5}, {"large", 1ULL << 40}, {"bool", true},
                    {"huge", ~0ULL},  {"null", nullptr}, {"whole", 3.0}};
  EXPECT_THAT(read<std::size_t>(object, "negative", "r"), FailsWith(ErrorCode::bad_format));
  EXPECT_THAT(read<std::size_t>(object, "fraction", "r"), FailsWith(ErrorCode::bad_format));
  EXPECT_THAT(read<int>(object, "fraction", "r"), FailsWith(ErrorCode::bad_format));
  EXPECT_THAT(read<std::int32_t>(object, "large", "r"), FailsWith(ErrorCode::bad_format));
  EXPECT_THAT(read<std::int64_t>(object, "huge", "r"), FailsWith(ErrorCode::bad_format));
  EXPECT_THAT(read<std::int32_t>(object, "bool", "r"), FailsWith(ErrorCode::bad_format));
  EXPECT_THAT(read<double>(object, "bool", "r"), FailsWith(ErrorCode::bad_format));
  EXPECT_THAT(read<float>(object, "bool", "r"), FailsWith(ErrorCode::bad_format));
  EXPECT_THAT(read<double>(object, "null", "r"), FailsWith(ErrorCode::bad_format));
  EXPECT_THAT(read<bool>(object, "negative", "r"), FailsWith(ErrorCode::bad_format));
  EXPECT_EQ(value_of(read<std::uint64_t>(object, "huge", "r")), ~0ULL);
  EXPECT_EQ(value_of(read<std::int64_t>(object, "large", "r")), std::int64_t{1} << 40);
}

}  // namespace
}  // namespace paceline
