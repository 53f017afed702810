// Systems without a reader of their own: what POSIX gives, the rest is "not readable".
#include "host/host.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "host/identity_impl.hpp"
#include "host/process_impl.hpp"

namespace paceline::host {

std::size_t allowed_cores() {
  return std::max<std::size_t>(1, std::thread::hardware_concurrency());
}

std::optional<std::uint64_t> resident_bytes() { return std::nullopt; }
std::optional<std::uint64_t> peak_resident_bytes() { return std::nullopt; }

HostInfo read_host_info() {
  HostInfo info;
  const SystemName name = system_name();
  info.machine = name.machine;
  info.system = name.system;
  info.cpu_model = k_not_readable;
  info.cores = std::thread::hardware_concurrency();
  info.cores_allowed = allowed_cores();
  info.governor = k_not_readable;
  info.hypervisor = k_not_readable;
  info.nice = process_nice();
  info.chip = chip_name(info.cpu_model);
  info.hardware_model = hardware_model_name(info.chip, info.memory_gib());
  return info;
}

HostState read_host_state() {
  HostState state;
  state.at_unix_seconds = unix_seconds();
  state.load_1min = load_average_1min();
  state.thermal_state = k_not_readable;
  const ProcessUsage usage = process_usage();
  state.own_cpu_seconds = usage.cpu_seconds;
  state.involuntary_switches = usage.involuntary_switches;
  return state;
}

}  // namespace paceline::host
