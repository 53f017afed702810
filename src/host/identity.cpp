#include "host/identity_impl.hpp"

#include <algorithm>
#include <format>

namespace paceline::host {

std::string chip_name(std::string_view cpu_model) {
  std::string lower(cpu_model);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  if (!lower.contains("apple")) return "non_apple_silicon";
  for (int generation = 1; generation <= 5; ++generation) {
    if (lower.contains(std::format("m{}", generation))) return std::format("apple_m{}", generation);
  }
  return "apple_silicon";
}

std::string hardware_model_name(std::string_view chip, std::size_t memory_gib) {
  if (chip == "non_apple_silicon") return "non_apple_silicon";
  return std::format("apple_silicon_{}gb", memory_gib);
}

}  // namespace paceline::host
