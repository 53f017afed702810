#include "cli/child_probe.hpp"

#include <sys/resource.h>

#include <chrono>
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
#include "runtime/llama/llama_memory.hpp"
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
  return escape(last, 300);
}

/// The child's own error message, without the program's name in front.
std::string reason(std::string_view errors) {
  std::string line = last_line(errors);
  constexpr std::string_view k_name = "paceline: ";
  return line.starts_with(k_name) ? line.substr(k_name.size()) : line;
}

int run_probe(const std::string& path) {
  rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);  // an expected abort leaves no core file
  const auto model = runtime::load_llama_model(path, {.progress = {}, .vocabulary_only = true});
  if (!model) {
    print_error(model.error());
    return exit_code(model.error());
  }
  compat::Probe probe = compat::probe((*model)->vocabulary());
  probe.recurrent = (*model)->info().recurrent;
  // The sizes too: what breaks off here does not break off in the program that asked.
  if (const auto sizes = runtime::open_llama_memory_estimator(path)) {
    static_cast<void>((*sizes)->need({.context = 512}));
  }
  return finish(dump_json(compat::to_json(probe)) + "\n");
}

}  // namespace

Result<compat::Probe> probe_in_child(const fs::path& path, std::stop_token stop) {
  PACELINE_TRY(const fs::path program, own_program());
  const std::string name = std::format("\"{}\"", path.string());
  const auto ran = models::run_process({.command = {program.string(), k_command, path.string()},
                                        .environment = {"GGML_NO_BACKTRACE=1"},
                                        .on_tick = {},
                                        .stop = stop,
                                        .time_limit = k_time_limit,
                                        .separate_errors = true});
  if (!ran && ran.error().code == ErrorCode::timed_out) {
    return fail(ErrorCode::timed_out,
                std::format("{}: libllama did not read its vocabulary within {} s; the file is "
                            "damaged, or the disk very slow",
                            name, k_time_limit.count()));
  }
  if (!ran) return ran.error().in(std::format("reading the vocabulary of {}", name));
  if (ran->exit_status >= k_signal_base) {
    return fail(ErrorCode::bad_format,
                std::format("{} is damaged: libllama broke off with signal {} while it read the "
                            "vocabulary ({})",
                            name, ran->exit_status - k_signal_base, last_line(ran->errors)));
  }
  if (ran->exit_status != k_exit_done) {
    return fail(ErrorCode::bad_format,
                std::format("{} cannot be used: {}", name, reason(ran->errors)));
  }
  PACELINE_TRY(const Json json, parse_json(ran->output, "the child's answer"));
  return compat::probe_from_json(json);
}

Command add_probe_command(CLI::App& app) {
  auto path = std::make_shared<std::string>();
  app.add_subcommand(k_command, "Read one vocabulary and print how it tokenises")
      ->group("")  // hidden: `check` starts it
      ->add_option("FILE", *path, "GGUF file")
      ->required();
  return [path](std::stop_token) { return run_probe(*path); };
}

}  // namespace paceline::cli
