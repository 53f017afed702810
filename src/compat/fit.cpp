#include "compat/fit.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <format>
#include <utility>

#include "core/text.hpp"

namespace paceline::compat {

namespace {

constexpr std::string_view k_host = "host";

std::uint64_t usable_part(std::uint64_t free) {
  return static_cast<std::uint64_t>(static_cast<double>(free) * (1 - k_headroom));
}

DeviceFit& of_device(std::vector<DeviceFit>& devices, const runtime::MemoryNeed& need) {
  const auto known = std::ranges::find(devices, need.device, &DeviceFit::device);
  if (known != devices.end()) return *known;
  devices.push_back({.device = need.device});
  DeviceFit& added = devices.back();
  added.free = need.device_free;
  if (added.free) added.usable = usable_part(*added.free);
  return added;
}

bool fits(const DeviceFit& device, std::uint64_t sum) {
  return !device.usable || sum <= *device.usable;
}

/// The device that decides: the first that is too small, else the host.
const DeviceFit& deciding(const std::vector<DeviceFit>& devices, std::uint64_t DeviceFit::* sum) {
  const auto found = std::ranges::find_if(
      devices, [&](const DeviceFit& device) { return !fits(device, device.*sum); });
  return found != devices.end() ? *found : devices.front();
}

std::string sums(const DeviceFit& device, std::uint64_t sum) {
  if (!device.free) {
    return std::format("{} on {}, whose free memory is not readable", format_bytes(sum),
                       device.device);
  }
  return std::format("{} of {} usable on {} ({} free less {:.0f} % headroom)", format_bytes(sum),
                     format_bytes(*device.usable), device.device, format_bytes(*device.free),
                     100 * k_headroom);
}

std::string make_sentence(const FitReport& report, bool has_draft) {
  switch (report.fit) {
    case Fit::fits: {
      const DeviceFit& device = deciding(report.devices, &DeviceFit::pair);
      return std::format("fits: {}", sums(device, device.pair));
    }
    case Fit::fits_plain_only: {
      const DeviceFit& device = deciding(report.devices, &DeviceFit::pair);
      return std::format("fits only without the draft: the pair needs {}, the target alone {}",
                         sums(device, device.pair), format_bytes(device.plain));
    }
    case Fit::does_not_fit: {
      const DeviceFit& device = deciding(report.devices, &DeviceFit::plain);
      return std::format("does not fit: {} needs {}", has_draft ? "the target alone" : "the target",
                         sums(device, device.plain));
    }
  }
  return {};
}

}  // namespace

std::string_view to_string(Fit fit) {
  switch (fit) {
    case Fit::fits:
      return "fits";
    case Fit::fits_plain_only:
      return "fits_plain_only";
    case Fit::does_not_fit:
      return "does_not_fit";
  }
  return "does_not_fit";
}

FitReport judge_fit(std::span<const ModelNeed> models, const MemoryFree& free) {
  FitReport report;
  report.devices.push_back({.device = std::string(k_host),
                            .free = free.host_bytes,
                            .plain = free.program_bytes,
                            .pair = free.program_bytes});
  if (free.host_bytes) report.devices.front().usable = usable_part(*free.host_bytes);
  report.peak_resident = free.program_bytes;
  for (std::size_t i = 0; i < models.size(); ++i) {
    for (const runtime::MemoryNeed& need : models[i].devices) {
      DeviceFit& device = of_device(report.devices, need);
      device.pair += need.held();
      if (i == 0) device.plain += need.held();
      if (need.device == k_host) report.peak_resident += need.held() + need.droppable;
    }
  }
  const auto all_fit = [&](std::uint64_t DeviceFit::* sum) {
    return std::ranges::all_of(report.devices,
                               [&](const DeviceFit& device) { return fits(device, device.*sum); });
  };
  if (all_fit(&DeviceFit::pair)) {
    report.fit = Fit::fits;
  } else {
    report.fit = all_fit(&DeviceFit::plain) ? Fit::fits_plain_only : Fit::does_not_fit;
  }
  report.sentence = make_sentence(report, models.size() > 1);
  return report;
}

Result<std::size_t> largest_context(
    std::size_t most, const MemoryFree& free,
    const std::function<Result<std::vector<ModelNeed>>(std::size_t context)>& need_of) {
  const auto fits_at = [&](std::size_t context) -> Result<bool> {
    PACELINE_TRY(const std::vector<ModelNeed> needs, need_of(context));
    return judge_fit(needs, free).fit == Fit::fits;
  };
  if (most == 0) return std::size_t{0};
  PACELINE_TRY(const bool all, fits_at(most));
  if (all) return most;
  std::size_t low = 0;  // fits (nothing at all does), and `high` does not
  std::size_t high = most;
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    PACELINE_TRY(const bool here, fits_at(middle));
    (here ? low : high) = middle;
  }
  return low;
}

Result<std::size_t> draft_context(const host::RamTier& tier,
                                  std::optional<std::size_t> explicit_context) {
  if (explicit_context && *explicit_context > tier.draft_context_cap) {
    return fail(ErrorCode::invalid_argument,
                std::format("a context of {} tokens with a draft, the {} tier allows up to {}; ask "
                            "for less or leave the draft out",
                            *explicit_context, tier.name, tier.draft_context_cap),
                "draft_model_capacity_shortfall");
  }
  return std::min(explicit_context.value_or(tier.default_context), tier.draft_context_cap);
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  const auto wrong = [&] {
    return fail(ErrorCode::invalid_argument,
                std::format("\"{}\" is no amount of memory; wanted is a number and a unit, for "
                            "example 64GB, 512MiB or 1.5G",
                            escape(text)));
  };
  const std::string_view trimmed = trim(text);
  double number = 0;
  const auto [end, code] = std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), number);
  if (code != std::errc{} || !std::isfinite(number) || number < 0) return wrong();
  std::string unit(trim(trimmed.substr(static_cast<std::size_t>(end - trimmed.data()))));
  for (char& c : unit) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (unit.ends_with('b')) unit.pop_back();
  static constexpr std::array<std::pair<std::string_view, double>, 9> k_units{
      {{"", 1},
       {"k", 1e3},
       {"m", 1e6},
       {"g", 1e9},
       {"t", 1e12},
       {"ki", 1024.0},
       {"mi", 1024.0 * 1024},
       {"gi", 1024.0 * 1024 * 1024},
       {"ti", 1024.0 * 1024 * 1024 * 1024}}};
  for (const auto& [name, factor] : k_units) {
    if (unit != name) continue;
    const double bytes = std::round(number * factor);
    if (bytes >= 0x1p63) return wrong();
    return static_cast<std::uint64_t>(bytes);
  }
  return wrong();
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> k_units{"bytes", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.95 && unit + 1 < k_units.size()) {
    value /= 1000;
    ++unit;
  }
  return std::format("{:.{}f} {}", value, unit == 0 ? 0 : 1, k_units[unit]);
}

}  // namespace paceline::compat
