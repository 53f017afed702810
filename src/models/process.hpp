// Running another program to its end: no shell, no input, the end of its output kept.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace paceline::models {

struct ProcessOptions {
  std::vector<std::string> command;           // the program is looked up in PATH
  std::vector<std::string> environment = {};  // "NAME=value", replaces ours of the same name
  std::function<void()> on_tick = {};         // about ten times a second
  std::stop_token stop = {};                  // ends the program, kindly first
  std::optional<std::chrono::milliseconds> time_limit = {};  // then it is ended likewise
  /// stdout goes to `output`, whole; the end of stderr to `errors`. Else both go to `output`.
  bool separate_errors = false;
};

struct ProcessResult {
  int exit_status = 0;  // 128 + the signal's number where a signal ended it
  std::string output;   // the last 8 KiB of stdout and stderr together, or stdout
  std::string errors = {};
};

/// Errors: not_found (no such program), io, cancelled, timed_out. The program has ended when this
/// returns.
Result<ProcessResult> run_process(const ProcessOptions& options);

}  // namespace paceline::models
