#include "verify/sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "support/matchers.hpp"
#include "support/statistics.hpp"

namespace paceline::verify {
namespace {

using test::FailsWith;
using test::IsOk;
using testing::HasSubstr;

constexpr float k_infinity = std::numeric_limits<float>::infinity();
constexpr float k_nan = std::numeric_limits<float>::quiet_NaN();

using Logits = std::vector<float>;

Token choose(const SamplerOptions& options, const Logits& logits, std::uint64_t position = 0,
             const std::vector<Token>& history = {}) {
  Sampler sampler(options, logits.size());
  for (const Token token : history) sampler.push(token);
  return sampler.choose(logits, position);
}

/// The probabilities that the header promises, step by step and without any haste.
std::vector<double> expected_distribution(const SamplerOptions& options, const Logits& raw,
                                          const std::vector<Token>& history = {}) {
  const std::size_t n = raw.size();
  std::vector<double> logits(raw.begin(), raw.end());
  for (const auto& [token, bias] : options.logit_bias) logits[to_index(token)] += bias;
  for (std::size_t id = 0; id < n; ++id) {
    const std::size_t first = history.size() - std::min(history.size(), options.penalty_window);
    const auto count = std::count(history.begin() + static_cast<std::ptrdiff_t>(first),
                                  history.end(), to_token(id));
    if (count == 0) continue;
    logits[id] = logits[id] > 0 ? logits[id] / options.repetition_penalty
                                : logits[id] * options.repetition_penalty;
    logits[id] -= options.presence_penalty + static_cast<double>(count) * options.frequency_penalty;
  }
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  if (options.top_k > 0 && options.top_k < n) order.resize(options.top_k);
  const auto weight = [&](std::size_t id) { return std::exp(logits[id] - logits[order.front()]); };
  if (options.top_p < 1) {
    double total = 0;
    for (const std::size_t id : order) total += weight(id);
    double sum = 0;
    std::size_t kept = 0;
    while (kept < order.size() && (kept == 0 || sum < options.top_p * total)) {
      sum += weight(order[kept++]);
    }
    order.resize(kept);
  }
  if (options.min_p > 0) {
    std::erase_if(order, [&](std::size_t id) { return weight(id) < options.min_p; });
  }
  std::vector<double> probabilities(n, 0.0);
  double total = 0;
  for (const std::size_t id : order) {
    probabilities[id] = std::pow(weight(id), 1 / options.temperature);
    total += probabilities[id];
  }
  for (double& p : probabilities) p /= total;
  return probabilities;
}

double deviate_of_draws(const SamplerOptions& options, const Logits& logits,
                        const std::vector<Token>& history = {}) {
  Sampler sampler(options, logits.size());
  for (const Token token : history) sampler.push(token);
  std::vector<std::size_t> counts(logits.size());
  for (std::uint64_t position = 0; position < 40000; ++position) {
    ++counts[to_index(sampler.choose(logits, position))];
  }
  return test::chi_square_deviate(counts, expected_distribution(options, logits, history));
}

const Logits k_logits{1.0f, 2.5f, -0.5f, 2.0f, 0.0f, 1.5f, -3.0f, 2.25f};
const std::vector<Token> k_history{Token{1}, Token{3}, Token{3}, Token{2}, Token{7}, Token{3}};

struct DistributionCase {
  std::string name;
  SamplerOptions options;
};

void PrintTo(const DistributionCase& c, std::ostream* out) { *out << c.name; }

class SamplerDistribution : public testing::TestWithParam<DistributionCase> {};

TEST_P(SamplerDistribution, IsWhatTheOptionsSay) {
  EXPECT_LT(deviate_of_draws(GetParam().options, k_logits, k_history), 4);
}

INSTANTIATE_TEST_SUITE_P(
    Options, SamplerDistribution,
    testing::Values(
        DistributionCase{"temperature_1", {.temperature = 1, .seed = 1}},
        DistributionCase{"temperature_low", {.temperature = 0.7, .seed = 2}},
        DistributionCase{"temperature_high", {.temperature = 1.5, .seed = 3}},
        DistributionCase{"top_k_3", {.temperature = 1, .top_k = 3, .seed = 4}},
        DistributionCase{"top_k_all", {.temperature = 1, .top_k = 8, .seed = 5}},
        DistributionCase{"top_k_more_than_all", {.temperature = 1, .top_k = 80, .seed = 6}},
        DistributionCase{"top_p", {.temperature = 1, .top_p = 0.8, .seed = 7}},
        DistributionCase{"top_p_hot", {.temperature = 1.5, .top_p = 0.5, .seed = 8}},
        DistributionCase{"min_p", {.temperature = 1, .min_p = 0.2, .seed = 9}},
        DistributionCase{"min_p_hot", {.temperature = 1.5, .min_p = 0.5, .seed = 10}},
        DistributionCase{"repetition", {.temperature = 1, .repetition_penalty = 1.6, .seed = 11}},
        DistributionCase{"presence", {.temperature = 1, .presence_penalty = 0.9, .seed = 12}},
        DistributionCase{"frequency", {.temperature = 1, .frequency_penalty = 0.4, .seed = 13}},
        DistributionCase{
            "reward",
            {.temperature = 1, .presence_penalty = -0.5, .frequency_penalty = -0.3, .seed = 14}},
        DistributionCase{
            "window",
            {.temperature = 1, .frequency_penalty = 0.7, .penalty_window = 2, .seed = 15}},
        DistributionCase{
            "window_0", {.temperature = 1, .presence_penalty = 2, .penalty_window = 0, .seed = 16}},
        DistributionCase{"bias",
                         {.temperature = 1,
                          .logit_bias = {{Token{6}, 4.0}, {Token{1}, -2.0}, {Token{6}, 0.5}},
                          .seed = 17}},
        DistributionCase{"bias_bans",
                         {.temperature = 1,
                          .logit_bias = {{Token{1}, -std::numeric_limits<double>::infinity()}},
                          .seed = 18}},
        DistributionCase{"all",
                         {.temperature = 0.7,
                          .top_k = 6,
                          .top_p = 0.95,
                          .min_p = 0.05,
                          .repetition_penalty = 1.2,
                          .presence_penalty = 0.1,
                          .frequency_penalty = 0.2,
                          .logit_bias = {{Token{4}, 2.0}},
                          .seed = 19}}),
    [](const auto& tested) { return tested.param.name; });

// Temperature stands behind top-p and min-p: at 1.5 the same tokens are left as at 1.
TEST(Sampler, CutsTheDistributionBeforeTheTemperatureFlattensIt) {
  for (const double temperature : {0.5, 1.0, 5.0}) {
    const SamplerOptions top_p{.temperature = temperature, .top_p = 0.5};
    const SamplerOptions min_p{.temperature = temperature, .min_p = 0.7};
    for (std::uint64_t position = 0; position < 2000; ++position) {
      // Probabilities at temperature 1: 0.31 (1), 0.24 (7), ... ; 7 has 0.78 of the largest.
      const Token a = choose(top_p, k_logits, position);
      ASSERT_TRUE(a == Token{1} || a == Token{7}) << to_int(a);
      const Token b = choose(min_p, k_logits, position);
      ASSERT_TRUE(b == Token{1} || b == Token{7}) << to_int(b);
    }
  }
}

TEST(Sampler, AtTemperatureZeroTakesTheLargest) {
  EXPECT_EQ(choose({}, k_logits), Token{1});
  EXPECT_EQ(choose({.seed = 77}, k_logits, 1234), Token{1});
}

TEST(Sampler, AtTemperatureZeroTakesTheLowestOfEquals) {
  EXPECT_EQ(choose({}, {0, 3, 1, 3, 3}), Token{1});
  EXPECT_EQ(choose({}, {2, 2, 2}), Token{0});
  EXPECT_EQ(choose({.logit_bias = {{Token{2}, 1.0}}}, {0, 3, 2, 3}), Token{1});
  EXPECT_EQ(choose({.logit_bias = {{Token{0}, 3.0}}}, {0, 3, 2, 3}), Token{0});
}

TEST(Sampler, AtTemperatureZeroStillAppliesBiasAndPenalties) {
  EXPECT_EQ(choose({.logit_bias = {{Token{6}, 10.0}}}, k_logits), Token{6});
  EXPECT_EQ(choose({.repetition_penalty = 2}, k_logits, 0, {Token{1}}), Token{7});
  EXPECT_EQ(choose({.presence_penalty = 1}, k_logits, 0, {Token{1}, Token{7}}), Token{3});
  EXPECT_EQ(choose({.frequency_penalty = 0.2}, k_logits, 0, {Token{1}}), Token{1});
  EXPECT_EQ(choose({.frequency_penalty = 0.2}, k_logits, 0, {Token{1}, Token{1}}), Token{7});
}

TEST(Sampler, TopKOfOneIsGreedyAtAnyTemperature) {
  for (std::uint64_t position = 0; position < 500; ++position) {
    ASSERT_EQ(choose({.temperature = 5, .top_k = 1}, {1, 3, 3, 2}, position), Token{1});
  }
}

TEST(Sampler, TopPOfZeroKeepsTheMostProbable) {
  for (std::uint64_t position = 0; position < 500; ++position) {
    ASSERT_EQ(choose({.temperature = 5, .top_p = 0}, {1, 3, 3, 2}, position), Token{1});
    ASSERT_EQ(choose({.temperature = 5, .min_p = 1}, {1, 3, 2.9f, 2}, position), Token{1});
  }
}

TEST(Sampler, TopKKeepsTheLowestIdsOfEquals) {
  std::vector<std::size_t> counts(6);
  for (std::uint64_t position = 0; position < 500; ++position) {
    ++counts[to_index(choose({.temperature = 1, .top_k = 3}, {1, 1, 2, 1, 1, 1}, position))];
  }
  EXPECT_GT(counts[0], 0U);
  EXPECT_GT(counts[1], 0U);
  EXPECT_GT(counts[2], 0U);
  EXPECT_EQ(counts[3] + counts[4] + counts[5], 0U);
}

TEST(Sampler, DrawsDependOnSeedAndPositionOnly) {
  const SamplerOptions options{.temperature = 1, .seed = 5};
  Sampler in_order(options, k_logits.size());
  Sampler backwards(options, k_logits.size());
  std::vector<Token> first(200);
  std::vector<Token> second(200);
  for (std::size_t i = 0; i < 200; ++i) first[i] = in_order.choose(k_logits, i);
  for (std::size_t i = 200; i-- > 0;) {
    second[i] = backwards.choose(k_logits, i);
    ASSERT_EQ(backwards.choose(k_logits, i), second[i]);  // asking again changes nothing
  }
  EXPECT_EQ(first, second);
  SamplerOptions other = options;
  other.seed = 6;
  Sampler with_other_seed(other, k_logits.size());
  std::vector<Token> third(200);
  for (std::size_t i = 0; i < 200; ++i) third[i] = with_other_seed.choose(k_logits, i);
  EXPECT_NE(first, third);
}

TEST(Sampler, PenaltiesSeeTheHistoryInTheOrderOfThePath) {
  // After 1 and 7 the window of one token holds 7 only.
  const SamplerOptions options{.presence_penalty = 3, .penalty_window = 1};
  Sampler sampler(options, k_logits.size());
  sampler.push(Token{1});
  EXPECT_EQ(sampler.choose(k_logits, 0), Token{7});
  sampler.push(Token{7});
  EXPECT_EQ(sampler.choose(k_logits, 1), Token{1});
}

TEST(Sampler, NeedsLogitsOnlyWhereTheArgmaxIsNotTheAnswer) {
  const auto needs = [](SamplerOptions options) {
    return Sampler(std::move(options), 4).needs_logits();
  };
  EXPECT_FALSE(needs({}));
  EXPECT_FALSE(needs({.top_k = 5, .top_p = 0.5, .min_p = 0.5, .seed = 1}));  // greedy anyway
  EXPECT_TRUE(needs({.temperature = 0.1}));
  EXPECT_TRUE(needs({.repetition_penalty = 1.1}));
  EXPECT_TRUE(needs({.presence_penalty = 0.1}));
  EXPECT_TRUE(needs({.frequency_penalty = -0.1}));
  EXPECT_TRUE(needs({.logit_bias = {{Token{0}, 1.0}}}));
}

TEST(Sampler, NeverChoosesNoNumberOrMinusInfinityBeforeANumber) {
  for (const double temperature : {0.0, 1.0}) {
    for (std::uint64_t position = 0; position < 50; ++position) {
      EXPECT_EQ(choose({.temperature = temperature}, {k_nan, -k_infinity, 1, k_nan}, position),
                Token{2});
      EXPECT_EQ(choose({.temperature = temperature,
                        .logit_bias = {{Token{0}, std::numeric_limits<double>::infinity()}}},
                       {-k_infinity, 1, -k_infinity}, position),
                Token{1});
      EXPECT_EQ(choose({.temperature = temperature}, {1, 2, k_infinity, 3}, position), Token{2});
    }
  }
}

TEST(Sampler, ChoosesSomethingFromAnyLogits) {
  const Logits odd{k_nan, k_infinity, -k_infinity, 0.0f, -0.0f, 1e38f, -1e38f, 1e-45f, 3.0f};
  Random random(9);
  for (int i = 0; i < 20000; ++i) {
    Logits logits(1 + random.below(40));
    for (float& logit : logits) logit = odd[random.below(odd.size())];
    SamplerOptions options{.temperature = std::vector{0.0, 0.01, 1.0, 100.0}[random.below(4)],
                           .top_k = random.below(5),
                           .top_p = std::vector{0.0, 0.5, 1.0}[random.below(3)],
                           .min_p = std::vector{0.0, 0.5, 1.0}[random.below(3)],
                           .repetition_penalty = std::vector{0.01, 1.0, 100.0}[random.below(3)],
                           .presence_penalty = std::vector{0.0, 100.0}[random.below(2)],
                           .frequency_penalty = 0,
                           .logit_bias = {},
                           .seed = random.bits()};
    const auto size = logits.size();
    const Token token = choose(options, logits, random.below(100), {Token{0}});
    ASSERT_LT(to_index(token), size);
  }
}

TEST(Sampler, WorksOnAVocabularyOfOne) {
  EXPECT_EQ(choose({.temperature = 1, .top_k = 1, .top_p = 0.1, .min_p = 0.9}, {0.5f}), Token{0});
}

TEST(CheckSamplerOptions, AcceptsTheBordersOfEveryRange) {
  EXPECT_THAT(check_sampler_options({}, 8), IsOk());
  EXPECT_THAT(check_sampler_options({.temperature = 100, .top_p = 0, .min_p = 1}, 8), IsOk());
  EXPECT_THAT(
      check_sampler_options(
          {.repetition_penalty = 0.01, .presence_penalty = -100, .frequency_penalty = 100}, 8),
      IsOk());
  EXPECT_THAT(check_sampler_options({.logit_bias = {{Token{7}, -k_infinity}}}, 8), IsOk());
}

TEST(CheckSamplerOptions, NamesTheFieldTheValueAndTheRange) {
  const auto expect_refused = [](const SamplerOptions& options, const std::string& field,
                                 const std::string& value) {
    EXPECT_THAT(
        check_sampler_options(options, 8),
        FailsWith(ErrorCode::invalid_argument, testing::AllOf(HasSubstr(field), HasSubstr(value))))
        << field;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_refused({.temperature = -0.1}, "temperature", "-0.1");
  expect_refused({.temperature = nan}, "temperature", "nan");
  expect_refused({.temperature = 100.5}, "temperature", "100.5");
  expect_refused({.top_p = 1.01}, "top_p", "1.01");
  expect_refused({.top_p = -0.01}, "top_p", "-0.01");
  expect_refused({.top_p = nan}, "top_p", "nan");
  expect_refused({.min_p = 1.5}, "min_p", "1.5");
  expect_refused({.min_p = -1}, "min_p", "-1");
  expect_refused({.repetition_penalty = 0}, "repetition_penalty", "0");
  expect_refused({.repetition_penalty = nan}, "repetition_penalty", "nan");
  expect_refused({.presence_penalty = 101}, "presence_penalty", "101");
  expect_refused({.frequency_penalty = -101}, "frequency_penalty", "-101");
  expect_refused({.logit_bias = {{Token{8}, 1.0}}}, "logit_bias", "8");
  expect_refused({.logit_bias = {{Token{-1}, 1.0}}}, "logit_bias", "-1");
  expect_refused({.logit_bias = {{Token{3}, nan}}}, "logit_bias", "3");
}

}  // namespace
}  // namespace paceline::verify
