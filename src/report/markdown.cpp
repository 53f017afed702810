// The same content as GitHub-flavoured Markdown.
#include <format>
#include <string_view>

#include "report/render_impl.hpp"

namespace paceline::report {

namespace {

/// Text that Markdown shows as it is.
std::string plain(std::string_view text) {
  constexpr std::string_view k_special = "\\`*_<>[]|#~";
  std::string out;
  for (const char c : text) {
    if (k_special.contains(c)) out += '\\';
    out += c;
  }
  return out;
}

std::string heading(const Column& column) {
  const bool joined = column.unit.empty() || column.title.ends_with('/');
  return plain(column.title + (joined ? "" : " ") + column.unit);
}

std::string row_text(const Row& row) {
  std::string text = "|";
  for (const std::string& cell : row.cells) {
    text += row.overall ? std::format(" **{}** |", plain(cell)) : std::format(" {} |", plain(cell));
  }
  return text + "\n";
}

std::string list_item(const Finding& finding) {
  return std::format("- **{}**: {}\n", plain(finding.label), plain(finding.text));
}

std::string section_text(const Outline& outline, const Section& section) {
  std::string text =
      std::format("\n### {}\n\n{}\n\n|", plain(section.arm), plain(section.description));
  for (const Column& column : outline.columns) text += std::format(" {} |", heading(column));
  text += "\n|";
  for (const Column& column : outline.columns) text += column.right ? " ---: |" : " --- |";
  text += "\n";
  for (const Row& row : section.rows) text += row_text(row);
  text += "\n";
  for (const Finding& finding : section.findings) text += list_item(finding);
  return text;
}

}  // namespace

std::string render_markdown(const Outline& outline) {
  std::string text =
      std::format("## {}\n\n**{}**\n\n", plain(outline.title), plain(outline.sentence));
  for (const Finding& finding : outline.context) text += list_item(finding);
  for (const Section& section : outline.sections) text += section_text(outline, section);
  if (!outline.warnings.empty()) text += "\n### Warnings\n\n";
  for (const record::Warning& warning : outline.warnings) {
    text +=
        list_item({warning.id, warning.cause + (warning.hint.empty() ? "" : "; ") + warning.hint,
                   Tone::neutral});
  }
  if (!outline.sections.empty()) text += std::format("\n{}\n", plain(outline.definitions));
  return text;
}

}  // namespace paceline::report
