// The canary's report for people.
#include <algorithm>
#include <format>
#include <vector>

#include "compat/canary.hpp"
#include "core/text.hpp"

namespace paceline::compat {

namespace {

/// Cases of one stage and arm, summed up.
struct Row {
  CanaryStage stage{};
  std::string arm;
  std::size_t least_depth = 0;
  std::size_t most_depth = 0;
  std::size_t cases = 0;
  std::size_t equal = 0;
  std::size_t ties = 0;
  std::size_t different = 0;
  std::size_t not_run = 0;
  std::size_t drafted = 0;
  std::size_t accepted = 0;
};

std::vector<Row> sum_up(const CanaryReport& report) {
  std::vector<Row> rows;
  for (const CanaryCase& c : report.cases) {
    auto row = std::ranges::find_if(
        rows, [&](const Row& r) { return r.stage == c.stage && r.arm == c.arm; });
    if (row == rows.end()) {
      rows.push_back({.stage = c.stage, .arm = c.arm, .least_depth = c.depth});
      row = std::prev(rows.end());
    }
    row->least_depth = std::min(row->least_depth, c.depth);
    row->most_depth = std::max(row->most_depth, c.depth);
    ++row->cases;
    row->equal += c.outcome == CanaryOutcome::equal ? 1 : 0;
    row->ties += c.outcome == CanaryOutcome::numeric_tie ? 1 : 0;
    row->different += c.outcome == CanaryOutcome::different ? 1 : 0;
    row->not_run += c.outcome == CanaryOutcome::not_run ? 1 : 0;
    row->drafted += c.drafted;
    row->accepted += c.accepted;
  }
  return rows;
}

std::string depths(const Row& row) {
  if (row.most_depth == 0) return "-";
  if (row.least_depth == row.most_depth) return std::format("{}", row.most_depth);
  return std::format("{}-{}", row.least_depth, row.most_depth);
}

/// Breaks at spaces, with `indent` in front of every line but the first.
std::string wrap(const std::string& text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t column = 0;
  const std::string shown = printable(text);  // texts of tokens and names stand in it
  for (const std::string_view word : split(shown, ' ')) {
    if (column > 0 && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out + "\n";
}

std::string token_words(const std::optional<Token>& token, const std::string& text) {
  return token ? std::format("{} \"{}\"", to_int(*token), escape(text, 40))
               : std::string("the text's end");
}

std::string number(const std::optional<double>& value) {
  return value ? std::format("{:.3g}", *value) : "unknown";
}

std::string describe(const CanaryCase& c) {
  std::string text =
      std::format("  {} {}, {} depth {}, temperature {:g}, {}: {}", to_string(c.stage),
                  to_string(c.outcome), c.arm, c.depth, c.temperature, c.prompt, c.reason);
  if (!c.detail.empty()) text += std::format(" ({})", c.detail);
  if (!c.difference) return text;
  const CanaryDifference& d = *c.difference;
  text += std::format("; at token {}: plain {}, speculative {}", d.position,
                      token_words(d.plain, d.plain_text),
                      token_words(d.speculative, d.speculative_text));
  if (!d.deviation) return text;
  text +=
      std::format("; top-two margin {}, logits put through again {} apart, wide passes alone {}",
                  number(d.top_two_margin), number(d.deviation), number(d.width_noise));
  return text;
}

}  // namespace

std::string canary_table(const CanaryReport& report, std::size_t width) {
  std::string out = std::format("{:<12}{:<14}{:>6}{:>7}{:>7}{:>6}{:>7}{:>10}\n", "stage", "arm",
                                "depth", "cases", "equal", "ties", "diff.", "accepted");
  out += std::string(std::min<std::size_t>(width, 69), '-') + "\n";
  bool any_without_drafts = false;
  for (const Row& row : sum_up(report)) {
    const bool without_drafts = row.drafted == 0 && row.most_depth > 0 && row.cases > row.not_run &&
                                row.stage != CanaryStage::drafter;
    any_without_drafts = any_without_drafts || without_drafts;
    const std::string accepted =
        without_drafts ? "no drafts"
        : row.drafted == 0 || row.stage == CanaryStage::drafter
            ? "-"
            : std::format("{:.0f} %", 100.0 * static_cast<double>(row.accepted) /
                                          static_cast<double>(row.drafted));
    out += std::format("{:<12}{:<14}{:>6}{:>7}{:>7}{:>6}{:>7}{:>10}{}\n", to_string(row.stage),
                       row.arm, depths(row), row.cases, row.equal, row.ties, row.different,
                       accepted, row.not_run > 0 ? std::format("  {} not run", row.not_run) : "");
  }
  out += "\n";
  for (const CanaryCase& c : report.cases) {
    if (c.reason.empty()) continue;
    out += wrap(describe(c), width, 4);
  }
  for (const CanarySkip& skip : report.skipped) {
    out += wrap(std::format("  left out: {}: {}", to_string(skip.stage), skip.reason), width, 4);
  }
  if (!report.complete) {
    out += wrap(std::format("  not complete: {}", report.incomplete_reason), width, 4);
  }
  if (any_without_drafts) {
    out += wrap(
        "  no drafts: nothing was proposed in these texts, so that they are equal shows nothing",
        width, 4);
  }
  if (report.result() == CanaryResult::not_exercised) {
    out += wrap(
        "  no text that was compared had a single drafted token, so that they are equal shows "
        "nothing: the texts were too short. Give the target more room (--max-context-tokens, "
        "--max-tokens) or draft less (--num-draft-tokens)",
        width, 4);
  }
  return out + std::format("\nresult: {}\n", to_string(report.result()));
}

}  // namespace paceline::compat
