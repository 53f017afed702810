// One function per format, one file each.
#pragma once

#include <string>

#include "core/json_fwd.hpp"
#include "gate/gate.hpp"
#include "record/record.hpp"
#include "report/outline_impl.hpp"
#include "report/report.hpp"

namespace paceline::report {

std::string render_table(const Outline& outline, const Style& style);
std::string render_markdown(const Outline& outline);
/// Indented, with arrays of numbers on one line: raw rounds stay small and readable.
std::string render_json(const Json& document);
/// One row per sample; a block without samples has one row that tells why.
std::string render_csv(const record::Record& record);
/// The columns of a block, which the first line begins with.
std::string csv_beginning();
/// One line per fixture and speculative arm, in the published words.
std::string render_jsonl(const record::Record& record, const gate::Evaluation& evaluation);

}  // namespace paceline::report
