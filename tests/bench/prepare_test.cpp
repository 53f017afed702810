// Fixtures as prompts of tokens.
#include <gtest/gtest.h>

#include "bench/bench.hpp"
#include "runtime/toy/toy.hpp"
#include "support/fake_runtime.hpp"
#include "support/matchers.hpp"

namespace paceline::test {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

workload::Fixture two_prompts() {
  workload::Fixture fixture;
  fixture.id = "mine";
  fixture.content_class = workload::ContentClass::edit;
  fixture.prompts = {{.id = "raw", .messages = {}, .raw_text = "abc"},
                     {.id = "chat", .messages = {{"user", "hello"}}, .raw_text = {}}};
  fixture.temperature = 0.5;
  fixture.top_p = 0.9;
  fixture.stop = {"END"};
  return fixture;
}

class Prepared : public testing::Test {
 protected:
  Prepared() { limits.context = 64; }

  std::vector<bench::PreparedPrompt> prepare(const workload::Fixture& fixture) {
    return value_of(bench::prepare(fixture, model->vocabulary(), limits));
  }

  std::shared_ptr<const runtime::Model> model = runtime::make_toy_model({});
  bench::PrepareLimits limits;
};

TEST_F(Prepared, TakesRawTextAsItIsAndRendersConversations) {
  limits.default_max_tokens = 10;
  const auto prompts = prepare(two_prompts());
  ASSERT_THAT(prompts, SizeIs(2));
  EXPECT_EQ(prompts[0].tokens, tokens({'a' + 1, 'b' + 1, 'c' + 1}));
  const auto chat = value_of(model->vocabulary().render_chat({{"user", "hello"}}));
  EXPECT_EQ(prompts[1].tokens, value_of(model->vocabulary().tokenize(chat.text, {})));
  EXPECT_EQ(prompts[1].id, "chat");
  EXPECT_EQ(prompts[1].fixture, "mine");
  EXPECT_EQ(prompts[1].content_class, "edit");
}

TEST_F(Prepared, TakesTheFixturesSettingsBeforeTheDefaults) {
  limits.default_max_tokens = 10;
  limits.repetitions = 3;
  limits.sampling.seed = 4;
  limits.sampling.top_k = 5;
  workload::Fixture fixture = two_prompts();
  auto prompt = prepare(fixture).front();
  EXPECT_EQ(prompt.max_tokens, 10U);
  EXPECT_EQ(prompt.repetitions, 3U);
  EXPECT_THAT(prompt.stop, testing::ElementsAre("END"));
  EXPECT_EQ(prompt.sampling.temperature, 0.5);
  EXPECT_EQ(prompt.sampling.top_p, 0.9);
  EXPECT_EQ(prompt.sampling.seed, 4U);
  EXPECT_EQ(prompt.sampling.top_k, 5U);
  fixture.max_tokens = 7;
  EXPECT_EQ(prepare(fixture).front().max_tokens, 7U);
}

TEST_F(Prepared, TakesTheFirstPromptsWhereFewerAreWanted) {
  limits.max_prompts = 1;
  const auto prompts = prepare(two_prompts());
  ASSERT_THAT(prompts, SizeIs(1));
  EXPECT_EQ(prompts[0].id, "raw");
  limits.max_prompts = 9;
  EXPECT_THAT(prepare(two_prompts()), SizeIs(2));
}

TEST_F(Prepared, MarksWhatDoesNotFitIntoTheContextWithAllCounts) {
  workload::Fixture fixture = two_prompts();
  fixture.prompts[0].raw_text = std::string(40, 'a');
  fixture.max_tokens = 24;
  EXPECT_EQ(prepare(fixture).front().unusable, "");
  fixture.max_tokens = 25;
  EXPECT_THAT(prepare(fixture).front().unusable,
              HasSubstr("40 prompt tokens and 25 new ones do not fit into the context of 64"));
}

TEST_F(Prepared, NamesThePromptWhoseTemplateFails) {
  const FakeVocabulary vocabulary({"", "a"});
  EXPECT_THAT(bench::prepare(two_prompts(), vocabulary, limits),
              FailsWith(ErrorCode::unsupported, HasSubstr("prompt \"raw\"")));
}

}  // namespace
}  // namespace paceline::test
