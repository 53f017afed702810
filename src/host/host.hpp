// Who measured: processor, memory, frequency, thermal state, load and stolen time of this host.
// What cannot be read is absent or the word "not readable", never zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace paceline::host {

/// What does not change while a benchmark runs.
struct HostInfo {
  std::string machine;         // uname -m
  std::string system;          // "Linux 6.1.0"
  std::string cpu_model;       // brand string
  std::string chip;            // apple_m1 .. apple_m5, apple_silicon, non_apple_silicon
  std::string hardware_model;  // apple_silicon_<n>gb or non_apple_silicon
  std::vector<std::string> instruction_sets;  // those that matter: avx2, avx512_vnni, ...
  std::size_t cores = 0;                      // logical cores of the host
  std::size_t cores_allowed = 0;              // of them in this process's affinity mask
  std::size_t physical_cores = 0;             // 0: not readable
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::uint64_t> memory_limit_bytes;  // of the cgroup, where one is set
  std::optional<double> cpu_quota;                  // cores the cgroup allows, where limited
  std::string governor;                             // cpufreq's, or "not readable"
  std::string hypervisor;                           // "none", its name, or "not readable"
  int nice = 0;                                     // this process's priority

  std::size_t memory_gib() const;  // rounded up, 0: not readable

  bool operator==(const HostInfo&) const = default;
};

/// What changes. Cumulative counters are since boot; differences of two readings are used.
struct HostState {
  double at_unix_seconds = 0;
  std::optional<double> load_1min;
  std::optional<std::uint64_t> memory_available_bytes;  // cgroup limits counted
  std::optional<double> frequency_mhz;                  // mean over the allowed cores
  std::optional<double> temperature_celsius;            // hottest sensor that names a processor
  std::string thermal_state;            // nominal, fair, serious, critical, not readable
  std::optional<double> steal_seconds;  // stolen by the hypervisor, all cores
  std::optional<double> busy_seconds;   // all cores, all processes
  std::optional<double> cpu_pressure_some_percent;    // PSI, 10 s average
  std::optional<double> own_cpu_seconds;              // this process, user and system
  std::optional<std::uint64_t> involuntary_switches;  // of this process

  bool operator==(const HostState&) const = default;
};

HostInfo read_host_info();
HostState read_host_state();

/// Number of cores in the affinity mask, at least 1.
std::size_t allowed_cores();
/// Resident memory of this process now, where readable.
std::optional<std::uint64_t> resident_bytes();
/// Peak resident memory of this process, where readable.
std::optional<std::uint64_t> peak_resident_bytes();

/// The published RAM tiers (GiB rounded up): names, default and draft context, concurrency.
struct RamTier {
  std::string name;
  std::size_t default_context = 0;
  std::size_t draft_context_cap = 0;
  std::size_t default_concurrency = 0;

  bool operator==(const RamTier&) const = default;
};
RamTier ram_tier(std::size_t memory_gib);

}  // namespace paceline::host
