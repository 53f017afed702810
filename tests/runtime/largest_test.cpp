// The greedy choice over a row, and the rows that hold no numbers.
#include "runtime/largest.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/random.hpp"

namespace paceline::runtime {
namespace {

constexpr float k_nan = std::numeric_limits<float>::quiet_NaN();
constexpr float k_infinity = std::numeric_limits<float>::infinity();

TEST(FindLargest, GivesTheLowestIdOfTheLargestForEveryLength) {
  Random random(3);
  for (std::size_t length = 1; length < 600; length += 7) {
    std::vector<float> logits(length);
    for (float& logit : logits) logit = static_cast<float>(random.below(40)) - 20.0F;
    std::size_t best = 0;
    for (std::size_t i = 1; i < length; ++i) {
      if (logits[i] > logits[best]) best = i;
    }
    const Largest found = find_largest(logits);
    EXPECT_EQ(to_index(found.token), best) << length;
    EXPECT_TRUE(found.finite) << length;
  }
}

TEST(FindLargest, SeesOneNanInAnyPlace) {
  for (const std::size_t length : {1U, 15U, 16U, 17U, 255U, 256U, 300U, 517U}) {
    for (std::size_t at = 0; at < length; ++at) {
      std::vector<float> logits(length, 1.0F);
      logits[at] = at % 2 == 0 ? k_nan : -k_nan;
      EXPECT_FALSE(find_largest(logits).finite) << at << " of " << length;
    }
  }
}

TEST(FindLargest, WantsALargestThatIsFinite) {
  std::vector<float> logits(100, 0.5F);
  logits[7] = -k_infinity;  // a token that is never chosen
  EXPECT_TRUE(find_largest(logits).finite);
  logits[80] = k_infinity;
  EXPECT_FALSE(find_largest(logits).finite);
  EXPECT_FALSE(find_largest(std::vector<float>(40, -k_infinity)).finite);
  EXPECT_FALSE(find_largest({}).finite);
}

TEST(LogitsNotFinite, NamesTheModelThePositionAndWhatToDo) {
  const Error error = logits_not_finite("x.gguf", 37, "llama");
  EXPECT_EQ(error.code, ErrorCode::bad_format);
  EXPECT_EQ(error.word, "logits_not_finite");
  for (const char* words : {"\"x.gguf\"", "position 37", "checksum", "--runtime native"}) {
    EXPECT_TRUE(error.message.contains(words)) << error.message;
  }
}

}  // namespace
}  // namespace paceline::runtime
