// The published formulas of the benchmark and of the hardware canary, in their order and words.
#include "gate/spec028.hpp"

#include <algorithm>
#include <format>

#include "gate/statistics.hpp"

namespace paceline::gate::spec028 {
namespace {

constexpr double k_p95 = 0.95;

std::vector<double> speeds(const std::vector<Sample>& samples) {
  std::vector<double> values;
  for (const Sample& sample : samples) values.push_back(sample.tokens_per_second);
  return values;
}

std::vector<double> latencies_ms(const std::vector<Sample>& samples) {
  std::vector<double> values;
  for (const Sample& sample : samples) values.push_back(sample.elapsed_seconds * 1000);
  return values;
}

/// Only samples that have one count.
std::vector<double> ttfts_ms(const std::vector<Sample>& samples) {
  std::vector<double> values;
  for (const Sample& sample : samples) {
    if (sample.ttft_milliseconds) {
      values.push_back(static_cast<double>(*sample.ttft_milliseconds));
    }
  }
  return values;
}

std::optional<double> acceptance(const std::vector<Sample>& spec) {
  double drafted = 0;
  double accepted = 0;
  for (const Sample& sample : spec) {
    drafted += static_cast<double>(sample.drafted_tokens);
    accepted += static_cast<double>(sample.accepted_tokens);
  }
  if (drafted == 0) return std::nullopt;
  return accepted / drafted;
}

/// Median speed of what ended within the last window. Without a known end: of the last sample.
std::optional<double> sustained_median(const Inputs& inputs) {
  if (inputs.sustained.empty()) return std::nullopt;
  double end =
      std::ranges::max(inputs.sustained, {}, &Sample::ended_at_unix_seconds).ended_at_unix_seconds;
  if (inputs.sustained_end_unix_seconds) end = *inputs.sustained_end_unix_seconds;
  std::vector<Sample> last;
  for (const Sample& sample : inputs.sustained) {
    if (sample.ended_at_unix_seconds >= end - inputs.last_window_seconds) last.push_back(sample);
  }
  return median(speeds(last));
}

struct Medians {
  double baseline = 0;
  double spec = 0;
};

Result<Medians> medians(const Inputs& inputs) {
  const auto baseline = median(speeds(inputs.baseline));
  if (!baseline || !(*baseline > 0)) {
    return fail(ErrorCode::invalid_argument, "no baseline throughput");
  }
  const auto spec = median(speeds(inputs.spec));
  if (!spec) return fail(ErrorCode::invalid_argument, "no spec samples");
  return Medians{.baseline = *baseline, .spec = *spec};
}

std::vector<std::string> reasons(const Evaluation& evaluation, const Thresholds& limits) {
  std::vector<std::string> found;
  if (evaluation.tps_ratio < limits.ratio_floor) {
    found.push_back(
        std::format("TPS ratio {:.3f} < {:.3f}", evaluation.tps_ratio, limits.ratio_floor));
  }
  if (evaluation.p95_latency_ratio > limits.max_p95_latency_ratio) {
    found.push_back(std::format("p95 latency ratio {:.3f} > {:.3f}", evaluation.p95_latency_ratio,
                                limits.max_p95_latency_ratio));
  }
  if (!evaluation.ttft_p95_ratio) {
    found.push_back("p95 TTFT ratio unavailable");
  } else if (*evaluation.ttft_p95_ratio > limits.max_p95_ttft_ratio) {
    found.push_back(std::format("p95 TTFT ratio {:.3f} > {:.3f}", *evaluation.ttft_p95_ratio,
                                limits.max_p95_ttft_ratio));
  }
  // "Absent counts as 0 and always fails", also where the floor is 0.
  const double accepted = evaluation.acceptance_rate.value_or(0);
  if (!evaluation.acceptance_rate || accepted < limits.acceptance_floor) {
    found.push_back(std::format("acceptance {:.3f} < {:.3f}", accepted, limits.acceptance_floor));
  }
  if (evaluation.sustained_ratio && *evaluation.sustained_ratio < limits.ratio_floor) {
    found.push_back(std::format("sustained TPS ratio {:.3f} < {:.3f}", *evaluation.sustained_ratio,
                                limits.ratio_floor));
  }
  return found;
}

}  // namespace

Result<Evaluation> evaluate(const Inputs& inputs, const Thresholds& thresholds) {
  PACELINE_TRY(const Medians median_tps, medians(inputs));
  const auto baseline_latency = nearest_rank(latencies_ms(inputs.baseline), k_p95);
  const auto spec_latency = nearest_rank(latencies_ms(inputs.spec), k_p95);
  if (!baseline_latency || !spec_latency || !(*baseline_latency > 0)) {
    return fail(ErrorCode::invalid_argument, "no latency samples");
  }

  Evaluation result;
  result.baseline_median_tps = median_tps.baseline;
  result.spec_median_tps = median_tps.spec;
  result.tps_ratio = median_tps.spec / median_tps.baseline;
  result.baseline_p95_latency_ms = *baseline_latency;
  result.spec_p95_latency_ms = *spec_latency;
  result.p95_latency_ratio = *spec_latency / *baseline_latency;
  result.baseline_p95_ttft_ms = nearest_rank(ttfts_ms(inputs.baseline), k_p95);
  result.spec_p95_ttft_ms = nearest_rank(ttfts_ms(inputs.spec), k_p95);
  if (result.baseline_p95_ttft_ms && result.spec_p95_ttft_ms && *result.baseline_p95_ttft_ms > 0) {
    result.ttft_p95_ratio = *result.spec_p95_ttft_ms / *result.baseline_p95_ttft_ms;
  }
  result.acceptance_rate = acceptance(inputs.spec);
  result.sustained_median_tps = sustained_median(inputs);
  if (result.sustained_median_tps) {
    result.sustained_ratio = *result.sustained_median_tps / median_tps.baseline;
  }
  result.recommendation_reasons = reasons(result, thresholds);
  result.recommend_enable = result.recommendation_reasons.empty();
  return result;
}

Result<CanaryEvaluation> evaluate_canary(const Inputs& inputs, const CanaryThresholds& thresholds) {
  PACELINE_TRY(const Medians median_tps, medians(inputs));
  CanaryEvaluation result;
  result.ratio = median_tps.spec / median_tps.baseline;
  result.acceptance_rate = acceptance(inputs.spec);
  const auto sustained = sustained_median(inputs);
  if (sustained) result.sustained_last_window_ratio = *sustained / median_tps.baseline;

  auto& found = result.failure_reasons;
  if (*result.ratio < thresholds.ratio_floor) {
    found.push_back(
        std::format("spec ratio {:.3f} < {:.3f}", *result.ratio, thresholds.ratio_floor));
  }
  const double accepted = result.acceptance_rate.value_or(0);
  if (accepted < thresholds.acceptance_floor) {
    found.push_back(
        std::format("acceptance {:.3f} < {:.3f}", accepted, thresholds.acceptance_floor));
  }
  if (!sustained) {
    found.push_back("sustained window produced no samples");
  } else if (*result.sustained_last_window_ratio < thresholds.sustained_ratio_floor) {
    found.push_back(std::format("sustained ratio {:.3f} < {:.3f}",
                                *result.sustained_last_window_ratio,
                                thresholds.sustained_ratio_floor));
  }
  result.passed = found.empty();
  return result;
}

}  // namespace paceline::gate::spec028
