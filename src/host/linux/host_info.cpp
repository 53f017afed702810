// What does not change while a benchmark runs, on Linux.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <format>
#include <set>

#include "core/file.hpp"
#include "core/text.hpp"
#include "host/host.hpp"
#include "host/identity_impl.hpp"
#include "host/linux/linux_impl.hpp"
#include "host/process_impl.hpp"

namespace paceline::host {

namespace fs = std::filesystem;

std::string read_below(const fs::path& root, const fs::path& path) {
  constexpr std::size_t k_limit_bytes = std::size_t{16} << 20;
  return read_file(root / path.relative_path(), k_limit_bytes).value_or("");
}

std::vector<fs::path> folders_below(const fs::path& root, const fs::path& path) {
  std::vector<fs::path> folders;
  std::error_code code;
  fs::directory_iterator entries(root / path.relative_path(), code);
  while (!code && entries != fs::directory_iterator()) {
    folders.push_back(path / entries->path().filename());
    entries.increment(code);
  }
  std::ranges::sort(folders);
  return folders;
}

std::vector<std::size_t> allowed_processors() {
  // The kernel refuses a mask that is smaller than its own.
  for (std::size_t processors = 1024; processors <= 1024 * 1024; processors *= 4) {
    cpu_set_t* const set = CPU_ALLOC(processors);
    if (set == nullptr) return {};
    const std::size_t bytes = CPU_ALLOC_SIZE(processors);
    CPU_ZERO_S(bytes, set);
    std::vector<std::size_t> allowed;
    const bool read = ::sched_getaffinity(0, bytes, set) == 0;
    for (std::size_t i = 0; read && i < processors; ++i) {
      if (CPU_ISSET_S(i, bytes, set)) allowed.push_back(i);
    }
    CPU_FREE(set);
    if (read) return allowed;
  }
  return {};
}

std::size_t allowed_cores() { return std::max<std::size_t>(1, allowed_processors().size()); }

std::optional<std::uint64_t> resident_bytes() {
  const auto status = parse_meminfo(read_below("/", "/proc/self/status"));
  const auto found = status.find("VmRSS");
  if (found == status.end()) return std::nullopt;
  return found->second;
}

std::optional<std::uint64_t> peak_resident_bytes() {
  return parse_peak_resident(read_below("/", "/proc/self/status"));
}

namespace {

fs::path processor_folder(std::size_t processor) {
  return std::format("/sys/devices/system/cpu/cpu{}", processor);
}

std::size_t count_physical_cores(const fs::path& root, std::size_t cores) {
  std::set<std::string> siblings;
  for (std::size_t i = 0; i < cores; ++i) {
    const auto list = read_below(root, processor_folder(i) / "topology/thread_siblings_list");
    if (!list.empty()) siblings.insert(list);
  }
  return siblings.size();
}

std::string read_governor(const fs::path& root, const std::vector<std::size_t>& allowed) {
  std::set<std::string> governors;
  for (const std::size_t processor : allowed) {
    const auto text = read_below(root, processor_folder(processor) / "cpufreq/scaling_governor");
    if (!trim(text).empty()) governors.emplace(trim(text));
  }
  if (governors.empty()) return std::string(k_not_readable);
  return join({governors.begin(), governors.end()}, ", ");
}

/// x86 processors tell whether they are virtual; elsewhere only a device tree may.
std::string read_hypervisor(const fs::path& root, const CpuInfo& cpu, std::string_view machine) {
  const std::string xen(trim(read_below(root, "/sys/hypervisor/type")));
  if (!xen.empty()) return xen;
  const std::string tree = read_below(root, "/proc/device-tree/hypervisor/compatible");
  if (!tree.empty()) return std::string(trim(tree.c_str()));
  if (!machine.contains("86") || cpu.flags.empty()) return std::string(k_not_readable);
  if (!cpu.has_flag("hypervisor")) return "none";
  const std::string vendor(trim(read_below(root, "/sys/class/dmi/id/sys_vendor")));
  return vendor.empty() ? "unnamed" : vendor;
}

}  // namespace

void fill_host_info(HostInfo& info, const fs::path& root, const std::vector<std::size_t>& allowed) {
  const CpuInfo cpu = parse_cpuinfo(read_below(root, "/proc/cpuinfo"));
  info.cpu_model = cpu.model;
  if (info.cpu_model.empty()) {
    const std::string board = read_below(root, "/proc/device-tree/model");
    info.cpu_model = board.empty() ? std::string(k_not_readable) : std::string(board.c_str());
  }
  info.instruction_sets = instruction_sets(cpu.flags);
  info.physical_cores = count_physical_cores(root, info.cores);
  if (info.physical_cores == 0) info.physical_cores = cpu.physical_cores;
  const auto memory = parse_meminfo(read_below(root, "/proc/meminfo"));
  if (const auto total = memory.find("MemTotal"); total != memory.end()) {
    info.memory_bytes = total->second;
  }
  const CgroupLimits limits = read_cgroup_limits(root);
  info.memory_limit_bytes = limits.memory_bytes;
  info.cpu_quota = limits.cpu_cores;
  info.governor = read_governor(root, allowed);
  info.hypervisor = read_hypervisor(root, cpu, info.machine);
  info.chip = chip_name(info.cpu_model);
  info.hardware_model = hardware_model_name(info.chip, info.memory_gib());
}

HostInfo read_host_info() {
  HostInfo info;
  const SystemName name = system_name();
  info.machine = name.machine;
  info.system = name.system;
  info.nice = process_nice();
  const std::vector<std::size_t> allowed = allowed_processors();
  const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  info.cores = online > 0 ? static_cast<std::size_t>(online) : allowed.size();
  info.cores_allowed = allowed.size();
  fill_host_info(info, "/", allowed);
  return info;
}

}  // namespace paceline::host
