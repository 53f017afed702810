// Matchers for Result: EXPECT_THAT(f(), IsOk()); EXPECT_THAT(f(), FailsWith(ErrorCode::io));
#pragma once

#include <gmock/gmock.h>

#include <cstdlib>
#include <string>
#include <type_traits>
#include <utility>

#include "core/result.hpp"

namespace paceline::test {

namespace detail {

template <typename R>
void describe(const R& result, testing::MatchResultListener* listener) {
  if (result) {
    *listener << "which is a value";
  } else {
    *listener << "which is the error " << to_string(result.error().code) << ": \""
              << result.error().message << "\"";
    if (!result.error().word.empty()) *listener << " (" << result.error().word << ")";
  }
}

}  // namespace detail

MATCHER(IsOk, "is a value") {
  detail::describe(arg, result_listener);
  return arg.has_value();
}

/// A failed Result with this code.
MATCHER_P(FailsWith, code, "fails with " + std::string(to_string(code))) {
  detail::describe(arg, result_listener);
  return !arg.has_value() && arg.error().code == code;
}

/// A failed Result with this code whose message matches, for example HasSubstr("32000").
MATCHER_P2(FailsWith, code, message,
           "fails with " + std::string(to_string(code)) + " and a message that " +
               testing::DescribeMatcher<std::string>(message)) {
  detail::describe(arg, result_listener);
  return !arg.has_value() && arg.error().code == code &&
         testing::Value(arg.error().message, message);
}

/// A failed Result with this stable word.
MATCHER_P(FailsWithWord, word, "fails with the word " + std::string(word)) {
  detail::describe(arg, result_listener);
  return !arg.has_value() && arg.error().word == word;
}

/// The value of a Result that must be one. A failed one fails the test and gives an empty value.
template <typename R>
auto value_of(R&& result) {
  using Value = typename std::remove_cvref_t<R>::value_type;
  if (result) return Value(*std::forward<R>(result));
  ADD_FAILURE() << to_string(result.error().code) << ": " << result.error().message;
  if constexpr (std::is_default_constructible_v<Value>) return Value{};
  std::abort();
}

}  // namespace paceline::test
