// The subcommands. Each adds its options to the app and gives what runs when it was chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <stop_token>

namespace paceline::cli {

/// Runs a command and gives the exit code.
using Command = std::function<int(std::stop_token)>;

Command add_bench_command(CLI::App& app);
Command add_canary_command(CLI::App& app);
Command add_check_command(CLI::App& app);
Command add_models_command(CLI::App& app);
Command add_plan_command(CLI::App& app);
/// Not for users: reads one vocabulary in a process of its own, for `check`.
Command add_probe_command(CLI::App& app);
Command add_schema_command(CLI::App& app);

}  // namespace paceline::cli
