// What an arm's numbers do not show in its rows: equality of outputs, guards, where time went.
#include <algorithm>
#include <array>
#include <format>

#include "core/text.hpp"
#include "report/figures_impl.hpp"
#include "report/outline_impl.hpp"
#include "report/text_impl.hpp"

namespace paceline::report {

namespace {

constexpr std::size_t k_shown_differences = 3;

struct Parted {
  const record::Block* block;
  const record::Comparison* comparison;
};

/// The comparisons of the arm whose texts part: those at a numeric tie, or the others.
std::vector<Parted> parted(const record::Record& record, std::string_view arm, bool at_a_tie) {
  std::vector<Parted> found;
  for (const record::Block& block : record.blocks) {
    for (const record::Comparison& comparison : block.comparisons) {
      if (comparison.arm == arm && !comparison.equal && comparison.numeric_tie == at_a_tie) {
        found.push_back({&block, &comparison});
      }
    }
  }
  return found;
}

std::string place_text(const Parted& parted) {
  std::string text = std::format("{} {}", parted.block->fixture, parted.block->prompt);
  if (parted.comparison->first_difference) {
    text += std::format(" at token {}", *parted.comparison->first_difference);
  }
  if (parted.comparison->top_two_margin) {
    text += std::format(" (margin {:.3g})", *parted.comparison->top_two_margin);
  }
  return text;
}

std::string places_text(const std::vector<Parted>& places) {
  std::vector<std::string> shown;
  for (const Parted& place : places) {
    if (shown.size() == k_shown_differences) break;
    shown.push_back(place_text(place));
  }
  if (places.size() > shown.size()) {
    shown.push_back(std::format("{} more", places.size() - shown.size()));
  }
  return join(shown, ", ");
}

Finding outputs(const record::Record& record, const gate::Comparison& overall) {
  std::string text = std::format("{} equal", overall.outputs_equal);
  Tone tone = Tone::neutral;
  if (overall.outputs_tied > 0) {
    tone = Tone::unsure;
    double largest = 0;
    for (const Parted& tie : parted(record, overall.arm, true)) {
      largest = std::max(largest, tie.comparison->top_two_margin.value_or(0));
    }
    text += std::format(", {} parted at a numeric tie (largest margin {:.3g})",
                        overall.outputs_tied, largest);
  }
  if (overall.outputs_different > 0) {
    tone = Tone::bad;
    const std::string places = places_text(parted(record, overall.arm, false));
    text += std::format(", {} DIFFERENT{}{}", overall.outputs_different, places.empty() ? "" : ": ",
                        places);
  }
  return {"outputs", text, tone};
}

std::string guard_label(const gate::Guard& guard) {
  if (guard.name == "p95_latency") return "p95 latency";
  if (guard.name == "ttft") return "TTFT";
  return guard.name;
}

void add_guards(const gate::Comparison& overall, std::vector<Finding>& findings) {
  std::vector<std::string> fine;
  for (const gate::Guard& guard : overall.guards) {
    const std::string limit =
        std::format("{} {:.2f}", guard.name == "sustained" ? "floor" : "limit", guard.limit);
    const std::string ratio = interval_text(guard.ratio, guard.limit);
    if (guard.state == "ok") {
      fine.push_back(std::format("{} {}", guard_label(guard), ratio));
    } else if (guard.state == "broken" || guard.state == "undecided") {
      findings.push_back({"guard",
                          std::format("{} is {}: {}, {}{}{}", guard_label(guard), guard.state,
                                      ratio, limit, guard.note.empty() ? "" : "; ", guard.note),
                          guard.state == "broken" ? Tone::bad : Tone::unsure});
    }
  }
  if (!fine.empty()) findings.push_back({"guards ok", join(fine, ", "), Tone::neutral});
}

/// Mean time per token after the prefill, of the blocks that were measured.
std::optional<double> plain_ms_per_token(const record::Record& record, std::string_view baseline) {
  double nanoseconds = 0;
  double tokens = 0;
  for (const record::Block& block : record.blocks) {
    if (block.status != record::CellStatus::ok) continue;
    for (const record::Sample& sample : block.samples) {
      if (sample.arm != baseline) continue;
      nanoseconds += static_cast<double>(sample.elapsed_ns - sample.prefill_ns);
      for (const record::Round& round : sample.rounds) tokens += round.emitted;
    }
  }
  if (!(tokens > 0)) return std::nullopt;
  return nanoseconds / tokens / 1e6;
}

void add_cost(const record::Record& record, const gate::Comparison& overall,
              std::vector<Finding>& findings) {
  const auto tokens = static_cast<double>(overall.draft.emitted_by_rounds);
  if (!(tokens > 0)) return;
  const gate::CostSplit& cost = overall.cost_speculative;
  const auto each = [&](double sum_ms) { return amount_text(sum_ms / tokens); };
  findings.push_back(
      {"per token",
       std::format("{} ms = draft {} + verify {} + accept {} + other {}; plain {} ms",
                   each(cost.wall_ms - cost.prefill_ms), each(cost.draft_ms), each(cost.verify_ms),
                   each(cost.accept_ms), each(cost.other_ms),
                   amount_text(plain_ms_per_token(record, overall.baseline))),
       Tone::neutral});
}

void add_positions(const gate::Comparison& overall, std::vector<Finding>& findings) {
  if (overall.draft.drafted == 0 || overall.draft.acceptance_at.empty()) return;
  std::vector<std::string> shares;
  for (const auto& share : overall.draft.acceptance_at) shares.push_back(percent_text(share));
  findings.push_back(
      {"accepted",
       std::format("{} at draft position{}, given those before", join(shares, ", "),
                   shares.size() > 1 ? std::format("s 1 to {}", shares.size()) : " 1"),
       Tone::neutral});
}

void add_gaps(const gate::Comparison& overall, std::vector<Finding>& findings) {
  if (!overall.longest_gap_plain_ms && !overall.longest_gap_speculative_ms) return;
  findings.push_back({"gap",
                      std::format("at most {} ms between deliveries, plain {} ms",
                                  amount_text(overall.longest_gap_speculative_ms),
                                  amount_text(overall.longest_gap_plain_ms)),
                      Tone::neutral});
}

void add_unexercised(const gate::Evaluation& evaluation, const gate::Comparison& overall,
                     std::vector<Finding>& findings) {
  std::vector<std::string> scopes;
  for (const gate::Comparison& comparison : evaluation.by_class) {
    if (comparison.arm == overall.arm && comparison.difference == gate::Difference::not_exercised) {
      scopes.push_back(comparison.scope);
    }
  }
  if (scopes.empty()) return;
  findings.push_back({"no drafts",
                      "nothing was drafted in " + join(scopes, ", ") + ": not exercised there",
                      Tone::unsure});
}

/// Notes of the gate that another line or a warning says already.
bool said_elsewhere(std::string_view note) {
  constexpr std::array<std::string_view, 5> k_said{"guard ", "lie in loops", "at a numeric tie",
                                                   "the run is incomplete",
                                                   "warm-up did not become stable"};
  return std::ranges::any_of(k_said, [&](std::string_view part) { return note.contains(part); });
}

}  // namespace

std::vector<Finding> findings_of(const record::Record& record, const gate::Evaluation& evaluation,
                                 const gate::Comparison& overall) {
  std::vector<Finding> findings{outputs(record, overall)};
  add_guards(overall, findings);
  add_cost(record, overall, findings);
  add_positions(overall, findings);
  add_gaps(overall, findings);
  add_unexercised(evaluation, overall, findings);
  if (overall.looped_share > 0) {
    findings.push_back({"loops",
                        percent_text(overall.looped_share) +
                            " of the plain tokens repeat in loops; judged before them",
                        Tone::unsure});
  }
  for (const std::string& note : overall.notes) {
    if (!said_elsewhere(note)) findings.push_back({"note", note, Tone::neutral});
  }
  for (Finding& finding : findings) finding.text = printable(finding.text);
  return findings;
}

}  // namespace paceline::report
