#include "report/report.hpp"

#include <array>
#include <format>

#include "core/check.hpp"
#include "core/json.hpp"
#include "core/text.hpp"
#include "gate/spec028.hpp"
#include "report/outline_impl.hpp"
#include "report/render_impl.hpp"

namespace paceline::report {

namespace {

constexpr std::array k_formats{Format::table, Format::markdown, Format::json, Format::jsonl,
                               Format::csv};

}  // namespace

std::string_view to_string(Format format) {
  switch (format) {
    case Format::table:
      return "table";
    case Format::markdown:
      return "markdown";
    case Format::json:
      return "json";
    case Format::jsonl:
      return "jsonl";
    case Format::csv:
      return "csv";
  }
  PACELINE_CHECK(false, "a format without a word");
  return {};
}

Result<Format> parse_format(std::string_view word) {
  std::vector<std::string> known;
  for (const Format format : k_formats) {
    if (to_string(format) == word) return format;
    known.emplace_back(to_string(format));
  }
  return fail(ErrorCode::invalid_argument,
              std::format("unknown format \"{}\"; known are {}", escape(word), join(known, ", ")));
}

std::string render_jsonl(const record::Record& record, const gate::Evaluation& evaluation) {
  std::string text;
  const Json published = gate::spec028::report(record, evaluation.policy);
  for (const Json& fixture : published.at("fixtures")) {
    const Json line = gate::spec028::jsonl_line(record, evaluation.policy, fixture.at("fixtureID"),
                                                fixture.at("arm"));
    text += dump_json(line) + "\n";
  }
  return text;
}

std::string render(const record::Record& record, const gate::Evaluation& evaluation, Format format,
                   const Style& style) {
  switch (format) {
    case Format::table:
      return render_table(make_outline(record, evaluation), style);
    case Format::markdown:
      return render_markdown(make_outline(record, evaluation));
    case Format::json:
      return render_json(document(record, evaluation));
    case Format::jsonl:
      return render_jsonl(record, evaluation);
    case Format::csv:
      return render_csv(record);
  }
  PACELINE_CHECK(false, "a format without a renderer");
  return {};
}

}  // namespace paceline::report
