// Names of processors and machines in the words of the published report. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace paceline::host {

inline constexpr std::string_view k_not_readable = "not readable";

/// apple_m1 .. apple_m5, apple_silicon or non_apple_silicon from a processor's brand string.
std::string chip_name(std::string_view cpu_model);
/// apple_silicon_<n>gb or non_apple_silicon.
std::string hardware_model_name(std::string_view chip, std::size_t memory_gib);

}  // namespace paceline::host
