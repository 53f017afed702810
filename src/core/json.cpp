#include "core/json.hpp"

#include <format>

#include "core/text.hpp"

namespace paceline {

namespace {

constexpr std::size_t k_deepest = 512;  // printing and comparing values recurse

/// Whether brackets outside of strings ever nest deeper than the limit.
bool is_too_deep(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > k_deepest) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view what) {
  if (is_too_deep(text)) {
    return fail(
        ErrorCode::bad_format,
        std::format("{}: nested deeper than {} levels, which is the limit here", what, k_deepest));
  }
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {      // parse_error; out_of_range for 1e999
    constexpr std::size_t k_shown_bytes = 300;  // it quotes the text up to where it went wrong
    std::string detail = error.what();
    if (const auto end = detail.find("] "); end != std::string::npos) detail.erase(0, end + 2);
    if (detail.size() > k_shown_bytes) {
      detail.resize(whole_utf8_prefix(std::string_view(detail).substr(0, k_shown_bytes)));
      detail += "...";
    }
    detail = to_valid_utf8(detail);
    return fail(ErrorCode::bad_format, std::format("{}: not valid JSON: {}", what, detail));
  }
}

std::string dump_json(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace paceline
