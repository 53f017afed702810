// Memory and processor limits of control groups, v1 and v2.
#include <algorithm>

#include "host/linux/linux_impl.hpp"

namespace paceline::host {

namespace fs = std::filesystem;

namespace {

/// The folders from the process's own cgroup up to the mount point. Inside a container the path
/// in /proc may be the host's, which the mount does not show: then only existing folders count.
std::vector<fs::path> cgroup_folders(const CgroupMount& mount, const std::string& path) {
  fs::path relative = fs::path(path).lexically_relative(mount.root);
  if (relative.empty() || *relative.begin() == "..") relative = fs::path(path).relative_path();
  fs::path folder = mount.mount_point;
  std::vector<fs::path> folders{folder};
  for (const fs::path& part : relative) {
    if (part == "." || part == ".." || part.empty()) continue;
    folder /= part;
    folders.push_back(folder);
  }
  return folders;
}

template <typename T>
void tighten(std::optional<T>& limit, std::optional<T> candidate) {
  if (candidate) limit = limit ? std::min(*limit, *candidate) : *candidate;
}

/// `limit` less what the group uses and cannot give back; none where one of them is not readable.
std::optional<std::uint64_t> memory_room(std::optional<std::uint64_t> limit, std::string_view usage,
                                         std::string_view statistics,
                                         std::string_view inactive_key) {
  const auto used = parse_unsigned(usage);
  if (!limit || !used) return std::nullopt;
  const std::uint64_t inactive =
      std::min(parse_statistic(statistics, inactive_key).value_or(0), *used);
  const std::uint64_t kept = *used - inactive;
  return *limit > kept ? *limit - kept : 0;
}

}  // namespace

CgroupLimits read_cgroup_limits(const fs::path& root) {
  const auto memberships = parse_cgroup_membership(read_below(root, "/proc/self/cgroup"));
  CgroupLimits limits;
  for (const auto& mount : parse_cgroup_mounts(read_below(root, "/proc/self/mountinfo"))) {
    for (const auto& [controller, path] : memberships) {
      const bool here =
          mount.unified ? controller.empty() : std::ranges::contains(mount.controllers, controller);
      if (!here) continue;
      for (const fs::path& folder : cgroup_folders(mount, path)) {
        if (mount.unified) {
          const auto memory = parse_memory_limit(read_below(root, folder / "memory.max"));
          tighten(limits.memory_bytes, memory);
          tighten(limits.memory_room_bytes,
                  memory_room(memory, read_below(root, folder / "memory.current"),
                              read_below(root, folder / "memory.stat"), "inactive_file"));
          tighten(limits.cpu_cores, parse_cpu_max(read_below(root, folder / "cpu.max")));
        } else if (controller == "memory") {
          const auto memory =
              parse_memory_limit(read_below(root, folder / "memory.limit_in_bytes"));
          tighten(limits.memory_bytes, memory);
          tighten(limits.memory_room_bytes,
                  memory_room(memory, read_below(root, folder / "memory.usage_in_bytes"),
                              read_below(root, folder / "memory.stat"), "total_inactive_file"));
        } else if (controller == "cpu") {
          tighten(limits.cpu_cores,
                  parse_cfs_quota(read_below(root, folder / "cpu.cfs_quota_us"),
                                  read_below(root, folder / "cpu.cfs_period_us")));
        }
      }
    }
  }
  return limits;
}

}  // namespace paceline::host
