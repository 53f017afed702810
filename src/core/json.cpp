#include "core/json.hpp"

#include <format>

namespace paceline {

Result<Json> parse_json(std::string_view text, std::string_view what) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {  // parse_error; out_of_range for 1e999
    std::string_view detail = error.what();
    if (const auto end = detail.find("] "); end != std::string_view::npos) {
      detail.remove_prefix(end + 2);
    }
    return fail(ErrorCode::bad_format, std::format("{}: not valid JSON: {}", what, detail));
  }
}

std::string dump_json(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace paceline
