// `paceline schema`: the JSON Schema of the result document.
#include <cstdio>

#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/terminal.hpp"
#include "report/report.hpp"

namespace paceline::cli {

Command add_schema_command(CLI::App& app) {
  app.add_subcommand("schema", "Print the JSON Schema of what `bench --format json` writes");
  return [](std::stop_token) {
    if (write_stdout(report::schema())) return k_exit_done;
    std::perror("paceline: writing the schema to stdout");
    return k_exit_input;
  };
}

}  // namespace paceline::cli
