// The table for terminals.
#include <algorithm>
#include <format>
#include <utility>

#include "report/layout_impl.hpp"
#include "report/render_impl.hpp"
#include "report/text_impl.hpp"

namespace paceline::report {

namespace {

constexpr std::size_t k_narrowest = 60;
constexpr std::size_t k_widest = 200;
constexpr std::size_t k_widest_prose = 100;  // longer lines are hard to read
constexpr std::size_t k_label_width = 14;    // "  longest gap" and a space
constexpr std::string_view k_rule = "\xe2\x94\x80";

enum class Face { normal, strong, faint, good, bad, unsure };

Face face_of(Tone tone) {
  switch (tone) {
    case Tone::neutral:
      return Face::normal;
    case Tone::good:
      return Face::good;
    case Tone::bad:
      return Face::bad;
    case Tone::unsure:
      return Face::unsure;
    case Tone::faint:
      return Face::faint;
  }
  return Face::normal;
}

std::string_view escape_of(Face face) {
  switch (face) {
    case Face::normal:
      return "";
    case Face::strong:
      return "\x1b[1m";
    case Face::faint:
      return "\x1b[2m";
    case Face::good:
      return "\x1b[32m";
    case Face::bad:
      return "\x1b[31m";
    case Face::unsure:
      return "\x1b[33m";
  }
  return "";
}

class Table {
 public:
  Table(const Outline& outline, const Style& style)
      : outline_(outline),
        colour_(style.colour),
        width_(std::clamp(style.width, k_narrowest, k_widest)),
        prose_width_(std::min(width_, k_widest_prose)),
        layout_(lay_out(outline.columns, outline.sections, width_)) {}

  std::string render() && {
    prose(outline_.title, Face::strong);
    for (const Finding& finding : outline_.context) labelled(finding);
    for (const Section& section : outline_.sections) add_section(section);
    add_warnings();
    line("");
    if (!outline_.sections.empty()) {
      prose(outline_.definitions, Face::faint);
      if (!layout_.left_out.empty()) prose(left_out_text(), Face::faint);
      line("");
    }
    prose(outline_.sentence,
          outline_.tone == Tone::neutral ? Face::strong : face_of(outline_.tone));
    return std::move(text_);
  }

 private:
  void line(std::string_view content, Face face = Face::normal) {
    add(content, face);
    text_ += '\n';
  }

  /// Spaces at the end of a line are of no use.
  void add(std::string_view content, Face face) {
    const std::string_view escape = escape_of(face);
    if (!colour_ || escape.empty() || content.empty()) {
      text_ += content;
    } else {
      text_ += std::format("{}{}\x1b[0m", escape, content);
    }
  }

  void prose(std::string_view content, Face face) {
    for (const std::string& part : wrap(content, {prose_width_, 0, 0})) line(part, face);
  }

  void labelled(const Finding& finding) {
    const auto parts = wrap(finding.text, {prose_width_, k_label_width, k_label_width});
    for (std::size_t i = 0; i < parts.size(); ++i) {
      add(i == 0 ? fit("  " + finding.label, k_label_width, Align::left)
                 : std::string(k_label_width, ' '),
          Face::faint);
      line(std::string_view(parts[i]).substr(k_label_width), face_of(finding.tone));
    }
  }

  std::size_t table_width() const {
    std::size_t sum = 0;
    for (const PlacedColumn& column : layout_.columns) sum += column.gap + column.width;
    return sum;
  }

  void rule() {
    std::string content;
    for (std::size_t i = 0; i < table_width(); ++i) content += k_rule;
    line(content, Face::faint);
  }

  struct Cell {
    std::string text;
    Face face;
  };

  /// `cell_of(column)` for every column that is shown.
  void cells(const auto& cell_of) {
    std::string pending;  // spaces that are written only if something follows
    for (const PlacedColumn& place : layout_.columns) {
      const Column& column = outline_.columns[place.index];
      const Cell cell = cell_of(place.index);
      const std::string filled =
          fit(cell.text, place.width, column.right ? Align::right : Align::left);
      const std::size_t end = filled.find_last_not_of(' ');
      pending += std::string(place.gap, ' ');
      if (end == std::string::npos) {
        pending += filled;
        continue;
      }
      text_ += pending;
      add(std::string_view(filled).substr(0, end + 1), cell.face);
      pending = filled.substr(end + 1);
    }
    text_ += '\n';
  }

  void add_section(const Section& section) {
    line("");
    const auto parts = wrap(section.arm + ": " + section.description, {prose_width_, 0, 0});
    for (const std::string& part : parts) line(part, Face::strong);
    line("");
    cells([&](std::size_t i) { return Cell{outline_.columns[i].title, Face::faint}; });
    cells([&](std::size_t i) { return Cell{outline_.columns[i].unit, Face::faint}; });
    rule();
    for (const Row& row : section.rows) {
      if (row.overall && section.rows.size() > 1) rule();
      add_row(row);
    }
    line("");
    std::string last;  // the same label is written once
    for (const Finding& finding : section.findings) {
      labelled({finding.label == last ? "" : finding.label, finding.text, finding.tone});
      last = finding.label;
    }
  }

  void add_row(const Row& row) {
    constexpr std::size_t k_verdict_column = 8;
    cells([&](std::size_t i) {
      const Face plain = row.overall ? Face::strong : Face::normal;
      return Cell{row.cells[i], i == k_verdict_column ? face_of(row.tone) : plain};
    });
  }

  void add_warnings() {
    if (outline_.warnings.empty()) return;
    line("");
    for (const record::Warning& warning : outline_.warnings) {
      labelled({"warning", warning.cause, Tone::unsure});
      if (!warning.hint.empty()) labelled({"  hint", warning.hint, Tone::neutral});
    }
  }

  std::string left_out_text() const {
    std::string text = std::format("No room at {} columns for: ", width_);
    for (std::size_t i = 0; i < layout_.left_out.size(); ++i) {
      text += (i == 0 ? "" : ", ") + layout_.left_out[i];
    }
    return text + ".";
  }

  const Outline& outline_;
  bool colour_;
  std::size_t width_;
  std::size_t prose_width_;
  Layout layout_;
  std::string text_ = {};
};

}  // namespace

std::string render_table(const Outline& outline, const Style& style) {
  return Table(outline, style).render();
}

}  // namespace paceline::report
