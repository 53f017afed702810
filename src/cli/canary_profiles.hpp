// The published hardware canaries: performance, small-host and capacity.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/open_model.hpp"
#include "core/json.hpp"
#include "core/result.hpp"
#include "draft/drafter.hpp"
#include "host/host.hpp"

namespace paceline::cli {

struct CanaryOptions {
  std::string target = "smollm2-135m";
  std::string draft;  // empty: prompt lookup
  bool lookup = false;
  std::string runtime = "auto";
  std::size_t num_draft_tokens = 3;
  std::string profile = "equality";
  std::string format = "table";
  std::size_t max_tokens = 48;
  std::optional<std::size_t> max_context_tokens;
  double temperature = 0.8;
  std::uint64_t seed = 0;
  std::size_t threads = 0;
  std::optional<double> time_limit;  // seconds
  std::optional<double> sustained_seconds;
  std::optional<double> last_window_seconds;
  bool offline = false;
};

/// The models of a canary, opened and found to belong together.
struct CanaryCast {
  OpenedModel target;
  std::optional<OpenedModel> draft;
};

/// The drafter that the options ask for, for texts of up to `context` tokens; lookup with so many
/// branches. The cast must outlive it.
Result<std::unique_ptr<draft::Drafter>> make_canary_drafter(const CanaryOptions& options,
                                                            const CanaryCast& cast,
                                                            std::size_t context,
                                                            std::size_t branches);

/// A published canary's outcome. The published rules judge the figures; whether this is the host
/// that they were published for stands beside them.
struct HardwareResult {
  bool passed = false;
  bool complete = false;
  bool timed_out = false;
  std::vector<std::string> failure_reasons;
  bool acceptance_hardware = false;
  std::string acceptance_hardware_wanted;  // empty: any host
  host::HostInfo host;
  std::map<std::string, Json> figures;
  std::map<std::string, double> thresholds;
  std::size_t outputs_different = 0;
  std::size_t outputs_numeric_tie = 0;
};

Result<HardwareResult> run_performance_canary(const CanaryOptions& options, const CanaryCast& cast,
                                              std::stop_token stop);
Result<HardwareResult> run_small_host_canary(const CanaryOptions& options, const CanaryCast& cast,
                                             std::stop_token stop);
Result<HardwareResult> run_capacity_canary(const CanaryOptions& options, const CanaryCast& cast,
                                           std::stop_token stop);

Json to_json(const HardwareResult& result);
/// For people.
std::string hardware_table(const std::string& profile, const HardwareResult& result);

}  // namespace paceline::cli
