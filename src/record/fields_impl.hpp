// The members of every struct in a record under their JSON names, written once: writing, reading
// and the tests' random records all go through these lists.
#pragma once

#include <array>
#include <concepts>
#include <type_traits>

#include "record/record.hpp"

namespace paceline::record {

inline constexpr std::array k_arm_kinds{ArmKind::plain, ArmKind::lookup, ArmKind::draft_model,
                                        ArmKind::scripted};
inline constexpr std::array k_cell_statuses{CellStatus::ok, CellStatus::skipped,
                                            CellStatus::failed};

template <typename T, typename U>
concept MaybeConst = std::same_as<std::remove_const_t<T>, U>;

void fields(auto& visit, MaybeConst<host::HostInfo> auto& info) {
  visit("machine", info.machine);
  visit("system", info.system);
  visit("cpu_model", info.cpu_model);
  visit("chip", info.chip);
  visit("hardware_model", info.hardware_model);
  visit("instruction_sets", info.instruction_sets);
  visit("cores", info.cores);
  visit("cores_allowed", info.cores_allowed);
  visit("physical_cores", info.physical_cores);
  visit("memory_bytes", info.memory_bytes);
  visit("memory_limit_bytes", info.memory_limit_bytes);
  visit("cpu_quota", info.cpu_quota);
  visit("governor", info.governor);
  visit("hypervisor", info.hypervisor);
  visit("nice", info.nice);
}

void fields(auto& visit, MaybeConst<host::HostState> auto& state) {
  visit("at_unix_seconds", state.at_unix_seconds);
  visit("load_1min", state.load_1min);
  visit("memory_available_bytes", state.memory_available_bytes);
  visit("frequency_mhz", state.frequency_mhz);
  visit("temperature_celsius", state.temperature_celsius);
  visit("thermal_state", state.thermal_state);
  visit("steal_seconds", state.steal_seconds);
  visit("busy_seconds", state.busy_seconds);
  visit("cpu_pressure_some_percent", state.cpu_pressure_some_percent);
  visit("own_cpu_seconds", state.own_cpu_seconds);
  visit("involuntary_switches", state.involuntary_switches);
}

void fields(auto& visit, MaybeConst<Arm> auto& arm) {
  visit("id", arm.id);
  visit("kind", arm.kind);
  visit("runtime", arm.runtime);
  visit("num_draft_tokens", arm.num_draft_tokens);
  visit("draft_model", arm.draft_model);
  visit("draft_confidence", arm.draft_confidence);
  visit("scripted_acceptance", arm.scripted_acceptance);
  visit("baseline", arm.baseline);
}

void fields(auto& visit, MaybeConst<Inflation> auto& inflation) {
  visit("source", inflation.source);
  visit("source_sha256", inflation.source_sha256);
  visit("shape", inflation.shape);
  visit("noise", inflation.noise);
  visit("random", inflation.random);
  visit("seed", inflation.seed);
}

void fields(auto& visit, MaybeConst<ModelEvidence> auto& model) {
  visit("name", model.name);
  visit("path", model.path);
  visit("description", model.description);
  visit("architecture", model.architecture);
  visit("file_type", model.file_type);
  visit("sha256", model.sha256);
  visit("bytes", model.bytes);
  visit("parameters", model.parameters);
  visit("trained_context", model.trained_context);
  visit("sliding_window", model.sliding_window);
  visit("chat_template_sha256", model.chat_template_sha256);
  visit("chat_renderer", model.chat_renderer);
  visit("inflation", model.inflation);
}

void fields(auto& visit, MaybeConst<RuntimeEvidence> auto& runtime) {
  visit("name", runtime.name);
  visit("build", runtime.build);
  visit("backend", runtime.backend);
  visit("threads", runtime.threads);
  visit("context", runtime.context);
  visit("rows", runtime.rows);
  visit("kv_type_k", runtime.kv_type_k);
  visit("kv_type_v", runtime.kv_type_v);
  visit("flash_attention", runtime.flash_attention);
  visit("exact_widths", runtime.exact_widths);
}

void fields(auto& visit, MaybeConst<Sampling> auto& sampling) {
  visit("temperature", sampling.temperature);
  visit("top_k", sampling.top_k);
  visit("top_p", sampling.top_p);
  visit("min_p", sampling.min_p);
  visit("repetition_penalty", sampling.repetition_penalty);
  visit("presence_penalty", sampling.presence_penalty);
  visit("frequency_penalty", sampling.frequency_penalty);
  visit("seed", sampling.seed);
}

void fields(auto& visit, MaybeConst<Environment> auto& environment) {
  visit("paceline_version", environment.paceline_version);
  visit("build_type", environment.build_type);
  visit("compiler", environment.compiler);
  visit("sanitizers", environment.sanitizers);
  visit("host", environment.host);
  visit("target", environment.target);
  visit("drafts", environment.drafts);
  visit("target_runtime", environment.target_runtime);
  visit("draft_runtimes", environment.draft_runtimes);
  visit("packages", environment.packages);
}

/// The columns of a sample's rounds.
void fields(auto& visit, MaybeConst<Round> auto& round) {
  visit("rows", round.rows);
  visit("drafted", round.drafted);
  visit("accepted", round.accepted);
  visit("emitted", round.emitted);
  visit("draft_ns", round.draft_ns);
  visit("verify_ns", round.verify_ns);
  visit("accept_ns", round.accept_ns);
  visit("other_ns", round.other_ns);
  visit("delivered_ns", round.delivered_ns);
}

void fields(auto& visit, MaybeConst<Sample> auto& sample) {
  visit("arm", sample.arm);
  visit("order", sample.order);
  visit("prompt_tokens", sample.prompt_tokens);
  visit("finish_reason", sample.finish_reason);
  visit("tokens", sample.tokens);
  visit("started_at_unix_seconds", sample.started_at_unix_seconds);
  visit("ended_at_unix_seconds", sample.ended_at_unix_seconds);
  visit("prefill_ns", sample.prefill_ns);
  visit("first_token_ns", sample.first_token_ns);
  visit("first_text_ns", sample.first_text_ns);
  visit("elapsed_ns", sample.elapsed_ns);
  visit("other_ns", sample.other_ns);
  visit("streamed_chunks", sample.streamed_chunks);
  visit("target_forwards", sample.target_forwards);
  visit("target_rows", sample.target_rows);
  visit("replayed_rows", sample.replayed_rows);
  visit("draft_forwards", sample.draft_forwards);
  visit("rounds", sample.rounds);
  visit("drafted_at", sample.drafted_at);
  visit("accepted_at", sample.accepted_at);
  visit("thermal_state", sample.thermal_state);
}

void fields(auto& visit, MaybeConst<Comparison> auto& comparison) {
  visit("arm", comparison.arm);
  visit("baseline", comparison.baseline);
  visit("equal", comparison.equal);
  visit("first_difference", comparison.first_difference);
  visit("top_two_margin", comparison.top_two_margin);
  visit("numeric_tie", comparison.numeric_tie);
}

void fields(auto& visit, MaybeConst<Block> auto& block) {
  visit("fixture", block.fixture);
  visit("content_class", block.content_class);
  visit("prompt", block.prompt);
  visit("repetition", block.repetition);
  visit("status", block.status);
  visit("reason", block.reason);
  visit("samples", block.samples);
  visit("comparisons", block.comparisons);
  visit("host_before", block.host_before);
  visit("host_after", block.host_after);
}

void fields(auto& visit, MaybeConst<FixtureEvidence> auto& fixture) {
  visit("id", fixture.id);
  visit("content_class", fixture.content_class);
  visit("source", fixture.source);
  visit("sha256", fixture.sha256);
  visit("prompts", fixture.prompts);
  visit("repetitions", fixture.repetitions);
  visit("stream", fixture.stream);
  visit("temperature", fixture.temperature);
  visit("top_p", fixture.top_p);
  visit("max_tokens", fixture.max_tokens);
}

void fields(auto& visit, MaybeConst<Warmup> auto& warmup) {
  visit("first_arm_ms", warmup.first_arm_ms);
  visit("stable", warmup.stable);
  visit("slow_first", warmup.slow_first);
}

void fields(auto& visit, MaybeConst<Sustained> auto& sustained) {
  visit("requested_seconds", sustained.requested_seconds);
  visit("last_window_seconds", sustained.last_window_seconds);
  visit("started_at_unix_seconds", sustained.started_at_unix_seconds);
  visit("ended_at_unix_seconds", sustained.ended_at_unix_seconds);
  visit("samples", sustained.samples);
}

void fields(auto& visit, MaybeConst<Warning> auto& warning) {
  visit("id", warning.id);
  visit("cause", warning.cause);
  visit("hint", warning.hint);
}

void fields(auto& visit, MaybeConst<Plan> auto& plan) {
  visit("arms", plan.arms);
  visit("fixtures", plan.fixtures);
  visit("sampling", plan.sampling);
  visit("order_seed", plan.order_seed);
  visit("control", plan.control);
  visit("quick", plan.quick);
  visit("time_limit_seconds", plan.time_limit_seconds);
  visit("run_time_limit_seconds", plan.run_time_limit_seconds);
  visit("max_context_tokens", plan.max_context_tokens);
}

void fields(auto& visit, MaybeConst<Obstacle> auto& obstacle) {
  visit("arm", obstacle.arm);
  visit("word", obstacle.word);
  visit("reason", obstacle.reason);
}

void fields(auto& visit, MaybeConst<Record> auto& record) {
  visit("schema_version", record.schema_version);
  visit("generated_at_unix_seconds", record.generated_at_unix_seconds);
  visit("environment", record.environment);
  visit("plan", record.plan);
  visit("obstacles", record.obstacles);
  visit("warmup", record.warmup);
  visit("blocks", record.blocks);
  visit("sustained", record.sustained);
  visit("warnings", record.warnings);
  visit("host_at_start", record.host_at_start);
  visit("host_at_end", record.host_at_end);
  visit("complete", record.complete);
  visit("incomplete_reason", record.incomplete_reason);
}

}  // namespace paceline::record
