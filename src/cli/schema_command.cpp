// `paceline schema`: the JSON Schemas of the result documents.
#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/terminal.hpp"
#include "compat/check_text.hpp"
#include "report/report.hpp"

namespace paceline::cli {

Command add_schema_command(CLI::App& app) {
  auto document = std::make_shared<std::string>("bench");
  app.add_subcommand("schema",
                     "Print the JSON Schema of what `bench` or `check --format json` writes")
      ->add_option("COMMAND", *document, "Whose document: bench or check [bench]")
      ->check(CLI::IsMember({"bench", "check"}));
  return [document](std::stop_token) {
    const auto schema = *document == "check" ? compat::check_schema() : report::schema();
    if (write_stdout(schema)) return k_exit_done;
    std::perror("paceline: writing the schema to stdout");
    return k_exit_input;
  };
}

}  // namespace paceline::cli
