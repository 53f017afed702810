// Measures every arm against its baseline, class by class and over all, and has it judged.
#include <algorithm>
#include <cmath>
#include <format>
#include <map>
#include <utility>

#include "core/text.hpp"
#include "gate/guards_impl.hpp"
#include "gate/judgement_impl.hpp"
#include "gate/pairing_impl.hpp"
#include "gate/statistics.hpp"
#include "gate/summary_impl.hpp"

namespace paceline::gate {
namespace {

using record::Arm;
using record::ArmKind;
using record::Record;

constexpr std::size_t k_named_prompts = 3;  // in a note
constexpr double k_hopeless_acceptance = 0.05;
constexpr std::size_t k_enough_drafts = 100;  // to call an acceptance hopeless
constexpr double k_noisy_spread = 1.25;       // of plain's own speed, 90th over 10th percentile

/// The arms that are compared, with what they are compared with.
struct Contest {
  const Arm* arm = nullptr;
  std::string baseline;
};

std::vector<Contest> contests(const Record& record) {
  std::vector<Contest> result;
  for (std::size_t i = 0; i < record.plan.arms.size(); ++i) {
    const Arm& arm = record.plan.arms[i];
    if (i == 0 && !arm.baseline) continue;
    std::string baseline = arm.baseline.value_or(record.plan.arms.front().id);
    if (baseline != arm.id) result.push_back({.arm = &arm, .baseline = std::move(baseline)});
  }
  return result;
}

/// "why (3: code/p1, code/p2, code/p7)" for each different reason, in order of appearance.
class ReasonCounts {
 public:
  void add(const std::string& reason, const record::Block& block) {
    const auto [position, is_new] = positions_.try_emplace(reason, entries_.size());
    if (is_new) entries_.push_back({.reason = reason, .count = 0, .examples = {}});
    Entry& entry = entries_[position->second];
    ++entry.count;
    if (entry.examples.size() < k_named_prompts) {
      entry.examples.push_back(std::format("{}/{}", block.fixture, block.prompt));
    }
  }

  std::vector<std::string> sentences(std::string_view noun, std::string_view fate) const {
    std::vector<std::string> result;
    for (const Entry& entry : entries_) {
      result.push_back(std::format("{} {}: {} ({}{})", counted(entry.count, noun), fate,
                                   entry.reason, join(entry.examples, ", "),
                                   entry.count > entry.examples.size() ? ", ..." : ""));
    }
    return result;
  }

 private:
  struct Entry {
    std::string reason;
    std::size_t count = 0;
    std::vector<std::string> examples;
  };
  std::map<std::string, std::size_t> positions_;
  std::vector<Entry> entries_;
};

struct ArmSamples {
  Samples plain;
  Samples speculative;
};

ArmSamples samples_of(const Scopes& scopes) {
  ArmSamples result;
  for (const Scope* scope : scopes) {
    for (const Pair& pair : scope->pairs) {
      result.plain.push_back(pair.plain);
      result.speculative.push_back(pair.speculative);
    }
  }
  return result;
}

std::vector<std::vector<double>> strata(const Scopes& scopes, std::optional<double> Pair::* value) {
  std::vector<std::vector<double>> result;
  for (const Scope* scope : scopes) result.push_back(prompt_means(scope->pairs, value));
  return result;
}

void count_pairs(Comparison& comparison, const Scopes& scopes) {
  for (const Scope* scope : scopes) {
    for (const Pair& pair : scope->pairs) {
      ++(pair.left_out.empty() ? comparison.pairs : comparison.pairs_left_out);
      switch (pair.outputs) {
        case Outputs::equal:
          ++comparison.outputs_equal;
          break;
        case Outputs::tied:
          ++comparison.outputs_tied;
          break;
        case Outputs::different:
          ++comparison.outputs_different;
          break;
      }
    }
  }
}

void append(std::vector<std::string>& to, std::vector<std::string> from) {
  for (auto& item : from) to.push_back(std::move(item));
}

/// Blocks and pairs that are not in the speed-up, and why.
void note_losses(Comparison& comparison, const Scopes& scopes) {
  ReasonCounts left_out;
  ReasonCounts not_ok;
  for (const Scope* scope : scopes) {
    for (const Pair& pair : scope->pairs) {
      if (!pair.left_out.empty()) left_out.add(pair.left_out, *pair.block);
    }
    for (const record::Block* block : scope->blocks_not_ok) {
      std::string why = block->reason;
      if (block->status == record::CellStatus::ok) {
        why = "it holds no sample of one of the two arms";
      } else {
        why = std::format("{}{}{}", to_string(block->status), why.empty() ? "" : ": ", why);
      }
      not_ok.add(why, *block);
    }
    if (scope->planned_prompts > 0 && scope->pairs.empty() && scope->blocks_not_ok.empty()) {
      comparison.notes.push_back(std::format("{} was planned but not run", scope->name));
    }
  }
  append(comparison.notes, not_ok.sentences("block", "not used"));
  append(comparison.notes, left_out.sentences("pair", "left out of the speed-up"));
}

/// What a round costs and gives. This, not acceptance, is what decides.
void note_round_cost(Comparison& comparison, const ArmSamples& samples) {
  const auto plain = mean_round(samples.plain);
  const auto speculative = mean_round(samples.speculative);
  if (!plain || !speculative || !comparison.draft.tokens_per_round ||
      comparison.draft.drafted == 0) {
    return;
  }
  comparison.notes.push_back(std::format(
      "a round takes {:.2f} plain steps (draft {:.2f}, verify {:.2f}) and gives {:.2f} tokens",
      speculative->whole_ns / plain->whole_ns, speculative->draft_ns / plain->whole_ns,
      speculative->verify_ns / plain->whole_ns, *comparison.draft.tokens_per_round));
}

void note_acceptance(Comparison& comparison) {
  const DraftStatistics& draft = comparison.draft;
  if (draft.drafted < k_enough_drafts || !draft.acceptance_rate ||
      *draft.acceptance_rate >= k_hopeless_acceptance) {
    return;
  }
  comparison.notes.push_back(
      std::format("{} of {} drafted tokens {} accepted: this drafter does not predict these texts",
                  draft.accepted, draft.drafted, draft.accepted == 1 ? "was" : "were"));
}

/// The baseline's own noise, which widens every interval.
void note_noise(Comparison& comparison, const ArmSamples& samples) {
  std::vector<double> speeds;
  for (const record::Sample* sample : samples.plain) {
    if (const auto speed = decode_tokens_per_s({sample})) speeds.push_back(*speed);
  }
  const auto slow = nearest_rank(speeds, 0.1);
  const auto fast = nearest_rank(speeds, 0.9);
  if (!slow || !fast || !(*slow > 0) || speeds.size() < 4) return;
  if (*fast / *slow <= k_noisy_spread) return;
  comparison.notes.push_back(std::format(
      "plain decoding itself ran at {:.1f} to {:.1f} tokens/s (10th to 90th percentile): a noisy "
      "host widens the interval",
      *slow, *fast));
}

void note_texts(Comparison& comparison) {
  if (comparison.looped_share > 0) {
    comparison.notes.push_back(
        std::format("{:.0f} % of plain's tokens lie in loops; the speed-up is taken before them",
                    std::max(1.0, comparison.looped_share * 100)));
  }
  if (comparison.outputs_tied > 0) {
    comparison.notes.push_back(std::format("{} {} from plain decoding at a numeric tie",
                                           counted(comparison.outputs_tied, "text"),
                                           comparison.outputs_tied == 1 ? "parts" : "part"));
  }
}

/// Repetitions of one prompt give no interval, but their spread can be told.
void note_repetitions(Comparison& comparison, const Scopes& scopes) {
  if (comparison.speedup.n != 1 || comparison.pairs < 2) return;
  std::vector<double> logs;
  for (const Scope* scope : scopes) {
    for (const Pair& pair : scope->pairs) {
      if (pair.log_speedup) logs.push_back(*pair.log_speedup);
    }
  }
  const auto [low, high] = std::ranges::minmax(logs);
  comparison.notes.push_back(std::format("its {} repetitions range from {:.2f}x to {:.2f}x",
                                         logs.size(), std::exp(low), std::exp(high)));
}

void note_record(Comparison& comparison, const Record& record) {
  if (!record.complete) {
    comparison.notes.push_back(std::format("the run is incomplete{}{}",
                                           record.incomplete_reason.empty() ? "" : ": ",
                                           record.incomplete_reason));
  }
  if (record.warmup && record.warmup->slow_first) {
    comparison.notes.push_back("the warm-up's first run was slow, as after a cold start");
  }
  if (record.warmup && !record.warmup->stable) {
    comparison.notes.push_back("the warm-up did not become stable");
  }
}

Comparison measure(const Record& record, const Policy& policy, const Contest& contest,
                   const Scopes& scopes, std::string name) {
  Comparison comparison;
  comparison.arm = contest.arm->id;
  comparison.baseline = contest.baseline;
  comparison.scope = std::move(name);
  const auto estimate = [&](std::optional<double> Pair::* value) {
    return ratio_estimate(strata(scopes, value), policy.confidence, policy.seed);
  };
  comparison.speedup = estimate(&Pair::log_speedup);
  comparison.decode_speedup = estimate(&Pair::log_decode_speedup);
  comparison.ttft_ratio = estimate(&Pair::log_ttft_ratio);

  const ArmSamples samples = samples_of(scopes);
  comparison.plain_tokens_per_s = decode_tokens_per_s(samples.plain);
  comparison.speculative_tokens_per_s = decode_tokens_per_s(samples.speculative);
  comparison.longest_gap_plain_ms = longest_gap_ms(samples.plain);
  comparison.longest_gap_speculative_ms = longest_gap_ms(samples.speculative);
  comparison.draft = draft_statistics(samples.speculative);
  comparison.cost_plain = cost_split(samples.plain);
  comparison.cost_speculative = cost_split(samples.speculative);
  comparison.looped_share = looped_share(samples.plain);
  count_pairs(comparison, scopes);

  comparison.guards.push_back(latency_guard(scopes, policy));
  comparison.guards.push_back(ttft_guard(comparison.ttft_ratio, policy));
  if (comparison.scope == "overall") {
    comparison.guards.push_back(sustained_guard(record, *contest.arm, contest.baseline, policy));
  }

  note_losses(comparison, scopes);
  note_repetitions(comparison, scopes);
  note_texts(comparison);
  note_acceptance(comparison);
  note_round_cost(comparison, samples);
  note_noise(comparison, samples);
  append(comparison.notes, violated_identities(samples.plain));
  append(comparison.notes, violated_identities(samples.speculative));
  return comparison;
}

/// An arm's verdicts, class by class and overall, with the sentence for the latter.
struct ArmEvaluation {
  const Arm* arm = nullptr;
  std::vector<Judged> classes;
  Judged overall;
  std::string sentence;
};

void note_paying_classes(ArmEvaluation& evaluation) {
  std::vector<std::string> paying;
  for (const Judged& judged : evaluation.classes) {
    if (judged.comparison.verdict == Verdict::enable) paying.push_back(judged.comparison.scope);
  }
  Comparison& overall = evaluation.overall.comparison;
  if (paying.empty() || overall.verdict == Verdict::enable || evaluation.classes.size() < 2) return;
  overall.notes.push_back(std::format("by class it pays for: {}", join(paying, ", ")));
}

ArmEvaluation evaluate_arm(const Record& record, const Policy& policy, const Contest& contest) {
  ArmEvaluation result;
  result.arm = contest.arm;
  const std::vector<Scope> scopes = make_scopes(record, *contest.arm, contest.baseline);
  Scopes all;
  for (const Scope& scope : scopes) {
    all.push_back(&scope);
    const Scopes one = {&scope};
    const Circumstances circumstances{.record = record,
                                      .arm = *contest.arm,
                                      .policy = policy,
                                      .log_speedups = strata(one, &Pair::log_speedup),
                                      .classes = {}};
    result.classes.push_back(
        judge(measure(record, policy, contest, one, scope.name), circumstances));
  }
  const Circumstances circumstances{.record = record,
                                    .arm = *contest.arm,
                                    .policy = policy,
                                    .log_speedups = strata(all, &Pair::log_speedup),
                                    .classes = result.classes};
  result.overall = judge(measure(record, policy, contest, all, "overall"), circumstances);
  note_record(result.overall.comparison, record);
  note_paying_classes(result);
  result.sentence = sentence_of(result.overall, circumstances);
  return result;
}

/// One that may be enabled goes first; then texts that are plain's; then the highest lower bound.
auto rank(const ArmEvaluation& evaluation) {
  const Comparison& overall = evaluation.overall.comparison;
  constexpr double none = -1;
  return std::tuple(overall.verdict == Verdict::enable,
                    overall.verdict != Verdict::not_benchmarkable, overall.outputs_different == 0,
                    overall.speedup.low.value_or(none), overall.speedup.value.value_or(none));
}

const ArmEvaluation* recommended(const std::vector<ArmEvaluation>& arms) {
  const ArmEvaluation* best = nullptr;
  for (const ArmEvaluation& candidate : arms) {
    if (candidate.arm->kind == ArmKind::scripted) continue;
    if (best == nullptr || rank(candidate) > rank(*best)) best = &candidate;
  }
  return best;
}

/// Any difference that was found goes first, then any doubt.
Difference control_difference(const std::vector<ArmEvaluation>& arms) {
  if (arms.empty()) return Difference::not_measured;
  for (const Difference wanted :
       {Difference::faster, Difference::slower, Difference::undecided, Difference::not_measured}) {
    for (const ArmEvaluation& arm : arms) {
      if (arm.overall.comparison.difference == wanted) return wanted;
    }
  }
  return Difference::parity;
}

void conclude(Evaluation& evaluation, const Record& record,
              const std::vector<ArmEvaluation>& arms) {
  if (arms.empty()) {
    evaluation.sentence = nothing_compared(record);
    return;
  }
  const ArmEvaluation* spoken_of = recommended(arms);
  if (evaluation.control) {
    evaluation.control_difference = control_difference(arms);
    const auto found = std::ranges::find_if(arms, [&](const ArmEvaluation& arm) {
      return arm.overall.comparison.difference == evaluation.control_difference;
    });
    spoken_of = found == arms.end() ? &arms.front() : &*found;
  } else if (spoken_of == nullptr) {
    spoken_of = &arms.front();  // what-if runs only
  } else if (spoken_of->overall.comparison.speedup.value) {
    evaluation.recommended_arm = spoken_of->arm->id;
  }
  evaluation.verdict = spoken_of->overall.comparison.verdict;
  evaluation.sentence = spoken_of->sentence;
}

}  // namespace

Evaluation evaluate(const Record& record, const Policy& policy) {
  Evaluation evaluation;
  evaluation.policy = policy;
  evaluation.control = record.plan.control;
  std::vector<ArmEvaluation> arms;
  for (const Contest& contest : contests(record)) {
    arms.push_back(evaluate_arm(record, policy, contest));
  }
  conclude(evaluation, record, arms);
  for (const ArmEvaluation& arm : arms) {
    for (const Judged& judged : arm.classes) evaluation.by_class.push_back(judged.comparison);
    evaluation.overall.push_back(arm.overall.comparison);
  }
  return evaluation;
}

}  // namespace paceline::gate
