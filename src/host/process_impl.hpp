// What POSIX tells about this process and system, the same call on every system.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace paceline::host {

struct SystemName {
  std::string machine;  // "x86_64"
  std::string system;   // "Linux 6.1.0"
};
SystemName system_name();

int process_nice();

struct ProcessUsage {
  std::optional<double> cpu_seconds;
  std::optional<std::uint64_t> involuntary_switches;
};
ProcessUsage process_usage();

double unix_seconds();
std::optional<double> load_average_1min();

}  // namespace paceline::host
