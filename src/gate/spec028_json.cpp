// A record in the published report's shape: camelCase, sorted keys, absent values left out.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <format>

#include "core/hash.hpp"
#include "core/json.hpp"
#include "core/text.hpp"
#include "gate/spec028.hpp"

namespace paceline::gate::spec028 {
namespace {

using record::Arm;
using record::ArmKind;
using record::Record;

constexpr double k_shortest_seconds = 0.001;
constexpr std::size_t k_id_digits = 32;

void put(Json& object, const char* key, const std::optional<double>& value) {
  if (value && std::isfinite(*value)) object[key] = *value;
}

std::optional<std::int64_t> ttft_ms(const record::Sample& sample) {
  if (sample.tokens.empty() || sample.first_token_ns < 0) return std::nullopt;
  return sample.first_token_ns / 1'000'000;  // truncated
}

Sample published(const record::Sample& sample, std::string phase) {
  Sample result;
  result.phase = std::move(phase);
  result.prompt_tokens = sample.prompt_tokens;
  result.completion_tokens = sample.tokens.size();
  result.elapsed_seconds =
      std::max(static_cast<double>(sample.elapsed_ns) / 1e9, k_shortest_seconds);
  result.tokens_per_second = static_cast<double>(result.completion_tokens) / result.elapsed_seconds;
  result.ttft_milliseconds = ttft_ms(sample);
  for (const record::Round& round : sample.rounds) {
    result.drafted_tokens += round.drafted;
    result.accepted_tokens += round.accepted;
  }
  result.streamed_chunks = sample.streamed_chunks;
  result.ended_at_unix_seconds = sample.ended_at_unix_seconds;
  result.thermal_state = sample.thermal_state;
  return result;
}

const Arm* find_arm(const Record& record, const std::string& id) {
  const auto found = std::ranges::find(record.plan.arms, id, &Arm::id);
  return found == record.plan.arms.end() ? nullptr : &*found;
}

std::string baseline_of(const Record& record, const Arm& arm) {
  if (arm.baseline) return *arm.baseline;
  return record.plan.arms.front().id;
}

void add_samples(std::vector<Sample>& to, const record::Block& block, const std::string& arm,
                 const char* phase) {
  for (const record::Sample& sample : block.samples) {
    if (sample.arm == arm) to.push_back(published(sample, phase));
  }
}

}  // namespace

Inputs inputs_of(const Record& record, const std::string& fixture, const Arm& arm) {
  Inputs inputs;
  const std::string baseline = baseline_of(record, arm);
  for (const record::Block& block : record.blocks) {
    if (block.fixture != fixture || block.status != record::CellStatus::ok) continue;
    add_samples(inputs.baseline, block, baseline, "baseline");
    add_samples(inputs.spec, block, arm.id, "spec");
  }
  if (record.sustained && record.plan.fixtures.size() == 1) {
    for (const record::Sample& sample : record.sustained->samples) {
      if (sample.arm == arm.id) inputs.sustained.push_back(published(sample, "sustained"));
    }
    if (record.sustained->ended_at_unix_seconds > 0) {  // else it was broken off
      inputs.sustained_end_unix_seconds = record.sustained->ended_at_unix_seconds;
    }
    inputs.last_window_seconds = record.sustained->last_window_seconds;
  }
  return inputs;
}

namespace {

bool is_word(std::string_view text) {
  const auto letter_or_digit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !text.empty() && letter_or_digit(text.front()) && std::ranges::all_of(text, [&](char c) {
    return letter_or_digit(c) || c == '.' || c == '_' || c == '-';
  });
}

/// "organisation/name", the only kind of id that is published as it is.
bool is_public_id(std::string_view text) {
  const auto parts = split(text, '/');
  return parts.size() == 2 && is_word(parts[0]) && is_word(parts[1]);
}

/// Published: an id passes where nothing of that name exists on disk. Here: where no file was
/// read, which the record knows. A leading "~" stays, as the home folder is not known here.
std::string redacted(const record::ModelEvidence& model) {
  const std::string path(trim(model.path));
  if (path.empty()) return "unknown";
  const bool from_file = model.sha256.has_value() || model.bytes.has_value();
  if (is_public_id(path) && !from_file) return path;
  std::string standard = std::filesystem::path(path).lexically_normal().generic_string();
  while (standard.size() > 1 && standard.ends_with('/')) standard.pop_back();
  return "local:" + sha256_hex(standard).substr(0, k_id_digits);
}

const record::ModelEvidence* draft_evidence(const Record& record, const Arm& arm) {
  if (!arm.draft_model) return nullptr;
  const auto& drafts = record.environment.drafts;
  const auto found = std::ranges::find(drafts, *arm.draft_model, &record::ModelEvidence::name);
  if (found != drafts.end()) return &*found;
  // The target drafting for itself is loaded once.
  const auto& target = record.environment.target;
  return target.name == *arm.draft_model ? &target : nullptr;
}

std::string draft_name(const Arm& arm) {
  switch (arm.kind) {
    case ArmKind::lookup:
      return "prompt-lookup";
    case ArmKind::scripted:
      return "scripted";
    case ArmKind::plain:
    case ArmKind::draft_model:
      break;
  }
  return arm.draft_model.value_or("unknown");
}

bool is_thermal_word(const std::string& state) {
  static constexpr std::array words = {"nominal", "fair", "serious", "critical"};
  return std::ranges::find(words, state) != words.end();
}

Json to_json(const Sample& sample) {
  Json json = {{"phase", sample.phase},
               {"promptTokens", sample.prompt_tokens},
               {"completionTokens", sample.completion_tokens},
               {"draftedTokens", sample.drafted_tokens},
               {"acceptedTokens", sample.accepted_tokens},
               {"streamedChunks", sample.streamed_chunks}};
  put(json, "elapsedSeconds", sample.elapsed_seconds);
  put(json, "tokensPerSecond", sample.tokens_per_second);
  put(json, "endedAtUnixSeconds", sample.ended_at_unix_seconds);
  if (sample.ttft_milliseconds) json["ttftMilliseconds"] = *sample.ttft_milliseconds;
  if (is_thermal_word(sample.thermal_state)) json["thermalState"] = sample.thermal_state;
  return json;
}

Json to_json(const std::vector<Sample>& samples) {
  Json list = Json::array();
  for (const Sample& sample : samples) list.push_back(to_json(sample));
  return list;
}

Json to_json(const Evaluation& evaluation) {
  Json json = {{"recommendEnable", evaluation.recommend_enable},
               {"recommendationReasons", evaluation.recommendation_reasons}};
  put(json, "baselineMedianTPS", evaluation.baseline_median_tps);
  put(json, "specMedianTPS", evaluation.spec_median_tps);
  put(json, "tpsRatio", evaluation.tps_ratio);
  put(json, "baselineP95LatencyMS", evaluation.baseline_p95_latency_ms);
  put(json, "specP95LatencyMS", evaluation.spec_p95_latency_ms);
  put(json, "p95LatencyRatio", evaluation.p95_latency_ratio);
  put(json, "baselineP95TTFTMS", evaluation.baseline_p95_ttft_ms);
  put(json, "specP95TTFTMS", evaluation.spec_p95_ttft_ms);
  put(json, "ttftP95Ratio", evaluation.ttft_p95_ratio);
  put(json, "acceptanceRate", evaluation.acceptance_rate);
  put(json, "sustainedMedianTPS", evaluation.sustained_median_tps);
  put(json, "sustainedRatio", evaluation.sustained_ratio);
  return json;
}

Json request_of(const Record& record, const std::string& fixture_id) {
  Json json = {{"stream", false}};
  const auto fixture =
      std::ranges::find(record.plan.fixtures, fixture_id, &record::FixtureEvidence::id);
  if (fixture == record.plan.fixtures.end()) return json;
  json["stream"] = fixture->stream;
  put(json, "temperature", fixture->temperature);
  put(json, "topP", fixture->top_p);
  if (fixture->max_tokens > 0) json["maxTokens"] = fixture->max_tokens;
  return json;
}

Json host_of(const Record& record) {
  const auto& host = record.environment.host;
  Json json = {
      {"machine", host.machine}, {"chip", host.chip}, {"hardwareModel", host.hardware_model}};
  if (host.memory_gib() > 0) json["memoryGB"] = host.memory_gib();
  return json;
}

/// Fixtures in the order of the plan, then any that only blocks name.
std::vector<std::string> fixture_ids(const Record& record) {
  std::vector<std::string> ids;
  const auto add = [&](const std::string& id) {
    if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
  };
  for (const auto& fixture : record.plan.fixtures) add(fixture.id);
  for (const auto& block : record.blocks) add(block.fixture);
  return ids;
}

}  // namespace

Json fixture_result(const Record& record, const Policy& policy, const std::string& fixture_id,
                    const std::string& arm_id) {
  Json json = {{"fixtureID", fixture_id},
               {"arm", arm_id},
               {"targetModel", record.environment.target.name},
               {"targetLoadPath", redacted(record.environment.target)},
               {"maxContextTokens", record.plan.max_context_tokens},
               {"request", request_of(record, fixture_id)}};
  const Arm* arm = find_arm(record, arm_id);
  if (arm == nullptr) {
    json["evaluationError"] = std::format("the plan has no arm \"{}\"", arm_id);
    return json;
  }
  const record::ModelEvidence* draft = draft_evidence(record, *arm);
  json["draftModel"] = draft_name(*arm);
  json["draftLoadPath"] = draft == nullptr ? "unknown" : redacted(*draft);
  json["numDraftTokens"] = arm->num_draft_tokens;

  const Inputs inputs = inputs_of(record, fixture_id, *arm);
  json["baselineSamples"] = to_json(inputs.baseline);
  json["specSamples"] = to_json(inputs.spec);
  json["sustainedSamples"] = to_json(inputs.sustained);
  const auto evaluation = evaluate(inputs, {.ratio_floor = policy.ratio_floor,
                                            .max_p95_latency_ratio = policy.spec028_latency_limit,
                                            .max_p95_ttft_ratio = policy.spec028_ttft_limit,
                                            .acceptance_floor = policy.acceptance_floor});
  if (evaluation) {
    json["evaluation"] = to_json(*evaluation);
  } else {
    json["evaluationError"] = evaluation.error().message;
  }
  return json;
}

Json report(const Record& record, const Policy& policy) {
  Json fixtures = Json::array();
  for (const std::string& fixture : fixture_ids(record)) {
    for (const Arm& arm : record.plan.arms) {
      if (arm.kind == ArmKind::plain) continue;
      fixtures.push_back(fixture_result(record, policy, fixture, arm.id));
    }
  }
  Json json = {{"benchmark", "SPEC-028"},
               {"host", host_of(record)},
               {"binaryVersion", record.environment.paceline_version},
               {"fixtures", fixtures}};
  put(json, "generatedAtUnixSeconds", record.generated_at_unix_seconds);
  return json;
}

Json jsonl_line(const Record& record, const Policy& policy, const std::string& fixture_id,
                const std::string& arm_id) {
  Json json = fixture_result(record, policy, fixture_id, arm_id);
  json["benchmark"] = "SPEC-028";
  json["host"] = host_of(record);
  json["binaryVersion"] = record.environment.paceline_version;
  return json;
}

}  // namespace paceline::gate::spec028
