// The evaluation as JSON: snake_case, unknown numbers are null.
#include <cmath>
#include <type_traits>

#include "core/json.hpp"
#include "gate/gate.hpp"

namespace paceline::gate {
namespace {

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

template <typename T>
Json number(const std::optional<T>& value) {
  if (!value) return nullptr;
  if constexpr (std::is_floating_point_v<T>) {
    return number(*value);
  } else {
    return *value;
  }
}

Json text(const std::string& value) { return value.empty() ? Json(nullptr) : Json(value); }

Json numbers(const std::vector<std::optional<double>>& values) {
  Json list = Json::array();
  for (const auto& value : values) list.push_back(number(value));
  return list;
}

Json to_json(const Policy& policy) {
  return {
      {"ratio_floor", number(policy.ratio_floor)},
      {"acceptance_floor", number(policy.acceptance_floor)},
      {"spec028_latency_limit", number(policy.spec028_latency_limit)},
      {"spec028_ttft_limit", number(policy.spec028_ttft_limit)},
      {"latency_guard", number(policy.latency_guard)},
      {"ttft_guard", number(policy.ttft_guard)},
      {"confidence", number(policy.confidence)},
      {"parity_low", number(policy.parity_low)},
      {"parity_high", number(policy.parity_high)},
      {"sustained_ratio_floor", number(policy.sustained_ratio_floor.value_or(policy.ratio_floor))},
      {"seed", policy.seed}};
}

Json to_json(const Estimate& estimate) {
  return {{"value", number(estimate.value)}, {"low", number(estimate.low)},
          {"high", number(estimate.high)},   {"n", estimate.n},
          {"method", text(estimate.method)}, {"reason", text(estimate.reason)}};
}

Json to_json(const Guard& guard) {
  return {{"name", guard.name},
          {"state", guard.state},
          {"ratio", to_json(guard.ratio)},
          {"limit", number(guard.limit)},
          {"note", text(guard.note)}};
}

Json to_json(const DraftStatistics& draft) {
  return {{"rounds", draft.rounds},
          {"drafted", draft.drafted},
          {"accepted", draft.accepted},
          {"emitted_by_rounds", draft.emitted_by_rounds},
          {"emitted", draft.emitted},
          {"target_forwards", draft.target_forwards},
          {"target_rows", draft.target_rows},
          {"acceptance_rate", number(draft.acceptance_rate)},
          {"tokens_per_round", number(draft.tokens_per_round)},
          {"rows_per_token", number(draft.rows_per_token)},
          {"acceptance_at", numbers(draft.acceptance_at)},
          {"unconditional_at", numbers(draft.unconditional_at)}};
}

Json to_json(const CostSplit& cost) {
  return {{"wall_ms", number(cost.wall_ms)},     {"prefill_ms", number(cost.prefill_ms)},
          {"draft_ms", number(cost.draft_ms)},   {"verify_ms", number(cost.verify_ms)},
          {"accept_ms", number(cost.accept_ms)}, {"other_ms", number(cost.other_ms)}};
}

Json verdict_or_null(Verdict verdict, bool control) {
  return control ? Json(nullptr) : Json(to_string(verdict));
}

Json to_json(const Comparison& comparison, bool control) {
  Json guards = Json::array();
  for (const Guard& guard : comparison.guards) guards.push_back(to_json(guard));
  return {{"arm", comparison.arm},
          {"baseline", comparison.baseline},
          {"scope", comparison.scope},
          {"verdict", verdict_or_null(comparison.verdict, control)},
          {"difference", to_string(comparison.difference)},
          {"speedup", to_json(comparison.speedup)},
          {"decode_speedup", to_json(comparison.decode_speedup)},
          {"ttft_ratio", to_json(comparison.ttft_ratio)},
          {"plain_tokens_per_s", number(comparison.plain_tokens_per_s)},
          {"speculative_tokens_per_s", number(comparison.speculative_tokens_per_s)},
          {"longest_gap_plain_ms", number(comparison.longest_gap_plain_ms)},
          {"longest_gap_speculative_ms", number(comparison.longest_gap_speculative_ms)},
          {"draft", to_json(comparison.draft)},
          {"cost_plain", to_json(comparison.cost_plain)},
          {"cost_speculative", to_json(comparison.cost_speculative)},
          {"pairs", comparison.pairs},
          {"pairs_left_out", comparison.pairs_left_out},
          {"outputs_equal", comparison.outputs_equal},
          {"outputs_tied", comparison.outputs_tied},
          {"outputs_different", comparison.outputs_different},
          {"looped_share", number(comparison.looped_share)},
          {"further_pairs", number(comparison.further_pairs)},
          {"guards", guards},
          {"reasons", comparison.reasons},
          {"notes", comparison.notes}};
}

Json to_json(const std::vector<Comparison>& comparisons, bool control) {
  Json list = Json::array();
  for (const Comparison& comparison : comparisons) list.push_back(to_json(comparison, control));
  return list;
}

}  // namespace

Json to_json(const Evaluation& evaluation) {
  return {{"policy", to_json(evaluation.policy)},
          {"by_class", to_json(evaluation.by_class, evaluation.control)},
          {"overall", to_json(evaluation.overall, evaluation.control)},
          {"recommended_arm", text(evaluation.recommended_arm)},
          {"verdict", verdict_or_null(evaluation.verdict, evaluation.control)},
          {"sentence", evaluation.sentence},
          {"control", evaluation.control},
          {"control_difference",
           evaluation.control ? Json(to_string(evaluation.control_difference)) : Json(nullptr)}};
}

}  // namespace paceline::gate
