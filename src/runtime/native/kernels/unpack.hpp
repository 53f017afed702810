// Single values out of a packed row block. For the reference, embeddings and tests; slow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/native/kernels/half.hpp"
#include "runtime/native/kernels/packed.hpp"

namespace paceline::runtime::native {

inline std::uint8_t byte_at(const std::byte* data, std::size_t offset) {
  return static_cast<std::uint8_t>(data[offset]);
}
inline std::uint16_t half_bits_at(const std::byte* data, std::size_t offset) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, data + offset, sizeof bits);
  return bits;
}
inline float half_at(const std::byte* data, std::size_t offset) {
  return from_half(half_bits_at(data, offset));
}

/// The stored integer of row `row` (0 to 31), column `k` of block `block`.
inline int stored_integer(Format format, const std::byte* row_block, std::size_t block,
                          std::size_t row, std::size_t k) {
  const BlockLayout layout = layout_of(format);
  const std::byte* const data = row_block + block_offset(format, block);
  const std::size_t group = row / k_lanes;
  const std::size_t lane = row % k_lanes * 4 + k % 4;
  const std::size_t word = k % 16 / 4;
  const std::size_t half = k / 16;
  if (format == Format::q8) return byte_at(data, group * 512 + k / 4 * 64 + lane);
  const int nibble = byte_at(data, group * 256 + word * 64 + lane) >> (4 * half) & 15;
  if (bits_of(format) == 5) {
    const int high = byte_at(data, layout.high + group * 64 + lane) >> (2 * word + half) & 1;
    return nibble + 16 * high;
  }
  if (bits_of(format) == 6) {
    const int high = byte_at(data, layout.high + group * 128 + half * 64 + lane) >> (2 * word) & 3;
    return nibble + 16 * high;
  }
  return nibble;
}

/// d of a row in a block; `half` tells the two of 6 bits apart.
inline float scale_of(Format format, const std::byte* row_block, std::size_t block, std::size_t row,
                      std::size_t half) {
  const BlockLayout layout = layout_of(format);
  const std::byte* const data = row_block + block_offset(format, block);
  if (!has_super_blocks(format)) return half_at(data, layout.d + 2 * row);
  const float d = half_at(row_block, super_offset(format, block) + 2 * row);
  if (format == Format::q6_scaled) {
    const auto scale = static_cast<std::int8_t>(byte_at(data, layout.d + half * k_row_block + row));
    return d * static_cast<float>(scale);
  }
  return d * static_cast<float>(byte_at(data, layout.d + row));
}

/// m of a row in a block, for formats that have one.
inline float min_of(Format format, const std::byte* row_block, std::size_t block, std::size_t row) {
  const BlockLayout layout = layout_of(format);
  const std::byte* const data = row_block + block_offset(format, block);
  if (!has_super_blocks(format)) return half_at(data, layout.m + 2 * row);
  const float m = half_at(row_block, super_offset(format, block) + 2 * k_row_block + 2 * row);
  return m * static_cast<float>(byte_at(data, layout.m + row));
}

/// A value of a float format.
inline float float_value(Format format, const std::byte* row_block, std::size_t row,
                         std::size_t column) {
  const std::size_t index = column * k_row_block + row;
  if (format == Format::f32) {
    float value = 0.0F;
    std::memcpy(&value, row_block + 4 * index, sizeof value);
    return value;
  }
  const std::uint16_t bits = half_bits_at(row_block, 2 * index);
  return format == Format::f16 ? from_half(bits) : from_bfloat(bits);
}

}  // namespace paceline::runtime::native
