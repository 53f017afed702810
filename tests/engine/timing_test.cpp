// Which time is counted where, on a clock that only moves inside the fakes.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/engine.hpp"
#include "support/fake_runtime.hpp"
#include "support/manual_clock.hpp"
#include "support/matchers.hpp"

namespace paceline::engine {
namespace {

using std::chrono::milliseconds;
using test::Call;
using test::FakeDrafter;
using test::FakeRuntime;
using test::FakeVocabulary;
using test::IsOk;
using test::tokens;
using test::value_of;

/// A pass takes 10 ms, an accept 2 ms, a draft 3 ms.
class Timing : public testing::Test {
 protected:
  Timing()
      : target_(8, {.sequences = 2, .context = 50, .rows = 4},
                test::follow_script(8, k_prompt, k_truth, Token{0})),
        drafter_(test::propose_script(
                     k_prompt, k_truth, [](std::size_t) { return false; },
                     [](Token token) { return token; }),
                 2) {
    target_.before = [this](Call call) -> Result<void> {
      if (call == Call::forward) clock_.advance(milliseconds(10));
      if (call == Call::accept) clock_.advance(milliseconds(2));
      return {};
    };
    drafter_.before_draft = [this]() -> Result<void> {
      clock_.advance(milliseconds(3));
      return {};
    };
  }

  const std::vector<Token> k_prompt = tokens({3, 1, 2, 3, 1, 2});
  const std::vector<Token> k_truth = tokens({4, 5, 6, 7, 1, 2, 3, 4, 4});
  test::ManualClock clock_;
  FakeRuntime target_;
  FakeVocabulary vocabulary_{std::vector<std::string>(8, "x")};
  FakeDrafter drafter_;
};

TEST_F(Timing, SplitsARoundIntoItsParts) {
  Engine engine(target_, vocabulary_, &drafter_, clock_);
  const auto text =
      value_of(engine.start({.prompt = k_prompt, .max_tokens = 9, .num_draft_tokens = 3}));
  const Nanoseconds start = clock_.time();
  EXPECT_EQ(text->started_at(), start);
  Generation* const texts[] = {text.get()};
  ASSERT_THAT(engine.step(texts, {}), IsOk());
  EXPECT_EQ(text->prefill_time(), milliseconds(12));
  ASSERT_THAT(engine.step(texts, {}), IsOk());
  EXPECT_EQ(text->first_token_time(), milliseconds(22));  // before the accept of its pass
  EXPECT_EQ(text->first_text_time(), milliseconds(24));
  EXPECT_EQ(text->prefill_time(), milliseconds(24));
  clock_.advance(milliseconds(5));  // between the steps: somebody else's time
  ASSERT_THAT(engine.step(texts, {}), IsOk());
  const Round& round = text->rounds().at(0);
  EXPECT_EQ(round.draft, milliseconds(3));
  EXPECT_EQ(round.verify, milliseconds(10));
  EXPECT_EQ(round.accept, milliseconds(2));
  EXPECT_EQ(round.other, milliseconds(5));
  EXPECT_EQ(round.delivered, milliseconds(44));
  EXPECT_EQ(round.emitted, 4U);
}

TEST_F(Timing, OfAPlainRoundHasNoDraft) {
  Engine engine(target_, vocabulary_, nullptr, clock_);
  const auto text = value_of(engine.start({.prompt = k_prompt, .max_tokens = 9}));
  ASSERT_THAT(engine.run(*text, {}), IsOk());
  Nanoseconds sum = text->prefill_time();
  for (const Round& round : text->rounds()) {
    EXPECT_EQ(round.draft, Nanoseconds{0});
    EXPECT_EQ(round.other, Nanoseconds{0});
    sum += round.verify + round.accept;
    EXPECT_EQ(round.delivered, sum);
  }
  EXPECT_EQ(sum, clock_.time() - text->started_at());
}

TEST_F(Timing, CountsACancelledPassToTheNextRound) {
  Engine engine(target_, vocabulary_, &drafter_, clock_);
  const auto text =
      value_of(engine.start({.prompt = k_prompt, .max_tokens = 9, .num_draft_tokens = 3}));
  Generation* const texts[] = {text.get()};
  ASSERT_THAT(engine.step(texts, {}), IsOk());
  ASSERT_THAT(engine.step(texts, {}), IsOk());
  std::stop_source source;
  source.request_stop();
  EXPECT_THAT(engine.step(texts, source.get_token()), test::FailsWith(ErrorCode::cancelled));
  ASSERT_THAT(engine.step(texts, {}), IsOk());
  EXPECT_EQ(text->rounds().at(0).other, milliseconds(13));
  EXPECT_EQ(text->rounds().at(0).draft, milliseconds(3));
}

TEST_F(Timing, GivesEachTextTheWallTimeOfTheSharedStep) {
  Engine engine(target_, vocabulary_, nullptr, clock_);
  std::vector<std::unique_ptr<Generation>> texts;
  std::vector<Generation*> stepping;
  for (int i = 0; i < 2; ++i) {
    texts.push_back(value_of(engine.start({.prompt = k_prompt, .max_tokens = 9})));
    stepping.push_back(texts.back().get());
  }
  while (!texts[0]->finished() || !texts[1]->finished()) {
    ASSERT_THAT(engine.step(stepping, {}), IsOk());
  }
  for (const auto& text : texts) {
    Nanoseconds sum = text->prefill_time();
    for (const Round& round : text->rounds()) {
      EXPECT_EQ(round.verify, milliseconds(10));
      sum += round.draft + round.verify + round.accept + round.other;
      EXPECT_EQ(round.delivered, sum);
    }
  }
}

TEST_F(Timing, TellsTheFirstTextApartFromTheFirstToken) {
  // The first token is half a character, the second its other half.
  const FakeVocabulary halves({"?", "x", "x", "x", "\xc3", "\xbc", "z", "x"});
  Engine engine(target_, halves, nullptr, clock_);
  const auto text = value_of(engine.start({.prompt = k_prompt, .max_tokens = 4}));
  ASSERT_THAT(engine.run(*text, {}), IsOk());
  EXPECT_EQ(text->text(), "\xc3\xbczx");
  EXPECT_EQ(text->first_token_time(), milliseconds(22));
  EXPECT_EQ(text->first_text_time(), milliseconds(36));
  EXPECT_EQ(text->deliveries_with_text(), 3U);
}

TEST_F(Timing, HasNoFirstTextWhereNoneWasWritten) {
  const FakeVocabulary silent(std::vector<std::string>(8, ""));
  Engine engine(target_, silent, nullptr, clock_);
  const auto text = value_of(engine.start({.prompt = k_prompt, .max_tokens = 4}));
  ASSERT_THAT(engine.run(*text, {}), IsOk());
  EXPECT_FALSE(text->first_text_time());
  EXPECT_EQ(text->deliveries_with_text(), 0U);
}

TEST(FinishReasonWords, AreThoseOfTheRecord) {
  EXPECT_EQ(to_string(FinishReason::none), "none");
  EXPECT_EQ(to_string(FinishReason::stop), "stop");
  EXPECT_EQ(to_string(FinishReason::length), "length");
  EXPECT_EQ(to_string(FinishReason::context), "context");
}

}  // namespace
}  // namespace paceline::engine
