// `paceline bench`: options in, models opened, arms made ready, the run, the result out.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <format>
#include <memory>

#include "bench/bench.hpp"
#include "cli/bench_options.hpp"
#include "cli/bench_output.hpp"
#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/memory_fit.hpp"
#include "cli/open_model.hpp"
#include "cli/resume.hpp"
#include "cli/terminal.hpp"
#include "compat/compare.hpp"
#include "core/file.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "core/version.hpp"
#include "draft/draft_model.hpp"
#include "draft/lookup.hpp"
#include "draft/scripted.hpp"
#include "host/host.hpp"

namespace paceline::cli {

namespace {

constexpr std::size_t k_default_max_tokens = 96;
constexpr double k_quick_seconds = 180;

/// Everything that must stay alive while the contenders run.
struct Cast {
  OpenedModel target;
  std::vector<OpenedModel> drafts;
  std::unique_ptr<runtime::Runtime> target_runtime;
  std::vector<std::unique_ptr<draft::Drafter>> drafters;  // before the runtimes they use, in order
  std::unique_ptr<draft::Drafter> scripted;               // of the sample under way
  std::vector<bench::Contender> contenders;
};

/// A large model on a slow disk takes longer than one answer: the limit can only be raised.
OpenOptions open_options(const BenchOptions& options, std::stop_token stop) {
  OpenOptions open{.offline = options.offline, .stop = std::move(stop)};
  open.load_limit_seconds = std::max(open.load_limit_seconds, options.run_time_limit);
  if (const auto choice = parse_runtime_choice(options.runtime)) open.runtime = *choice;
  return open;
}

Result<void> add_drafter(const record::Arm& arm, const BenchOptions& options,
                         const runtime::RuntimeLimits& limits, Cast& cast,
                         record::Environment& environment, std::stop_token stop,
                         bench::Contender& contender) {
  const std::size_t vocabulary = cast.target.model->vocabulary().size();
  switch (arm.kind) {
    case record::ArmKind::plain:
      return {};
    case record::ArmKind::lookup: {
      PACELINE_TRY(auto drafter, draft::make_lookup_drafter({}));
      cast.drafters.push_back(std::move(drafter));
      break;
    }
    case record::ArmKind::draft_model: {
      auto opened = std::ranges::find(cast.drafts, *arm.draft_model,
                                      [](const OpenedModel& m) { return m.evidence.name; });
      if (opened == cast.drafts.end()) {
        Result<OpenedModel> model = cast.target;  // one copy of the weights is enough
        if (*arm.draft_model != options.target) {
          OpenOptions open = open_options(options, stop);
          open.probed = true;  // when its memory was added up
          model = open_model(*arm.draft_model, open);
        }
        if (!model) return model.error().in(std::format("draft \"{}\"", *arm.draft_model));
        PACELINE_TRY_VOID(compat::check_vocabularies(cast.target.model->vocabulary(),
                                                     model->model->vocabulary()));
        environment.drafts.push_back(model->evidence);
        cast.drafts.push_back(*std::move(model));
        opened = std::prev(cast.drafts.end());
      }
      runtime::RuntimeLimits own = limits;
      const std::size_t trained = opened->evidence.trained_context;
      if (trained > 0) own.context = std::min(own.context, trained);
      PACELINE_TRY(auto runtime, opened->model->create_runtime(own));
      environment.draft_runtimes.push_back(runtime_evidence(*runtime));
      PACELINE_TRY(auto drafter,
                   draft::make_draft_model_drafter(std::move(runtime),
                                                   {.confidence = arm.draft_confidence.value_or(0),
                                                    .target_vocabulary = vocabulary}));
      cast.drafters.push_back(std::move(drafter));
      break;
    }
    case record::ArmKind::scripted:
      contender.drafter = [&cast, vocabulary, acceptance = *arm.scripted_acceptance,
                           seed = options.sampling.seed](
                              const bench::SampleFacts& facts) -> Result<draft::Drafter*> {
        cast.scripted =
            draft::make_scripted_drafter({.oracle = facts.plain_tokens,
                                          .prompt_tokens = facts.prompt_tokens,
                                          .right = draft::right_with_probability(acceptance, seed),
                                          .vocabulary = vocabulary});
        return cast.scripted.get();
      };
      return {};
  }
  contender.drafter = [drafter = cast.drafters.back().get()](
                          const bench::SampleFacts&) -> Result<draft::Drafter*> { return drafter; };
  return {};
}

std::map<std::string, std::string> read_packages() {
  std::map<std::string, std::string> packages;
  const char* path = std::getenv("PACELINE_ROOT_PACKAGES");
  if (path == nullptr) return packages;
  const auto text = read_file(path);
  if (!text) {
    log_warning("the package versions are not in the record: {}", text.error().message);
    return packages;
  }
  for (const std::string_view line : split(*text, '\n')) {
    const auto columns = split(line, '\t');
    if (columns.size() >= 2) packages[std::string(columns[0])] = columns[1];
  }
  return packages;
}

record::FixtureEvidence describe(const workload::Fixture& fixture, std::size_t prompts,
                                 std::size_t repetitions) {
  return {.id = fixture.id,
          .content_class = std::string(workload::to_string(fixture.content_class)),
          .source = fixture.source,
          .sha256 = fixture.sha256,
          .prompts = prompts,
          .repetitions = repetitions,
          .stream = fixture.stream,
          .temperature = fixture.temperature,
          .top_p = fixture.top_p,
          .max_tokens = fixture.max_tokens.value_or(k_default_max_tokens)};
}

class Bench {
 public:
  Bench(const BenchOptions& options, std::stop_token stop) : options_(options), stop_(stop) {}

  Result<int> run();

 private:
  Result<void> make_plan();
  Result<void> find_obstacles();
  Result<void> make_cast();
  Result<void> prepare_prompts();
  Result<void> keep();
  Result<void> publish();
  Result<int> broken_off(const Error& error);

  const BenchOptions& options_;
  std::stop_token stop_;
  BenchOutput output_;
  std::optional<record::Record> earlier_;  // that --resume continues
  gate::Policy policy_;
  std::vector<workload::Fixture> fixtures_;
  std::size_t repetitions_ = 1;
  runtime::RuntimeLimits limits_;
  Cast cast_;
  record::Record record_;
  bench::Setup setup_;
};

Result<void> Bench::make_plan() {
  record::Plan& plan = record_.plan;
  PACELINE_TRY(plan.arms, make_arms(options_));
  PACELINE_TRY(fixtures_, choose_fixtures(options_));
  PACELINE_TRY(repetitions_, choose_repetitions(options_, fixtures_));
  PACELINE_TRY(policy_, make_policy(options_));
  PACELINE_TRY(output_, BenchOutput::open(options_));
  plan.sampling = options_.sampling;
  plan.order_seed = options_.sampling.seed;
  plan.control = options_.control;
  plan.quick = options_.quick;
  plan.time_limit_seconds = options_.time_limit;
  if (options_.quick && !plan.time_limit_seconds) plan.time_limit_seconds = k_quick_seconds;
  plan.run_time_limit_seconds = options_.run_time_limit;
  for (const workload::Fixture& fixture : fixtures_) {
    const std::size_t most = prompts_per_fixture(options_);
    const std::size_t prompts =
        most == 0 ? fixture.prompts.size() : std::min(most, fixture.prompts.size());
    plan.fixtures.push_back(describe(fixture, prompts, repetitions_));
  }
  if (options_.resume.empty()) return {};
  PACELINE_TRY(earlier_, read_earlier(options_.resume));
  return check_plan(options_.resume, *earlier_, plan);
}

/// Sizes everything before anything is loaded, and sets the limits. Arms that do not fit are left
/// out and say why; drafts are taken in as long as they fit beside each other.
Result<void> Bench::find_obstacles() {
  PACELINE_TRY(auto fit, MemoryFit::open(options_.target, options_.memory_limit,
                                         open_options(options_, stop_)));
  PACELINE_TRY(const std::size_t context,
               choose_context(options_.max_context_tokens, !options_.drafts.empty(),
                              fit.target().trained_context));
  std::size_t deepest = 0;
  for (const record::Arm& arm : record_.plan.arms) {
    deepest = std::max(deepest, arm.num_draft_tokens);
  }
  limits_ = usual_limits(context, deepest, options_.threads);
  record_.plan.max_context_tokens = context;
  const auto obstacle = [&](const record::Arm& arm, const std::string& sentence) {
    record_.obstacles.push_back({arm.id, "does_not_fit", sentence});
  };
  PACELINE_TRY(const compat::FitReport alone, fit.judge(limits_));
  if (alone.fit != compat::Fit::fits) {
    PACELINE_TRY(const std::size_t longest, fit.largest_context(limits_, 1));
    for (const record::Arm& arm : record_.plan.arms) {
      obstacle(arm, std::format("{} with a context of {}; {}", alone.sentence, context,
                                longest > 0 ? std::format("a context of {} would fit "
                                                          "(--max-context-tokens)",
                                                          longest)
                                            : "no context would fit"));
    }
    return {};
  }
  for (const record::Arm& arm : record_.plan.arms) {
    if (arm.kind != record::ArmKind::draft_model || fit.has_draft(*arm.draft_model)) continue;
    PACELINE_TRY_VOID(fit.add_draft(*arm.draft_model));
    PACELINE_TRY(const compat::FitReport pair, fit.judge(limits_));
    if (pair.fit == compat::Fit::fits) continue;
    fit.drop_last_draft();
    for (const record::Arm& same : record_.plan.arms) {
      if (same.draft_model == arm.draft_model) obstacle(same, pair.sentence);
    }
  }
  return {};
}

Result<void> Bench::make_cast() {
  record::Environment& environment = record_.environment;
  environment.paceline_version = k_version;
  environment.build_type = k_build_type;
  environment.compiler = k_compiler;
  environment.sanitizers = k_sanitizers;
  environment.host = host::read_host_info();
  environment.packages = read_packages();

  PACELINE_TRY_VOID(find_obstacles());
  const auto has_obstacle = [&](const record::Arm& arm) {
    return std::ranges::find(record_.obstacles, arm.id, &record::Obstacle::arm) !=
           record_.obstacles.end();
  };
  if (std::ranges::all_of(record_.plan.arms,
                          [&](const record::Arm& arm) {
                            return arm.kind == record::ArmKind::plain || has_obstacle(arm);
                          }) &&
      !record_.obstacles.empty()) {
    return {};  // there would be nothing to compare
  }

  OpenOptions open = open_options(options_, stop_);
  open.probed = true;  // when its memory was added up
  auto target = open_model(options_.target, open);
  if (!target) return target.error().in(std::format("target \"{}\"", options_.target));
  cast_.target = *std::move(target);
  environment.target = cast_.target.evidence;
  PACELINE_TRY(cast_.target_runtime, cast_.target.model->create_runtime(limits_));
  environment.target_runtime = runtime_evidence(*cast_.target_runtime);
  for (record::Arm& arm : record_.plan.arms) arm.runtime = environment.target_runtime.name;
  if (options_.runtime == "auto") {
    log_info("computing with {}: {}", environment.target_runtime.name,
             environment.target_runtime.backend);
  }
  for (const record::Arm& arm : record_.plan.arms) {
    if (has_obstacle(arm)) continue;
    bench::Contender contender{.arm = arm, .target = cast_.target_runtime.get(), .drafter = {}};
    PACELINE_TRY_VOID(add_drafter(arm, options_, limits_, cast_, environment, stop_, contender));
    cast_.contenders.push_back(std::move(contender));
  }
  return {};
}

Result<void> Bench::prepare_prompts() {
  bench::PrepareLimits limits;
  limits.context = limits_.context;
  limits.default_max_tokens = k_default_max_tokens;
  limits.max_prompts = prompts_per_fixture(options_);
  limits.repetitions = repetitions_;
  limits.sampling = options_.sampling;
  for (const workload::Fixture& fixture : fixtures_) {
    auto prompts = bench::prepare(fixture, cast_.target.model->vocabulary(), limits);
    if (!prompts) return prompts.error().in(std::format("fixture \"{}\"", fixture.id));
    std::ranges::move(*prompts, std::back_inserter(setup_.prompts));
  }
  return {};
}

std::size_t finished_blocks(const record::Record& record) {
  return static_cast<std::size_t>(
      std::ranges::count(record.blocks, record::CellStatus::ok, &record::Block::status));
}

Result<void> Bench::keep() {
  const gate::Evaluation evaluation = gate::evaluate(record_, policy_);
  return output_.keep(report::render(record_, evaluation, report::Format::json),
                      finished_blocks(record_));
}

Result<void> Bench::publish() {
  const gate::Evaluation evaluation = gate::evaluate(record_, policy_);
  const report::Style style{.width = output_.is_stdout() ? terminal_width() : 100,
                            .colour = output_.is_stdout() && terminal_has_colour()};
  return output_.publish(report::render(record_, evaluation, output_.format(), style),
                         finished_blocks(record_));
}

/// Says what is kept, and shows what is known so far.
Result<int> Bench::broken_off(const Error& error) {
  std::fprintf(stderr, "paceline: %s\n", output_.kept_sentence().c_str());
  if (finished_blocks(record_) == 0) return error;
  if (const auto published = publish(); !published) print_error(published.error());
  return error;
}

Result<int> Bench::run() {
  PACELINE_TRY_VOID(make_plan());
  PACELINE_TRY_VOID(make_cast());
  if (!cast_.contenders.empty()) PACELINE_TRY_VOID(prepare_prompts());
  SystemClock clock;
  record_.generated_at_unix_seconds = clock.unix_seconds();
  if (earlier_) {
    PACELINE_TRY_VOID(resume_from(options_.resume, *std::move(earlier_), record_));
  }

  ProgressLine progress;
  setup_.contenders = cast_.contenders;
  if (cast_.target.model) setup_.vocabulary = &cast_.target.model->vocabulary();
  setup_.sustained_seconds = options_.sustained_seconds;
  setup_.last_window_seconds = options_.last_window_seconds;
  setup_.progress = [&](const bench::Progress& p) {
    progress.show(std::format(
        "{} {}/{}, {} gone{}", p.stage, p.done, p.total, format_seconds(p.elapsed_seconds),
        p.seconds_left ? std::format(", about {} left", format_seconds(*p.seconds_left)) : ""));
  };
  // Until something is measured, whatever is on disk stays as it is.
  setup_.save = [&](const record::Record& record) {
    return finished_blocks(record) == 0 ? Result<void>{} : keep();
  };
  const auto ran = bench::run(setup_, record_, clock, stop_);
  progress.clear();
  if (!ran) return broken_off(ran.error());
  if (finished_blocks(record_) == 0) PACELINE_TRY_VOID(keep());
  if (const auto published = publish(); !published) {
    return published.error().in(
        std::format("the record is kept in \"{}\", and --resume with it writes the result again",
                    output_.record_file().string()));
  }
  output_.finish();
  if (options_.output.empty()) {
    std::fprintf(stderr, "paceline: the record is in %s\n", output_.record_file().c_str());
  }
  return exit_code(gate::evaluate(record_, policy_));
}

}  // namespace

Command add_bench_command(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand(
      "bench", "Measure whether speculation pays for a target on this host, and give a verdict");
  command->footer(
      "Exit: 0 enable, 10 do not enable, 11 inconclusive, 12 not benchmarkable, 13 outputs "
      "differ,\n"
      "2 usage, 3 input or environment, 70 bug, 130 cancelled.\n\n"
      "Examples:\n"
      "  paceline bench                                  smollm2-135m with prompt lookup\n"
      "  paceline bench -t big.gguf -d small.gguf -n 2 -n 4 --quick\n"
      "  paceline bench -t big.gguf --lookup -f my-prompts.jsonl -o result.json");
  add_bench_options(*command, *options);
  return [options](std::stop_token stop) {
    const auto code = Bench(*options, stop).run();
    if (code) return *code;
    print_error(code.error());
    return exit_code(code.error());
  };
}

}  // namespace paceline::cli
