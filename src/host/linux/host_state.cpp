// What changes while a benchmark runs, on Linux.
#include <unistd.h>

#include <algorithm>
#include <format>

#include "core/text.hpp"
#include "host/host.hpp"
#include "host/linux/linux_impl.hpp"
#include "host/process_impl.hpp"

namespace paceline::host {

namespace fs = std::filesystem;

namespace {

std::optional<double> mean(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// From cpufreq, else from cpuinfo where the processor really counts cycles: without aperfmperf
/// "cpu MHz" is a constant (a virtual machine's), not a reading.
std::optional<double> read_frequency(const fs::path& root,
                                     const std::vector<std::size_t>& allowed) {
  std::vector<double> mhz;
  for (const std::size_t processor : allowed) {
    const fs::path file =
        std::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", processor);
    if (const auto khz = parse_number(read_below(root, file))) mhz.push_back(*khz / 1000);
  }
  if (!mhz.empty()) return mean(mhz);
  const CpuInfo cpu = parse_cpuinfo(read_below(root, "/proc/cpuinfo"));
  if (!cpu.has_flag("aperfmperf")) return std::nullopt;
  for (const std::size_t processor : allowed) {
    if (const auto found = cpu.mhz.find(processor); found != cpu.mhz.end()) {
      mhz.push_back(found->second);
    }
  }
  return mean(mhz);
}

}  // namespace

void fill_host_state(HostState& state, const fs::path& root,
                     const std::vector<std::size_t>& allowed, double ticks_per_second) {
  const auto memory = parse_meminfo(read_below(root, "/proc/meminfo"));
  if (const auto found = memory.find("MemAvailable"); found != memory.end()) {
    state.memory_available_bytes = found->second;
  }
  if (const auto room = read_cgroup_limits(root).memory_room_bytes) {
    state.memory_available_bytes = std::min(state.memory_available_bytes.value_or(*room), *room);
  }
  const std::string load = read_below(root, "/proc/loadavg");
  state.load_1min = parse_number(split(load, ' ').front());
  state.frequency_mhz = read_frequency(root, allowed);
  const std::vector<Sensor> sensors = read_processor_sensors(root);
  for (const Sensor& sensor : sensors) {
    state.temperature_celsius =
        std::max(state.temperature_celsius.value_or(sensor.celsius), sensor.celsius);
  }
  state.thermal_state = thermal_state(sensors);
  if (const auto ticks = parse_proc_stat(read_below(root, "/proc/stat"))) {
    state.busy_seconds = static_cast<double>(ticks->busy) / ticks_per_second;
    if (ticks->steal) state.steal_seconds = static_cast<double>(*ticks->steal) / ticks_per_second;
  }
  state.cpu_pressure_some_percent = parse_pressure(read_below(root, "/proc/pressure/cpu"));
}

HostState read_host_state() {
  HostState state;
  state.at_unix_seconds = unix_seconds();
  const ProcessUsage usage = process_usage();
  state.own_cpu_seconds = usage.cpu_seconds;
  state.involuntary_switches = usage.involuntary_switches;
  const long ticks = ::sysconf(_SC_CLK_TCK);
  fill_host_state(state, "/", allowed_processors(), ticks > 0 ? static_cast<double>(ticks) : 100.0);
  return state;
}

}  // namespace paceline::host
