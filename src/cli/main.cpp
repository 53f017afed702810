// The program: options, composition, exit codes.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <map>
#include <string>

#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/signals.hpp"
#include "core/log.hpp"
#include "core/version.hpp"
#include "runtime/llama/llama_backend.hpp"

namespace {

int run(int argc, char** argv) {
  namespace cli = paceline::cli;
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
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    app.exit(error, std::cerr, std::cerr);
    return cli::k_exit_usage;
  }
  if (verbose) paceline::set_log_level(paceline::LogLevel::debug);
  const paceline::runtime::LlamaBackend backend;
  return commands.at(app.get_subcommands().front()->get_name())(signals.token());
}

}  // namespace

int main(int argc, char** argv) {
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
