// Equal or not, where texts part, and whether arithmetic explains it.
#include <gtest/gtest.h>

#include <algorithm>

#include "bench/sample.hpp"
#include "bench/scene.hpp"
#include "draft/scripted.hpp"
#include "support/fake_runtime.hpp"
#include "support/matchers.hpp"

namespace paceline::test {
namespace {

using testing::SizeIs;

constexpr std::size_t k_vocabulary = 32;
constexpr float k_margin = 0.25f;

/// Token t is followed by t + 1; t + 5 comes second, by the margin.
std::vector<float> step_by_one(std::span<const Token> context) {
  std::vector<float> logits(k_vocabulary, 0.0f);
  const std::size_t last = to_index(context.back());
  logits[(last + 1) % k_vocabulary] = 2;
  logits[(last + 5) % k_vocabulary] = 2 - k_margin;
  return logits;
}

/// The largest and the second logit change places.
void swap_best(std::vector<float>& logits) {
  const auto best = std::ranges::max_element(logits);
  const float top = std::exchange(*best, -1.0f);
  const auto second = std::ranges::max_element(logits);
  *best = *second;
  *second = top;
}

/// The plain arm on a faultless runtime, a scripted one on another whose faults the test sets. The
/// script is wrong in every third place, so some rows of most passes are rejected.
class Compared : public testing::Test {
 protected:
  static std::unique_ptr<runtime::Runtime> make_runtime() {
    return std::make_unique<FakeRuntime>(
        k_vocabulary, runtime::RuntimeLimits{.sequences = 1, .context = 128, .rows = 4},
        step_by_one);
  }

  Compared() : plain_target(make_runtime()), target(make_runtime()) {
    plain.arm.id = "plain";
    plain.target = &plain_target;
    speculative.arm.id = "drafted";
    speculative.arm.num_draft_tokens = 3;
    speculative.target = &target;
    speculative.drafter = [this](const bench::SampleFacts& facts) -> Result<draft::Drafter*> {
      drafter = draft::make_scripted_drafter({.oracle = facts.plain_tokens,
                                              .prompt_tokens = facts.prompt_tokens,
                                              .right = [](std::size_t i) { return i % 3 != 0; },
                                              .vocabulary = k_vocabulary});
      return drafter.get();
    };
    prompt.tokens = tokens({3, 4, 5, 6, 7, 8});
    prompt.max_tokens = 20;
  }

  record::Sample run(const bench::Contender& contender) {
    bench::SampleFacts facts{.prompt_tokens = prompt.tokens.size(), .plain_tokens = {}};
    for (std::size_t i = 0; i < 20; ++i) facts.plain_tokens.push_back(to_token((9 + i) % 32));
    return value_of(
        bench::run_sample(contender, prompt, prompt.max_tokens, vocabulary, clock, {}, facts));
  }

  record::Comparison compare(const record::Sample& ours, const record::Sample& theirs) {
    return value_of(bench::compare({speculative, ours}, {plain, theirs}, prompt, vocabulary, {}));
  }

  FakeVocabulary vocabulary{std::vector<std::string>(k_vocabulary, "x")};
  ManualClock clock{Nanoseconds{1}};
  OddRuntime plain_target;
  OddRuntime target;
  bench::Contender plain;
  bench::Contender speculative;
  bench::PreparedPrompt prompt;
  std::unique_ptr<draft::Drafter> drafter;
};

TEST_F(Compared, IsEqualWhereTheTokensAre) {
  const auto ours = run(speculative);
  EXPECT_GT(accepted(ours), 0U);
  EXPECT_LT(accepted(ours), drafted(ours));
  const auto comparison = compare(ours, run(plain));
  EXPECT_TRUE(comparison.equal);
  EXPECT_EQ(comparison.arm, "drafted");
  EXPECT_EQ(comparison.baseline, "plain");
  EXPECT_EQ(comparison.first_difference, std::nullopt);
  EXPECT_EQ(comparison.top_two_margin, std::nullopt);
  EXPECT_FALSE(comparison.numeric_tie);
}

// Passes of 4 rows round otherwise: the same passes again give the same choice.
TEST_F(Compared, IsANumericTieWhereWiderPassesGiveOtherBits) {
  target.bend = [](std::size_t rows, std::vector<float>& logits) {
    if (rows == 4 && logits[20] == 2) swap_best(logits);
  };
  const auto ours = run(speculative);
  const auto theirs = run(plain);
  ASSERT_NE(ours.tokens, theirs.tokens);
  const auto comparison = compare(ours, theirs);
  EXPECT_FALSE(comparison.equal);
  EXPECT_EQ(comparison.first_difference, 11U);  // 9 + 11 is token 20
  ASSERT_TRUE(comparison.top_two_margin.has_value());
  EXPECT_FLOAT_EQ(static_cast<float>(*comparison.top_two_margin), k_margin);
  EXPECT_TRUE(comparison.numeric_tie);
}

TEST_F(Compared, IsANumericTieUnderTheSamplersDrawToo) {
  prompt.sampling.temperature = 0.5;
  prompt.sampling.top_k = 2;
  prompt.sampling.repetition_penalty = 1.3;
  prompt.sampling.seed = 4;
  const auto theirs = run(plain);
  target.bend = [](std::size_t rows, std::vector<float>& logits) {
    if (rows == 4) swap_best(logits);
  };
  const auto ours = run(speculative);
  ASSERT_NE(ours.tokens, theirs.tokens);
  EXPECT_TRUE(compare(ours, theirs).numeric_tie);
}

TEST_F(Compared, IsNoTieWhereTheSamePassesDoNotGiveTheDifferenceAgain) {
  int passes = 0;
  target.bend = [&](std::size_t rows, std::vector<float>& logits) {
    if (rows == 4 && ++passes == 9) swap_best(logits);  // once, for no reason
  };
  const auto ours = run(speculative);
  const auto theirs = run(plain);
  ASSERT_NE(ours.tokens, theirs.tokens);
  const auto comparison = compare(ours, theirs);
  EXPECT_FALSE(comparison.equal);
  EXPECT_TRUE(comparison.first_difference.has_value());
  EXPECT_FALSE(comparison.numeric_tie);
}

TEST_F(Compared, IsNoTieWhereTheBaselineDoesNotSayAgainWhatItSaid) {
  const auto ours = run(speculative);
  auto theirs = run(plain);
  theirs.tokens[7] = 1;  // neither first nor second choice of the target
  const auto comparison = compare(ours, theirs);
  EXPECT_EQ(comparison.first_difference, 7U);
  EXPECT_FALSE(comparison.numeric_tie);
}

TEST_F(Compared, HasNoMarginWhereOneTextIsTheOthersBeginning) {
  const auto theirs = run(plain);
  auto ours = theirs;
  ours.arm = "drafted";
  ours.tokens.resize(12);
  const auto comparison = compare(ours, theirs);
  EXPECT_FALSE(comparison.equal);
  EXPECT_EQ(comparison.first_difference, 12U);
  EXPECT_EQ(comparison.top_two_margin, std::nullopt);
  EXPECT_FALSE(comparison.numeric_tie);
}

TEST_F(Compared, FindsADifferenceInTheVeryFirstToken) {
  const auto theirs = run(plain);
  target.bend = [](std::size_t rows, std::vector<float>& logits) {
    if (rows == 2) swap_best(logits);  // the prompt's last pass
  };
  const auto comparison = compare(run(speculative), theirs);
  EXPECT_EQ(comparison.first_difference, 0U);
  EXPECT_TRUE(comparison.numeric_tie);
}

TEST_F(Compared, LeavesNoSequenceBehindAndPassesErrorsOn) {
  const auto theirs = run(plain);
  auto ours = theirs;
  ours.tokens[3] = 1;
  target.before_pass = [](auto, auto) -> Result<void> {
    return fail(ErrorCode::runtime_failed, "no more memory");
  };
  EXPECT_THAT(bench::compare({speculative, ours}, {plain, theirs}, prompt, vocabulary, {}),
              FailsWith(ErrorCode::runtime_failed, testing::HasSubstr("no more memory")));
  target.before_pass = nullptr;
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THAT(
      bench::compare({speculative, ours}, {plain, theirs}, prompt, vocabulary, stop.get_token()),
      FailsWith(ErrorCode::cancelled));
  EXPECT_EQ(compare(ours, theirs).first_difference, 3U);  // one sequence was enough for all that
}

// The cache keeps a token that was rejected: the text goes astray, and no arithmetic explains it.
TEST(ComparedBlocks, TellABackEndThatRollsBackOneShort) {
  Scene scene;
  scene.add_plain();
  scene.add_scripted(0.6, 3);
  scene.add_prompts("a", 6);
  auto faulty_model = scene.model->create_runtime(
      {.sequences = 1, .context = 512, .rows = 64, .leaves = 1, .threads = 1});
  OddRuntime faulty(value_of(std::move(faulty_model)));
  faulty.rolls_back_one_short = true;
  scene.setup.contenders.back().target = &faulty;
  ASSERT_THAT(scene.run(), IsOk());
  ASSERT_THAT(scene.record.blocks, SizeIs(6));
  for (const record::Block& block : scene.record.blocks) {
    ASSERT_EQ(block.status, record::CellStatus::ok) << block.reason;
    ASSERT_THAT(block.comparisons, SizeIs(1));
    EXPECT_FALSE(block.comparisons.front().equal);
    EXPECT_FALSE(block.comparisons.front().numeric_tie);
    EXPECT_TRUE(block.comparisons.front().first_difference.has_value());
  }
}

}  // namespace
}  // namespace paceline::test
