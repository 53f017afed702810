// Boundary arithmetic, exhaustively: accept counts, end of text, max_tokens, stop strings, the
// ends of both contexts, chunks of the prompt. The target follows a script and goes astray after
// any other context, so one wrong token in a cache changes the text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <format>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "draft/draft_model.hpp"
#include "draft/lookup.hpp"
#include "engine/harness.hpp"
#include "support/fake_runtime.hpp"
#include "support/matchers.hpp"

namespace paceline::engine {
namespace {

using test::expect_same_text;
using test::FakeDrafter;
using test::FakeRuntime;
using test::FakeVocabulary;
using test::Outcome;
using test::run_checked;
using test::run_plain;
using test::tokens;
using test::value_of;

constexpr std::size_t k_deepest = 5;
constexpr Token k_astray{0};

/// A prompt, the text that the target writes after it, and what its tokens look like.
struct Scene {
  std::vector<Token> prompt = tokens({3, 1, 2});
  std::vector<Token> truth;
  std::vector<std::string> pieces;
  std::vector<Token> ends = {};
  runtime::RuntimeLimits limits = {.sequences = 1, .context = 100, .rows = 16};

  FakeRuntime make_target() const {
    return FakeRuntime(pieces.size(), limits,
                       test::follow_script(pieces.size(), prompt, truth, k_astray));
  }
  GenerationOptions options(std::size_t max_tokens) const {
    return {.prompt = prompt, .max_tokens = max_tokens};
  }
};

std::vector<std::string> letters(std::size_t count) {
  std::vector<std::string> pieces;
  for (std::size_t i = 0; i < count; ++i) pieces.emplace_back(1, static_cast<char>('a' + i));
  return pieces;
}

using Wrong = std::function<bool(std::size_t)>;
const Wrong k_never = [](std::size_t) { return false; };

Outcome speculate(const Scene& scene, GenerationOptions options, std::size_t depth,
                  const Wrong& wrong) {
  FakeRuntime target = scene.make_target();
  const FakeVocabulary vocabulary(scene.pieces, scene.ends);
  FakeDrafter drafter(test::propose_script(scene.prompt, scene.truth, wrong, [&](Token token) {
    return to_token((to_index(token) + 1) % scene.pieces.size());
  }));
  options.num_draft_tokens = depth;
  return run_checked({&target, &vocabulary, &drafter}, std::move(options));
}

Outcome plain(const Scene& scene, GenerationOptions options) {
  FakeRuntime target = scene.make_target();
  const FakeVocabulary vocabulary(scene.pieces, scene.ends);
  return run_plain({&target, &vocabulary}, std::move(options));
}

/// Every depth and, at each, the drafts that are right at the places of each mask.
void for_all_masks(std::size_t places,
                   const std::function<void(std::size_t depth, const Wrong& wrong)>& visit) {
  for (std::size_t depth = 0; depth <= k_deepest; ++depth) {
    for (unsigned mask = 0; mask < (1U << places); ++mask) {
      SCOPED_TRACE(std::format("depth {}, wrong where {:b} says so", depth, mask));
      visit(depth, [=](std::size_t index) { return ((mask >> (index % places)) & 1U) != 0; });
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(EveryAcceptMask, GivesThePlainTextAndItsCache) {
  const Scene scene{.truth = tokens({4, 5, 6, 7, 1, 2, 3, 4, 4}), .pieces = letters(8)};
  const Outcome expected = plain(scene, scene.options(9));
  ASSERT_EQ(expected.tokens, scene.truth);
  for_all_masks(8, [&](std::size_t depth, const Wrong& wrong) {
    FakeRuntime target = scene.make_target();
    const FakeVocabulary vocabulary(scene.pieces);
    FakeDrafter drafter(test::propose_script(scene.prompt, scene.truth, wrong, [](Token token) {
      return to_token((to_index(token) + 1) % 8);
    }));
    test::ManualClock clock;
    Engine engine(target, vocabulary, &drafter, clock);
    GenerationOptions options = scene.options(9);
    options.num_draft_tokens = depth;
    const auto text = value_of(engine.start(options));
    Generation* const texts[] = {text.get()};
    while (!text->finished()) {
      ASSERT_THAT(engine.step(texts, {}), test::IsOk());
      std::vector<Token> cache = scene.prompt;
      cache.insert(cache.end(), text->tokens().begin(), text->tokens().end() - 1);
      ASSERT_EQ(target.contents(runtime::SequenceId{0}), cache);
    }
    ASSERT_EQ(text->tokens(), scene.truth);
    ASSERT_EQ(text->text(), expected.text);
  });
}

// The draft model's cache follows the text as the target's does, after every accept count.
TEST(EveryAcceptMask, KeepsTheDraftModelInStepWithTheTarget) {
  const Scene scene{.truth = tokens({4, 5, 6, 7, 1, 2, 3, 4, 4}), .pieces = letters(8)};
  for_all_masks(8, [&](std::size_t depth, const Wrong& wrong) {
    FakeRuntime target = scene.make_target();
    const FakeVocabulary vocabulary(scene.pieces);
    // A draft model that agrees with the target except at the places of the mask. It depends on
    // the length only, so it has an opinion after wrong tokens too.
    auto owned =
        std::make_unique<FakeRuntime>(8, scene.limits, [&](std::span<const Token> context) {
          std::vector<float> logits(8, 0.0f);
          const std::size_t index = context.size() - scene.prompt.size();
          const Token truth = index < scene.truth.size() ? scene.truth[index] : Token{0};
          logits[(to_index(truth) + (wrong(index) ? 1 : 0)) % 8] = 1;
          return logits;
        });
    FakeRuntime* const draft = owned.get();
    const auto drafter =
        value_of(draft::make_draft_model_drafter(std::move(owned), {.target_vocabulary = 8}));
    test::ManualClock clock;
    Engine engine(target, vocabulary, drafter.get(), clock);
    GenerationOptions options = scene.options(9);
    options.num_draft_tokens = depth;
    const auto text = value_of(engine.start(options));
    Generation* const texts[] = {text.get()};
    while (!text->finished()) {
      std::vector<Token> before = scene.prompt;
      before.insert(before.end(), text->tokens().begin(), text->tokens().end());
      const std::size_t drafts = draft->counters().forwards;
      ASSERT_THAT(engine.step(texts, {}), test::IsOk());
      if (draft->counters().forwards == drafts) continue;  // nothing was drafted
      const auto held = draft->contents(runtime::SequenceId{0});
      const std::size_t drafted = text->rounds().back().drafted;
      ASSERT_EQ(held.size(), before.size() + drafted - 1);
      ASSERT_TRUE(std::equal(before.begin(), before.end(), held.begin()));
      ASSERT_EQ(target.length(runtime::SequenceId{0}),
                before.size() - 1 + text->rounds().back().emitted);
    }
    ASSERT_EQ(text->tokens(), scene.truth);
  });
}

TEST(EmptyDrafts, ArePlainRounds) {
  const Scene scene{.truth = tokens({4, 5, 6, 7, 1}), .pieces = letters(8)};
  FakeRuntime target = scene.make_target();
  const FakeVocabulary vocabulary(scene.pieces);
  FakeDrafter drafter([](std::span<const Token>, std::size_t) { return DraftTree{}; });
  GenerationOptions options = scene.options(5);
  options.num_draft_tokens = 4;
  const Outcome outcome = run_checked({&target, &vocabulary, &drafter}, options);
  EXPECT_EQ(outcome.tokens, scene.truth);
  EXPECT_EQ(outcome.rounds.size(), 4U);
  EXPECT_EQ(outcome.drafted(), 0U);
  // Asked in each round where there was room for a draft: not for the last token.
  EXPECT_EQ(drafter.drafts(), 3U);
}

TEST(EndOfText, CutsTheAcceptedRunAtEveryPlace) {
  for (std::size_t end = 0; end <= 7; ++end) {
    Scene scene{
        .truth = tokens({4, 5, 6, 4, 5, 6, 4, 5, 6, 4}), .pieces = letters(8), .ends = {Token{7}}};
    scene.truth[end] = Token{7};
    const Outcome expected = plain(scene, scene.options(10));
    ASSERT_EQ(expected.finish, FinishReason::stop);
    ASSERT_EQ(expected.tokens.size(), end + 1);
    ASSERT_EQ(expected.text.size(), end);  // the end itself has no text
    for_all_masks(7, [&](std::size_t depth, const Wrong& wrong) {
      expect_same_text(speculate(scene, scene.options(10), depth, wrong), expected);
    });
  }
}

TEST(EndOfText, IsTheReasonAlsoAtTheLastTokenAllowed) {
  const Scene scene{.truth = tokens({4, 5, 7, 4}), .pieces = letters(8), .ends = {Token{7}}};
  for (std::size_t depth = 0; depth <= k_deepest; ++depth) {
    EXPECT_EQ(speculate(scene, scene.options(3), depth, k_never).finish, FinishReason::stop);
    EXPECT_EQ(speculate(scene, scene.options(2), depth, k_never).finish, FinishReason::length);
  }
}

TEST(MaxTokens, IsExactUnderEveryAcceptMask) {
  const Scene scene{.truth = tokens({4, 5, 6, 7, 4, 5, 6, 7, 1, 1, 1, 1}), .pieces = letters(8)};
  for (std::size_t most = 1; most <= 8; ++most) {
    const Outcome expected = plain(scene, scene.options(most));
    ASSERT_EQ(expected.tokens.size(), most);
    ASSERT_EQ(expected.finish, FinishReason::length);
    for_all_masks(7, [&](std::size_t depth, const Wrong& wrong) {
      const Outcome outcome = speculate(scene, scene.options(most), depth, wrong);
      expect_same_text(outcome, expected);
      // Nothing is drafted that could not be emitted.
      std::size_t emitted = 1;
      for (const Round& round : outcome.rounds) {
        EXPECT_LE(round.drafted, most - emitted - 1);
        emitted += round.emitted;
      }
    });
  }
}

TEST(MaxTokens, WithoutALimitGoesOnToTheEndOfTheContext) {
  Scene scene{.truth = tokens({4, 5, 6, 7, 4, 5, 6, 7}), .pieces = letters(8)};
  scene.limits.context = 9;
  const Outcome outcome =
      speculate(scene, scene.options(std::numeric_limits<std::size_t>::max()), 5, k_never);
  EXPECT_EQ(outcome.tokens.size(), 7U);
  EXPECT_EQ(outcome.finish, FinishReason::context);
}

struct StopCase {
  std::string name;
  std::vector<std::string> pieces;  // of the tokens of the text, in order
  std::vector<std::string> stop;
  std::size_t max_tokens;
  std::string text;
  std::size_t tokens;
  FinishReason finish;
};

void PrintTo(const StopCase& c, std::ostream* out) { *out << c.name; }

class StopStrings : public testing::TestWithParam<StopCase> {};

TEST_P(StopStrings, EndTheTextTheSameWayInEveryRoundPattern) {
  const StopCase& c = GetParam();
  // Token 3 + i stands for the text's token number i; the last is the end of text.
  Scene scene{.prompt = tokens({1, 2, 1}), .truth = {}, .pieces = {"?", "a", "b"}};
  for (const std::string& piece : c.pieces) {
    scene.truth.push_back(to_token(scene.pieces.size()));
    scene.pieces.push_back(piece);
  }
  scene.truth.push_back(to_token(scene.pieces.size()));
  scene.ends.push_back(scene.truth.back());
  scene.pieces.emplace_back("<end>");
  GenerationOptions options = scene.options(c.max_tokens);
  options.stop = c.stop;
  const Outcome expected = plain(scene, options);
  EXPECT_EQ(expected.text, c.text);
  EXPECT_EQ(expected.tokens.size(), c.tokens);
  EXPECT_EQ(expected.finish, c.finish);
  for_all_masks(c.pieces.size(), [&](std::size_t depth, const Wrong& wrong) {
    expect_same_text(speculate(scene, options, depth, wrong), expected);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Cases, StopStrings,
    testing::Values(
        StopCase{"two_tokens", {"x", "a", "b", "y"}, {"ab"}, 9, "x", 3, FinishReason::stop},
        StopCase{"three_tokens", {"x", "a", "b", "c", "y"}, {"abc"}, 9, "x", 4, FinishReason::stop},
        StopCase{"inside_a_token", {"x", "yabz", "w"}, {"ab"}, 9, "xy", 2, FinishReason::stop},
        StopCase{
            "from_the_middle_of_a_token", {"xa", "by", "w"}, {"ab"}, 9, "x", 2, FinishReason::stop},
        StopCase{"false_start", {"a", "a", "b", "y"}, {"ab"}, 9, "a", 3, FinishReason::stop},
        StopCase{"whole_text", {"a", "b", "y"}, {"ab"}, 9, "", 2, FinishReason::stop},
        StopCase{"first_token", {"ab", "y"}, {"ab"}, 9, "", 1, FinishReason::stop},
        StopCase{
            "several", {"x", "c", "a", "b"}, {"ab", "ca", "zz"}, 9, "x", 3, FinishReason::stop},
        StopCase{
            "at_3_with_cap_5", {"x", "y", "ab", "z", "w"}, {"ab"}, 5, "xy", 3, FinishReason::stop},
        StopCase{"at_the_cap", {"x", "y", "ab", "z"}, {"ab"}, 3, "xy", 3, FinishReason::stop},
        StopCase{
            "behind_the_cap", {"x", "y", "z", "ab"}, {"ab"}, 3, "xyz", 3, FinishReason::length},
        StopCase{
            "half_at_the_cap", {"x", "y", "a", "b"}, {"ab"}, 3, "xya", 3, FinishReason::length},
        StopCase{"half_at_the_end", {"x", "y", "a"}, {"ab"}, 9, "xya", 4, FinishReason::stop},
        StopCase{"in_the_prompt_only", {"x", "y"}, {"aba"}, 9, "xy", 3, FinishReason::stop},
        StopCase{"across_prompt_and_text", {"b", "y"}, {"ab"}, 9, "by", 3, FinishReason::stop},
        StopCase{"empty", {"x", "y"}, {""}, 9, "xy", 3, FinishReason::stop},
        StopCase{"cut_character",
                 {"x", "\xe2\x82", "\xac", "y"},
                 {"\xe2\x82\xac"},
                 9,
                 "x",
                 3,
                 FinishReason::stop},
        StopCase{"cut_character_at_the_cap",
                 {"x", "\xe2\x82", "\xac"},
                 {},
                 2,
                 "x\xef\xbf\xbd",
                 2,
                 FinishReason::length}),
    [](const auto& tested) { return tested.param.name; });

TEST(ContextEnd, IsTheSameAtEveryDistance) {
  Scene scene{.truth = tokens({4, 5, 6, 7, 4, 5, 6, 7, 1, 1, 1, 1, 5}), .pieces = letters(8)};
  for (std::size_t room = 0; room <= 8; ++room) {
    scene.limits.context = scene.prompt.size() + room;
    const Outcome expected = plain(scene, scene.options(12));
    // Each token but the last has a place; the last one is emitted and needs none.
    ASSERT_EQ(expected.tokens.size(), room + 1);
    ASSERT_EQ(expected.finish, FinishReason::context);
    for_all_masks(7, [&](std::size_t depth, const Wrong& wrong) {
      expect_same_text(speculate(scene, scene.options(12), depth, wrong), expected);
    });
  }
}

TEST(ContextEnd, ComesAfterTheOtherReasons) {
  Scene scene{.truth = tokens({4, 5, 7, 4}), .pieces = letters(8), .ends = {Token{7}}};
  scene.limits.context = scene.prompt.size() + 2;  // three tokens
  for (std::size_t depth = 0; depth <= k_deepest; ++depth) {
    EXPECT_EQ(speculate(scene, scene.options(9), depth, k_never).finish, FinishReason::stop);
    scene.ends.clear();
    EXPECT_EQ(speculate(scene, scene.options(9), depth, k_never).finish, FinishReason::context);
    EXPECT_EQ(speculate(scene, scene.options(3), depth, k_never).finish, FinishReason::length);
    scene.ends = {Token{7}};
  }
}

TEST(ContextEnd, RefusesAPromptThatIsOneTokenTooLong) {
  Scene scene{.truth = tokens({4}), .pieces = letters(8)};
  scene.limits.context = scene.prompt.size() - 1;
  FakeRuntime target = scene.make_target();
  const FakeVocabulary vocabulary(scene.pieces);
  test::ManualClock clock;
  Engine engine(target, vocabulary, nullptr, clock);
  const auto started = engine.start(scene.options(5));
  EXPECT_THAT(started, test::FailsWithWord("context_length_exceeded"));
  EXPECT_THAT(started, test::FailsWith(ErrorCode::invalid_argument,
                                       testing::AllOf(testing::HasSubstr("3 tokens"),
                                                      testing::HasSubstr("holds 2"))));
  EXPECT_EQ(target.sequences_in_use(), 0U);
}

TEST(DraftContext, SmallerThanTheTargetsEndsTheDraftsAndNotTheText) {
  for (std::size_t draft_context = 1; draft_context <= 70; draft_context += 3) {
    const std::string name = "toy:11,vocab=64";
    const auto target = test::make_toy_runtime(name, {.context = 128, .rows = 16});
    const auto plain_target = test::make_toy_runtime(name, {.context = 128, .rows = 16});
    const FakeVocabulary vocabulary(std::vector<std::string>(64, "x"));
    const auto drafter = value_of(draft::make_draft_model_drafter(
        test::make_toy_runtime(name, {.context = draft_context, .rows = 16}),
        {.target_vocabulary = 64}));
    GenerationOptions options{.prompt = test::random_prompt(10, 2, 64), .max_tokens = 100};
    const Outcome expected = run_plain({plain_target.get(), &vocabulary}, options);
    ASSERT_EQ(expected.tokens.size(), 100U);
    options.num_draft_tokens = 4;
    const Outcome outcome = run_checked({target.get(), &vocabulary, drafter.get()}, options);
    expect_same_text(outcome, expected);
    // Every proposal is right, so drafting goes on exactly as long as the draft has room.
    std::size_t length = 11;
    for (const Round& round : outcome.rounds) {
      const std::size_t room = length <= draft_context ? draft_context - length + 1 : 0;
      ASSERT_EQ(round.drafted, std::min({4UL, room, 110 - length - 1})) << length;
      length += round.emitted;
    }
  }
}

TEST(LongPrompts, GiveTheSameTextForEveryChunkSize) {
  const std::string name = "toy:4,vocab=64";
  const FakeVocabulary vocabulary(std::vector<std::string>(64, "x"));
  for (std::size_t rows = 1; rows <= 12; ++rows) {
    for (const std::size_t length : {1UL, rows, rows + 1, 3 * rows, 3 * rows + 1}) {
      GenerationOptions options{.prompt = test::random_prompt(length, 3, 64), .max_tokens = 20};
      const runtime::RuntimeLimits wide{.context = 100, .rows = 64};
      const auto plain_target = test::make_toy_runtime(name, wide);
      const Outcome expected = run_plain({plain_target.get(), &vocabulary}, options);
      const auto target = test::make_toy_runtime(name, {.context = 100, .rows = rows});
      const auto drafter = value_of(draft::make_draft_model_drafter(
          test::make_toy_runtime(name + ",agree=0.7", {.context = 100, .rows = rows}),
          {.target_vocabulary = 64}));
      options.num_draft_tokens = 5;
      expect_same_text(run_checked({target.get(), &vocabulary, drafter.get()}, options), expected);
      if (HasFailure()) return;
    }
  }
}

TEST(Lookup, MakesProgressOnAPeriodOfOne) {
  Scene scene{.prompt = std::vector<Token>(8, Token{1}),
              .truth = std::vector<Token>(50, Token{1}),
              .pieces = letters(4)};
  FakeRuntime target = scene.make_target();
  const FakeVocabulary vocabulary(scene.pieces);
  const auto drafter = value_of(draft::make_lookup_drafter({}));
  GenerationOptions options = scene.options(50);
  options.num_draft_tokens = 6;
  const Outcome outcome = run_checked({&target, &vocabulary, drafter.get()}, options);
  EXPECT_EQ(outcome.tokens, scene.truth);
  EXPECT_EQ(outcome.rounds.size(), 7U);  // 49 tokens, 7 in each round
}

TEST(Requests, StartFreshEachTime) {
  const std::string name = "toy:2,vocab=32";
  const FakeVocabulary vocabulary(std::vector<std::string>(32, "x"));
  const auto target = test::make_toy_runtime(name, {.context = 200, .rows = 16});
  const auto lookup = value_of(draft::make_lookup_drafter({.shortest_ngram = 1}));
  const auto model = value_of(draft::make_draft_model_drafter(
      test::make_toy_runtime(name + ",agree=0.8", {.context = 200, .rows = 16}),
      {.target_vocabulary = 32}));
  for (draft::Drafter* const drafter : {lookup.get(), model.get()}) {
    const GenerationOptions options{
        .prompt = test::random_prompt(20, 5, 32), .max_tokens = 60, .num_draft_tokens = 4};
    const Outcome first = run_checked({target.get(), &vocabulary, drafter}, options);
    EXPECT_GT(first.accepted(), 0U);
    for (int again = 0; again < 2; ++again) {
      const Outcome next = run_checked({target.get(), &vocabulary, drafter}, options);
      expect_same_text(next, first);
      EXPECT_EQ(next.drafted_at, first.drafted_at);
      EXPECT_EQ(next.accepted_at, first.accepted_at);
      EXPECT_EQ(next.rounds.size(), first.rounds.size());
    }
  }
}

TEST(Trees, KeepTheNodesForWhichThereAreRows) {
  const Scene scene{.truth = tokens({4, 5, 6, 7, 4, 5}),
                    .pieces = letters(8),
                    .limits = {.sequences = 1, .context = 100, .rows = 4, .leaves = 9}};
  const Outcome expected = plain(scene, scene.options(6));
  FakeRuntime target = scene.make_target();
  const FakeVocabulary vocabulary(scene.pieces);
  // Two wrong siblings stand before the right one: of 3 nodes that fit, the third is the right one.
  FakeDrafter drafter(
      [&](std::span<const Token> observed, std::size_t depth) {
        DraftTree tree;
        std::int32_t parent = k_tree_root;
        for (std::size_t i = observed.size() - 3; i < 6 && tree.depth() < depth; ++i) {
          tree.add(Token{0}, parent);
          tree.add(Token{1}, parent);
          parent = tree.add(scene.truth[i], parent);
        }
        return tree;
      },
      1, 9);
  GenerationOptions options = scene.options(6);
  options.num_draft_tokens = 3;
  const Outcome outcome = run_checked({&target, &vocabulary, &drafter}, options);
  expect_same_text(outcome, expected);
  for (const Round& round : outcome.rounds) EXPECT_LE(round.rows, 4U);
  EXPECT_GT(outcome.accepted(), 0U);
}

}  // namespace
}  // namespace paceline::engine
