// `paceline canary`: is the output equal, and the published hardware canaries.
#include <cstdio>
#include <format>
#include <memory>

#include "bench/bench.hpp"
#include "bench/deadline.hpp"
#include "cli/canary_profiles.hpp"
#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/terminal.hpp"
#include "cli/validators.hpp"
#include "compat/canary.hpp"
#include "compat/compare.hpp"
#include "core/clock.hpp"
#include "core/json.hpp"
#include "core/text.hpp"
#include "core/version.hpp"
#include "workload/fixture.hpp"

namespace paceline::cli {

namespace {

constexpr int k_schema_version = 1;
constexpr double k_equality_seconds = 1200;
// One prompt of each: short, repetitive, many tokens per character.
constexpr const char* k_fixtures[] = {"spec028-equivalence-smoke-v1", "edit", "multilingual"};

Result<CanaryCast> open_cast(const CanaryOptions& options, std::stop_token stop) {
  if (!options.draft.empty() && options.lookup) {
    return fail(ErrorCode::invalid_argument,
                "--draft and --lookup are two drafters, the canary looks at one; leave one out");
  }
  CanaryCast cast;
  PACELINE_TRY(const RuntimeChoice runtime, parse_runtime_choice(options.runtime));
  const OpenOptions open{.offline = options.offline, .stop = stop, .runtime = runtime};
  auto target = open_model(options.target, open);
  if (!target) return target.error().in(std::format("target \"{}\"", options.target));
  cast.target = *std::move(target);
  if (options.draft.empty()) return cast;
  if (options.draft == options.target) {  // one copy of the weights is enough
    cast.draft = cast.target;
    return cast;
  }
  auto draft = open_model(options.draft, open);
  if (!draft) return draft.error().in(std::format("draft \"{}\"", options.draft));
  PACELINE_TRY_VOID(
      compat::check_vocabularies(cast.target.model->vocabulary(), draft->model->vocabulary()));
  cast.draft = *std::move(draft);
  return cast;
}

compat::CanaryDrafter make_drafter(const CanaryOptions& options, const CanaryCast& cast) {
  return {.name = cast.draft ? "draft" : "lookup",
          .most_branches = cast.draft ? 1U : 3U,
          .make = [&](std::size_t context, std::size_t branches) {
            return make_canary_drafter(options, cast, context, branches);
          }};
}

Result<std::vector<compat::CanaryPrompt>> make_prompts(const CanaryCast& cast) {
  std::vector<compat::CanaryPrompt> prompts;
  for (const char* name : k_fixtures) {
    PACELINE_TRY(const auto fixture, workload::builtin_fixture(name));
    bench::PrepareLimits limits;
    limits.context = 1 << 24;
    limits.max_prompts = 1;
    auto prepared = bench::prepare(fixture, cast.target.model->vocabulary(), limits);
    if (!prepared) return prepared.error().in(std::format("fixture \"{}\"", name));
    prompts.push_back({prepared->front().id, std::move(prepared->front().tokens)});
  }
  return prompts;
}

/// What every profile hands to the output.
struct Outcome {
  std::string word;
  int exit_code = k_exit_done;
  Json equality;
  Json hardware;
  std::string table;
};

Result<Outcome> run_equality(const CanaryOptions& options, const CanaryCast& cast,
                             std::stop_token stop) {
  const record::ModelEvidence& target = cast.target.evidence;
  compat::CanarySetup setup;
  setup.vocabulary = &cast.target.model->vocabulary();
  setup.make_target = [&](runtime::RuntimeLimits limits) {
    limits.threads = options.threads;
    return cast.target.model->create_runtime(limits);
  };
  setup.drafter = make_drafter(options, cast);
  PACELINE_TRY(setup.prompts, make_prompts(cast));
  setup.depth = options.num_draft_tokens;
  setup.max_tokens = options.max_tokens;
  setup.most_context = options.max_context_tokens.value_or(target.trained_context);
  setup.sliding_window = target.sliding_window;
  setup.temperature = options.temperature;
  setup.seed = options.seed;
  ProgressLine progress;
  setup.progress = [&](const compat::CanaryProgress& p) {
    progress.show(std::format("canary {}/{}, {}", p.done, p.total, p.what));
  };
  const double limit = options.time_limit.value_or(k_equality_seconds);
  const bench::Deadline deadline(std::chrono::duration<double>(limit), stop);
  auto report = compat::run_canary(setup, deadline.token());
  progress.clear();
  if (!report) return report.error();
  if (deadline.expired() && !report->complete) {
    report->incomplete_reason =
        std::format("the time limit of {:.0f} s was reached; raise --time-limit", limit);
  }
  Outcome outcome;
  outcome.word = compat::to_string(report->result());
  outcome.equality = compat::to_json(*report);
  outcome.table = compat::canary_table(*report, terminal_width());
  switch (report->result()) {
    case compat::CanaryResult::equal:
    case compat::CanaryResult::numeric_tie:
      break;
    case compat::CanaryResult::different:
      outcome.exit_code = k_exit_outputs_differ;
      break;
    case compat::CanaryResult::inconclusive:
      outcome.exit_code = k_exit_inconclusive;
      break;
    case compat::CanaryResult::not_exercised:
      outcome.exit_code = k_exit_not_benchmarkable;
      break;
  }
  if (stop.stop_requested() && !report->complete) outcome.exit_code = k_exit_cancelled;
  return outcome;
}

Result<Outcome> run_hardware(const CanaryOptions& options, const CanaryCast& cast,
                             std::stop_token stop) {
  auto result = options.profile == "performance"  ? run_performance_canary(options, cast, stop)
                : options.profile == "small-host" ? run_small_host_canary(options, cast, stop)
                                                  : run_capacity_canary(options, cast, stop);
  if (!result) return result.error();
  Outcome outcome;
  outcome.word = !result->complete ? "inconclusive" : result->passed ? "passed" : "failed";
  outcome.hardware = to_json(*result);
  outcome.table =
      hardware_table(options.profile, *result) + std::format("\nresult: {}\n", outcome.word);
  if (!result->complete && !result->timed_out) {
    outcome.exit_code = k_exit_cancelled;
  } else if (result->outputs_different > 0) {
    outcome.exit_code = k_exit_outputs_differ;
  } else if (!result->complete) {
    outcome.exit_code = k_exit_inconclusive;
  } else if (!result->passed) {
    outcome.exit_code = k_exit_do_not_enable;
  }
  return outcome;
}

Json model_json(const record::ModelEvidence& model) {
  return {{"name", model.name},
          {"sha256", model.sha256 ? Json(*model.sha256) : Json()},
          {"architecture", model.architecture},
          {"file_type", model.file_type},
          {"sliding_window", model.sliding_window},
          {"inflation", model.inflation ? record::to_json(*model.inflation) : Json()}};
}

Json document(const CanaryOptions& options, const CanaryCast& cast, const Outcome& outcome) {
  return {{"schema_version", k_schema_version},
          {"profile", options.profile},
          {"paceline_version", k_version},
          {"generated_at_unix_seconds", SystemClock().unix_seconds()},
          {"target", model_json(cast.target.evidence)},
          {"drafter",
           {{"kind", cast.draft ? "draft_model" : "lookup"},
            {"model", cast.draft ? model_json(cast.draft->evidence) : Json()}}},
          {"num_draft_tokens", options.num_draft_tokens},
          {"result", outcome.word},
          {"equality", outcome.equality},
          {"hardware", outcome.hardware}};
}

Result<int> run(const CanaryOptions& options, std::stop_token stop) {
  PACELINE_TRY(const CanaryCast cast, open_cast(options, stop));
  PACELINE_TRY(const Outcome outcome, options.profile == "equality"
                                          ? run_equality(options, cast, stop)
                                          : run_hardware(options, cast, stop));
  const std::string text =
      options.format == "json"
          ? dump_json(document(options, cast, outcome), 2) + "\n"
          : std::format("canary {}: target {}, {}, up to {} draft tokens\n\n{}", options.profile,
                        printable(options.target),
                        cast.draft ? "draft " + printable(options.draft) : "prompt lookup",
                        options.num_draft_tokens, outcome.table);
  PACELINE_TRY_VOID(print_result(text));
  return outcome.exit_code;
}

}  // namespace

Command add_canary_command(CLI::App& app) {
  auto options = std::make_shared<CanaryOptions>();
  CLI::App* command = app.add_subcommand(
      "canary", "Prove that speculation writes the same tokens as plain decoding, on this host");
  CanaryOptions& o = *options;
  command->footer(
      "Exit: 0 equal or numeric_tie or passed, 13 different, 10 a published profile failed, 11 "
      "time was up,\n12 the pair cannot speculate or nothing was drafted, 2 usage, 3 input or "
      "environment, 130 "
      "cancelled.");
  command->add_option("--target,-t", o.target, "Model whose output is compared, named as in bench")
      ->capture_default_str();
  command->add_option("--draft,-d", o.draft, "Draft model [none: prompt lookup]");
  command->add_flag("--lookup", o.lookup, "Prompt lookup, the default without --draft");
  command
      ->add_option("--num-draft-tokens,-n", o.num_draft_tokens,
                   "Deepest draft, 1 to 16; every depth from 1 is tried")
      ->check(count_between(1, 16))
      ->capture_default_str();
  command
      ->add_option("--profile", o.profile,
                   "equality: plain against speculative, token for token. performance: 5 and 5 "
                   "runs and a sustained window against the published floors. small-host: the two "
                   "published short fixtures. capacity: a prompt of 90 % of the context cap")
      ->transform(CLI::IsMember({"equality", "performance", "small-host", "capacity"}))
      ->capture_default_str();
  command->add_option("--max-tokens", o.max_tokens, "Tokens per text, equality")
      ->check(count_between(8, 1 << 16))
      ->capture_default_str();
  command
      ->add_option("--max-context-tokens", o.max_context_tokens,
                   "Context that is advertised [what the target was trained for; the published "
                   "profiles: at most the cap of this host's memory]")
      ->check(count_between(32, runtime::k_longest_context));
  command
      ->add_option("--temperature", o.temperature,
                   "Of the sampled texts, equality; the others are "
                   "greedy")
      ->check(number_between(0.01, 100.0))
      ->capture_default_str();
  command->add_option("--seed", o.seed, "Of the sampled texts")->capture_default_str();
  add_runtime_option(*command, o.runtime);
  command->add_option("--threads", o.threads, "Threads [the cores of the affinity mask]")
      ->check(count_between(1, 1024));
  command
      ->add_option("--time-limit", o.time_limit,
                   "Seconds; what is known by then is shown [equality 1200, else 3600]")
      ->check(number_between(0.001, 1e7));
  command
      ->add_option("--sustained-seconds", o.sustained_seconds,
                   "Sustained window, performance [300]")
      ->check(number_between(0.0, 1e6));
  command
      ->add_option("--last-window-seconds", o.last_window_seconds,
                   "End of it that is judged, performance [60]")
      ->check(number_between(0.001, 1e6));
  command->add_option("--format", o.format, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  command->add_flag("--offline", o.offline, "Never fetch a model");
  return [options](std::stop_token stop) {
    const auto code = run(*options, stop);
    if (code) return *code;
    print_error(code.error());
    return exit_code(code.error());
  };
}

}  // namespace paceline::cli
