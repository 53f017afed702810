// The terminal: its width, colour, and one line of progress on stderr.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace paceline::cli {

/// Columns of the terminal behind stdout, else $COLUMNS, else 80.
std::size_t terminal_width();
/// stdout is a terminal that shows colour, and NO_COLOR is not set.
bool terminal_has_colour();

/// "42 s", "3 min 05 s", "1 h 02 min".
std::string format_seconds(double seconds);

/// On a terminal one line that is drawn over; elsewhere a line every ten seconds. One thread.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(std::string_view text);
  /// Takes the line away, before something else is printed.
  void clear();

 private:
  bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point last_{};
  std::string stage_;
};

/// One line on stderr, with the error's stable word where it has one.
void print_error(const Error& error);

/// Writes a result to stdout. Error: io, for example on a full disk or a closed pipe.
Result<void> print_result(std::string_view text);

/// The same for a command that ends with it: gives the exit code.
int finish(std::string_view text);

}  // namespace paceline::cli
