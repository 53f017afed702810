#include "report/outline_impl.hpp"

#include <algorithm>
#include <format>

#include "core/text.hpp"
#include "report/figures_impl.hpp"
#include "report/text_impl.hpp"

namespace paceline::report {

namespace {

std::string_view verdict_word(const gate::Comparison& comparison, bool control) {
  return control ? to_string(comparison.difference) : to_string(comparison.verdict);
}

Row row_of(const gate::Comparison& comparison, const gate::Evaluation& evaluation) {
  const double floor =
      evaluation.control ? evaluation.policy.parity_low : evaluation.policy.ratio_floor;
  Row row;
  row.cells = {printable(comparison.scope),
               std::format("{}", comparison.speedup.n),
               amount_text(comparison.plain_tokens_per_s),
               amount_text(comparison.speculative_tokens_per_s),
               interval_text(comparison.speedup, floor),
               percent_text(comparison.draft.acceptance_rate),
               amount_text(comparison.draft.tokens_per_round),
               ratio_text(comparison.ttft_ratio.value, evaluation.policy.ttft_guard),
               std::string(verdict_word(comparison, evaluation.control))};
  if (!evaluation.control) row.cells.emplace_back(to_string(comparison.difference));
  row.tone = evaluation.control ? tone_of(comparison.difference) : tone_of(comparison.verdict);
  return row;
}

std::string describe(const record::Arm& arm) {
  std::string text;
  switch (arm.kind) {
    case record::ArmKind::plain:
      return "plain decoding again";
    case record::ArmKind::lookup:
      text = "prompt lookup";
      break;
    case record::ArmKind::draft_model:
      text = std::format("draft model {}", arm.draft_model.value_or("without a name"));
      break;
    case record::ArmKind::scripted:
      text = "what-if, acceptance forced";
      if (arm.scripted_acceptance) text += std::format(" to {:.2f}", *arm.scripted_acceptance);
      break;
  }
  text += std::format(", up to {} a round", counted(arm.num_draft_tokens, "token"));
  if (arm.draft_confidence) {
    text += std::format(", none below a probability of {:.2f}", *arm.draft_confidence);
  }
  return text;
}

Section section_of(const record::Record& record, const gate::Evaluation& evaluation,
                   const gate::Comparison& overall) {
  Section section;
  section.arm = printable(overall.arm);
  const auto arm = std::ranges::find(record.plan.arms, overall.arm, &record::Arm::id);
  if (arm != record.plan.arms.end()) section.description = printable(describe(*arm));
  section.description += section.description.empty() ? "against " : ", against ";
  section.description += printable(overall.baseline);
  for (const gate::Comparison& comparison : evaluation.by_class) {
    if (comparison.arm == overall.arm) section.rows.push_back(row_of(comparison, evaluation));
  }
  section.rows.push_back(row_of(overall, evaluation));
  section.rows.back().overall = true;
  section.findings = findings_of(record, evaluation, overall);
  return section;
}

std::string title_of(const record::Record& record, const gate::Evaluation& evaluation) {
  std::string title = evaluation.control ? k_control_question : k_question;
  const std::string& version = record.environment.paceline_version;
  const std::string date = date_text(record.generated_at_unix_seconds);
  if (!version.empty()) title += std::format(" paceline {}", printable(version));
  if (date != k_absent) title += std::format("{} {}", version.empty() ? "" : ",", date);
  return title;
}

std::string definitions_line(const gate::Evaluation& evaluation) {
  return std::format(
      "speed-up: wall time plain / speculative, geometric mean over n prompts, {:.3g} % interval; "
      "acc. rate: accepted / drafted tokens; tok/round: tokens / rounds; TTFT: time to the first "
      "token, speculative / plain; tok/s: median behind it",
      100 * evaluation.policy.confidence);
}

}  // namespace

Tone tone_of(gate::Verdict verdict) {
  switch (verdict) {
    case gate::Verdict::enable:
      return Tone::good;
    case gate::Verdict::do_not_enable:
    case gate::Verdict::not_benchmarkable:
      return Tone::bad;
    case gate::Verdict::inconclusive:
      return Tone::unsure;
  }
  return Tone::neutral;
}

Tone tone_of(gate::Difference difference) {
  switch (difference) {
    case gate::Difference::parity:
      return Tone::good;
    case gate::Difference::faster:
    case gate::Difference::slower:
    case gate::Difference::not_measured:
      return Tone::bad;
    case gate::Difference::undecided:
    case gate::Difference::not_exercised:
      return Tone::unsure;
  }
  return Tone::neutral;
}

std::vector<Column> result_columns(const gate::Evaluation& evaluation) {
  const std::string interval = std::format("[{:.3g} %]", 100 * evaluation.policy.confidence);
  std::vector<Column> columns{
      {"class", "", false, false, 9, "class"},
      {"n", "", true, true, 3, "n"},
      {"plain", "tok/s", true, false, 6, "plain tok/s"},
      {evaluation.control ? "again" : "spec", "tok/s", true, true, 5, "spec tok/s"},
      {"speed-up", interval, false, false, 9, "speed-up"},
      {"acc.", "rate", true, false, 4, "acceptance rate"},
      {"tok/", "round", true, true, 2, "tokens per round"},
      {"TTFT", "ratio", true, true, 1, "TTFT ratio"},
      {evaluation.control ? "difference" : "verdict", "", false, false, 9, "verdict"},
  };
  if (!evaluation.control) columns.push_back({"difference", "", false, false, 0, ""});
  return columns;
}

Outline make_outline(const record::Record& record, const gate::Evaluation& evaluation) {
  Outline outline;
  outline.title = title_of(record, evaluation);
  outline.context = context_of(record);
  outline.columns = result_columns(evaluation);
  for (const gate::Comparison& overall : evaluation.overall) {
    outline.sections.push_back(section_of(record, evaluation, overall));
  }
  for (const record::Warning& warning : record.warnings) {
    outline.warnings.push_back(
        {printable(warning.id), printable(warning.cause), printable(warning.hint)});
  }
  outline.definitions = definitions_line(evaluation);
  outline.sentence = printable(evaluation.sentence);
  outline.tone =
      evaluation.control ? tone_of(evaluation.control_difference) : tone_of(evaluation.verdict);
  return outline;
}

}  // namespace paceline::report
