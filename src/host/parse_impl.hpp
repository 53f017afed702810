// The text files of /proc and /sys as values. Pure: text in, values out, nothing readable: absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::host {

/// A whole text as a number, spaces around it allowed.
std::optional<std::uint64_t> parse_unsigned(std::string_view text);
std::optional<double> parse_number(std::string_view text);

struct CpuInfo {
  std::string model;                  // empty: the file does not say
  std::vector<std::string> flags;     // of the first processor, the kernel's words
  std::size_t physical_cores = 0;     // 0: the file does not say
  std::map<std::size_t, double> mhz;  // by processor number
  bool has_flag(std::string_view flag) const;
};
CpuInfo parse_cpuinfo(std::string_view text);

/// Of the kernel's flags those that matter for inference, in a fixed order and in our words:
/// ARM's asimd is neon, asimddp is dotprod, asimdhp is fp16.
std::vector<std::string> instruction_sets(const std::vector<std::string>& flags);

/// Values in bytes by name: MemTotal, MemAvailable, ...
std::map<std::string, std::uint64_t> parse_meminfo(std::string_view text);

/// The "cpu" line of /proc/stat, in clock ticks since boot.
struct CpuTicks {
  std::uint64_t busy = 0;  // user, nice, system, interrupts
  std::optional<std::uint64_t> steal;
};
std::optional<CpuTicks> parse_proc_stat(std::string_view text);

/// The "some avg10" percentage of a pressure file.
std::optional<double> parse_pressure(std::string_view text);

/// The number after "VmHWM:" in /proc/self/status, in bytes.
std::optional<std::uint64_t> parse_peak_resident(std::string_view text);

/// Where this process stands in the cgroup hierarchies: v2 has the controller name "".
struct CgroupMembership {
  std::string controller;
  std::string path;
};
std::vector<CgroupMembership> parse_cgroup_membership(std::string_view text);

struct CgroupMount {
  std::string mount_point;
  std::string root;  // the part of the hierarchy that is mounted there
  bool unified = false;
  std::vector<std::string> controllers;  // of a v1 mount
};
/// The cgroup mounts of a /proc/self/mountinfo.
std::vector<CgroupMount> parse_cgroup_mounts(std::string_view text);

/// The number after `key` in lines of "key number", as in a cgroup's memory.stat.
std::optional<std::uint64_t> parse_statistic(std::string_view text, std::string_view key);
/// v2's memory.max and v1's memory.limit_in_bytes. Absent: no limit.
std::optional<std::uint64_t> parse_memory_limit(std::string_view text);
/// v2's cpu.max, in cores. Absent: no limit.
std::optional<double> parse_cpu_max(std::string_view text);
/// v1's cpu.cfs_quota_us and cpu.cfs_period_us, in cores.
std::optional<double> parse_cfs_quota(std::string_view quota_us, std::string_view period_us);

/// One temperature sensor with the limits that its driver names, in degrees Celsius.
struct Sensor {
  std::string name;
  double celsius = 0;
  std::optional<double> warm;  // passive trip point, hwmon's max
  std::optional<double> hot;   // hot trip point
  std::optional<double> critical;
};
/// True for a sensor whose name says that it sits in a processor.
bool names_a_processor(std::string_view sensor_name);
/// nominal, fair (at the passive limit), serious (hot, or within 5 degrees of critical), critical;
/// the worst sensor counts. "not readable" where no sensor names a limit.
std::string thermal_state(const std::vector<Sensor>& sensors);

}  // namespace paceline::host
