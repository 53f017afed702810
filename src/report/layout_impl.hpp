// Fits the result table into a number of character columns. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "report/outline_impl.hpp"

namespace paceline::report {

struct PlacedColumn {
  std::size_t index = 0;  // of Outline::columns
  std::size_t gap = 0;    // spaces in front of it
  std::size_t width = 0;
};

struct Layout {
  std::vector<PlacedColumn> columns;
  std::vector<std::string> left_out;  // what there was no room for
};

/// Every column where they fit, with two spaces between them, one between close neighbours where
/// that is needed; else without the least important ones.
Layout lay_out(std::span<const Column> columns, std::span<const Section> sections,
               std::size_t width);

}  // namespace paceline::report
