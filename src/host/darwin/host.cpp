// macOS: sysctl gives processor, cores and memory. There is no affinity mask and no governor, and
// temperature and stolen time are not readable without root.
#include "host/host.hpp"

#include <mach/mach.h>
#include <sys/resource.h>
#include <sys/sysctl.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "host/identity_impl.hpp"
#include "host/process_impl.hpp"

namespace paceline::host {

namespace {

std::string sysctl_text(const char* name) {
  std::array<char, 256> text{};
  std::size_t size = text.size() - 1;
  if (::sysctlbyname(name, text.data(), &size, nullptr, 0) != 0) return std::string(k_not_readable);
  return text.data();
}

/// Values of 4 or 8 bytes.
std::optional<std::uint64_t> sysctl_number(const char* name) {
  std::uint64_t value = 0;
  std::size_t size = sizeof value;
  if (::sysctlbyname(name, &value, &size, nullptr, 0) != 0) return std::nullopt;
  return value;
}

std::vector<std::string> read_instruction_sets() {
  using Pair = std::pair<const char*, const char*>;
  static constexpr auto k_known = std::to_array<Pair>({
      {"hw.optional.sse4_2", "sse4_2"},
      {"hw.optional.avx1_0", "avx"},
      {"hw.optional.avx2_0", "avx2"},
      {"hw.optional.f16c", "f16c"},
      {"hw.optional.fma", "fma"},
      {"hw.optional.bmi2", "bmi2"},
      {"hw.optional.avx512f", "avx512f"},
      {"hw.optional.avx512bw", "avx512bw"},
      {"hw.optional.avx512vl", "avx512vl"},
      {"hw.optional.arm.AdvSIMD", "neon"},
      {"hw.optional.arm.FEAT_FP16", "fp16"},
      {"hw.optional.arm.FEAT_DotProd", "dotprod"},
      {"hw.optional.arm.FEAT_I8MM", "i8mm"},
      {"hw.optional.arm.FEAT_BF16", "bf16"},
      {"hw.optional.arm.FEAT_SME", "sme"},
  });
  std::vector<std::string> names;
  for (const auto& [key, name] : k_known) {
    if (sysctl_number(key).value_or(0) != 0) names.emplace_back(name);
  }
  return names;
}

}  // namespace

std::size_t allowed_cores() {
  return std::max<std::size_t>(1, sysctl_number("hw.activecpu").value_or(1));
}

std::optional<std::uint64_t> resident_bytes() {
  mach_task_basic_info info{};
  mach_msg_type_number_t count = MACH_TASK_BASIC_INFO_COUNT;
  if (task_info(mach_task_self(), MACH_TASK_BASIC_INFO, reinterpret_cast<task_info_t>(&info),
                &count) != KERN_SUCCESS) {
    return std::nullopt;
  }
  return info.resident_size;
}

std::optional<std::uint64_t> peak_resident_bytes() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(usage.ru_maxrss);  // bytes here, KiB on Linux
}

HostInfo read_host_info() {
  HostInfo info;
  const SystemName name = system_name();
  info.machine = name.machine;
  info.system = name.system;
  info.cpu_model = sysctl_text("machdep.cpu.brand_string");
  info.instruction_sets = read_instruction_sets();
  info.cores = sysctl_number("hw.logicalcpu").value_or(0);
  info.cores_allowed = allowed_cores();
  info.physical_cores = sysctl_number("hw.physicalcpu").value_or(0);
  info.memory_bytes = sysctl_number("hw.memsize");
  info.governor = k_not_readable;
  const auto guest = sysctl_number("kern.hv_vmm_present");
  info.hypervisor = !guest ? std::string(k_not_readable) : *guest != 0 ? "unnamed" : "none";
  info.nice = process_nice();
  info.chip = chip_name(info.cpu_model);
  info.hardware_model = hardware_model_name(info.chip, info.memory_gib());
  return info;
}

HostState read_host_state() {
  HostState state;
  state.at_unix_seconds = unix_seconds();
  state.load_1min = load_average_1min();
  vm_statistics64_data_t memory{};
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  if (::host_statistics64(::mach_host_self(), HOST_VM_INFO64,
                          reinterpret_cast<host_info64_t>(&memory), &count) == KERN_SUCCESS) {
    state.memory_available_bytes =
        (std::uint64_t{memory.free_count} + memory.inactive_count) * vm_kernel_page_size;
  }
  state.thermal_state = k_not_readable;
  const ProcessUsage usage = process_usage();
  state.own_cpu_seconds = usage.cpu_seconds;
  state.involuntary_switches = usage.involuntary_switches;
  return state;
}

}  // namespace paceline::host
