#include "cli/canary_profiles.hpp"

#include <algorithm>
#include <cmath>
#include <format>
#include <limits>

#include "bench/bench.hpp"
#include "bench/deadline.hpp"
#include "cli/terminal.hpp"
#include "core/clock.hpp"
#include "core/text.hpp"
#include "core/version.hpp"
#include "draft/draft_model.hpp"
#include "draft/lookup.hpp"
#include "engine/engine.hpp"
#include "gate/spec028.hpp"
#include "runtime/largest.hpp"
#include "workload/fixture.hpp"

namespace paceline::cli {

namespace {

constexpr std::size_t k_pass_rows = 512;
constexpr double k_time_limit_seconds = 3600;
// Published values of the three profiles.
constexpr const char* k_performance_fixture = "spec028-code-iso8601-v1";
constexpr std::size_t k_performance_runs = 5;
constexpr double k_sustained_seconds = 300;
constexpr double k_last_window_seconds = 60;
constexpr const char* k_small_host_fixtures[] = {"spec028-small-air-short-chat-v1",
                                                 "spec028-small-air-streaming-check-v1"};
constexpr double k_capacity_part = 0.9;
constexpr std::size_t k_capacity_tokens = 32;

/// The context that this host advertises with a drafter beside the target.
std::size_t advertised_context(const CanaryOptions& options, const CanaryCast& cast,
                               const host::HostInfo& host) {
  const std::size_t trained = cast.target.evidence.trained_context;
  const std::size_t cap =
      options.max_context_tokens.value_or(host::ram_tier(host.memory_gib()).draft_context_cap);
  return trained > 0 ? std::min(cap, trained) : cap;
}

Result<std::unique_ptr<runtime::Runtime>> make_target(const CanaryOptions& options,
                                                      const CanaryCast& cast, std::size_t context) {
  return cast.target.model->create_runtime({.sequences = 1,
                                            .context = context,
                                            .rows = k_pass_rows,
                                            .leaves = 1,
                                            .threads = options.threads,
                                            .features = false});
}

record::Arm speculative_arm(const CanaryOptions& options, const CanaryCast& cast) {
  record::Arm arm;
  arm.id = "spec";
  arm.kind = cast.draft ? record::ArmKind::draft_model : record::ArmKind::lookup;
  arm.num_draft_tokens = options.num_draft_tokens;
  if (cast.draft) arm.draft_model = options.draft;
  arm.baseline = "plain";
  return arm;
}

struct BenchPlan {
  std::vector<std::string> fixtures;
  std::size_t repetitions = 1;
  double sustained_seconds = 0;
  double last_window_seconds = 30;
};

/// Plain and the drafter on the fixtures, by bench's own runner.
Result<record::Record> run_bench(const CanaryOptions& options, const CanaryCast& cast,
                                 const BenchPlan& plan, HardwareResult& result,
                                 std::stop_token stop) {
  record::Record record;
  const std::size_t context = advertised_context(options, cast, result.host);
  record.environment.paceline_version = k_version;
  record.environment.host = result.host;
  record.environment.target = cast.target.evidence;
  record.plan.max_context_tokens = context;
  record.plan.time_limit_seconds = options.time_limit.value_or(k_time_limit_seconds);
  record.plan.run_time_limit_seconds = *record.plan.time_limit_seconds;
  record::Arm plain;
  plain.id = "plain";
  record.plan.arms = {plain, speculative_arm(options, cast)};

  PACELINE_TRY(const auto target, make_target(options, cast, context));
  PACELINE_TRY(const auto drafter, make_canary_drafter(options, cast, context, 1));
  bench::Setup setup;
  setup.vocabulary = &cast.target.model->vocabulary();
  setup.contenders = {{.arm = record.plan.arms[0], .target = target.get(), .drafter = {}},
                      {.arm = record.plan.arms[1],
                       .target = target.get(),
                       .drafter = [&](const bench::SampleFacts&) -> Result<draft::Drafter*> {
                         return drafter.get();
                       }}};
  for (const std::string& name : plan.fixtures) {
    PACELINE_TRY(const auto fixture, workload::builtin_fixture(name));
    bench::PrepareLimits limits;
    limits.context = context;
    limits.repetitions = plan.repetitions;
    PACELINE_TRY(auto prompts, bench::prepare(fixture, *setup.vocabulary, limits));
    std::ranges::move(prompts, std::back_inserter(setup.prompts));
    record::FixtureEvidence evidence;
    evidence.id = fixture.id;
    evidence.stream = fixture.stream;
    evidence.temperature = fixture.temperature;
    record.plan.fixtures.push_back(std::move(evidence));
  }
  setup.sustained_seconds = plan.sustained_seconds;
  setup.last_window_seconds = plan.last_window_seconds;
  ProgressLine progress;
  setup.progress = [&](const bench::Progress& p) {
    progress.show(std::format("{} {}/{}, {} gone", p.stage, p.done, p.total,
                              format_seconds(p.elapsed_seconds)));
  };
  SystemClock clock;
  const auto ran = bench::run(setup, record, clock, stop);
  if (!ran && ran.error().code != ErrorCode::cancelled) return ran.error();
  result.complete = record.complete;
  result.timed_out = ran.has_value() && !record.complete;
  for (const record::Block& block : record.blocks) {
    if (block.status != record::CellStatus::ok) {
      result.failure_reasons.push_back(
          std::format("{} did not run: {}", block.fixture, block.reason));
    }
    for (const record::Comparison& comparison : block.comparisons) {
      if (comparison.equal) continue;
      ++(comparison.numeric_tie ? result.outputs_numeric_tie : result.outputs_different);
    }
  }
  return record;
}

Json or_null(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json();
}

HardwareResult make_result(const std::string& chip, std::size_t gib, const char* wanted) {
  HardwareResult result;
  result.host = host::read_host_info();
  result.acceptance_hardware_wanted = wanted;
  result.acceptance_hardware =
      chip.empty() || (result.host.chip == chip && result.host.memory_gib() == gib);
  return result;
}

/// Prose without an end: the numbers keep it from being one loop.
std::string capacity_text(std::size_t paragraphs) {
  std::string text = "Summarise the log of the colony below in one paragraph.\n\n";
  for (std::size_t i = 1; i <= paragraphs; ++i) {
    text += std::format(
        "Day {}. The scouts left nest {} before noon and found the path by the old wall dry. {} "
        "workers carried seeds to chamber {}, where the younger ones clean and sort them. When "
        "the light went, {} foragers had not come back, so the guards kept the northern gate "
        "open and marked the way with fresh scent until the last of them was home.\n",
        i, i % 7 + 1, 40 + i * 13 % 97, i % 11 + 2, i * 5 % 23);
  }
  return text;
}

/// `wanted` tokens of that text, counted by the target's own vocabulary.
Result<std::vector<Token>> capacity_prompt(const runtime::Vocabulary& vocabulary,
                                           std::size_t wanted) {
  for (std::size_t paragraphs = 16;; paragraphs *= 2) {
    PACELINE_TRY(auto tokens, vocabulary.tokenize(capacity_text(paragraphs),
                                                  {.add_special = true, .parse_special = false}));
    if (tokens.size() >= wanted) {
      tokens.resize(wanted);
      return tokens;
    }
  }
}

}  // namespace

Result<std::unique_ptr<draft::Drafter>> make_canary_drafter(const CanaryOptions& options,
                                                            const CanaryCast& cast,
                                                            std::size_t context,
                                                            std::size_t branches) {
  if (!cast.draft) return draft::make_lookup_drafter({.branches = branches});
  const std::size_t trained = cast.draft->evidence.trained_context;
  PACELINE_TRY(auto runtime, cast.draft->model->create_runtime(
                                 {.sequences = 1,
                                  .context = trained > 0 ? std::min(context, trained) : context,
                                  .rows = k_pass_rows,
                                  .leaves = 1,
                                  .threads = options.threads,
                                  .features = false}));
  return draft::make_draft_model_drafter(
      std::move(runtime),
      {.confidence = 0, .target_vocabulary = cast.target.model->vocabulary().size()});
}

Result<HardwareResult> run_performance_canary(const CanaryOptions& options, const CanaryCast& cast,
                                              std::stop_token stop) {
  HardwareResult result = make_result("apple_m4", 16, "M4 16 GB");
  const BenchPlan plan{
      .fixtures = {k_performance_fixture},
      .repetitions = k_performance_runs,
      .sustained_seconds = options.sustained_seconds.value_or(k_sustained_seconds),
      .last_window_seconds = options.last_window_seconds.value_or(k_last_window_seconds)};
  PACELINE_TRY(const record::Record record, run_bench(options, cast, plan, result, stop));
  const auto inputs =
      gate::spec028::inputs_of(record, k_performance_fixture, record.plan.arms.back());
  const gate::spec028::CanaryThresholds floors;
  result.thresholds = {{"ratio_floor", floors.ratio_floor},
                       {"sustained_ratio_floor", floors.sustained_ratio_floor},
                       {"acceptance_floor", floors.acceptance_floor},
                       {"runs", static_cast<double>(plan.repetitions)},
                       {"sustained_seconds", plan.sustained_seconds},
                       {"last_window_seconds", plan.last_window_seconds}};
  result.figures["baseline_runs"] = inputs.baseline.size();
  result.figures["spec_runs"] = inputs.spec.size();
  result.figures["sustained_runs"] = inputs.sustained.size();
  const auto evaluation = gate::spec028::evaluate_canary(inputs, floors);
  if (!evaluation) {
    result.failure_reasons.push_back(evaluation.error().message);
    return result;
  }
  result.figures["ratio"] = or_null(evaluation->ratio);
  result.figures["acceptance_rate"] = or_null(evaluation->acceptance_rate);
  result.figures["sustained_last_window_ratio"] = or_null(evaluation->sustained_last_window_ratio);
  std::ranges::copy(evaluation->failure_reasons, std::back_inserter(result.failure_reasons));
  result.passed = result.complete && result.failure_reasons.empty();
  return result;
}

Result<HardwareResult> run_small_host_canary(const CanaryOptions& options, const CanaryCast& cast,
                                             std::stop_token stop) {
  HardwareResult result = make_result("apple_m1", 8, "M1 8 GB");
  const BenchPlan plan{
      .fixtures = {std::begin(k_small_host_fixtures), std::end(k_small_host_fixtures)}};
  PACELINE_TRY(const record::Record record, run_bench(options, cast, plan, result, stop));
  for (const record::FixtureEvidence& fixture : record.plan.fixtures) {
    const std::string mode = fixture.stream ? "streamed" : "non_streamed";
    const auto failed = [&](const std::string& what) {
      result.failure_reasons.push_back(std::format("{} {}", mode, what));
    };
    const auto inputs = gate::spec028::inputs_of(record, fixture.id, record.plan.arms.back());
    if (inputs.spec.empty()) {
      failed("fixture did not run");
      continue;
    }
    const gate::spec028::Sample& sample = inputs.spec.front();
    if (fixture.temperature != 0) failed(std::format("temperature {} != 0", fixture.temperature));
    if (sample.completion_tokens == 0) failed("produced no completion tokens");
    if (sample.drafted_tokens == 0) failed("produced no drafted tokens");
    if (sample.accepted_tokens == 0) failed("accepted no drafted tokens");
    if (fixture.stream && sample.streamed_chunks == 0) failed("streamed no chunks");
    result.figures[mode + "_completion_tokens"] = sample.completion_tokens;
    result.figures[mode + "_drafted_tokens"] = sample.drafted_tokens;
    result.figures[mode + "_accepted_tokens"] = sample.accepted_tokens;
    result.figures[mode + "_chunks"] = sample.streamed_chunks;
    result.figures[mode + "_elapsed_seconds"] = sample.elapsed_seconds;
  }
  result.passed = result.complete && result.failure_reasons.empty();
  return result;
}

Result<HardwareResult> run_capacity_canary(const CanaryOptions& options, const CanaryCast& cast,
                                           std::stop_token stop) {
  HardwareResult result = make_result("", 0, "");
  const std::size_t cap = advertised_context(options, cast, result.host);
  const std::size_t spare = k_capacity_tokens + options.num_draft_tokens + 1;
  const auto prompt_tokens =
      static_cast<std::size_t>(std::ceil(k_capacity_part * static_cast<double>(cap)));
  if (prompt_tokens + spare > cap) {
    return fail(ErrorCode::invalid_argument,
                std::format("a context of {} tokens leaves no room for {} new ones behind 90 % of "
                            "it; raise --max-context-tokens",
                            cap, k_capacity_tokens));
  }
  result.figures = {{"advertised_context_tokens", cap},
                    {"prompt_tokens", prompt_tokens},
                    {"generated_tokens", 0},
                    {"drafted_tokens", 0},
                    {"accepted_tokens", 0},
                    {"seconds", Json()},
                    {"peak_resident_bytes", Json()},
                    {"out_of_memory", false}};
  result.thresholds = {{"prompt_part_of_context", k_capacity_part},
                       {"generated_tokens", k_capacity_tokens}};

  const runtime::Vocabulary& vocabulary = cast.target.model->vocabulary();
  engine::GenerationOptions request;
  PACELINE_TRY(request.prompt, capacity_prompt(vocabulary, prompt_tokens));
  request.max_tokens = k_capacity_tokens;
  request.num_draft_tokens = options.num_draft_tokens;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {  // the text shall not end early
    if (vocabulary.is_end_of_text(to_token(id))) {
      request.sampler.logit_bias.emplace_back(to_token(id),
                                              -std::numeric_limits<double>::infinity());
    }
  }
  const double limit = options.time_limit.value_or(k_time_limit_seconds);
  const bench::Deadline deadline(std::chrono::duration<double>(limit), stop);
  SystemClock clock;
  const Nanoseconds start = clock.now();
  ProgressLine progress;
  const auto ran = [&]() -> Result<void> {
    PACELINE_TRY(const auto target, make_target(options, cast, cap));
    PACELINE_TRY(const auto drafter, make_canary_drafter(options, cast, cap, 1));
    engine::Engine engine(*target, vocabulary, drafter.get(), clock);
    PACELINE_TRY(const auto text, engine.start(request));
    engine::Generation* const texts[] = {text.get()};
    Result<void> stepped;
    while (!text->finished() && stepped) {
      progress.show(std::format("capacity {} of {} prompt tokens and {} of {} new ones, {} gone",
                                std::min<std::uint64_t>(target->counters().rows, prompt_tokens),
                                prompt_tokens, text->tokens().size(), k_capacity_tokens,
                                format_seconds(to_ms(clock.now() - start) / 1000)));
      const auto step = engine.step(texts, deadline.token());
      if (!step) stepped = step.error();
    }
    std::size_t drafted = 0;
    std::size_t accepted = 0;
    for (const engine::Round& round : text->rounds()) {
      drafted += round.drafted;
      accepted += round.accepted;
    }
    result.figures["generated_tokens"] = text->tokens().size();
    result.figures["drafted_tokens"] = drafted;
    result.figures["accepted_tokens"] = accepted;
    return stepped;
  }();
  progress.clear();
  result.figures["seconds"] = to_ms(clock.now() - start) / 1000;
  if (const auto peak = host::peak_resident_bytes()) result.figures["peak_resident_bytes"] = *peak;
  if (!ran) {
    const Error& error = ran.error();
    if (error.code == ErrorCode::invalid_argument || error.code == ErrorCode::unsupported ||
        error.word == runtime::k_logits_not_finite) {
      return error;
    }
    result.timed_out = deadline.expired();
    result.figures["out_of_memory"] = error.code == ErrorCode::out_of_memory;
    result.failure_reasons.push_back(
        result.timed_out ? std::format("the time limit of {:.0f} s was reached", limit)
                         : error.message);
    result.complete = error.code != ErrorCode::cancelled;
    return result;
  }
  result.complete = true;
  if (result.figures["generated_tokens"].get<std::size_t>() < k_capacity_tokens) {
    result.failure_reasons.push_back(std::format(
        "generated {} tokens < {}", result.figures["generated_tokens"].dump(), k_capacity_tokens));
  }
  result.passed = result.failure_reasons.empty();
  return result;
}

Json to_json(const HardwareResult& result) {
  Json host = {{"machine", result.host.machine},
               {"chip", result.host.chip},
               {"hardwareModel", result.host.hardware_model}};
  if (result.host.memory_gib() > 0) host["memoryGB"] = result.host.memory_gib();
  return {{"passed", result.passed},
          {"complete", result.complete},
          {"failure_reasons", result.failure_reasons},
          {"acceptance_hardware", result.acceptance_hardware},
          {"acceptance_hardware_wanted", result.acceptance_hardware_wanted},
          {"host", std::move(host)},
          {"figures", result.figures},
          {"thresholds", result.thresholds},
          {"outputs_different", result.outputs_different},
          {"outputs_numeric_tie", result.outputs_numeric_tie}};
}

std::string hardware_table(const std::string& profile, const HardwareResult& result) {
  std::string out;
  for (const auto& [name, value] : result.figures) {
    out += std::format("  {:<32}{}\n", name, value.is_null() ? "unknown" : dump_json(value));
  }
  for (const auto& [name, value] : result.thresholds) {
    out += std::format("  {:<32}{:g}\n", "wanted " + name, value);
  }
  for (const std::string& reason : result.failure_reasons) {
    out += std::format("  failed: {}\n", printable(reason));
  }
  if (result.outputs_different + result.outputs_numeric_tie > 0) {
    out += std::format("  outputs: {} different, {} numeric ties\n", result.outputs_different,
                       result.outputs_numeric_tie);
  }
  if (!result.acceptance_hardware) {
    out += std::format("  note: {} was published for an {} host; this is another\n", profile,
                       result.acceptance_hardware_wanted);
  }
  if (!result.complete) out += "  not complete: the run was broken off\n";
  return out;
}

}  // namespace paceline::cli
