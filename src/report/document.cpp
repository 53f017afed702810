// The complete JSON document and its schema.
#include "core/json.hpp"
#include "embedded_report.hpp"
#include "gate/spec028.hpp"
#include "report/render_impl.hpp"
#include "report/report.hpp"

namespace paceline::report {

namespace {

/// The formulas of the numbers, as text beside them.
Json definitions() {
  return {
      {"speedup",
       "wall time plain / wall time speculative of one prompt over equal tokens; repetitions are "
       "averaged, then the geometric mean over prompts, classes weighing equally; the interval is "
       "over prompts"},
      {"decode_speedup", "as speedup, without prefill and first token"},
      {"ttft_ratio",
       "time to the first token id, speculative / plain, per prompt; then as speedup"},
      {"tokens_per_s",
       "(tokens - 1) / (end - first token) of a sample; the median over samples is given"},
      {"acceptance_rate",
       "accepted / drafted, ratio of sums; accepted tokens behind an end of text or a stop do not "
       "count"},
      {"tokens_per_round", "tokens emitted by rounds / rounds; the first token is no round's"},
      {"rows_per_token", "target rows of rounds / tokens emitted by rounds"},
      {"acceptance_at",
       "by draft position: accepted there / drafted there when all before it were accepted"},
      {"unconditional_at", "by draft position: accepted there / rounds"},
      {"cost", "wall = prefill + draft + verify + accept + other, each measured, in milliseconds"},
      {"longest_gap_ms", "longest time between two deliveries of tokens, from the first token on"},
      {"looped_share",
       "plain tokens inside a loop / all plain tokens; verdicts use what is before"},
      {"outputs",
       "a pair is equal where both arms gave the same token ids; tied where they part and the "
       "different widths of the passes explain it; else different"},
      {"difference",
       "faster: interval above 1; slower: below 1; parity: inside parity_low..parity_high; else "
       "undecided; not_exercised: nothing was drafted"},
      {"verdict",
       "enable: lower bound >= ratio_floor, no guard broken, no class slower than plain; "
       "do_not_enable: upper bound < ratio_floor, or a guard broken, a class slower or outputs "
       "different; else inconclusive; not_benchmarkable: could not be run"},
      {"guards", "p95_latency, ttft and sustained block only where the interval breaks the limit"},
  };
}

}  // namespace

Json document(const record::Record& record, const gate::Evaluation& evaluation) {
  Json json = gate::spec028::report(record, evaluation.policy);
  json["paceline"] = {{"environment_key", record.environment.key()},
                      {"record", record::to_json(record)},
                      {"evaluation", gate::to_json(evaluation)},
                      {"definitions", definitions()}};
  return json;
}

std::string_view schema() { return embedded::embedded_report().front().contents; }

}  // namespace paceline::report
