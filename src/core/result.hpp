// Result<T>: a value or an Error. Failure is data here: it goes into records and over queues.
// Bugs are not errors, see check.hpp.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace paceline {

enum class ErrorCode {
  invalid_argument,  // the caller's words are off: an option, a fixture field
  not_found,
  unsupported,
  bad_format,  // a file's contents are not what its name promises
  io,
  out_of_memory,
  runtime_failed,  // a back end refused or broke off
  busy,
  cancelled,
  timed_out,
  internal,
};

/// The enum value's own word, as used in JSON.
std::string_view to_string(ErrorCode code);

/// What went wrong. `message` names the thing, the value seen and the value wanted. `word` is a
/// stable word for scripts (for example draft_model_tokenizer_mismatch), empty where there is none.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  std::string word = {};

  /// The same error with one more clause in front: "loading draft \"x\": <message>".
  [[nodiscard]] Error in(std::string_view clause) const;
};

template <typename T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
  Result(Error error) : std::expected<T, Error>(std::unexpect, std::move(error)) {}
};

/// Shorthand for a failed Result: `return fail(ErrorCode::io, std::format(...));`
[[nodiscard]] inline Error fail(ErrorCode code, std::string message, std::string word = {}) {
  return Error{code, std::move(message), std::move(word)};
}

}  // namespace paceline

#define PACELINE_CONCAT_INNER(a, b) a##b
#define PACELINE_CONCAT(a, b) PACELINE_CONCAT_INNER(a, b)

/// PACELINE_TRY(auto x, f()): declares x from the Result's value, or returns its error.
#define PACELINE_TRY(declaration, expression) \
  PACELINE_TRY_INNER(PACELINE_CONCAT(paceline_result_, __LINE__), declaration, expression)
#define PACELINE_TRY_INNER(result, declaration, expression) \
  auto result = (expression);                               \
  if (!result) return std::move(result).error();            \
  declaration = *std::move(result)

/// PACELINE_TRY_VOID(f()): returns the error of a Result<void>, if any.
#define PACELINE_TRY_VOID(expression)                                  \
  if (auto paceline_void_result = (expression); !paceline_void_result) \
  return std::move(paceline_void_result).error()
