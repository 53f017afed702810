// Many texts in one pass: each must be written as if it were alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <format>
#include <map>
#include <memory>
#include <vector>

#include "core/random.hpp"
#include "draft/draft_model.hpp"
#include "draft/lookup.hpp"
#include "engine/harness.hpp"
#include "support/fake_runtime.hpp"
#include "support/matchers.hpp"

namespace paceline::engine {
namespace {

using test::FakeDrafter;
using test::FakeVocabulary;
using test::make_toy_runtime;
using test::Outcome;
using test::value_of;

constexpr std::size_t k_vocabulary = 64;
const std::string k_target = "toy:21,vocab=64";

const FakeVocabulary& vocabulary() {
  static const FakeVocabulary instance = [] {
    std::vector<std::string> pieces;
    for (std::size_t i = 0; i < k_vocabulary; ++i) {
      pieces.emplace_back(1, static_cast<char>('0' + i));
    }
    return FakeVocabulary(pieces, {Token{0}});
  }();
  return instance;
}

std::vector<GenerationOptions> different_requests(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<GenerationOptions> requests(count);
  for (GenerationOptions& request : requests) {
    request.prompt = test::random_prompt(1 + random.below(30), random.bits(), k_vocabulary);
    request.max_tokens = 1 + random.below(60);
    request.num_draft_tokens = random.below(5);
    if (random.below(3) == 0) request.stop = {"A", "bc"};
    if (random.below(2) == 0) {
      request.sampler = {.temperature = 1.2, .top_p = 0.9, .seed = random.bits()};
    }
    if (random.below(3) == 0) request.sampler.frequency_penalty = 0.5;
  }
  return requests;
}

std::vector<Outcome> alone(const std::vector<GenerationOptions>& requests) {
  std::vector<Outcome> outcomes;
  for (const GenerationOptions& request : requests) {
    const auto target = make_toy_runtime(k_target, {.context = 120, .rows = 64});
    outcomes.push_back(test::run_plain({target.get(), &vocabulary()}, request));
  }
  return outcomes;
}

/// Steps all texts together; text i joins after `joins[i]` steps. Gives what each delivered.
void run_together(Engine& engine, const std::vector<GenerationOptions>& requests,
                  const std::vector<std::size_t>& joins, const std::vector<Outcome>& expected) {
  std::vector<std::unique_ptr<Generation>> texts(requests.size());
  std::vector<std::vector<Token>> delivered(requests.size());
  std::vector<std::string> shown(requests.size());
  std::size_t steps = 0;
  while (true) {
    std::vector<Generation*> stepping;
    std::vector<std::size_t> indices;
    bool waiting = false;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      waiting = waiting || joins[i] > steps;
      if (joins[i] == steps) texts[i] = value_of(engine.start(requests[i]));
      if (!texts[i]) continue;
      stepping.push_back(texts[i].get());
      indices.push_back(i);
    }
    const bool all_finished =
        std::ranges::all_of(stepping, [](const Generation* text) { return text->finished(); });
    if (all_finished && !waiting) break;
    const auto deliveries = engine.step(stepping, {});
    ASSERT_THAT(deliveries, test::IsOk());
    for (std::size_t i = 0; i < indices.size(); ++i) {
      auto& tokens = delivered[indices[i]];
      tokens.insert(tokens.end(), deliveries->at(i).tokens.begin(), deliveries->at(i).tokens.end());
      shown[indices[i]] += deliveries->at(i).text;
    }
    ASSERT_LT(++steps, 5000U) << "no progress";
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    ASSERT_EQ(texts[i]->tokens(), expected[i].tokens) << "text " << i;
    ASSERT_EQ(texts[i]->finish_reason(), expected[i].finish) << "text " << i;
    ASSERT_EQ(delivered[i], expected[i].tokens);
    ASSERT_EQ(shown[i], expected[i].text);
    ASSERT_EQ(texts[i]->text(), expected[i].text);
  }
}

class Batch : public testing::TestWithParam<std::size_t> {};

TEST_P(Batch, OfManyTextsEqualsEachAlone) {
  const std::size_t rows = GetParam();
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(std::format("seed {}", seed));
    Random random(seed);
    const std::size_t count = 1 + random.below(6);
    const auto requests = different_requests(count, seed);
    const auto expected = alone(requests);
    std::vector<std::size_t> joins(count);
    for (std::size_t& join : joins) join = random.below(2) == 0 ? 0 : random.below(30);
    const auto target =
        make_toy_runtime(k_target, {.sequences = count, .context = 120, .rows = rows, .leaves = 4});
    test::ManualClock clock(Nanoseconds{5});
    const auto lookup = value_of(draft::make_lookup_drafter(
        {.shortest_ngram = 1, .longest_ngram = 5, .branches = 4, .slots = count}));
    const auto model = value_of(draft::make_draft_model_drafter(
        make_toy_runtime(k_target + ",agree=0.8",
                         {.sequences = count, .context = 100, .rows = count + rows}),
        {.target_vocabulary = k_vocabulary}));
    for (draft::Drafter* const drafter : {lookup.get(), model.get()}) {
      Engine engine(*target, vocabulary(), drafter, clock);
      run_together(engine, requests, joins, expected);
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Batch, testing::Values(1, 2, 3, 5, 8, 13, 64));

// Four slots, each with a script of its own: what one accepts does not depend on the others.
TEST(Batch, KeepsTheDraftersOfFourTextsApart) {
  std::vector<GenerationOptions> requests;
  std::map<std::vector<Token>, std::vector<Token>> scripts;  // by prompt
  for (std::uint64_t i = 0; i < 4; ++i) {
    requests.push_back({.prompt = test::random_prompt(6, 50 + i, k_vocabulary),
                        .max_tokens = 50,
                        .num_draft_tokens = 4});
  }
  const auto expected = alone(requests);
  for (std::size_t i = 0; i < 4; ++i) scripts[requests[i].prompt] = expected[i].tokens;
  const auto propose = [&](std::span<const Token> observed, std::size_t depth) {
    const std::vector<Token> prompt(observed.begin(), observed.begin() + 6);
    const std::size_t script = to_index(prompt[0]) % 3;  // wrong at other places in each text
    return test::propose_script(
        prompt, scripts.at(prompt), [=](std::size_t index) { return (index + script) % 4 == 0; },
        [](Token token) { return to_token((to_index(token) + 1) % k_vocabulary); })(observed,
                                                                                    depth);
  };
  std::vector<Outcome> single;
  for (const GenerationOptions& request : requests) {
    const auto target = make_toy_runtime(k_target, {.context = 120, .rows = 64});
    FakeDrafter drafter(propose);
    single.push_back(test::run_checked({target.get(), &vocabulary(), &drafter}, request));
    EXPECT_GT(single.back().accepted(), 10U);
  }
  const auto target = make_toy_runtime(k_target, {.sequences = 4, .context = 120, .rows = 64});
  FakeDrafter drafter(propose, 4);
  test::ManualClock clock;
  Engine engine(*target, vocabulary(), &drafter, clock);
  std::vector<std::unique_ptr<Generation>> texts;
  std::vector<Generation*> stepping;
  for (const GenerationOptions& request : requests) {
    texts.push_back(value_of(engine.start(request)));
    stepping.push_back(texts.back().get());
  }
  while (std::ranges::any_of(stepping, [](const Generation* text) { return !text->finished(); })) {
    ASSERT_THAT(engine.step(stepping, {}), test::IsOk());
  }
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(texts[i]->tokens(), expected[i].tokens);
    EXPECT_EQ(texts[i]->accepted_at(), single[i].accepted_at);
    EXPECT_EQ(texts[i]->drafted_at(), single[i].drafted_at);
    EXPECT_EQ(texts[i]->rounds().size(), single[i].rounds.size());
  }
}

TEST(Batch, GivesEveryTextARowBeforeAnyTree) {
  const auto target = make_toy_runtime(k_target, {.sequences = 3, .context = 120, .rows = 4});
  FakeDrafter drafter(
      [](std::span<const Token>, std::size_t depth) {
        return DraftTree::chain(std::vector<Token>(depth, Token{1}));
      },
      3);
  test::ManualClock clock;
  Engine engine(*target, vocabulary(), &drafter, clock);
  std::vector<std::unique_ptr<Generation>> texts;
  std::vector<Generation*> stepping;
  for (std::uint64_t i = 0; i < 3; ++i) {
    texts.push_back(value_of(engine.start({.prompt = test::random_prompt(1, i, k_vocabulary),
                                           .max_tokens = 10,
                                           .num_draft_tokens = 3})));
    stepping.push_back(texts.back().get());
  }
  ASSERT_THAT(engine.step(stepping, {}), test::IsOk());  // the prompts
  ASSERT_THAT(engine.step(stepping, {}), test::IsOk());
  ASSERT_EQ(texts[0]->rounds().size(), 1U);
  EXPECT_EQ(texts[0]->rounds()[0].rows, 2U);
  ASSERT_EQ(texts[1]->rounds().size(), 1U);
  EXPECT_EQ(texts[1]->rounds()[0].rows, 1U);
  ASSERT_EQ(texts[2]->rounds().size(), 1U);
  EXPECT_EQ(texts[2]->rounds()[0].rows, 1U);
}

TEST(Batch, LetsALongPromptShareThePassesOfAText) {
  const auto target = make_toy_runtime(k_target, {.sequences = 2, .context = 120, .rows = 8});
  test::ManualClock clock;
  Engine engine(*target, vocabulary(), nullptr, clock);
  const auto writing =
      value_of(engine.start({.prompt = test::random_prompt(2, 1, k_vocabulary), .max_tokens = 30}));
  Generation* const first[] = {writing.get()};
  ASSERT_THAT(engine.step(first, {}), test::IsOk());
  const auto late =
      value_of(engine.start({.prompt = test::random_prompt(50, 2, k_vocabulary), .max_tokens = 5}));
  Generation* const both[] = {late.get(), writing.get()};
  for (std::size_t step = 1; step <= 8; ++step) {
    ASSERT_THAT(engine.step(both, {}), test::IsOk());
    EXPECT_EQ(writing->tokens().size(), 1 + step);          // not stalled by the prompt
    EXPECT_EQ(late->tokens().size(), step == 8 ? 1U : 0U);  // 7 rows of it in each pass
  }
}

TEST(Batch, DoesNothingWhenAllTextsAreFinished) {
  const auto target = make_toy_runtime(k_target, {.context = 120, .rows = 8});
  test::ManualClock clock;
  Engine engine(*target, vocabulary(), nullptr, clock);
  const auto text =
      value_of(engine.start({.prompt = test::random_prompt(2, 1, k_vocabulary), .max_tokens = 1}));
  ASSERT_THAT(engine.run(*text, {}), test::IsOk());
  Generation* const texts[] = {text.get()};
  const auto before = target->counters().forwards;
  const auto deliveries = value_of(engine.step(texts, {}));
  ASSERT_EQ(deliveries.size(), 1U);
  EXPECT_TRUE(deliveries[0].tokens.empty());
  EXPECT_TRUE(value_of(engine.step({}, {})).empty());
  EXPECT_EQ(target->counters().forwards, before);
}

}  // namespace
}  // namespace paceline::engine
