// `paceline plan`: the cost curve of a target, and from which acceptance speculation pays.
#include <algorithm>
#include <format>
#include <memory>

#include "bench/deadline.hpp"
#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/memory_fit.hpp"
#include "cli/open_model.hpp"
#include "cli/terminal.hpp"
#include "cli/validators.hpp"
#include "core/clock.hpp"
#include "core/file.hpp"
#include "core/json.hpp"
#include "core/text.hpp"
#include "host/host.hpp"
#include "plan/report.hpp"
#include "runtime/native/native_model.hpp"
#include "runtime/toy/toy.hpp"

namespace paceline::cli {

namespace {

constexpr std::uint64_t k_most_buffer = std::uint64_t{1} << 30;
constexpr std::uint64_t k_least_buffer = std::uint64_t{64} << 20;
// Filled in and decoded in every pass; what it says does not matter for the time of a dense model.
constexpr const char* k_text =
    "The lighthouse keeper wrote down the weather every morning: wind from the west, light rain, "
    "and a sea the colour of slate. In the afternoon two boats passed; the second one waved.";

struct PlanOptions {
  std::string target = "smollm2-135m";
  std::string draft;
  std::vector<std::string> runtimes = {"auto"};
  std::string isa;
  std::vector<std::size_t> threads = {0};
  plan::CurveSettings curve = {.rows = {1, 2, 4, 8, 16}, .contexts = {64}};
  std::optional<double> time_limit;
  bool offline = false;
  std::string format;
  std::string output;
};

Result<std::optional<runtime::native::Isa>> choose_isa(const std::string& word) {
  if (word.empty()) return std::nullopt;
  std::vector<std::string> known;
  for (const runtime::native::Isa isa : runtime::native_isas()) {
    known.emplace_back(runtime::native::to_string(isa));
    if (known.back() == word) return isa;
  }
  return fail(ErrorCode::invalid_argument,
              std::format("--isa \"{}\": this processor has {}", escape(word), join(known, ", ")));
}

/// The models that are measured, and what must outlive their runtimes.
struct Cast {
  std::vector<OpenedModel> models;
  std::vector<plan::Subject> targets;
  std::vector<plan::Subject> drafts;
};

Result<void> check_fit(const PlanOptions& options, const OpenOptions& open,
                       const runtime::RuntimeLimits& limits) {
  PACELINE_TRY(auto fit, MemoryFit::open(options.target, {}, open));
  const std::size_t trained = fit.target().trained_context;
  if (trained > 0 && limits.context > trained) {
    return fail(ErrorCode::invalid_argument,
                std::format("a context of {} and {} rows behind it are more than the {} tokens "
                            "that the target was trained for",
                            std::ranges::max(options.curve.contexts),
                            std::ranges::max(options.curve.rows), trained));
  }
  if (!options.draft.empty()) PACELINE_TRY_VOID(fit.add_draft(options.draft));
  PACELINE_TRY(const compat::FitReport report, fit.judge(limits));
  if (report.fit == compat::Fit::fits) return {};
  return fail(ErrorCode::out_of_memory, report.sentence, "does_not_fit");
}

Result<plan::Subject> make_subject(const OpenedModel& model, const runtime::RuntimeLimits& limits) {
  plan::Subject subject;
  PACELINE_TRY(subject.runtime, model.model->create_runtime(limits));
  subject.evidence = runtime_evidence(*subject.runtime);
  PACELINE_TRY(subject.text, model.model->vocabulary().tokenize(k_text, {}));
  if (subject.text.empty()) {
    return fail(ErrorCode::bad_format,
                std::format("\"{}\" makes no tokens of plain text", model.evidence.name));
  }
  return subject;
}

Result<void> add_runtime(const PlanOptions& options, const std::string& word, OpenOptions open,
                         Cast& cast) {
  PACELINE_TRY(open.runtime, parse_runtime_choice(word));
  PACELINE_TRY_VOID(check_fit(options, open, plan::limits_for(options.curve, 0)));
  open.probed = true;  // the sizes were read in a child process first
  auto target = open_model(options.target, open);
  if (!target) return target.error().in(std::format("target \"{}\"", options.target));
  cast.models.push_back(*std::move(target));
  const std::size_t target_index = cast.models.size() - 1;
  if (!options.draft.empty() && options.draft != options.target) {
    auto draft = open_model(options.draft, open);
    if (!draft) return draft.error().in(std::format("draft \"{}\"", options.draft));
    cast.models.push_back(*std::move(draft));
  }
  for (const std::size_t threads : options.threads) {
    const runtime::RuntimeLimits limits = plan::limits_for(options.curve, threads);
    PACELINE_TRY(auto subject, make_subject(cast.models[target_index], limits));
    const auto same = [&](const plan::Subject& other) {
      return other.evidence.name == subject.evidence.name &&
             other.evidence.threads == subject.evidence.threads;
    };
    if (std::ranges::any_of(cast.targets, same)) {
      return fail(ErrorCode::invalid_argument,
                  std::format("runtime {} with {} threads was asked for twice; leave one out",
                              subject.evidence.name, subject.evidence.threads));
    }
    cast.targets.push_back(std::move(subject));
    if (options.draft.empty()) continue;
    PACELINE_TRY(auto draft, make_subject(cast.models.back(), limits));
    draft.draft = true;
    cast.drafts.push_back(std::move(draft));
  }
  return {};
}

/// One meter for each number of threads; the memory that they read is small beside what is free.
Result<std::vector<runtime::CeilingMeter>> make_meters(const PlanOptions& options) {
  PACELINE_TRY(const auto isa, choose_isa(options.isa));
  const std::uint64_t free =
      host::read_host_state().memory_available_bytes.value_or(4 * k_most_buffer);
  const std::uint64_t bytes =
      std::clamp(free / 8 / options.threads.size(), k_least_buffer, k_most_buffer);
  std::vector<runtime::CeilingMeter> meters;
  for (const std::size_t threads : options.threads) {
    PACELINE_TRY(auto meter,
                 runtime::CeilingMeter::create(threads == 0 ? host::allowed_cores() : threads, isa,
                                               static_cast<std::size_t>(bytes)));
    meters.push_back(std::move(meter));
  }
  return meters;
}

std::string progress_text(const plan::Progress& p) {
  return p.repeat == 0 ? std::format("filling the context: {} tokens", p.context)
                       : std::format("context {}: repeat {} of {}", p.context, p.repeat, p.repeats);
}

Result<plan::Report> measure(const PlanOptions& options, std::stop_token stop) {
  plan::Report report;
  report.settings = options.curve;
  report.host = host::read_host_info();
  report.host_at_start = host::read_host_state();
  OpenOptions open{.offline = options.offline, .stop = stop};
  PACELINE_TRY(open.isa, choose_isa(options.isa));
  const bool toy = runtime::is_toy_name(options.target);
  std::vector<runtime::CeilingMeter> meters;
  if (!toy) {
    PACELINE_TRY(meters, make_meters(options));
  }
  Cast cast;
  for (const std::string& word : options.runtimes) {
    PACELINE_TRY_VOID(add_runtime(options, word, open, cast));
  }
  report.target = cast.models.front().evidence;
  if (!options.draft.empty()) {
    report.draft =
        (options.draft == options.target ? cast.models.front() : cast.models[1]).evidence;
  }
  for (const plan::Subject& subject : cast.targets) {
    report.runtimes.push_back(subject.evidence);
    report.isas.emplace_back(meters.empty() ? ""
                                            : runtime::native::to_string(meters.front().isa()));
  }
  for (const plan::Subject& subject : cast.drafts) report.drafts.push_back(subject.evidence);
  if (toy) {
    report.no_work_reason = "a toy has no weights";
  } else if (auto work = plan::read_pass_work(cast.models.front().model->info().path)) {
    report.work = *work;
  } else {
    report.no_work_reason = work.error().message;
  }
  std::vector<plan::Subject> subjects;
  std::ranges::move(cast.targets, std::back_inserter(subjects));
  std::ranges::move(cast.drafts, std::back_inserter(subjects));
  const bench::Deadline deadline(std::chrono::duration<double>(options.time_limit.value_or(1e9)),
                                 stop);
  ProgressLine progress;
  auto measured =
      plan::measure_curves(subjects, meters, options.curve, deadline.token(),
                           [&](const plan::Progress& p) { progress.show(progress_text(p)); });
  progress.clear();
  if (!measured) {
    if (measured.error().code == ErrorCode::cancelled && deadline.expired()) {
      return fail(ErrorCode::timed_out,
                  std::format("no repeat was whole after {:.0f} s; raise --time-limit",
                              *options.time_limit));
    }
    return measured.error();
  }
  report.measured = *std::move(measured);
  report.host_at_end = host::read_host_state();
  report.generated_at_unix_seconds = SystemClock().unix_seconds();
  return report;
}

/// Nothing but an earlier plan in the same format is replaced.
Result<void> check_output(const std::string& path, bool json) {
  PACELINE_TRY_VOID(check_writable(path));
  std::error_code code;
  if (is_character_device(path) || !std::filesystem::exists(path, code) ||
      std::filesystem::file_size(path, code) == 0) {
    return {};
  }
  PACELINE_TRY(const std::string text, read_file(path));
  if (!json && text.starts_with(plan::k_first_words)) return {};
  if (json) {
    const auto document = parse_json(text, path);
    if (document && document->is_object() && document->contains("curves")) return {};
  }
  return fail(ErrorCode::invalid_argument,
              std::format("{} holds something else than a plan in this format; remove it or name "
                          "another file with -o",
                          std::format("\"{}\"", printable(path))));
}

Result<int> run(const PlanOptions& options, std::stop_token stop) {
  const bool json = options.format == "json" || (options.format.empty() && !options.output.empty());
  const bool to_file = !options.output.empty() && options.output != "-";
  if (to_file) {
    PACELINE_TRY_VOID(check_output(options.output, json));
  }
  PACELINE_TRY(const plan::Report report, measure(options, stop));
  const std::string text =
      json ? dump_json(plan::to_json(report), 2) + "\n" : plan::to_text(report);
  PACELINE_TRY_VOID(to_file ? replace_file(options.output, text) : print_result(text));
  return stop.stop_requested() ? k_exit_cancelled : k_exit_done;
}

}  // namespace

Command add_plan_command(CLI::App& app) {
  auto options = std::make_shared<PlanOptions>();
  PlanOptions& o = *options;
  CLI::App* command = app.add_subcommand(
      "plan", "How long a pass over 1, 2, 4, ... rows takes, and when speculation can pay");
  command->footer(
      "A round of k drafted tokens is one pass over k + 1 rows. C(n) is the time of a pass over n "
      "rows, in\npasses over one row: the flatter it is, the less acceptance speculation needs. "
      "Passes of up to 64\nrows are verified (each row wants its argmax), wider ones are prompt "
      "chunks.\nExit: 0 done, 2 usage, 3 input or environment, 12 it does not fit, 130 cancelled.");
  command->add_option("--target,-t", o.target, "Model that is measured, named as in bench")
      ->capture_default_str();
  command->add_option("--draft,-d", o.draft,
                      "Draft model, whose cost per token is measured too [none: drafting costs "
                      "nothing, as with prompt lookup]");
  command
      ->add_option("--runtime", o.runtimes,
                   "auto, native or llama; given twice, both are measured side by side")
      ->check(CLI::IsMember({"auto", "native", "llama"}))
      ->capture_default_str();
  command->add_option("--isa", o.isa,
                      "Instruction set of the native runtime and of the ceilings [the best here]");
  command
      ->add_option("--threads", o.threads,
                   "Threads, one number or several [the cores of the affinity mask]")
      ->delimiter(',')
      ->check(count_between(1, 1024));
  command->add_option("--rows", o.curve.rows, "Rows of a pass, for example 1,2,4,8,16")
      ->delimiter(',')
      ->check(count_between(1, 4096))
      ->capture_default_str();
  command
      ->add_option("--context", o.curve.contexts,
                   "Committed tokens in front of the pass, one number or several")
      ->delimiter(',')
      ->check(count_between(1, 1 << 20))
      ->capture_default_str();
  command
      ->add_option("--sequences", o.curve.sequences,
                   "Sequences that the rows are spread over, each with such a context")
      ->check(count_between(1, 256))
      ->capture_default_str();
  command
      ->add_option("--repeats", o.curve.repeats, "Times that everything is measured, interleaved")
      ->check(count_between(1, 10000))
      ->capture_default_str();
  command->add_option("--seed", o.curve.seed, "Of the order inside a repeat")
      ->capture_default_str();
  command->add_option("--time-limit", o.time_limit, "Seconds; whole repeats until then are shown")
      ->check(number_between(0.001, 1e7));
  command->add_option("--format", o.format, "table or json [table; json with -o]")
      ->check(CLI::IsMember({"table", "json"}));
  command->add_option("--output,-o", o.output,
                      "File for the result; stdout then stays empty. - is stdout");
  command->add_flag("--offline", o.offline, "Never fetch a model");
  return [options](std::stop_token stop) {
    const auto code = run(*options, stop);
    if (code) return *code;
    print_error(code.error());
    return code.error().word == "does_not_fit" ? k_exit_not_benchmarkable : exit_code(code.error());
  };
}

}  // namespace paceline::cli
