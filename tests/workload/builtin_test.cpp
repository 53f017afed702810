// The corpora and fixtures that are compiled in.
#include <gmock/gmock.h>

#include <set>

#include "workload/fixture.hpp"

namespace paceline::workload {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

TEST(Builtin, EveryClassHasEightDistinctPrompts) {
  std::set<std::string> ids;
  std::set<std::string> contents;
  for (const ContentClass content_class : all_classes()) {
    const auto fixture = load_fixture(to_string(content_class));
    ASSERT_TRUE(fixture) << fixture.error().message;
    EXPECT_EQ(fixture->id, to_string(content_class));
    EXPECT_EQ(fixture->content_class, content_class);
    EXPECT_EQ(fixture->source, "built-in");
    EXPECT_EQ(fixture->sha256.size(), 64U);
    EXPECT_EQ(fixture->temperature, 0);
    EXPECT_EQ(fixture->top_p, 1);
    EXPECT_FALSE(fixture->max_tokens);
    EXPECT_EQ(fixture->prompts.size(), 8U);
    for (const Prompt& prompt : fixture->prompts) {
      EXPECT_THAT(prompt.id, StartsWith(fixture->id + "-"));
      EXPECT_TRUE(ids.insert(prompt.id).second) << prompt.id;
      EXPECT_TRUE(contents.insert(prompt.messages.back().content).second) << prompt.id;
      EXPECT_THAT(prompt.raw_text, IsEmpty());
    }
  }
  EXPECT_EQ(ids.size(), 48U);
}

TEST(Builtin, PromptsOfAClassShareNoOpening) {
  for (const ContentClass content_class : all_classes()) {
    const auto fixture = builtin_fixture(to_string(content_class));
    ASSERT_TRUE(fixture);
    std::set<std::string> openings;
    for (const Prompt& prompt : fixture->prompts) {
      openings.insert(prompt.messages.back().content.substr(0, 24));
    }
    EXPECT_EQ(openings.size(), fixture->prompts.size()) << fixture->id;
  }
}

struct Published {
  const char* id;
  ContentClass content_class;
  bool has_models;
  std::size_t max_tokens;
  bool stream;
};

TEST(Builtin, Spec028FixturesHaveThePublishedSettings) {
  const Published all[] = {
      {"spec028-code-iso8601-v1", ContentClass::code, true, 240, false},
      {"spec028-small-air-short-chat-v1", ContentClass::chat, true, 48, false},
      {"spec028-small-air-streaming-check-v1", ContentClass::chat, true, 64, true},
      {"spec028-equivalence-smoke-v1", ContentClass::code, false, 64, false},
  };
  for (const Published& wanted : all) {
    const auto fixture = load_fixture(wanted.id);
    ASSERT_TRUE(fixture) << fixture.error().message;
    EXPECT_EQ(fixture->id, wanted.id);
    EXPECT_EQ(fixture->content_class, wanted.content_class);
    EXPECT_EQ(fixture->target_model.has_value(), wanted.has_models);
    EXPECT_EQ(fixture->draft_model.has_value(), wanted.has_models);
    EXPECT_EQ(fixture->max_tokens, wanted.max_tokens);
    EXPECT_EQ(fixture->stream, wanted.stream);
    EXPECT_EQ(fixture->temperature, 0);
    EXPECT_EQ(fixture->top_p, 1);
    EXPECT_THAT(fixture->stop, IsEmpty());
    ASSERT_EQ(fixture->prompts.size(), 1U);
    EXPECT_EQ(fixture->prompts[0].id, wanted.id);
    ASSERT_EQ(fixture->prompts[0].messages.size(), 2U);
    EXPECT_EQ(fixture->prompts[0].messages[0].role, "system");
    EXPECT_EQ(fixture->prompts[0].messages[1].role, "user");
  }
}

TEST(Builtin, IdsAreTheClassesAndTheFixtures) {
  EXPECT_THAT(builtin_ids(),
              ElementsAre("code", "edit", "chat", "reasoning", "extraction", "multilingual",
                          "spec028-code-iso8601-v1", "spec028-small-air-short-chat-v1",
                          "spec028-small-air-streaming-check-v1", "spec028-equivalence-smoke-v1"));
}

TEST(Builtin, UnknownNamesAreAnsweredWithTheKnownOnes) {
  const auto fixture = load_fixture("kode");
  ASSERT_FALSE(fixture);
  EXPECT_EQ(fixture.error().code, ErrorCode::not_found);
  for (const std::string& id : builtin_ids()) {
    EXPECT_THAT(fixture.error().message, HasSubstr(id));
  }
  EXPECT_EQ(load_fixture("").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(load_fixture("custom").error().code, ErrorCode::not_found);
  EXPECT_EQ(builtin_fixture("custom").error().code, ErrorCode::not_found);
}

TEST(ContentClassWords, AreReadAndWritten) {
  for (const ContentClass content_class : all_classes()) {
    const auto read = parse_class(to_string(content_class));
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, content_class);
  }
  EXPECT_EQ(*parse_class("custom"), ContentClass::custom);
  const auto unknown = parse_class("prose");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("multilingual, custom"));
}

}  // namespace
}  // namespace paceline::workload
