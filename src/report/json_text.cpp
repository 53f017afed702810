// JSON text that people and line-based tools can read.
#include <algorithm>
#include <string>

#include "core/json.hpp"
#include "report/render_impl.hpp"

namespace paceline::report {

namespace {

constexpr std::size_t k_indent = 1;

bool fits_one_line(const Json& value) {
  return value.is_primitive() || value.empty() ||
         (value.is_array() && std::ranges::none_of(value, &Json::is_structured));
}

void write(const Json& value, std::size_t depth, std::string& text) {
  if (fits_one_line(value)) {
    text += dump_json(value);
    return;
  }
  const std::string margin = "\n" + std::string((depth + 1) * k_indent, ' ');
  text += value.is_object() ? '{' : '[';
  bool first = true;
  for (const auto& [key, member] : value.items()) {
    if (!first) text += ',';
    first = false;
    text += margin;
    if (value.is_object()) text += dump_json(Json(key)) + ": ";
    write(member, depth + 1, text);
  }
  text += "\n" + std::string(depth * k_indent, ' ');
  text += value.is_object() ? '}' : ']';
}

}  // namespace

std::string render_json(const Json& document) {
  std::string text;
  write(document, 0, text);
  return text + "\n";
}

}  // namespace paceline::report
