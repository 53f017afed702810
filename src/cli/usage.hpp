// Usage errors in one form: what is wrong, what is wanted, where the help is.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace paceline::cli {

/// No option or argument takes an empty text: an unset variable in a script is the usual cause.
/// Gives the message for the first empty one. The arguments are those behind the program's name.
std::optional<std::string> find_empty_argument(std::span<const char* const> arguments);

/// The message for arguments that `app` refused. An unknown command is named, with the nearest
/// known one.
std::string usage_message(CLI::App& app, const CLI::ParseError& error);

/// How many letters must be put in, left out or exchanged to make one word the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace paceline::cli
