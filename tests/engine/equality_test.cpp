// The promise: whatever drafts, the text is that of plain decoding, to the last token. The toy's
// logits depend on the whole context, so a cache that is not that of plain decoding shows in the
// next token. Each program run puts some 10^4 rounds per drafter through.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <format>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "draft/draft_model.hpp"
#include "draft/lookup.hpp"
#include "draft/scripted.hpp"
#include "engine/harness.hpp"
#include "runtime/toy/toy.hpp"
#include "support/matchers.hpp"

namespace paceline::engine {
namespace {

using test::make_toy_runtime;
using test::Outcome;
using test::random_prompt;
using test::run_checked;
using test::run_plain;
using test::Stage;
using test::value_of;

constexpr std::size_t k_vocabulary = 64;
constexpr std::size_t k_deepest = 8;

const std::vector<verify::SamplerOptions>& samplers() {
  static const std::vector<verify::SamplerOptions> list{
      {},
      {.temperature = 0.7, .seed = 1},
      {.temperature = 1.5, .seed = 2},
      {.temperature = 1, .top_k = 5, .seed = 3},
      {.temperature = 1.2, .top_p = 0.8, .seed = 4},
      {.temperature = 1.5, .min_p = 0.1, .seed = 5},
      {.repetition_penalty = 1.3},
      {.presence_penalty = 0.8, .frequency_penalty = 0.6, .penalty_window = 20},
      {.logit_bias = {{Token{5}, 3.8}, {Token{9}, -5.0}}},
      {.temperature = 0.7, .repetition_penalty = 1.2, .frequency_penalty = 0.3, .seed = 6},
      {.temperature = 0.9,
       .top_k = 20,
       .top_p = 0.95,
       .min_p = 0.02,
       .repetition_penalty = 1.1,
       .presence_penalty = 0.2,
       .frequency_penalty = 0.1,
       .penalty_window = 7,
       .logit_bias = {{Token{7}, 2.0}},
       .seed = 7},
  };
  return list;
}

/// What a drafter is made for.
struct Text {
  std::string target;  // toy name
  std::vector<Token> prompt;
  const std::vector<Token>& plain;
};

using MakeDrafter = std::function<std::unique_ptr<draft::Drafter>(const Text&)>;

MakeDrafter lookup(const draft::LookupOptions& options) {
  return [=](const Text&) { return value_of(draft::make_lookup_drafter(options)); };
}

MakeDrafter draft_model(double agree, double confidence) {
  return [=](const Text& text) {
    return value_of(draft::make_draft_model_drafter(
        make_toy_runtime(std::format("{},agree={}", text.target, agree),
                         {.sequences = 1, .context = 300, .rows = 16}),
        {.confidence = confidence, .target_vocabulary = k_vocabulary}));
  };
}

MakeDrafter scripted(double right, std::size_t decoys) {
  return [=](const Text& text) {
    return draft::make_scripted_drafter(
        {.oracle = text.plain,
         .prompt_tokens = text.prompt.size(),
         .right = draft::right_with_probability(right, text.plain.size()),
         .vocabulary = k_vocabulary,
         .decoys_before = decoys});
  };
}

struct Case {
  const char* name;
  MakeDrafter make;
  bool reaches_every_count;  // of accepted tokens, at every depth
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class EveryDrafter : public testing::TestWithParam<Case> {};

TEST_P(EveryDrafter, WritesThePlainTextInEverySamplerAndDepth) {
  std::size_t rounds = 0;
  std::array<std::array<std::size_t, k_deepest + 1>, k_deepest + 1> seen{};
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const std::string name = std::format("toy:{},vocab={}", seed, k_vocabulary);
    const auto vocabulary = runtime::make_toy_model(value_of(runtime::parse_toy_name(name)));
    for (const verify::SamplerOptions& sampler : samplers()) {
      GenerationOptions options{
          .prompt = random_prompt(5 + 8 * seed, seed, k_vocabulary),
          .max_tokens = 90 + seed,
          .stop = seed % 2 == 0 ? std::vector<std::string>{} : std::vector<std::string>{"a!", "~"},
          .sampler = sampler};
      const runtime::RuntimeLimits limits{.sequences = 1, .context = 300, .rows = 40, .leaves = 33};
      const auto plain_target = make_toy_runtime(name, limits);
      const Outcome plain = run_plain({plain_target.get(), &vocabulary->vocabulary()}, options);
      rounds += plain.rounds.size();
      for (std::size_t depth = 0; depth <= k_deepest; ++depth) {
        SCOPED_TRACE(std::format("toy seed {}, sampler {}, depth {}", seed,
                                 &sampler - samplers().data(), depth));
        options.num_draft_tokens = depth;
        const auto target = make_toy_runtime(name, limits);
        const auto drafter = GetParam().make({name, options.prompt, plain.tokens});
        const Outcome outcome = run_checked(
            Stage{target.get(), &vocabulary->vocabulary(), drafter.get()}, options, &plain.tokens);
        test::expect_same_text(outcome, plain);
        if (HasFailure()) return;
        rounds += outcome.rounds.size();
        for (const Round& round : outcome.rounds) {
          if (round.drafted >= depth) ++seen[depth][round.accepted];
        }
      }
    }
  }
  EXPECT_GE(rounds, 14000U);
  RecordProperty("rounds", static_cast<int>(rounds));
  if (!GetParam().reaches_every_count) return;
  for (std::size_t depth = 0; depth <= k_deepest; ++depth) {
    for (std::size_t accepted = 0; accepted <= depth; ++accepted) {
      EXPECT_GT(seen[depth][accepted], 0U) << accepted << " of " << depth;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Drafters, EveryDrafter,
    testing::Values(Case{"lookup", lookup({.shortest_ngram = 1, .longest_ngram = 4}), false},
                    Case{"lookup_tree",
                         lookup({.shortest_ngram = 1, .longest_ngram = 5, .branches = 4}), false},
                    Case{"draft_model", draft_model(0.8, 0), true},
                    Case{"draft_model_confident", draft_model(0.9, 0.45), false},
                    Case{"draft_model_wrong", draft_model(0, 0), false},
                    Case{"script_half", scripted(0.5, 0), true},
                    Case{"script_most", scripted(0.85, 0), true},
                    Case{"script_tree", scripted(0.8, 1), true},
                    Case{"script_wide_tree", scripted(0.85, 2), true}),
    [](const auto& tested) { return std::string(tested.param.name); });

// After any text the cache is a cache built from nothing: equal logits for the next token.
TEST(Engine, LeavesTheCacheOfAFreshSequence) {
  const std::string name = std::format("toy:3,vocab={}", k_vocabulary);
  const auto model = runtime::make_toy_model(value_of(runtime::parse_toy_name(name)));
  for (std::size_t max_tokens = 1; max_tokens <= 40; ++max_tokens) {
    test::ManualClock clock;
    const auto target =
        make_toy_runtime(name, {.sequences = 2, .context = 100, .rows = 80, .leaves = 33});
    GenerationOptions options{.prompt = random_prompt(4, 1, k_vocabulary),
                              .max_tokens = max_tokens};
    const Outcome plain = run_plain({target.get(), &model->vocabulary()}, options);
    const auto drafter = scripted(0.7, 2)({name, options.prompt, plain.tokens});
    Engine engine(*target, model->vocabulary(), drafter.get(), clock);
    options.num_draft_tokens = 4;
    const auto text = value_of(engine.start(options));
    ASSERT_THAT(engine.run(*text, {}), test::IsOk());

    std::vector<Token> whole = options.prompt;
    whole.insert(whole.end(), plain.tokens.begin(), plain.tokens.end());
    const auto fresh = value_of(target->create_sequence());
    std::vector<runtime::Row> rows{
        {runtime::SequenceId{0}, whole.back(), runtime::k_committed_end, runtime::Wants::logits}};
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const auto parent = i == 0 ? runtime::k_committed_end : static_cast<std::int32_t>(i);
      rows.push_back({fresh, whole[i], parent, runtime::Wants::logits});
    }
    ASSERT_THAT(target->forward(rows, {}), test::IsOk());
    ASSERT_TRUE(std::ranges::equal(target->logits(0), target->logits(rows.size() - 1)));
    target->release(fresh);
  }
}

}  // namespace
}  // namespace paceline::engine
