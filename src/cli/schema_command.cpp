// `paceline schema`: the JSON Schemas of the result documents.
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/terminal.hpp"
#include "compat/canary.hpp"
#include "compat/check_text.hpp"
#include "plan/report.hpp"
#include "report/report.hpp"

namespace paceline::cli {

Command add_schema_command(CLI::App& app) {
  auto document = std::make_shared<std::string>("bench");
  app.add_subcommand("schema", "Print the JSON Schema of what a command writes as JSON")
      ->add_option("COMMAND", *document, "bench, canary, check or plan")
      ->check(CLI::IsMember({"bench", "canary", "check", "plan"}))
      ->capture_default_str();
  return [document](std::stop_token) {
    std::string_view schema = report::schema();
    if (*document == "canary") schema = compat::canary_schema();
    if (*document == "check") schema = compat::check_schema();
    if (*document == "plan") schema = plan::plan_schema();
    return finish(schema);
  };
}

}  // namespace paceline::cli
