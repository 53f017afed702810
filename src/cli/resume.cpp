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

std::vector<std::string> plan_differences(const record::Record& a, const record::Record& b) {
  const Json there = record::to_json(a).at("plan");
  const Json here = record::to_json(b).at("plan");
  std::vector<std::string> differences;
  for (const auto& [key, value] : here.items()) {
    if (k_limits.contains(key) || there.at(key) == value) continue;
    differences.push_back(std::format("{} ({}, {})", key, dump_json(there.at(key)).substr(0, 120),
                                      dump_json(value).substr(0, 120)));
  }
  return differences;
}

}  // namespace

Result<void> resume_from(const std::string& path, record::Record& record) {
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
  auto differences = record::environment_differences(earlier->environment, record.environment);
  std::ranges::move(plan_differences(*earlier, record), std::back_inserter(differences));
  if (!differences.empty()) {
    return fail(ErrorCode::invalid_argument,
                std::format("\"{}\" cannot be continued, these parts differ (there, here): {}. "
                            "Run with the same settings, or write to another file",
                            path, join(differences, "; ")));
  }
  std::erase_if(earlier->blocks, [](const record::Block& block) {
    return block.status == record::CellStatus::failed;
  });
  record.blocks = std::move(earlier->blocks);
  record.generated_at_unix_seconds = earlier->generated_at_unix_seconds;
  record.host_at_start = earlier->host_at_start;
  record.sustained = std::move(earlier->sustained);  // a new window replaces it
  return {};
}

}  // namespace paceline::cli
