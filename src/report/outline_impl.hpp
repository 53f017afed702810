// What a person is told about a record, before it is laid out: the terminal's table and the
// Markdown page show the same outline. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gate/gate.hpp"
#include "record/record.hpp"

namespace paceline::report {

enum class Tone { neutral, good, bad, unsure, faint };

struct Column {
  std::string title;  // two lines of a header
  std::string unit;
  bool right = true;    // aligned
  bool close = false;   // may stand close to its left neighbour
  int importance = 0;   // where space is short the lowest goes first
  std::string meaning;  // named where the column is left out; empty: not missed
};

/// The columns of the result table; every row has one cell for each.
std::vector<Column> result_columns(const gate::Evaluation& evaluation);

struct Row {
  std::vector<std::string> cells;
  Tone tone = Tone::neutral;  // of the verdict
  bool overall = false;
};

/// One thing worth knowing beside the rows.
struct Finding {
  std::string label;
  std::string text;
  Tone tone = Tone::neutral;
};

/// One arm.
struct Section {
  std::string arm;
  std::string description;
  std::vector<Row> rows;
  std::vector<Finding> findings;
};

/// What a title begins with; results are recognised by it.
inline constexpr const char* k_question = "Does speculative decoding pay here?";
inline constexpr const char* k_control_question = "Is plain decoding as fast as itself here?";

struct Outline {
  std::string title;
  std::vector<Finding> context;
  std::vector<Column> columns;
  std::vector<Section> sections;
  std::vector<record::Warning> warnings;
  std::string definitions;
  std::string sentence;
  Tone tone = Tone::neutral;  // of the sentence
};

Outline make_outline(const record::Record& record, const gate::Evaluation& evaluation);

/// The parts of make_outline that have a file of their own.
std::vector<Finding> context_of(const record::Record& record);
std::vector<Finding> findings_of(const record::Record& record, const gate::Evaluation& evaluation,
                                 const gate::Comparison& overall);
Tone tone_of(gate::Verdict verdict);
Tone tone_of(gate::Difference difference);

}  // namespace paceline::report
