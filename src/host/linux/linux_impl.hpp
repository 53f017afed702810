// Reading /proc and /sys below a root folder: "/" in the program, a made-up tree in tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "host/host.hpp"
#include "host/parse_impl.hpp"

namespace paceline::host {

/// The file's text, empty where it cannot be read. `path` is absolute as seen from the root.
std::string read_below(const std::filesystem::path& root, const std::filesystem::path& path);
/// The sub-folders' paths as seen from the root, sorted; empty where there is no such folder.
std::vector<std::filesystem::path> folders_below(const std::filesystem::path& root,
                                                 const std::filesystem::path& path);

struct CgroupLimits {
  std::optional<std::uint64_t> memory_bytes;
  /// What may still be taken below the memory limits. Cached file pages that were not used lately
  /// count as free.
  std::optional<std::uint64_t> memory_room_bytes;
  std::optional<double> cpu_cores;
};
/// The tightest limits on the way from this process's cgroup up to the root, v1 or v2.
CgroupLimits read_cgroup_limits(const std::filesystem::path& root);

/// Temperature sensors that sit in a processor, from thermal zones and hwmon.
std::vector<Sensor> read_processor_sensors(const std::filesystem::path& root);

/// The processors in this process's affinity mask; empty: not readable.
std::vector<std::size_t> allowed_processors();

/// The parts of HostInfo and HostState that are read from files.
void fill_host_info(HostInfo& info, const std::filesystem::path& root,
                    const std::vector<std::size_t>& allowed);
void fill_host_state(HostState& state, const std::filesystem::path& root,
                     const std::vector<std::size_t>& allowed, double ticks_per_second);

}  // namespace paceline::host
