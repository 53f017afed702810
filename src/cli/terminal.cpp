#include "cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <format>

#include "cli/exit_code.hpp"
#include "core/file.hpp"
#include "core/text.hpp"

namespace paceline::cli {

std::size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  if (const char* columns = std::getenv("COLUMNS")) {
    const long value = std::strtol(columns, nullptr, 10);
    if (value > 0 && value < 10000) return static_cast<std::size_t>(value);
  }
  return 80;
}

bool terminal_has_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  if (no_colour != nullptr && no_colour[0] != '\0') return false;
  const char* term = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

std::string format_seconds(double seconds) {
  const auto whole = static_cast<long>(seconds + 0.5);
  if (whole < 60) return std::format("{} s", whole);
  if (whole < 3600) return std::format("{} min {:02} s", whole / 60, whole % 60);
  return std::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}
ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::show(std::string_view text) {
  const auto now = std::chrono::steady_clock::now();
  const std::string stage(text.substr(0, text.find(' ')));
  const auto pause = terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10000);
  if (last_ != std::chrono::steady_clock::time_point{} && stage == stage_ && now - last_ < pause) {
    return;
  }
  last_ = now;
  stage_ = stage;
  const std::string shown = printable(text);
  if (terminal_) {
    std::fprintf(stderr, "\r\x1b[K%s", shown.c_str());
    std::fflush(stderr);
    shown_ = true;
  } else {
    std::fprintf(stderr, "%s\n", shown.c_str());
  }
}

void ProgressLine::clear() {
  if (!shown_) return;
  std::fprintf(stderr, "\r\x1b[K");
  std::fflush(stderr);
  shown_ = false;
}

void print_error(const Error& error) {
  const std::string word = error.word.empty() ? "" : std::format(" ({})", error.word);
  std::fprintf(stderr, "paceline: %s\n", printable(error.message + word).c_str());
}

Result<void> print_result(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return {};
  }
  return errno_error("writing the result to stdout");
}

int finish(std::string_view text) {
  const auto printed = print_result(text);
  if (printed) return k_exit_done;
  print_error(printed.error());
  return exit_code(printed.error());
}

}  // namespace paceline::cli
