// The published SPEC-028 evaluation: its formulas, order, words and JSON, unchanged. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/json_fwd.hpp"
#include "gate/gate.hpp"
#include "record/record.hpp"

namespace paceline::gate::spec028 {

struct Sample {
  std::string phase;  // baseline, spec, sustained
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  double elapsed_seconds = 0;  // at least 0.001
  double tokens_per_second = 0;
  std::optional<std::int64_t> ttft_milliseconds;
  std::uint64_t drafted_tokens = 0;
  std::uint64_t accepted_tokens = 0;
  std::uint64_t streamed_chunks = 0;
  double ended_at_unix_seconds = 0;
  std::string thermal_state;
};

struct Inputs {
  std::vector<Sample> baseline = {};
  std::vector<Sample> spec = {};
  std::vector<Sample> sustained = {};
  std::optional<double> sustained_end_unix_seconds = {};
  double last_window_seconds = 30;
};

struct Thresholds {
  double ratio_floor = 1.15;
  double max_p95_latency_ratio = 1.0;
  double max_p95_ttft_ratio = 1.0;
  double acceptance_floor = 0.30;
};

struct Evaluation {
  double baseline_median_tps = 0;
  double spec_median_tps = 0;
  double tps_ratio = 0;
  double baseline_p95_latency_ms = 0;
  double spec_p95_latency_ms = 0;
  double p95_latency_ratio = 0;
  std::optional<double> baseline_p95_ttft_ms;
  std::optional<double> spec_p95_ttft_ms;
  std::optional<double> ttft_p95_ratio;
  std::optional<double> acceptance_rate;
  std::optional<double> sustained_median_tps;
  std::optional<double> sustained_ratio;
  bool recommend_enable = false;
  std::vector<std::string> recommendation_reasons;
};

/// The samples of one fixture and speculative arm, blocks that failed left out. The sustained
/// window belongs to a fixture only where that is the only one: its samples do not name theirs.
Inputs inputs_of(const record::Record& record, const std::string& fixture, const record::Arm& arm);

/// Errors as published: no baseline throughput, no spec samples, no latency samples.
Result<Evaluation> evaluate(const Inputs& inputs, const Thresholds& thresholds);

/// The hardware canary's formulas (performance profile): same medians, other floors.
struct CanaryThresholds {
  double ratio_floor = 1.4;
  double sustained_ratio_floor = 1.2;
  double acceptance_floor = 0.30;
};
struct CanaryEvaluation {
  std::optional<double> ratio, acceptance_rate, sustained_last_window_ratio;
  bool passed = false;
  std::vector<std::string> failure_reasons;
};
Result<CanaryEvaluation> evaluate_canary(const Inputs& inputs, const CanaryThresholds& thresholds);

/// The published part of the report: benchmark, generatedAtUnixSeconds, host, binaryVersion and
/// fixtures[] (one per fixture and speculative arm). Absent values are left out, as published.
Json report(const record::Record& record, const Policy& policy);
/// One entry of fixtures[].
Json fixture_result(const record::Record& record, const Policy& policy,
                    const std::string& fixture_id, const std::string& arm_id);
/// The fixtures[] entry, with host and version beside it, as one line of JSON Lines.
Json jsonl_line(const record::Record& record, const Policy& policy, const std::string& fixture_id,
                const std::string& arm_id);

}  // namespace paceline::gate::spec028
