#include "engine/harness.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/random.hpp"
#include "runtime/toy/toy.hpp"
#include "support/matchers.hpp"

namespace paceline::test {

namespace {

constexpr runtime::SequenceId k_sequence{0};

template <typename T>
T sum(const std::vector<T>& values) {
  return std::accumulate(values.begin(), values.end(), T{});
}

void check_round(const engine::Generation& text, std::size_t emitted_before, std::size_t depth,
                 bool chain) {
  const engine::Round& round = text.rounds().back();
  EXPECT_EQ(round.rows, round.drafted + 1);
  EXPECT_LE(round.accepted, round.drafted);
  EXPECT_LE(round.accepted, depth);
  if (chain) {
    EXPECT_LE(round.drafted, depth);
  }
  EXPECT_EQ(round.emitted, text.tokens().size() - emitted_before);
  EXPECT_GE(round.emitted, 1U);
  // The last token of a text may be a drafted one; in every other round one more was emitted.
  EXPECT_LE(round.emitted, round.accepted + 1);
  EXPECT_GE(round.emitted + (text.finished() ? 1 : 0), round.accepted + 1);
  for (const Nanoseconds part : {round.draft, round.verify, round.accept, round.other}) {
    EXPECT_GE(part.count(), 0);
  }
}

void check_totals(const Outcome& outcome, const runtime::PassCounters& counters,
                  std::size_t prompt_tokens, std::size_t prompt_steps, bool chain) {
  std::size_t emitted = 1;
  std::size_t rows = prompt_tokens;
  for (const engine::Round& round : outcome.rounds) {
    emitted += round.emitted;
    rows += round.rows;
  }
  EXPECT_EQ(outcome.tokens.size(), emitted);
  EXPECT_EQ(counters.rows, rows);
  EXPECT_EQ(counters.forwards, prompt_steps + outcome.rounds.size());
  EXPECT_EQ(sum(outcome.accepted_at), outcome.accepted());
  if (chain) {
    EXPECT_EQ(sum(outcome.drafted_at), outcome.drafted());
  }
  for (std::size_t i = 0; i < outcome.accepted_at.size(); ++i) {
    EXPECT_LE(outcome.accepted_at[i], outcome.drafted_at[i]);
    if (i == 0) continue;
    EXPECT_LE(outcome.accepted_at[i], outcome.accepted_at[i - 1]);
    EXPECT_LE(outcome.drafted_at[i], outcome.drafted_at[i - 1]);
  }
}

}  // namespace

std::size_t Outcome::drafted() const {
  std::size_t total = 0;
  for (const engine::Round& round : rounds) total += round.drafted;
  return total;
}

std::size_t Outcome::accepted() const {
  std::size_t total = 0;
  for (const engine::Round& round : rounds) total += round.accepted;
  return total;
}

Outcome run_checked(const Stage& stage, engine::GenerationOptions options,
                    const std::vector<Token>* expected) {
  ManualClock clock(Nanoseconds{7});
  engine::Engine engine(*stage.target, *stage.vocabulary, stage.drafter, clock);
  const runtime::PassCounters before = stage.target->counters();
  const std::size_t prompt_tokens = options.prompt.size();
  const std::size_t depth = options.num_draft_tokens;
  const bool chain = stage.drafter == nullptr || stage.drafter->max_leaves() == 1;
  auto started = engine.start(std::move(options));
  if (!started) {
    ADD_FAILURE() << started.error().message;
    return {};
  }
  engine::Generation& text = **started;
  engine::Generation* const texts[] = {&text};
  std::vector<Token> delivered;
  std::string shown;
  std::size_t prompt_steps = 0;
  Nanoseconds spent{};
  while (!text.finished()) {
    const std::size_t emitted_before = text.tokens().size();
    const std::size_t rounds_before = text.rounds().size();
    const auto deliveries = engine.step(texts, {});
    if (!deliveries) {
      ADD_FAILURE() << deliveries.error().message;
      return {};
    }
    delivered.insert(delivered.end(), deliveries->at(0).tokens.begin(),
                     deliveries->at(0).tokens.end());
    shown += deliveries->at(0).text;
    EXPECT_EQ(delivered, text.tokens());
    EXPECT_EQ(shown, text.text());
    if (emitted_before == 0) {
      ++prompt_steps;
      EXPECT_TRUE(text.rounds().empty());
      EXPECT_LE(text.tokens().size(), 1U);
      spent = text.prefill_time();
    } else {
      EXPECT_EQ(text.rounds().size(), rounds_before + 1);
      check_round(text, emitted_before, depth, chain);
      const engine::Round& round = text.rounds().back();
      spent += round.draft + round.verify + round.accept + round.other;
      EXPECT_EQ(round.delivered, spent);
    }
    EXPECT_EQ(spent, clock.time() - text.started_at());
    if (!text.tokens().empty()) {
      EXPECT_EQ(stage.target->length(k_sequence), prompt_tokens + text.tokens().size() - 1);
      EXPECT_LE(text.first_token_time(), text.prefill_time());
    }
    if (expected != nullptr) {
      EXPECT_LE(text.tokens().size(), expected->size());
      EXPECT_TRUE(std::equal(text.tokens().begin(), text.tokens().end(), expected->begin()));
    }
    if (testing::Test::HasFailure()) return {};
  }
  Outcome outcome{.tokens = text.tokens(),
                  .text = text.text(),
                  .finish = text.finish_reason(),
                  .rounds = text.rounds(),
                  .drafted_at = text.drafted_at(),
                  .accepted_at = text.accepted_at()};
  const runtime::PassCounters after = stage.target->counters();
  check_totals(outcome,
               {.forwards = after.forwards - before.forwards, .rows = after.rows - before.rows},
               prompt_tokens, prompt_steps, chain);
  return outcome;
}

Outcome run_plain(Stage stage, engine::GenerationOptions options) {
  stage.drafter = nullptr;
  options.num_draft_tokens = 0;
  return run_checked(stage, std::move(options));
}

void expect_same_text(const Outcome& speculative, const Outcome& plain) {
  EXPECT_EQ(speculative.tokens, plain.tokens);
  EXPECT_EQ(speculative.text, plain.text);
  EXPECT_EQ(speculative.finish, plain.finish);
}

std::unique_ptr<runtime::Runtime> make_toy_runtime(std::string_view name,
                                                   const runtime::RuntimeLimits& limits) {
  return value_of(
      runtime::make_toy_model(value_of(runtime::parse_toy_name(name)))->create_runtime(limits));
}

std::vector<Token> random_prompt(std::size_t length, std::uint64_t seed, std::size_t vocabulary) {
  Random random(seed);
  std::vector<Token> prompt(length);
  for (Token& token : prompt) token = to_token(1 + random.below(vocabulary - 1));
  return prompt;
}

}  // namespace paceline::test
