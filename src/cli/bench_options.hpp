// The options of `paceline bench` as the user gave them, and the plan that follows from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "gate/gate.hpp"
#include "record/record.hpp"
#include "report/report.hpp"
#include "workload/fixture.hpp"

namespace CLI {
class App;
}

namespace paceline::cli {

struct BenchOptions {
  std::string target = "smollm2-135m";
  std::vector<std::string> drafts;
  bool lookup = false;
  std::vector<std::size_t> num_draft_tokens;
  std::vector<double> scripted;
  std::optional<double> draft_confidence;
  std::vector<std::string> fixtures;
  std::string runtime = "auto";
  std::size_t threads = 0;
  std::optional<std::size_t> max_context_tokens;
  std::optional<std::uint64_t> memory_limit;  // bytes
  std::optional<std::size_t> max_tokens;
  std::optional<std::size_t> baseline_runs;
  std::optional<std::size_t> spec_runs;
  double sustained_seconds = 0;
  double last_window_seconds = 30;
  std::optional<double> ratio_floor;
  std::optional<double> max_p95_latency_ratio;
  std::optional<double> max_p95_ttft_ratio;
  std::optional<double> acceptance_floor;
  std::string policy_file;
  std::optional<double> time_limit;
  double run_time_limit = 300;
  bool quick = false;
  bool offline = false;
  bool control = false;
  bool jsonl = false;
  std::string format;  // empty: table on a terminal's stdout, json in a file
  std::string output;  // empty: table on stdout and ./paceline-bench.json; "-": stdout
  std::string resume;
  record::Sampling sampling;
  std::optional<double> temperature;
  std::optional<double> top_p;
};

/// Adds all options to the command; parsing fills `options`, which must stay where it is.
void add_bench_options(CLI::App& command, BenchOptions& options);

/// The arms that the options ask for; the first is plain.
/// Errors: invalid_argument.
Result<std::vector<record::Arm>> make_arms(const BenchOptions& options);

/// The fixtures, with --quick, --max-tokens and sampling applied.
Result<std::vector<workload::Fixture>> choose_fixtures(const BenchOptions& options);

/// Runs of each prompt: --baseline-runs and --spec-runs, which must be equal; three for a single
/// published fixture; else one.
Result<std::size_t> choose_repetitions(const BenchOptions& options,
                                       const std::vector<workload::Fixture>& fixtures);

/// Defaults, then the policy file, then options. Errors name file, key, value and range.
Result<gate::Policy> make_policy(const BenchOptions& options);

/// Prompts of each fixture that --quick takes; 0: all.
std::size_t prompts_per_fixture(const BenchOptions& options);

}  // namespace paceline::cli
