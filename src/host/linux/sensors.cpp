// Processor temperatures from /sys/class/thermal and /sys/class/hwmon.
#include <format>

#include "core/text.hpp"
#include "host/linux/linux_impl.hpp"

namespace paceline::host {

namespace fs = std::filesystem;

namespace {

constexpr int k_most_entries = 64;  // trip points of a zone, inputs of a chip

std::optional<double> read_celsius(const fs::path& root, const fs::path& path) {
  const auto milli = parse_number(read_below(root, path));
  if (!milli) return std::nullopt;
  return *milli / 1000;
}

std::optional<Sensor> read_thermal_zone(const fs::path& root, const fs::path& zone) {
  const std::string name(trim(read_below(root, zone / "type")));
  const auto celsius = read_celsius(root, zone / "temp");
  if (!celsius || !names_a_processor(name)) return std::nullopt;
  Sensor sensor{name, *celsius, {}, {}, {}};
  for (int i = 0; i < k_most_entries; ++i) {
    const std::string type(trim(read_below(root, zone / std::format("trip_point_{}_type", i))));
    if (type.empty()) break;
    const auto limit = read_celsius(root, zone / std::format("trip_point_{}_temp", i));
    if (!limit || *limit <= 0) continue;  // an unused trip point
    if (type == "passive") sensor.warm = limit;
    if (type == "hot") sensor.hot = limit;
    if (type == "critical") sensor.critical = limit;
  }
  return sensor;
}

void read_hwmon(const fs::path& root, const fs::path& chip, std::vector<Sensor>& sensors) {
  const std::string name(trim(read_below(root, chip / "name")));
  if (!names_a_processor(name)) return;
  for (int i = 1; i < k_most_entries; ++i) {
    const auto celsius = read_celsius(root, chip / std::format("temp{}_input", i));
    if (!celsius) continue;
    sensors.push_back({name,
                       *celsius,
                       read_celsius(root, chip / std::format("temp{}_max", i)),
                       {},
                       read_celsius(root, chip / std::format("temp{}_crit", i))});
  }
}

}  // namespace

std::vector<Sensor> read_processor_sensors(const fs::path& root) {
  std::vector<Sensor> sensors;
  for (const fs::path& zone : folders_below(root, "/sys/class/thermal")) {
    if (auto sensor = read_thermal_zone(root, zone)) sensors.push_back(*std::move(sensor));
  }
  for (const fs::path& chip : folders_below(root, "/sys/class/hwmon")) {
    read_hwmon(root, chip, sensors);
  }
  return sensors;
}

}  // namespace paceline::host
