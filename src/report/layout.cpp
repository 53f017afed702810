#include "report/layout_impl.hpp"

#include <algorithm>

#include "report/text_impl.hpp"

namespace paceline::report {

namespace {

constexpr std::size_t k_gap = 2;
constexpr std::size_t k_narrow_gap = 1;
constexpr int k_always = 9;  // importance of what is never left out

std::vector<PlacedColumn> place_all(std::span<const Column> columns,
                                    std::span<const Section> sections) {
  std::vector<PlacedColumn> placed;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::size_t width = std::max(display_width(columns[i].title), display_width(columns[i].unit));
    for (const Section& section : sections) {
      for (const Row& row : section.rows) width = std::max(width, display_width(row.cells[i]));
    }
    placed.push_back({i, i == 0 ? 0 : k_gap, width});
  }
  return placed;
}

std::size_t total(const std::vector<PlacedColumn>& placed) {
  std::size_t sum = 0;
  for (const PlacedColumn& column : placed) sum += column.gap + column.width;
  return sum;
}

void narrow_gaps(std::span<const Column> columns, std::vector<PlacedColumn>& placed,
                 std::size_t width) {
  for (PlacedColumn& column : placed) {
    if (total(placed) <= width) return;
    if (column.gap == k_gap && columns[column.index].close) column.gap = k_narrow_gap;
  }
}

}  // namespace

Layout lay_out(std::span<const Column> columns, std::span<const Section> sections,
               std::size_t width) {
  Layout layout;
  layout.columns = place_all(columns, sections);
  const auto importance = [&](const PlacedColumn& column) {
    return columns[column.index].importance;
  };
  while (true) {
    std::vector<PlacedColumn> tried = layout.columns;
    narrow_gaps(columns, tried, width);
    const auto least = std::ranges::min_element(layout.columns, {}, importance);
    if (total(tried) <= width || importance(*least) == k_always) {
      layout.columns = std::move(tried);
      break;
    }
    const std::string& meaning = columns[least->index].meaning;
    if (!meaning.empty()) layout.left_out.push_back(meaning);
    layout.columns.erase(least);
  }
  // Only a name that does not fit even so is cut.
  if (const std::size_t needed = total(layout.columns); needed > width) {
    PlacedColumn& first = layout.columns.front();
    first.width -= std::min(first.width - 1, needed - width);
  }
  return layout;
}

}  // namespace paceline::report
