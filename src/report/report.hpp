// A record and its evaluation as text. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/json_fwd.hpp"
#include "core/result.hpp"
#include "gate/gate.hpp"
#include "record/record.hpp"

namespace paceline::report {

enum class Format { table, markdown, json, jsonl, csv };
std::string_view to_string(Format format);
/// Error invalid_argument lists the known words.
Result<Format> parse_format(std::string_view word);

/// Whether a file with this text was written by `render` in this format, by what it begins with;
/// JSON: by its members.
bool is_result(std::string_view text, Format format);

struct Style {
  std::size_t width = 80;  // columns of the terminal
  bool colour = false;
};

/// The whole result in one format, ending in a newline.
std::string render(const record::Record& record, const gate::Evaluation& evaluation, Format format,
                   const Style& style = {});

/// The complete JSON document: the published fields at the top, our record and evaluation below
/// "paceline".
Json document(const record::Record& record, const gate::Evaluation& evaluation);

/// The JSON Schema (2020-12 or draft-07) of that document.
std::string_view schema();

}  // namespace paceline::report
