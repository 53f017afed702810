#include "core/result.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "support/matchers.hpp"

namespace paceline {
namespace {

using test::FailsWith;
using test::FailsWithWord;
using test::IsOk;

TEST(ErrorCodeWords, AreDistinctAndLowerSnake) {
  std::set<std::string_view> words;
  for (int i = 0; i <= static_cast<int>(ErrorCode::internal); ++i) {
    const std::string_view word = to_string(static_cast<ErrorCode>(i));
    EXPECT_TRUE(words.insert(word).second) << word;
    EXPECT_EQ(word.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos);
  }
  EXPECT_TRUE(words.contains("invalid_argument"));
  EXPECT_TRUE(words.contains("internal"));
}

TEST(Error, GainsOneClauseInFrontPerLevelAndKeepsCodeAndWord) {
  const Error error = fail(ErrorCode::unsupported, "vocabulary differs", "tokenizer_mismatch")
                          .in("loading draft \"x.gguf\"")
                          .in("arm 2");
  EXPECT_EQ(error.message, "arm 2: loading draft \"x.gguf\": vocabulary differs");
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_EQ(error.word, "tokenizer_mismatch");
}

TEST(Error, ClausesMayHoldBraces) {
  EXPECT_EQ(fail(ErrorCode::io, "{} {0}").in("{").message, "{: {} {0}");
}

Result<int> half(int x) {
  if (x % 2 != 0) return fail(ErrorCode::invalid_argument, "odd", "odd_word");
  return x / 2;
}

Result<void> must_be_even(int x) {
  PACELINE_TRY_VOID(half(x));
  return {};
}

Result<std::string> quarter(int x) {
  PACELINE_TRY_VOID(must_be_even(x));
  PACELINE_TRY(const int once, half(x));
  PACELINE_TRY(const int twice, half(once));
  return std::to_string(twice);
}

TEST(Try, UnwrapsValues) {
  const auto result = quarter(12);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(*result, "3");
}

TEST(Try, ReturnsTheFirstErrorAsItIs) {
  EXPECT_THAT(quarter(3), FailsWith(ErrorCode::invalid_argument, "odd"));
  EXPECT_THAT(quarter(6), FailsWithWord("odd_word"));
}

TEST(Try, AssignsToWhatIsThere) {
  const auto assign = [](int x) -> Result<int> {
    int value = -1;
    PACELINE_TRY(value, half(x));
    return value;
  };
  EXPECT_EQ(*assign(8), 4);
  EXPECT_FALSE(assign(7));
}

TEST(Try, MovesValuesThatCannotBeCopied) {
  const auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(7); };
  const auto use = [&]() -> Result<int> {
    PACELINE_TRY(const auto pointer, make());
    return *pointer;
  };
  EXPECT_EQ(*use(), 7);
}

TEST(Result, OfAStringHoldsTextAsValue) {
  const Result<std::string> result = std::string("error?");
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(*result, "error?");
}

}  // namespace
}  // namespace paceline
