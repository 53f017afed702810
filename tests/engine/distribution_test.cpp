// Above temperature 0 speculation keeps the target's distribution, whatever is drafted.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "engine/harness.hpp"
#include "support/fake_runtime.hpp"
#include "support/matchers.hpp"
#include "support/statistics.hpp"

namespace paceline::engine {
namespace {

using test::FakeDrafter;
using test::FakeRuntime;
using test::FakeVocabulary;

constexpr std::size_t k_vocabulary = 4;

/// The next token's probabilities after each token: a table, known to the test.
constexpr std::array<std::array<double, k_vocabulary>, k_vocabulary> k_next{{
    {0.50, 0.30, 0.15, 0.05},
    {0.10, 0.20, 0.30, 0.40},
    {0.25, 0.25, 0.25, 0.25},
    {0.70, 0.05, 0.05, 0.20},
}};

FakeRuntime make_target() {
  return FakeRuntime(k_vocabulary, {.context = 300, .rows = 32, .leaves = 8},
                     [](std::span<const Token> context) {
                       std::vector<float> logits;
                       for (const double p : k_next[to_index(context.back())]) {
                         logits.push_back(static_cast<float>(std::log(p)));
                       }
                       return logits;
                     });
}

/// Counts of pairs (token, next token) in many sampled texts.
std::array<std::vector<std::size_t>, k_vocabulary> count_pairs(FakeDrafter* drafter,
                                                               std::size_t depth) {
  std::array<std::vector<std::size_t>, k_vocabulary> counts;
  counts.fill(std::vector<std::size_t>(k_vocabulary));
  const FakeVocabulary vocabulary({"a", "b", "c", "d"});
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    FakeRuntime target = make_target();
    const test::Outcome outcome = test::run_checked({&target, &vocabulary, drafter},
                                                    {.prompt = {Token{0}},
                                                     .max_tokens = 200,
                                                     .sampler = {.temperature = 1, .seed = seed},
                                                     .num_draft_tokens = depth});
    Token last{0};
    for (const Token token : outcome.tokens) {
      ++counts[to_index(last)][to_index(token)];
      last = token;
    }
  }
  return counts;
}

void expect_the_targets_distribution(FakeDrafter* drafter, std::size_t depth) {
  const auto counts = count_pairs(drafter, depth);
  for (std::size_t token = 0; token < k_vocabulary; ++token) {
    EXPECT_LT(test::chi_square_deviate(counts[token], k_next[token]), 4) << "after " << token;
  }
}

Token most_probable(Token token) {
  const auto& row = k_next[to_index(token)];
  return to_token(static_cast<std::size_t>(std::ranges::max_element(row) - row.begin()));
}

TEST(SampledText, HasTheTargetsDistributionWithoutDrafts) {
  expect_the_targets_distribution(nullptr, 0);
}

TEST(SampledText, HasTheTargetsDistributionWithTheMostProbableDrafts) {
  FakeDrafter drafter([](std::span<const Token> observed, std::size_t depth) {
    std::vector<Token> chain;
    Token last = observed.back();
    for (std::size_t i = 0; i < depth; ++i) chain.push_back(last = most_probable(last));
    return DraftTree::chain(chain);
  });
  expect_the_targets_distribution(&drafter, 4);
}

TEST(SampledText, HasTheTargetsDistributionWithOneTokenAlwaysDrafted) {
  FakeDrafter drafter([](std::span<const Token>, std::size_t depth) {
    return DraftTree::chain(std::vector<Token>(depth, Token{3}));
  });
  expect_the_targets_distribution(&drafter, 3);
}

TEST(SampledText, HasTheTargetsDistributionWithATreeOfThreeOfFour) {
  FakeDrafter drafter(
      [](std::span<const Token>, std::size_t depth) {
        DraftTree tree;
        std::int32_t parent = k_tree_root;
        for (std::size_t i = 0; i < depth; ++i) {
          tree.add(Token{2}, parent);
          tree.add(Token{0}, parent);
          parent = tree.add(Token{1}, parent);
        }
        return tree;
      },
      1, 8);
  expect_the_targets_distribution(&drafter, 3);
}

// One random number per emitted token, by its position: the same text whatever was drafted.
TEST(SampledText, IsTheSameForTheSameSeed) {
  FakeDrafter drafter([](std::span<const Token>, std::size_t depth) {
    return DraftTree::chain(std::vector<Token>(depth, Token{0}));
  });
  EXPECT_EQ(count_pairs(nullptr, 0), count_pairs(&drafter, 5));
}

}  // namespace
}  // namespace paceline::engine
