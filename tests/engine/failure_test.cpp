// What is refused at the start, what happens when a part fails in the middle, and cancellation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "draft/draft_model.hpp"
#include "draft/lookup.hpp"
#include "engine/engine.hpp"
#include "support/fake_runtime.hpp"
#include "support/manual_clock.hpp"
#include "support/matchers.hpp"

namespace paceline::engine {
namespace {

using test::Call;
using test::FailsWith;
using test::FailsWithWord;
using test::FakeDrafter;
using test::FakeRuntime;
using test::FakeVocabulary;
using test::IsOk;
using test::tokens;
using test::value_of;
using testing::HasSubstr;

const std::vector<Token> k_prompt = tokens({3, 1, 2});
const std::vector<Token> k_truth = tokens({4, 5, 6, 7, 1, 2, 3, 4, 4, 5, 6, 7});

/// A target that writes k_truth, and a drafter that is wrong at every third place.
struct Parts {
  explicit Parts(const runtime::RuntimeLimits& limits = {.sequences = 2, .context = 50, .rows = 16},
                 std::size_t slots = 2, std::size_t leaves = 1)
      : target(8, limits, test::follow_script(8, k_prompt, k_truth, Token{0})),
        drafter(test::propose_script(
                    k_prompt, k_truth, [](std::size_t index) { return index % 3 == 2; },
                    [](Token) { return Token{0}; }),
                slots, leaves) {}

  GenerationOptions options() const {
    return {.prompt = k_prompt, .max_tokens = 12, .num_draft_tokens = 3};
  }

  FakeRuntime target;
  FakeVocabulary vocabulary{std::vector<std::string>(8, "x")};
  FakeDrafter drafter;
  test::ManualClock clock;
  Engine engine{target, vocabulary, &drafter, clock};
};

const auto k_no_fault = [](Call) -> Result<void> { return {}; };

/// Fails the given kind of call once, after `passing` calls that work.
auto fail_once(Call failing, int passing) {
  return [=, left = passing](Call call) mutable -> Result<void> {
    if (call == failing && left-- == 0) return fail(ErrorCode::runtime_failed, "broken on purpose");
    return {};
  };
}

TEST(Start, RefusesWhatCannotBeDone) {
  Parts parts;
  const auto refused = [&](auto change) {
    GenerationOptions options = parts.options();
    change(options);
    return parts.engine.start(options);
  };
  EXPECT_THAT(refused([](auto& o) { o.prompt.clear(); }),
              FailsWith(ErrorCode::invalid_argument, HasSubstr("prompt")));
  EXPECT_THAT(refused([](auto& o) { o.max_tokens = 0; }),
              FailsWith(ErrorCode::invalid_argument, HasSubstr("max_tokens")));
  EXPECT_THAT(refused([](auto& o) { o.sampler.temperature = -1; }),
              FailsWith(ErrorCode::invalid_argument, HasSubstr("temperature")));
  EXPECT_THAT(refused([](auto& o) { o.sampler.logit_bias = {{Token{8}, 1.0}}; }),
              FailsWith(ErrorCode::invalid_argument, HasSubstr("logit_bias")));
  EXPECT_EQ(parts.target.sequences_in_use(), 0U);
  EXPECT_TRUE(parts.drafter.observed().empty());
}

TEST(Start, RefusesDraftsWithoutADrafter) {
  Parts parts;
  Engine engine(parts.target, parts.vocabulary, nullptr, parts.clock);
  EXPECT_THAT(engine.start(parts.options()),
              FailsWith(ErrorCode::unsupported, HasSubstr("drafter")));
}

TEST(Start, RefusesDraftsOnATargetThatCannotRollBackButWritesPlainly) {
  Parts parts;
  parts.target.says.rollback = false;
  parts.target.says.rollback_reason = "it keeps a recurrent state";
  const auto refused = parts.engine.start(parts.options());
  EXPECT_THAT(refused, FailsWithWord("target_no_rollback"));
  EXPECT_THAT(refused, FailsWith(ErrorCode::unsupported, HasSubstr("recurrent")));
  GenerationOptions options = parts.options();
  options.num_draft_tokens = 0;
  const auto text = value_of(parts.engine.start(options));
  ASSERT_THAT(parts.engine.run(*text, {}), IsOk());
  EXPECT_EQ(text->tokens(), k_truth);
}

TEST(Start, RefusesTreesThatTheTargetWasNotMadeFor) {
  for (const std::size_t leaves : {1UL, 2UL, 3UL}) {
    Parts parts({.sequences = 1, .context = 50, .rows = 16, .leaves = leaves}, 1, 3);
    const auto started = parts.engine.start(parts.options());
    EXPECT_EQ(started.has_value(), leaves == 3) << leaves;
    if (leaves == 3) continue;
    EXPECT_THAT(started, FailsWithWord("target_no_trees"));
    EXPECT_THAT(started, FailsWith(ErrorCode::unsupported,
                                   testing::AllOf(HasSubstr("3 leaves"),
                                                  HasSubstr(std::to_string(leaves)))));
  }
  Parts parts({.sequences = 1, .context = 50, .rows = 16, .leaves = 8}, 1, 3);
  parts.target.says.trees = false;
  EXPECT_THAT(parts.engine.start(parts.options()), FailsWithWord("target_no_trees"));
}

TEST(Start, IsBusyWithoutAFreeSequenceOrSlotAndHoldsNothingThen) {
  Parts one_sequence({.sequences = 1, .context = 50, .rows = 16}, 2);
  const auto first = value_of(one_sequence.engine.start(one_sequence.options()));
  EXPECT_THAT(one_sequence.engine.start(one_sequence.options()), FailsWith(ErrorCode::busy));
  EXPECT_EQ(one_sequence.drafter.observed().size(), 1U);

  Parts one_slot({.sequences = 2, .context = 50, .rows = 16}, 1);
  const auto second = value_of(one_slot.engine.start(one_slot.options()));
  EXPECT_THAT(one_slot.engine.start(one_slot.options()), FailsWith(ErrorCode::busy));
  EXPECT_EQ(one_slot.target.sequences_in_use(), 1U);
  // A plain text needs no slot.
  GenerationOptions plain = one_slot.options();
  plain.num_draft_tokens = 0;
  EXPECT_THAT(one_slot.engine.start(plain), IsOk());
}

TEST(Generation, FreesItsSequenceAndSlotAtItsEnd) {
  Parts parts;
  for (int i = 0; i < 5; ++i) {
    const auto text = value_of(parts.engine.start(parts.options()));
    ASSERT_THAT(parts.engine.run(*text, {}), IsOk());
    EXPECT_EQ(parts.target.sequences_in_use(), 1U);
    EXPECT_EQ(parts.drafter.observed().size(), 1U);
  }
  EXPECT_EQ(parts.target.sequences_in_use(), 0U);
  EXPECT_TRUE(parts.drafter.observed().empty());
}

TEST(Step, TellsTheDrafterNothingBeforeTheFirstTokenAndEverythingAfterwards) {
  Parts parts;
  const auto text = value_of(parts.engine.start(parts.options()));
  Generation* const texts[] = {text.get()};
  ASSERT_THAT(parts.engine.step(texts, {}), IsOk());
  EXPECT_EQ(text->tokens().size(), 1U);
  EXPECT_EQ(parts.drafter.drafts(), 0U);
  EXPECT_TRUE(parts.drafter.observed().begin()->second.empty());
  while (!text->finished()) {
    std::vector<Token> known = k_prompt;
    known.insert(known.end(), text->tokens().begin(), text->tokens().end());
    ASSERT_THAT(parts.engine.step(texts, {}), IsOk());
    EXPECT_EQ(parts.drafter.observed().begin()->second, known);
  }
}

// Near max_tokens there is no room to draft; the rounds are plain and the drafter sees them.
TEST(Step, TellsTheDrafterOfRoundsWithoutDraftsToo) {
  Parts parts;
  parts.drafter.before_draft = [] { return Result<void>(fail(ErrorCode::internal, "not asked")); };
  GenerationOptions options = parts.options();
  options.max_tokens = 2;  // room for no draft at all
  const auto text = value_of(parts.engine.start(options));
  ASSERT_THAT(parts.engine.run(*text, {}), IsOk());
  EXPECT_EQ(parts.drafter.observed().begin()->second, tokens({3, 1, 2, 4}));
}

TEST(Cancellation, BeforeAStepChangesNothing) {
  Parts parts;
  std::stop_source source;
  source.request_stop();
  const auto text = value_of(parts.engine.start(parts.options()));
  EXPECT_THAT(parts.engine.run(*text, source.get_token()), FailsWith(ErrorCode::cancelled));
  EXPECT_TRUE(text->tokens().empty());
  EXPECT_FALSE(text->failed());
  ASSERT_THAT(parts.engine.run(*text, {}), IsOk());
  EXPECT_EQ(text->tokens(), k_truth);
}

TEST(Cancellation, InAnyPassLeavesTheTextAsItWasAndItCanGoOn) {
  for (int passes = 0; passes < 5; ++passes) {
    Parts parts;
    std::stop_source source;
    parts.target.before = [&, left = passes](Call call) mutable -> Result<void> {
      if (call == Call::forward && left-- == 0) source.request_stop();
      return {};
    };
    const auto text = value_of(parts.engine.start(parts.options()));
    Generation* const texts[] = {text.get()};
    std::vector<Token> emitted;
    std::size_t rounds = 0;
    std::vector<Token> cache;
    while (true) {
      const auto deliveries = parts.engine.step(texts, source.get_token());
      if (!deliveries) {
        EXPECT_THAT(deliveries, FailsWith(ErrorCode::cancelled));
        break;
      }
      emitted = text->tokens();
      rounds = text->rounds().size();
      cache = parts.target.contents(runtime::SequenceId{0});
    }
    EXPECT_EQ(text->tokens(), emitted);
    EXPECT_EQ(text->rounds().size(), rounds);
    EXPECT_EQ(parts.target.contents(runtime::SequenceId{0}), cache);
    parts.target.before = k_no_fault;
    ASSERT_THAT(parts.engine.run(*text, {}), IsOk());
    EXPECT_EQ(text->tokens(), k_truth) << passes;
    EXPECT_EQ(text->text(), std::string(k_truth.size(), 'x'));
  }
}

TEST(Cancellation, LetsTheNextTextUseTheSequenceAndTheSlot) {
  Parts parts({.sequences = 1, .context = 50, .rows = 16}, 1);
  auto text = value_of(parts.engine.start(parts.options()));
  Generation* const texts[] = {text.get()};
  ASSERT_THAT(parts.engine.step(texts, {}), IsOk());
  ASSERT_THAT(parts.engine.step(texts, {}), IsOk());
  text.reset();  // the client left in the middle
  const auto next = value_of(parts.engine.start(parts.options()));
  ASSERT_THAT(parts.engine.run(*next, {}), IsOk());
  EXPECT_EQ(next->tokens(), k_truth);
}

TEST(Failure, OfAPassLeavesTheTextAsItWasAndItCanGoOn) {
  for (int passes = 0; passes < 5; ++passes) {
    Parts parts;
    parts.target.before = fail_once(Call::forward, passes);
    const auto text = value_of(parts.engine.start(parts.options()));
    EXPECT_THAT(parts.engine.run(*text, {}),
                FailsWith(ErrorCode::runtime_failed, HasSubstr("purpose")));
    EXPECT_FALSE(text->failed());
    ASSERT_THAT(parts.engine.run(*text, {}), IsOk());
    EXPECT_EQ(text->tokens(), k_truth) << passes;
  }
}

TEST(Failure, OfTheDrafterLeavesTheTextAsItWasAndItCanGoOn) {
  Parts parts;
  bool failing = true;
  parts.drafter.before_draft = [&]() -> Result<void> {
    if (failing) return fail(ErrorCode::runtime_failed, "draft broken");
    return {};
  };
  const auto text = value_of(parts.engine.start(parts.options()));
  EXPECT_THAT(parts.engine.run(*text, {}),
              FailsWith(ErrorCode::runtime_failed, HasSubstr("draft")));
  EXPECT_EQ(text->tokens().size(), 1U);
  failing = false;
  ASSERT_THAT(parts.engine.run(*text, {}), IsOk());
  EXPECT_EQ(text->tokens(), k_truth);
}

// Rows that could not be committed: the text may not go on from a cache that is not its own.
TEST(Failure, OfAnAcceptEndsTheTextForGood) {
  for (int passes = 0; passes < 5; ++passes) {
    Parts parts;
    parts.target.before = fail_once(Call::accept, passes);
    auto text = value_of(parts.engine.start(parts.options()));
    EXPECT_THAT(parts.engine.run(*text, {}),
                FailsWith(ErrorCode::runtime_failed, HasSubstr("purpose")));
    EXPECT_TRUE(text->failed());
    EXPECT_THAT(parts.engine.run(*text, {}), FailsWith(ErrorCode::runtime_failed));
    text.reset();
    EXPECT_EQ(parts.target.sequences_in_use(), 0U);
    EXPECT_TRUE(parts.drafter.observed().empty());
  }
}

TEST(Failure, OfOneTextDoesNotCostTheOthersAToken) {
  for (int accepts = 2; accepts < 6; ++accepts) {
    Parts parts;
    parts.target.before = fail_once(Call::accept, accepts);
    const auto first = value_of(parts.engine.start(parts.options()));
    const auto second = value_of(parts.engine.start(parts.options()));
    Generation* const both[] = {first.get(), second.get()};
    std::vector<Token> delivered[2];
    std::string shown[2];
    const auto take = [&](std::size_t index, const Delivery& delivery) {
      delivered[index].insert(delivered[index].end(), delivery.tokens.begin(),
                              delivery.tokens.end());
      shown[index] += delivery.text;
    };
    while (!first->failed() && !second->failed()) {
      const auto deliveries = parts.engine.step(both, {});
      if (!deliveries) break;
      take(0, deliveries->at(0));
      take(1, deliveries->at(1));
    }
    ASSERT_NE(first->failed(), second->failed());
    const std::size_t index = first->failed() ? 1 : 0;
    Generation* const good[] = {both[index]};
    while (!good[0]->finished()) {
      const auto deliveries = parts.engine.step(good, {});
      ASSERT_THAT(deliveries, IsOk());
      take(index, deliveries->at(0));
    }
    EXPECT_EQ(delivered[index], k_truth);
    EXPECT_EQ(shown[index], std::string(k_truth.size(), 'x'));
  }
}

TEST(Failure, OfTheDraftModelsRollbackIsAnErrorOfTheStep) {
  Parts parts;
  auto owned = std::make_unique<FakeRuntime>(
      8, runtime::RuntimeLimits{.context = 50, .rows = 16}, [](std::span<const Token>) {
        return std::vector<float>{1, 0, 0, 0, 0, 0, 0, 0};  // always wrong
      });
  owned->before = [](Call call) -> Result<void> {
    if (call == Call::truncate) return fail(ErrorCode::runtime_failed, "kept 5 of 4 tokens");
    return {};
  };
  const auto drafter =
      value_of(draft::make_draft_model_drafter(std::move(owned), {.target_vocabulary = 8}));
  Engine engine(parts.target, parts.vocabulary, drafter.get(), parts.clock);
  const auto text = value_of(engine.start(parts.options()));
  EXPECT_THAT(engine.run(*text, {}),
              FailsWith(ErrorCode::runtime_failed, HasSubstr("kept 5 of 4")));
}

TEST(Failure, OfAPromptTokenOutsideTheVocabularyIsAnError) {
  Parts parts;
  GenerationOptions options = parts.options();
  options.prompt.push_back(Token{8});
  options.sampler.presence_penalty = 1;
  const auto text = value_of(parts.engine.start(options));
  EXPECT_THAT(parts.engine.run(*text, {}),
              FailsWith(ErrorCode::invalid_argument, HasSubstr("token 8")));
}

TEST(StepDeathTest, AbortsOnADrafterThatGoesDeeperThanAsked) {
  Parts parts;
  FakeDrafter drafter([](std::span<const Token>, std::size_t depth) {
    return DraftTree::chain(std::vector<Token>(depth + 1, Token{1}));
  });
  Engine engine(parts.target, parts.vocabulary, &drafter, parts.clock);
  const auto text = value_of(engine.start(parts.options()));
  EXPECT_DEATH(std::ignore = engine.run(*text, {}), "deeper than it was asked");
}

}  // namespace
}  // namespace paceline::engine
