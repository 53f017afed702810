// Half-precision numbers by the compiler's own conversion, rounding to the nearest even.
#pragma once

#include <bit>
#include <cstdint>

namespace paceline::runtime::native {

inline float from_half(std::uint16_t bits) {
  return static_cast<float>(std::bit_cast<_Float16>(bits));
}
inline std::uint16_t to_half(float value) {
  return std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
}
inline float from_bfloat(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

}  // namespace paceline::runtime::native
