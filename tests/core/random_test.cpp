#include "core/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "support/statistics.hpp"

namespace paceline {
namespace {

// The first outputs of the published generator for the seeds 0 and 1234567.
static_assert(mix64(0x9e3779b97f4a7c15ULL) == 0xe220a8397b1dcdafULL);
static_assert(mix64(2 * 0x9e3779b97f4a7c15ULL) == 0x6e789e6aa1b965f4ULL);
static_assert(mix64(1234567 + 0x9e3779b97f4a7c15ULL) == 6457827717110365317ULL);

TEST(RandomAt, GivesKnownAnswers) {
  EXPECT_EQ(random_at(0, 0), 0xa706dd2f4d197e6fULL);
  EXPECT_EQ(random_at(0, 1), 0xb382a305f4414f5eULL);
  EXPECT_EQ(random_at(1, 0), 0x5e41ab087439611eULL);
  EXPECT_EQ(random_at(7, 1000000), 0x8a0f50eaf8d37066ULL);
  EXPECT_EQ(random_at(~0ULL, ~0ULL), 0x445018e305810b78ULL);
}

TEST(RandomAt, IsTheSequenceOfTheGeneratorWithTheSameSeed) {
  for (const std::uint64_t seed : {0ULL, 1ULL, 99ULL, ~0ULL}) {
    Random random(seed);
    for (std::uint64_t i = 0; i < 100; ++i) ASSERT_EQ(random.bits(), random_at(seed, i)) << i;
  }
}

TEST(ToUnit, LiesInTheHalfOpenInterval) {
  EXPECT_EQ(to_unit(0), 0.0);
  EXPECT_LT(to_unit(~0ULL), 1.0);
  EXPECT_EQ(to_unit(1ULL << 63), 0.5);
}

TEST(Random, UnitIsUniform) {
  std::vector<std::size_t> counts(64);
  Random random(5);
  for (int i = 0; i < 64000; ++i) ++counts[static_cast<std::size_t>(random.unit() * 64)];
  EXPECT_LT(test::chi_square_deviate(counts, std::vector<double>(64, 1.0 / 64)), 4);
}

TEST(RandomAt, NeighbouringSeedsAndPositionsAreIndependent) {
  std::vector<std::size_t> counts(64);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    for (std::uint64_t position = 0; position < 640; ++position) {
      const auto bin = [&](std::uint64_t s, std::uint64_t p) {
        return static_cast<std::size_t>(to_unit(random_at(s, p)) * 8);
      };
      const std::size_t left = bin(seed, position);
      ++counts[8 * left + bin(seed, position + 1)];
      ++counts[8 * left + bin(seed + 1, position)];
    }
  }
  EXPECT_LT(test::chi_square_deviate(counts, std::vector<double>(64, 1.0 / 64)), 6);
}

TEST(Random, BelowStaysBelow) {
  Random random(3);
  for (std::size_t n = 1; n < 50; ++n) {
    for (int i = 0; i < 50; ++i) ASSERT_LT(random.below(n), n);
  }
}

TEST(Shuffle, KeepsTheItems) {
  std::vector<int> items(100);
  std::iota(items.begin(), items.end(), 0);
  Random random(1);
  shuffle(std::span(items), random);
  EXPECT_FALSE(std::ranges::is_sorted(items));
  std::ranges::sort(items);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(items[static_cast<std::size_t>(i)], i);
}

TEST(Shuffle, OfNothingAndOfOneItemDoesNothing) {
  Random random(1);
  std::vector<int> none;
  shuffle(std::span(none), random);
  std::vector<int> one{7};
  shuffle(std::span(one), random);
  EXPECT_EQ(one, std::vector<int>{7});
  EXPECT_EQ(random.bits(), random_at(1, 0));  // no random number was used
}

TEST(Shuffle, GivesEveryOrderEquallyOften) {
  std::map<std::array<int, 4>, std::size_t> seen;
  Random random(11);
  for (int i = 0; i < 24000; ++i) {
    std::array<int, 4> items{0, 1, 2, 3};
    shuffle(std::span<int>(items), random);
    ++seen[items];
  }
  ASSERT_EQ(seen.size(), 24U);
  std::vector<std::size_t> counts;
  for (const auto& [order, count] : seen) counts.push_back(count);
  EXPECT_LT(test::chi_square_deviate(counts, std::vector<double>(24, 1.0 / 24)), 4);
}

TEST(Shuffle, IsTheSameForTheSameSeed) {
  const auto shuffled = [](std::uint64_t seed) {
    std::vector<int> items{1, 2, 3, 4, 5, 6, 7, 8};
    Random random(seed);
    shuffle(std::span(items), random);
    return items;
  };
  EXPECT_EQ(shuffled(4), shuffled(4));
  EXPECT_NE(shuffled(4), shuffled(5));
}

}  // namespace
}  // namespace paceline
