#include "core/result.hpp"

#include <format>

namespace paceline {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::bad_format:
      return "bad_format";
    case ErrorCode::io:
      return "io";
    case ErrorCode::out_of_memory:
      return "out_of_memory";
    case ErrorCode::runtime_failed:
      return "runtime_failed";
    case ErrorCode::busy:
      return "busy";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::timed_out:
      return "timed_out";
    case ErrorCode::internal:
      return "internal";
  }
  return "internal";
}

Error Error::in(std::string_view clause) const {
  return Error{code, std::format("{}: {}", clause, message), word};
}

}  // namespace paceline
