// `paceline schema`: the JSON Schema of a result document.
#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/terminal.hpp"
#include "compat/canary.hpp"
#include "report/report.hpp"

namespace paceline::cli {

Command add_schema_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("schema", "Print the JSON Schema of what a command writes as JSON");
  auto document = std::make_shared<std::string>("bench");
  command->add_option("command", *document, "bench or canary")
      ->check(CLI::IsMember({"bench", "canary"}))
      ->capture_default_str();
  return [document](std::stop_token) {
    if (write_stdout(*document == "bench" ? report::schema() : compat::canary_schema())) {
      return k_exit_done;
    }
    std::perror("paceline: writing the schema to stdout");
    return k_exit_input;
  };
}

}  // namespace paceline::cli
