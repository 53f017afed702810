#include "cli/child_probe.hpp"

#include <sys/resource.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <format>
#include <memory>
#include <string>
#include <system_error>

#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/terminal.hpp"
#include "core/json.hpp"
#include "core/text.hpp"
#include "models/process.hpp"
#include "runtime/largest.hpp"
#include "runtime/llama/llama_model.hpp"

#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

namespace paceline::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds k_time_limit{60};
constexpr int k_signal_base = 128;
constexpr const char* k_command = "probe-vocabulary";
// Larger files would double the time until a run begins.
constexpr std::uint64_t k_small_file_bytes = std::uint64_t{64} << 20;
constexpr std::size_t k_pass_context = 64;  // tokens

Result<fs::path> own_program() {
  std::error_code code;
#ifdef __APPLE__
  char name[4096];
  std::uint32_t size = sizeof name;
  if (_NSGetExecutablePath(name, &size) == 0) return fs::path(name);
#else
  const fs::path path = fs::read_symlink("/proc/self/exe", code);
  if (!code) return path;
#endif
  return fail(ErrorCode::io, std::format("this program's own file cannot be found ({}), so no "
                                         "vocabulary is read",
                                         code.message()));
}

/// The last line that says something; an abort of the library stands there.
std::string last_line(std::string_view text) {
  std::string_view last;
  for (const std::string_view line : split(text, '\n')) {
    if (!trim(line).empty()) last = trim(line);
  }
  constexpr std::size_t k_longest = 400;
  std::string shown = printable(last);
  if (shown.size() <= k_longest) return shown;
  shown.resize(k_longest);
  shown.resize(whole_utf8_prefix(shown));
  return shown + "...";
}

/// The child's own error message, without the program's name and the file's in front.
std::string reason(std::string_view errors, const fs::path& path) {
  std::string line = last_line(errors);
  for (const std::string& front : {std::string("paceline: "), std::string("error: "),
                                   std::format("model \"{}\": ", printable(path.string()))}) {
    if (line.starts_with(front)) line.erase(0, front.size());
  }
  return line;
}

/// Two tokens through all layers, as a run would put them.
Result<void> try_pass(const fs::path& path, RuntimeChoice choice) {
  PACELINE_TRY(const auto model, load_model_file(path, {.runtime = choice}, {}));
  PACELINE_TRY(const auto runtime,
               model->create_runtime({.sequences = 1, .context = k_pass_context, .rows = 2}));
  PACELINE_TRY(const runtime::SequenceId sequence, runtime->create_sequence());
  const std::array<runtime::Row, 2> rows = {
      runtime::Row{.sequence = sequence, .token = Token{0}},
      runtime::Row{
          .sequence = sequence, .token = Token{0}, .parent = 0, .wants = runtime::Wants::argmax}};
  const auto passed = runtime->forward(rows, {});
  // Whether the results are numbers is for a run to find out: it also knows at which text.
  if (passed || passed.error().word == runtime::k_logits_not_finite) return {};
  return passed;
}

/// All that the child finds out.
Result<compat::Probe> probe_file(const fs::path& path, RuntimeChoice choice) {
  PACELINE_TRY(const auto model,
               runtime::load_llama_model(path, {.progress = {}, .vocabulary_only = true}));
  compat::Probe probe = compat::probe(model->vocabulary());
  probe.recurrent = model->info().recurrent;
  PACELINE_TRY(const auto sizes, size_model_file(path, choice));
  // Sums that do not agree are our fault, not the file's: they are told where they are needed.
  const auto need = sizes->need({.context = 512});
  if (!need && need.error().code != ErrorCode::internal) return need.error();
  if (model->info().file_bytes <= k_small_file_bytes) {
    PACELINE_TRY_VOID(try_pass(path, choice));
  }
  return probe;
}

int run_probe(const std::string& path, const std::string& runtime) {
  rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);  // an expected abort leaves no core file
  const auto choice = parse_runtime_choice(runtime);
  const auto probe = choice ? probe_file(path, *choice) : choice.error();
  if (!probe) {
    print_error(probe.error());
    return exit_code(probe.error());
  }
  return finish(dump_json(compat::to_json(*probe)) + "\n");
}

}  // namespace

Result<compat::Probe> probe_in_child(const fs::path& path, RuntimeChoice choice,
                                     std::stop_token stop) {
  PACELINE_TRY(const fs::path program, own_program());
  const std::string name = std::format("\"{}\"", path.string());
  const auto ran = models::run_process({.command = {program.string(), k_command, path.string(),
                                                    "--runtime", std::string(to_string(choice))},
                                        .environment = {"GGML_NO_BACKTRACE=1"},
                                        .on_tick = {},
                                        .stop = stop,
                                        .time_limit = k_time_limit,
                                        .separate_errors = true});
  if (!ran && ran.error().code == ErrorCode::timed_out) {
    return fail(ErrorCode::timed_out,
                std::format("{}: it was not opened within {} s in a process of its own; the file "
                            "is damaged, or the disk very slow",
                            name, k_time_limit.count()));
  }
  if (!ran) return ran.error().in(std::format("opening {} in a process of its own", name));
  if (ran->exit_status >= k_signal_base) {
    return fail(ErrorCode::bad_format,
                std::format("{} is damaged: libllama broke off with signal {} while it was opened "
                            "in a process of its own ({})",
                            name, ran->exit_status - k_signal_base,
                            ran->errors.empty() ? "it said nothing" : last_line(ran->errors)));
  }
  if (ran->exit_status != k_exit_done) {
    return fail(ErrorCode::bad_format,
                std::format("{} cannot be used: {}", name, reason(ran->errors, path)));
  }
  PACELINE_TRY(const Json json, parse_json(ran->output, "the child's answer"));
  return compat::probe_from_json(json);
}

Command add_probe_command(CLI::App& app) {
  struct Options {
    std::string path;
    std::string runtime = "auto";
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand(k_command, "Open one file, print how its vocabulary tokenises")
          ->group("");  // hidden: started before a file is opened by others
  command->add_option("FILE", options->path, "GGUF file")->required();
  add_runtime_option(*command, options->runtime);
  return [options](std::stop_token) { return run_probe(options->path, options->runtime); };
}

}  // namespace paceline::cli
