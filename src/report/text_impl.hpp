// Text for a grid of character cells. One code point is one column. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::report {

std::size_t display_width(std::string_view text);

enum class Align { left, right };
/// Filled with spaces up to `width`; longer text is cut and ends in "…".
std::string fit(std::string_view text, std::size_t width, Align align);

struct Wrap {
  std::size_t width = 80;
  std::size_t indent = 0;          // of the first line
  std::size_t hanging_indent = 0;  // of the others
};
/// Lines of at most `width` columns, broken at spaces, inside a word only where it is longer.
std::vector<std::string> wrap(std::string_view text, const Wrap& shape);

}  // namespace paceline::report
