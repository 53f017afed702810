#include "cli/usage.hpp"

#include <algorithm>
#include <format>
#include <numeric>
#include <utility>
#include <vector>

#include "core/text.hpp"

namespace paceline::cli {

namespace {

/// The innermost command that the arguments reached, with the words that lead to it.
struct Reached {
  CLI::App* app;
  std::string words;
};

Reached innermost(CLI::App& app) {
  Reached reached{&app, app.get_name()};
  while (!reached.app->get_subcommands().empty()) {
    reached.app = reached.app->get_subcommands().front();
    reached.words += " " + reached.app->get_name();
  }
  return reached;
}

/// Names of the commands that the help shows.
std::vector<std::string> known_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  return names;
}

std::string unknown_command(const std::string& word, const std::vector<std::string>& known) {
  constexpr std::size_t k_near = 2;
  const auto distance = [&](const std::string& name) { return edit_distance(word, name); };
  const auto nearest = std::ranges::min_element(known, {}, distance);
  const bool is_near = distance(*nearest) <= std::min(k_near, word.size() / 2);
  return std::format("there is no command \"{}\"{}; known are {}", escape(word, 60),
                     is_near ? std::format(", did you mean \"{}\"?", *nearest) : "",
                     join(known, ", "));
}

}  // namespace

std::optional<std::string> find_empty_argument(std::span<const char* const> arguments) {
  std::string before;
  for (const std::string argument : arguments) {
    const bool is_option = argument.starts_with("-") && argument != "-";
    if (argument.starts_with("--") && argument.ends_with("=")) {
      return std::format("the value of {} is empty; give one, or leave the option out",
                         escape(argument.substr(0, argument.size() - 1), 60));
    }
    if (argument.empty()) {
      return before.empty() ? "an argument is empty; give it, or leave it out"
                            : std::format(
                                  "the value of {} is empty; give one, or leave the option "
                                  "out",
                                  before);
    }
    before = is_option ? escape(argument, 60) : "";
  }
  return std::nullopt;
}

std::string usage_message(CLI::App& app, const CLI::ParseError& error) {
  const Reached reached = innermost(app);
  const std::vector<std::string> known = known_commands(*reached.app);
  std::string text = error.what();
  if (!known.empty()) {
    const std::vector<std::string> rest = reached.app->remaining();
    const auto word = std::ranges::find_if(
        rest, [](const std::string& argument) { return !argument.starts_with("-"); });
    if (word != rest.end()) {
      text = unknown_command(*word, known);
    } else if (rest.empty()) {
      text = std::format("a command is wanted: {}", join(known, ", "));
    }
  }
  return std::format("{}\nRun \"{} --help\" for what can be given.", text, reached.words);
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);  // distances of a's beginning to all beginnings of b
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t exchanged = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({exchanged, row[j + 1] + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace paceline::cli
