// `paceline models`: the models that are known by name, and fetching them.
#include <format>
#include <memory>

#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/open_model.hpp"
#include "cli/terminal.hpp"
#include "core/hash.hpp"
#include "models/models.hpp"

namespace paceline::cli {

namespace {

int complain(const Error& error) {
  print_error(error);
  return exit_code(error);
}

int list() {
  std::string text;
  for (const models::NamedModel& model : models::catalogue()) {
    const auto path = models::locate(model.name);
    text += std::format("{:<14} {:>7.1f} MB  {}\n{:<14} {}\n{:<14} licence: {}\n", model.name,
                        static_cast<double>(model.bytes) / 1e6, model.description, "",
                        path ? path->string() : "not fetched yet", "", model.licence);
  }
  return finish(text);
}

int fetch(const std::string& name, bool offline, std::stop_token stop) {
  const auto path = fetch_with_progress(name, {offline, stop});
  return path ? finish(path->string() + "\n") : complain(path.error());
}

int verify(const std::string& name, std::stop_token stop) {
  const auto path = models::locate(name);
  if (!path) return complain(path.error());
  const auto sum = sha256_file(*path, stop);
  if (!sum) return complain(sum.error());
  for (const models::NamedModel& model : models::catalogue()) {
    if (model.name != name) continue;
    if (*sum == model.sha256) return finish(std::format("{} is intact: sha256 {}\n", name, *sum));
    return complain(fail(ErrorCode::bad_format,
                         std::format("\"{}\" has sha256 {}, {} is wanted; delete it and fetch it "
                                     "again",
                                     path->string(), *sum, model.sha256)));
  }
  return finish(std::format("{} has sha256 {}\n", path->string(), *sum));
}

}  // namespace

Command add_models_command(CLI::App& app) {
  struct Options {
    std::string name;
    bool offline = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("models", "List the models that are known by name, fetch or verify them");
  CLI::App* fetch_command = command->add_subcommand("fetch", "Fetch a model; prints its path");
  fetch_command->add_option("NAME", options->name, "Name of the model")->required();
  fetch_command->add_flag("--offline", options->offline, "Only look whether it is there");
  CLI::App* verify_command =
      command->add_subcommand("verify", "Compare a fetched model with its checksum");
  verify_command->add_option("NAME", options->name, "Name of the model, or a path")->required();
  return [=](std::stop_token stop) {
    if (fetch_command->parsed()) return fetch(options->name, options->offline, stop);
    if (verify_command->parsed()) return verify(options->name, stop);
    return list();
  };
}

}  // namespace paceline::cli
