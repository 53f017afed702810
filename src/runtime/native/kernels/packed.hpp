// How weights and activations lie in memory for the kernels. Weights are cut into row blocks of 32
// output rows; a row block holds its input columns in blocks of 32. All instruction sets read the
// same layout.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace paceline::runtime::native {

inline constexpr std::size_t k_row_block = 32;    // output rows computed together
inline constexpr std::size_t k_lanes = 16;        // rows of one group: two groups per row block
inline constexpr std::size_t k_block = 32;        // input columns of a block
inline constexpr std::size_t k_super_block = 8;   // blocks that share scales in the K types
inline constexpr std::size_t k_most_columns = 8;  // activation rows of one tile

/// What the kernels read. Of a quantised block the value is d * (q - zero) or d * q + m.
enum class Format : std::uint8_t {
  q4,         // zero 8: Q4_0
  q4_min,     // d and m: Q4_1
  q4_scaled,  // d and m from 6-bit scales: Q4_K
  q5,         // zero 16: Q5_0
  q5_min,     // Q5_1
  q5_scaled,  // Q5_K
  q6_scaled,  // zero 32, a scale per 16 columns: Q6_K
  q8,         // zero 128: Q8_0
  f16,
  bf16,
  f32,
};
inline constexpr std::size_t k_formats = 11;

constexpr bool is_float(Format format) { return format >= Format::f16; }
constexpr bool has_super_blocks(Format format) {
  return format == Format::q4_scaled || format == Format::q5_scaled || format == Format::q6_scaled;
}
constexpr bool has_min(Format format) {
  return format == Format::q4_min || format == Format::q4_scaled || format == Format::q5_min ||
         format == Format::q5_scaled;
}
/// Bits per stored integer, 0 for float formats.
constexpr int bits_of(Format format) {
  switch (format) {
    case Format::q4:
    case Format::q4_min:
    case Format::q4_scaled:
      return 4;
    case Format::q5:
    case Format::q5_min:
    case Format::q5_scaled:
      return 5;
    case Format::q6_scaled:
      return 6;
    case Format::q8:
      return 8;
    default:
      return 0;
  }
}
/// The integer that stands for zero where there is no m.
constexpr int zero_of(Format format) {
  return is_float(format) || has_min(format) ? 0 : 1 << (bits_of(format) - 1);
}

// Offsets inside one block of 32 rows and 32 columns.
//   nibbles [group 2][word 4][row 16][column 4]: low halves are columns 4 * word + i, high halves
//           columns 16 + 4 * word + i; bytes of q8: [group][word 8][row][column 4]
//   high    5 bits: [group][row][column i]: bit 2 * word for the low half, 2 * word + 1 for the
//   high
//           6 bits: [group][half][row][column i]: bits 2 * word and 2 * word + 1
//   d, m    f16 [32], or 8-bit scales [32] (6 bits: int8 [half 2][32])
struct BlockLayout {
  std::size_t high = 0;
  std::size_t d = 0;
  std::size_t m = 0;
  std::size_t bytes = 0;
  std::size_t super_bytes = 0;  // in front of every 8 blocks: f16 d [32], then f16 m [32]
};
constexpr BlockLayout layout_of(Format format) {
  BlockLayout layout;
  const std::size_t values = k_row_block * k_block;
  switch (bits_of(format)) {
    case 4:
      layout.high = layout.d = values / 2;
      break;
    case 5:
      layout.high = values / 2;
      layout.d = layout.high + values / 8;
      break;
    case 6:
      layout.high = values / 2;
      layout.d = layout.high + values / 4;
      break;
    case 8:
      layout.high = layout.d = values;
      break;
    default:
      layout.bytes = values * (format == Format::f32 ? 4 : 2);
      return layout;
  }
  if (!has_super_blocks(format)) {
    layout.m = layout.d + 2 * k_row_block;
    layout.bytes = layout.m + (has_min(format) ? 2 * k_row_block : 0);
  } else if (format == Format::q6_scaled) {
    layout.m = layout.bytes = layout.d + 2 * k_row_block;
    layout.super_bytes = 2 * k_row_block;
  } else {
    layout.m = layout.d + k_row_block;
    layout.bytes = layout.m + k_row_block;
    layout.super_bytes = 4 * k_row_block;
  }
  return layout;
}

/// Bytes of one row block with `blocks` blocks per row.
constexpr std::size_t row_block_bytes(Format format, std::size_t blocks) {
  const BlockLayout layout = layout_of(format);
  return blocks * layout.bytes +
         (layout.super_bytes > 0 ? blocks / k_super_block : 0) * layout.super_bytes;
}
/// Where block `block` of a row block begins, and where the scales of its super-block do.
constexpr std::size_t block_offset(Format format, std::size_t block) {
  const BlockLayout layout = layout_of(format);
  return block * layout.bytes +
         (layout.super_bytes > 0 ? block / k_super_block + 1 : 0) * layout.super_bytes;
}
constexpr std::size_t super_offset(Format format, std::size_t block) {
  const BlockLayout layout = layout_of(format);
  return block / k_super_block * (k_super_block * layout.bytes + layout.super_bytes);
}

/// 32 values of one activation row, quantised: value = scale * q.
struct ActivationBlock {
  std::array<std::int8_t, k_block> q;  // -127 to 127
  float scale;
  float sum;              // scale times the sum of q
  std::int32_t zero;      // -8 times the sum of q
  std::int32_t zero_low;  // the same of the first 16
};

/// Up to eight activation rows, block by block: [block][column]. One of the two is null where no
/// matrix reads it.
struct ActivationTile {
  const ActivationBlock* quantised = nullptr;
  const float* values = nullptr;  // [input column][column]
  std::size_t blocks = 0;         // per row
  std::size_t columns = 0;        // 1 to 8
};

}  // namespace paceline::runtime::native
