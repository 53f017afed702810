#include "report/text_impl.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace paceline::report {

namespace {

constexpr std::string_view k_ellipsis = "\xe2\x80\xa6";

bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

/// The byte length of the first `count` characters.
std::size_t prefix_bytes(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if (!starts_character(text[at])) continue;
    if (count == 0) return at;
    --count;
  }
  return at;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, starts_character));
}

std::string fit(std::string_view text, std::size_t width, Align align) {
  const std::size_t columns = display_width(text);
  if (columns > width) {
    if (width == 0) return {};
    return std::string(text.substr(0, prefix_bytes(text, width - 1))) + std::string(k_ellipsis);
  }
  const std::string space(width - columns, ' ');
  return align == Align::left ? std::string(text) + space : space + std::string(text);
}

std::vector<std::string> wrap(std::string_view text, const Wrap& shape) {
  std::vector<std::string> lines;
  std::string line(shape.indent, ' ');
  std::size_t used = shape.indent;
  bool fresh = true;  // nothing but the indent is on the line
  const auto next_line = [&] {
    lines.push_back(std::move(line));
    line = std::string(shape.hanging_indent, ' ');
    used = shape.hanging_indent;
    fresh = true;
  };
  for (std::string_view word : split(text, ' ')) {
    if (word.empty()) continue;
    if (!fresh && used + 1 + display_width(word) > shape.width) next_line();
    while (used + display_width(word) > shape.width && used < shape.width) {
      const std::size_t bytes = prefix_bytes(word, shape.width - used);
      line += word.substr(0, bytes);
      word.remove_prefix(bytes);
      next_line();
    }
    if (!fresh) {
      line += ' ';
      ++used;
    }
    line += word;
    used += display_width(word);
    fresh = false;
  }
  if (!fresh || lines.empty()) lines.push_back(std::move(line));
  return lines;
}

}  // namespace paceline::report
