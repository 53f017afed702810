// The program: options, composition, exit codes.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <map>
#include <span>
#include <sstream>
#include <string>

#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/signals.hpp"
#include "cli/terminal.hpp"
#include "cli/usage.hpp"
#include "core/log.hpp"
#include "core/version.hpp"
#include "runtime/llama/llama_backend.hpp"

namespace {

namespace cli = paceline::cli;

/// A closed stdin, stdout or stderr is opened where nothing can be written: else the next file to
/// be opened would take its number, and the result would be printed into it.
void open_standard_files() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDONLY));
  }
}

int usage_error(const std::string& message) {
  std::fprintf(stderr, "paceline: %s\n", message.c_str());
  return cli::k_exit_usage;
}

int run(int argc, char** argv) {
  const cli::Signals signals;
  CLI::App app(
      "paceline: does speculative decoding pay for this model, on this host, for these "
      "prompts? It measures, and says so.",
      "paceline");
  app.set_version_flag("--version", paceline::k_version);
  app.require_subcommand(1);
  bool verbose = false;
  app.add_flag("--verbose", verbose, "More on stderr, libllama's log included");

  std::map<std::string, cli::Command> commands;
  commands["bench"] = cli::add_bench_command(app);
  commands["canary"] = cli::add_canary_command(app);
  commands["check"] = cli::add_check_command(app);
  commands["models"] = cli::add_models_command(app);
  commands["plan"] = cli::add_plan_command(app);
  commands["probe-vocabulary"] = cli::add_probe_command(app);
  commands["schema"] = cli::add_schema_command(app);
  if (const auto empty = cli::find_empty_argument(
          std::span<const char* const>(argv, static_cast<std::size_t>(argc)).subspan(1))) {
    return usage_error(*empty);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // for the help or the version
    std::ostringstream text;
    app.exit(asked, text, text);
    return cli::finish(text.str());
  } catch (const CLI::ParseError& error) {
    return usage_error(cli::usage_message(app, error));
  }
  if (verbose) paceline::set_log_level(paceline::LogLevel::debug);
  const paceline::runtime::LlamaBackend backend;
  return commands.at(app.get_subcommands().front()->get_name())(signals.token());
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_files();
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("paceline: out of memory\n", stderr);
    return paceline::cli::k_exit_input;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "paceline: internal error: %s. Please report this.\n", error.what());
    return paceline::cli::k_exit_bug;
  } catch (...) {
    std::fputs("paceline: internal error. Please report this.\n", stderr);
    return paceline::cli::k_exit_bug;
  }
}
