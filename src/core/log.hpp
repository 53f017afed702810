// The one log, on stderr. Rooms log through these functions and never print.
#pragma once

#include <format>
#include <string_view>
#include <utility>

namespace paceline {

enum class LogLevel { debug, info, warning, error };

/// Messages below `level` are dropped. Thread-safe.
void set_log_level(LogLevel level);
/// Thread-safe.
void log(LogLevel level, std::string_view message);

template <typename... Args>
void log_debug(std::format_string<Args...> format, Args&&... args) {
  log(LogLevel::debug, std::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_info(std::format_string<Args...> format, Args&&... args) {
  log(LogLevel::info, std::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warning(std::format_string<Args...> format, Args&&... args) {
  log(LogLevel::warning, std::format(format, std::forward<Args>(args)...));
}

}  // namespace paceline
