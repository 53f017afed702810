#include "cli/resume.hpp"

#include <algorithm>
#include <format>
#include <set>

#include "core/file.hpp"
#include "core/json.hpp"
#include "core/text.hpp"

namespace paceline::cli {

namespace {

/// Parts of the plan that say how long a run may take, not what it measures.
const std::set<std::string> k_limits{"time_limit_seconds", "run_time_limit_seconds"};

std::vector<std::string> plan_differences(const record::Record& earlier, const record::Plan& plan) {
  record::Record planned;
  planned.plan = plan;
  const Json there = record::to_json(earlier).at("plan");
  const Json here = record::to_json(planned).at("plan");
  std::vector<std::string> differences;
  for (const auto& [key, value] : here.items()) {
    if (k_limits.contains(key) || there.at(key) == value) continue;
    differences.push_back(std::format("{} ({}, {})", key, dump_json(there.at(key)).substr(0, 120),
                                      dump_json(value).substr(0, 120)));
  }
  return differences;
}

Result<void> refuse_differences(const std::string& path,
                                const std::vector<std::string>& differences) {
  if (differences.empty()) return {};
  return fail(ErrorCode::invalid_argument,
              std::format("\"{}\" cannot be continued, these parts differ (there, here): {}. "
                          "Run with the same settings, or write to another file",
                          path, join(differences, "; ")));
}

}  // namespace

Result<record::Record> read_earlier(const std::string& path) {
  PACELINE_TRY(const std::string text, read_file(path));
  PACELINE_TRY(const Json json, parse_json(text, std::format("\"{}\"", path)));
  if (!json.is_object() || !json.contains("paceline") || !json["paceline"].is_object() ||
      !json["paceline"].contains("record")) {
    return fail(
        ErrorCode::bad_format,
        std::format("\"{}\" is no result of paceline bench: paceline.record is missing", path));
  }
  auto earlier = record::from_json(json["paceline"]["record"]);
  if (!earlier) return earlier.error().in(std::format("\"{}\"", path));
  return earlier;
}

Result<void> check_plan(const std::string& path, const record::Record& earlier, record::Plan plan) {
  plan.max_context_tokens = earlier.plan.max_context_tokens;  // the target has a say in it
  for (std::size_t i = 0; i < std::min(plan.arms.size(), earlier.plan.arms.size()); ++i) {
    plan.arms[i].runtime = earlier.plan.arms[i].runtime;  // likewise
  }
  return refuse_differences(path, plan_differences(earlier, plan));
}

Result<void> resume_from(const std::string& path, record::Record earlier, record::Record& record) {
  auto differences = record::environment_differences(earlier.environment, record.environment);
  std::ranges::move(plan_differences(earlier, record.plan), std::back_inserter(differences));
  PACELINE_TRY_VOID(refuse_differences(path, differences));
  std::erase_if(earlier.blocks, [](const record::Block& block) {
    return block.status == record::CellStatus::failed;
  });
  record.blocks = std::move(earlier.blocks);
  record.generated_at_unix_seconds = earlier.generated_at_unix_seconds;
  record.host_at_start = earlier.host_at_start;
  record.sustained = std::move(earlier.sustained);  // a new window replaces it
  return {};
}

}  // namespace paceline::cli
