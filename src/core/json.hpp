// JSON values and the one place where the JSON library's exceptions are caught.
#pragma once

#include <cstdint>
#include <format>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/json_fwd.hpp"
#include "core/result.hpp"

namespace paceline {

/// Parses UTF-8 text. `what` names the source in the error (bad_format), with line, column and some
/// hundred bytes of what stands there.
/// More than 512 levels of nesting are refused.
Result<Json> parse_json(std::string_view text, std::string_view what);

/// Text of a value. Bytes that are not UTF-8 become U+FFFD, so this never fails.
std::string dump_json(const Json& value, int indent = -1);

namespace detail {

template <typename T>
constexpr std::string_view wanted_type() {
  if constexpr (std::is_same_v<T, bool>) return "boolean";
  if constexpr (std::is_unsigned_v<T>) return "non-negative integer";
  if constexpr (std::is_integral_v<T>) return "integer";
  if constexpr (std::is_floating_point_v<T>) return "number";
  if constexpr (std::is_same_v<T, std::string>) return "string";
  return "value of another kind";
}

/// Whether the value is of type T as it stands: the library alone bends 1.5, -1 and true.
template <typename T>
bool is_exactly(const Json& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value.is_boolean();
  } else if constexpr (std::is_integral_v<T>) {
    if (value.is_number_unsigned()) return std::in_range<T>(value.get<std::uint64_t>());
    return value.is_number_integer() && std::in_range<T>(value.get<std::int64_t>());
  } else if constexpr (std::is_floating_point_v<T>) {
    return value.is_number();
  } else {
    return true;
  }
}

}  // namespace detail

/// Reads a member: `read<double>(object, "x", "record.host")`. Errors (bad_format) name the path
/// of the member, the type seen and the type wanted. Numbers are not converted: 1.5 and -1 are no
/// std::size_t.
template <typename T>
Result<T> read(const Json& object, std::string_view key, std::string_view where) {
  if (!object.is_object()) {
    return fail(ErrorCode::bad_format,
                std::format("{}: an object is wanted, found {}", where, object.type_name()));
  }
  const auto member = object.find(key);
  if (member == object.end()) {
    return fail(ErrorCode::bad_format, std::format("{}: the member \"{}\" is missing", where, key));
  }
  if (detail::is_exactly<T>(*member)) {
    try {
      return member->template get<T>();
    } catch (const nlohmann::json::exception&) {
      // falls through to the error
    }
  }
  return fail(ErrorCode::bad_format,
              std::format("{}.{}: a {} is wanted, found {}", where, key, detail::wanted_type<T>(),
                          member->is_number() ? dump_json(*member) : member->type_name()));
}

}  // namespace paceline
