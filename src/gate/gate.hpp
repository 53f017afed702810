// From a record and a policy to a verdict with reasons. Pure: same input, same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_fwd.hpp"
#include "record/record.hpp"

namespace paceline::gate {

/// Is the arm faster than plain?
enum class Difference { faster, slower, parity, undecided, not_exercised, not_measured };
/// Should it be switched on?
enum class Verdict { enable, do_not_enable, inconclusive, not_benchmarkable };
std::string_view to_string(Difference difference);
std::string_view to_string(Verdict verdict);

/// Thresholds. Defaults are those of docs/methodology.md.
struct Policy {
  double ratio_floor = 1.15;           // lower bound of the speed-up must reach it
  double acceptance_floor = 0.30;      // spec028 evaluation only
  double spec028_latency_limit = 1.0;  // spec028 evaluation: p95 latency ratio
  double spec028_ttft_limit = 1.0;     // spec028 evaluation: p95 TTFT ratio
  double latency_guard = 1.10;         // ours: p95 latency ratio that is clearly broken
  double ttft_guard = 1.10;
  double confidence = 0.95;
  double parity_low = 0.97;
  double parity_high = 1.03;
  std::optional<double> sustained_ratio_floor = {};  // follows ratio_floor unless set
  std::uint64_t seed = 1;                            // of the bootstrap
};

/// An estimate with its interval. Absent numbers come with a reason.
struct Estimate {
  std::optional<double> value;
  std::optional<double> low;
  std::optional<double> high;
  std::size_t n = 0;   // clusters (prompts)
  std::string method;  // "t", "bootstrap-t", "bootstrap" (percentiles), "none"
  std::string reason;  // why a number is absent
};

struct Guard {
  std::string name;   // p95_latency, ttft, sustained
  std::string state;  // ok, broken, undecided, not_measured
  Estimate ratio;     // speculative over plain
  double limit = 0;
  std::string note;
};

/// Sums over an arm's samples. acceptance rate = accepted / drafted;
/// tokens per round = tokens emitted by rounds / rounds. By position: `acceptance_at[i]` is the
/// share of tokens drafted at position i that were accepted when all before them were,
/// `unconditional_at[i]` the share of all rounds that accepted a token at position i.
struct DraftStatistics {
  std::uint64_t rounds = 0;
  std::uint64_t drafted = 0;
  std::uint64_t accepted = 0;
  std::uint64_t emitted_by_rounds = 0;
  std::uint64_t emitted = 0;
  std::uint64_t target_forwards = 0;
  std::uint64_t target_rows = 0;
  std::optional<double> acceptance_rate;
  std::optional<double> tokens_per_round;
  std::optional<double> rows_per_token;  // target rows of rounds per token emitted by rounds
  std::vector<std::optional<double>> acceptance_at;     // conditional, by position
  std::vector<std::optional<double>> unconditional_at;  // by position
};

/// Where the wall time of an arm went, in milliseconds, summed over its samples. The five parts
/// sum to `wall_ms`; where the record's own parts do not, a note says so.
struct CostSplit {
  double wall_ms = 0, prefill_ms = 0, draft_ms = 0, verify_ms = 0, accept_ms = 0, other_ms = 0;
};

/// One arm against its baseline, over one class or over all of them.
struct Comparison {
  std::string arm;
  std::string baseline;
  std::string scope;  // content class, fixture id of class "custom", or "overall"
  Verdict verdict = Verdict::not_benchmarkable;
  Difference difference = Difference::not_measured;
  Estimate speedup;         // wall time ratio plain / speculative over equal tokens
  Estimate decode_speedup;  // the same without prefill and first token
  Estimate ttft_ratio;      // speculative / plain, first token id
  std::optional<double> plain_tokens_per_s;  // median over samples, decode
  std::optional<double> speculative_tokens_per_s;
  std::optional<double> longest_gap_plain_ms;
  std::optional<double> longest_gap_speculative_ms;
  DraftStatistics draft;
  CostSplit cost_plain;
  CostSplit cost_speculative;
  std::size_t pairs = 0;           // that entered the speed-up
  std::size_t pairs_left_out = 0;  // with reasons in `notes`
  std::size_t outputs_equal = 0;
  std::size_t outputs_tied = 0;  // parted at a numeric tie
  std::size_t outputs_different = 0;
  double looped_share = 0;                   // tokens inside a loop over all plain tokens
  std::optional<std::size_t> further_pairs;  // that would probably decide an inconclusive one
  std::vector<Guard> guards;
  std::vector<std::string> reasons;  // of the verdict, plain sentences
  std::vector<std::string> notes;
};

/// A control run has differences only: `verdict` is null in its JSON and means nothing.
/// A scripted arm is a what-if run: its verdict is `inconclusive` at best, it is never recommended.
struct Evaluation {
  Policy policy;
  std::vector<Comparison> by_class;  // all scopes of the first arm, then of the next
  std::vector<Comparison> overall;   // one per arm that has a baseline
  /// Of several, one that may be enabled goes first, then the highest lower bound. Empty: none.
  std::string recommended_arm;
  Verdict verdict = Verdict::not_benchmarkable;  // of the recommended arm
  std::string sentence;                          // the verdict as one plain sentence
  bool control = false;                          // plain against plain: speaks of the harness
  Difference control_difference = Difference::not_measured;
};

Evaluation evaluate(const record::Record& record, const Policy& policy);
Json to_json(const Evaluation& evaluation);

/// Where a text falls into a loop that it never leaves. A loop has a period p of at most
/// `k_longest_period` tokens, is there at least `k_shortest_repeats` times, covers at least
/// `k_shortest_loop` tokens and reaches the end of the text (the last turn may be cut). The onset
/// is the first token of its second turn: the first that merely repeats what is p tokens before
/// it, at the earliest over all periods. Repetition that the text leaves again is not a loop, it
/// is text. None: no loop. O(size * k_longest_period).
inline constexpr std::size_t k_longest_period = 48;
inline constexpr std::size_t k_shortest_repeats = 3;
inline constexpr std::size_t k_shortest_loop = 16;
std::optional<std::size_t> loop_onset(const std::vector<std::int32_t>& tokens);

}  // namespace paceline::gate
