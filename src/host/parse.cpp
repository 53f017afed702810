#include "host/parse_impl.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <format>
#include <set>
#include <utility>

#include "core/text.hpp"
#include "host/identity_impl.hpp"

namespace paceline::host {

namespace {

struct Field {
  std::string_view key;
  std::string_view value;
};

/// "key : value" lines; an empty key for lines without a colon.
Field field_of(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return {};
  return {trim(line.substr(0, colon)), trim(line.substr(colon + 1))};
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out;
  for (const std::string_view line : split(text, '\n')) {
    for (const std::string_view word : split(line, ' ')) {
      if (!trim(word).empty()) out.emplace_back(trim(word));
    }
  }
  return out;
}

template <typename T>
std::optional<T> parse_whole(std::string_view text) {
  text = trim(text);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// What identifies a physical core while /proc/cpuinfo is read.
struct ArmIdentity {
  std::string implementer;
  std::string part;
};

/// Undoes mountinfo's octal escapes: "\040" is a space.
std::string unescape_octal(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 4, value, 8).ptr ==
            text.data() + i + 4) {
      out += static_cast<char>(value);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::optional<std::uint64_t> parse_unsigned(std::string_view text) {
  return parse_whole<std::uint64_t>(text);
}

std::optional<double> parse_number(std::string_view text) {
  const std::optional<double> value = parse_whole<double>(text);
  if (value && !std::isfinite(*value)) return std::nullopt;
  return value;
}

bool CpuInfo::has_flag(std::string_view flag) const { return std::ranges::contains(flags, flag); }

CpuInfo parse_cpuinfo(std::string_view text) {
  CpuInfo info;
  std::size_t processor = 0;
  std::string package;
  ArmIdentity arm;
  std::set<std::pair<std::string, std::string>> cores;
  for (const std::string_view line : split(text, '\n')) {
    const auto [key, value] = field_of(line);
    if (key == "processor") {
      processor = static_cast<std::size_t>(parse_unsigned(value).value_or(processor));
    } else if (key == "model name" || key == "cpu" || key == "Model" || key == "cpu model") {
      if (info.model.empty()) info.model = value;
    } else if ((key == "flags" || key == "Features") && info.flags.empty()) {
      info.flags = words(value);
    } else if (key == "physical id") {
      package = value;
    } else if (key == "core id") {
      cores.emplace(package, value);
    } else if (key == "cpu MHz") {
      if (const auto mhz = parse_number(value)) info.mhz[processor] = *mhz;
    } else if (key == "CPU implementer") {
      arm.implementer = value;
    } else if (key == "CPU part" && arm.part.empty()) {
      arm.part = value;
    }
  }
  if (info.model.empty() && !arm.implementer.empty()) {
    info.model = std::format("ARM implementer {} part {}", arm.implementer, arm.part);
  }
  info.physical_cores = cores.size();
  return info;
}

std::vector<std::string> instruction_sets(const std::vector<std::string>& flags) {
  using Pair = std::pair<std::string_view, std::string_view>;  // the kernel's word, ours
  static constexpr auto k_known = std::to_array<Pair>({
      {"sse4_2", "sse4_2"},
      {"avx", "avx"},
      {"avx2", "avx2"},
      {"f16c", "f16c"},
      {"fma", "fma"},
      {"bmi2", "bmi2"},
      {"avx_vnni", "avx_vnni"},
      {"avx512f", "avx512f"},
      {"avx512bw", "avx512bw"},
      {"avx512vl", "avx512vl"},
      {"avx512_vnni", "avx512_vnni"},
      {"avx512_bf16", "avx512_bf16"},
      {"avx512_fp16", "avx512_fp16"},
      {"amx_int8", "amx_int8"},
      {"amx_bf16", "amx_bf16"},
      {"neon", "neon"},
      {"asimd", "neon"},
      {"asimdhp", "fp16"},
      {"asimddp", "dotprod"},
      {"i8mm", "i8mm"},
      {"bf16", "bf16"},
      {"sve", "sve"},
      {"sve2", "sve2"},
      {"sme", "sme"},
  });
  std::vector<std::string> names;
  for (const auto& [flag, name] : k_known) {
    if (std::ranges::contains(flags, flag)) names.emplace_back(name);
  }
  return names;
}

std::map<std::string, std::uint64_t> parse_meminfo(std::string_view text) {
  std::map<std::string, std::uint64_t> values;
  for (const std::string_view line : split(text, '\n')) {
    const auto [key, value] = field_of(line);
    const bool kilo = value.ends_with(" kB");
    const auto number = parse_unsigned(kilo ? value.substr(0, value.size() - 3) : value);
    if (number) values[std::string(key)] = kilo ? *number * 1024 : *number;
  }
  return values;
}

std::optional<CpuTicks> parse_proc_stat(std::string_view text) {
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with("cpu ")) continue;
    std::vector<std::uint64_t> ticks;  // user nice system idle iowait irq softirq steal ...
    for (const std::string& word : words(line.substr(4))) {
      const auto number = parse_unsigned(word);
      if (!number) return std::nullopt;
      ticks.push_back(*number);
    }
    if (ticks.size() < 4) return std::nullopt;
    CpuTicks result;
    result.busy = ticks[0] + ticks[1] + ticks[2];
    if (ticks.size() > 6) result.busy += ticks[5] + ticks[6];
    if (ticks.size() > 7) result.steal = ticks[7];
    return result;
  }
  return std::nullopt;
}

std::optional<double> parse_pressure(std::string_view text) {
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with("some ")) continue;
    for (const std::string& word : words(line)) {
      if (word.starts_with("avg10=")) return parse_number(std::string_view(word).substr(6));
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_peak_resident(std::string_view text) {
  const auto values = parse_meminfo(text);
  const auto peak = values.find("VmHWM");
  if (peak == values.end()) return std::nullopt;
  return peak->second;
}

std::vector<CgroupMembership> parse_cgroup_membership(std::string_view text) {
  std::vector<CgroupMembership> memberships;
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t first = line.find(':');
    if (first == std::string_view::npos) continue;
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    for (const auto controller : split(line.substr(first + 1, second - first - 1), ',')) {
      memberships.push_back({std::string(controller), std::string(line.substr(second + 1))});
    }
  }
  return memberships;
}

std::vector<CgroupMount> parse_cgroup_mounts(std::string_view text) {
  std::vector<CgroupMount> mounts;
  for (const std::string_view line : split(text, '\n')) {
    // id parent major:minor root mount-point options [fields] - type source super-options
    const std::vector<std::string> fields = words(line);
    const auto dash = std::ranges::find(fields, "-");
    if (fields.size() < 6 || fields.end() - dash < 4) continue;
    const std::string& type = *(dash + 1);
    if (type != "cgroup" && type != "cgroup2") continue;
    CgroupMount mount;
    mount.root = unescape_octal(fields[3]);
    mount.mount_point = unescape_octal(fields[4]);
    mount.unified = type == "cgroup2";
    if (!mount.unified) {
      for (const auto option : split(*(dash + 3), ',')) mount.controllers.emplace_back(option);
    }
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

std::optional<std::uint64_t> parse_memory_limit(std::string_view text) {
  // v1 says "no limit" with the largest multiple of a page.
  constexpr std::uint64_t k_unlimited = std::uint64_t{1} << 62;
  const auto bytes = parse_unsigned(text);
  if (!bytes || *bytes >= k_unlimited) return std::nullopt;
  return bytes;
}

std::optional<std::uint64_t> parse_statistic(std::string_view text, std::string_view key) {
  for (const std::string_view line : split(text, '\n')) {
    const auto space = line.find(' ');
    if (line.substr(0, space) == key) return parse_unsigned(line.substr(space + 1));
  }
  return std::nullopt;
}

std::optional<double> parse_cfs_quota(std::string_view quota_us, std::string_view period_us) {
  const auto quota = parse_number(quota_us);
  const auto period = parse_number(period_us);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

std::optional<double> parse_cpu_max(std::string_view text) {
  const std::vector<std::string> parts = words(text);
  if (parts.size() != 2) return std::nullopt;
  return parse_cfs_quota(parts[0], parts[1]);
}

bool names_a_processor(std::string_view sensor_name) {
  static constexpr auto k_names = std::to_array<std::string_view>(
      {"cpu", "coretemp", "k10temp", "zenpower", "x86_pkg_temp", "soc"});
  return std::ranges::any_of(k_names,
                             [&](std::string_view name) { return sensor_name.contains(name); });
}

std::string thermal_state(const std::vector<Sensor>& sensors) {
  static constexpr auto k_words =
      std::to_array<std::string_view>({"nominal", "fair", "serious", "critical"});
  constexpr double k_near_critical = 5;
  std::optional<std::size_t> worst;
  const auto consider = [&](std::size_t state) { worst = std::max(worst.value_or(0), state); };
  for (const Sensor& sensor : sensors) {
    if (sensor.warm) consider(sensor.celsius >= *sensor.warm ? 1 : 0);
    if (sensor.hot) consider(sensor.celsius >= *sensor.hot ? 2 : 0);
    if (!sensor.critical) continue;
    if (sensor.celsius >= *sensor.critical) {
      consider(3);
    } else {
      consider(sensor.celsius >= *sensor.critical - k_near_critical ? 2 : 0);
    }
  }
  return std::string(worst ? k_words[*worst] : k_not_readable);
}

}  // namespace paceline::host
