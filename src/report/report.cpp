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

bool is_result(std::string_view text, Format format) {
  const auto begins_with_a_question = [&](std::string_view lead) {
    return text.starts_with(std::string(lead) + k_question) ||
           text.starts_with(std::string(lead) + k_control_question);
  };
  const auto published = [](const Result<Json>& json) {
    return json && json->is_object() && json->value("benchmark", Json()) == "SPEC-028";
  };
  switch (format) {
    case Format::table:
      return begins_with_a_question("");
    case Format::markdown:
      return begins_with_a_question("## ");
    case Format::csv:
      return text.starts_with(csv_beginning());
    case Format::jsonl: {
      const auto line = parse_json(text.substr(0, text.find('\n')), "line 1");
      return published(line) && line->contains("fixtureID");
    }
    case Format::json: {
      const auto json = parse_json(text, "document");
      return json && json->is_object() && json->contains("paceline") &&
             (*json)["paceline"].is_object() && (*json)["paceline"].contains("record");
    }
  }
  PACELINE_CHECK(false, "a format without a sign");
  return false;
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
