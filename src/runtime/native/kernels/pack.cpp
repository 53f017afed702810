#include "runtime/native/kernels/pack.hpp"

#include <array>
#include <cstdint>
#include <cstring>

#include "runtime/native/kernels/unpack.hpp"

namespace paceline::runtime::native {

namespace {

struct TypeEntry {
  std::string_view gguf;
  std::size_t block_columns;
  std::size_t block_bytes;
};
// In the order of Format.
constexpr std::array<TypeEntry, k_formats> k_types = {{{"q4_0", 32, 18},
                                                       {"q4_1", 32, 20},
                                                       {"q4_K", 256, 144},
                                                       {"q5_0", 32, 22},
                                                       {"q5_1", 32, 24},
                                                       {"q5_K", 256, 176},
                                                       {"q6_K", 256, 210},
                                                       {"q8_0", 32, 34},
                                                       {"f16", 1, 2},
                                                       {"bf16", 1, 2},
                                                       {"f32", 1, 4}}};
const TypeEntry& entry_of(Format format) { return k_types[static_cast<std::size_t>(format)]; }

using Integers = std::array<std::uint8_t, k_block>;

// 32 columns of one row as the file has them.
struct SourceBlock {
  Integers q{};         // shifted to be 0 or more
  std::uint16_t d = 0;  // half bits; of the super-block in the K types
  std::uint16_t m = 0;
  std::array<std::uint8_t, 2> scales{};  // K types: of the block, or of its halves (6 bits)
  std::uint8_t min = 0;
};

constexpr std::uint16_t k_sign = 0x8000;

void read_nibbles(const std::byte* from, Integers& q) {
  for (std::size_t i = 0; i < 16; ++i) {
    const std::uint8_t byte = byte_at(from, i);
    q[i] = byte & 15;
    q[i + 16] = byte >> 4;
  }
}
void add_high_bits(const std::byte* from, Integers& q) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, from, sizeof bits);
  for (std::size_t i = 0; i < k_block; ++i) {
    q[i] = static_cast<std::uint8_t>(q[i] | ((bits >> i & 1U) << 4U));
  }
}

// Scales and mins of Q4_K and Q5_K: eight pairs of 6 bits in 12 bytes.
void read_scale_pair(const std::byte* scales, std::size_t block, SourceBlock& out) {
  const auto at = [&](std::size_t i) { return byte_at(scales, i); };
  if (block < 4) {
    out.scales[0] = at(block) & 63;
    out.min = at(block + 4) & 63;
    return;
  }
  out.scales[0] = static_cast<std::uint8_t>((at(block + 4) & 15) | (at(block - 4) >> 6 << 4));
  out.min = static_cast<std::uint8_t>((at(block + 4) >> 4) | (at(block) >> 6 << 4));
}

void read_k_nibbles(const std::byte* from, std::size_t block, Integers& q) {
  for (std::size_t i = 0; i < k_block; ++i) {
    q[i] = byte_at(from, block / 2 * 32 + i) >> (block % 2 * 4) & 15;
  }
}

SourceBlock read_block(Format format, const std::byte* row, std::size_t block) {
  const TypeEntry& type = entry_of(format);
  const std::byte* const from = row + block * k_block / type.block_columns * type.block_bytes;
  const std::size_t in_super = block % k_super_block;
  SourceBlock out;
  switch (format) {
    case Format::q4:
      out.d = half_bits_at(from, 0);
      read_nibbles(from + 2, out.q);
      break;
    case Format::q4_min:
      out.d = half_bits_at(from, 0);
      out.m = half_bits_at(from, 2);
      read_nibbles(from + 4, out.q);
      break;
    case Format::q5:
      out.d = half_bits_at(from, 0);
      read_nibbles(from + 6, out.q);
      add_high_bits(from + 2, out.q);
      break;
    case Format::q5_min:
      out.d = half_bits_at(from, 0);
      out.m = half_bits_at(from, 2);
      read_nibbles(from + 8, out.q);
      add_high_bits(from + 4, out.q);
      break;
    case Format::q8:
      out.d = half_bits_at(from, 0);
      for (std::size_t i = 0; i < k_block; ++i) out.q[i] = byte_at(from, 2 + i) ^ 128;
      break;
    case Format::q4_scaled:
    case Format::q5_scaled:
      out.d = half_bits_at(from, 0);
      out.m = half_bits_at(from, 2) ^ k_sign;  // GGUF subtracts it
      read_scale_pair(from + 4, in_super, out);
      read_k_nibbles(from + (format == Format::q4_scaled ? 16 : 48), in_super, out.q);
      if (format == Format::q5_scaled) {
        for (std::size_t i = 0; i < k_block; ++i) {
          const int bit = byte_at(from, 16 + i) >> in_super & 1;
          out.q[i] = static_cast<std::uint8_t>(out.q[i] | bit << 4);
        }
      }
      break;
    case Format::q6_scaled: {
      const std::size_t part = in_super / 4;  // of 128 columns
      const std::size_t quarter = in_super % 4;
      for (std::size_t i = 0; i < k_block; ++i) {
        const std::size_t low = part * 64 + quarter % 2 * 32 + i;
        const int nibble = byte_at(from, low) >> (quarter / 2 * 4) & 15;
        const int high = byte_at(from, 128 + part * 32 + i) >> (quarter * 2) & 3;
        out.q[i] = static_cast<std::uint8_t>(nibble | high << 4);
      }
      out.scales = {byte_at(from, 192 + in_super * 2), byte_at(from, 193 + in_super * 2)};
      out.d = half_bits_at(from, 208);
      break;
    }
    default:
      break;
  }
  return out;
}

void set_byte(std::byte* out, std::size_t offset, int value) {
  out[offset] = static_cast<std::byte>(value);
}
void set_half(std::byte* out, std::size_t offset, std::uint16_t bits) {
  std::memcpy(out + offset, &bits, sizeof bits);
}

void write_integers(Format format, const Integers& q, std::size_t row, std::byte* out) {
  const BlockLayout layout = layout_of(format);
  const std::size_t group = row / k_lanes;
  const std::size_t lane = row % k_lanes * 4;
  if (format == Format::q8) {
    for (std::size_t word = 0; word < 8; ++word) {
      std::memcpy(out + group * 512 + word * 64 + lane, &q[4 * word], 4);
    }
    return;
  }
  for (std::size_t word = 0; word < 4; ++word) {
    for (std::size_t i = 0; i < 4; ++i) {
      const int low = q[4 * word + i];
      const int high = q[16 + 4 * word + i];
      set_byte(out, group * 256 + word * 64 + lane + i, (low & 15) | (high & 15) << 4);
    }
  }
  for (std::size_t i = 0; bits_of(format) == 5 && i < 4; ++i) {
    int bits = 0;
    for (std::size_t word = 0; word < 4; ++word) {
      bits |= (q[4 * word + i] >> 4) << (2 * word);
      bits |= (q[16 + 4 * word + i] >> 4) << (2 * word + 1);
    }
    set_byte(out, layout.high + group * 64 + lane + i, bits);
  }
  for (std::size_t i = 0; bits_of(format) == 6 && i < 4; ++i) {
    for (std::size_t half = 0; half < 2; ++half) {
      int bits = 0;
      for (std::size_t word = 0; word < 4; ++word) {
        bits |= (q[16 * half + 4 * word + i] >> 4) << (2 * word);
      }
      set_byte(out, layout.high + group * 128 + half * 64 + lane + i, bits);
    }
  }
}

void write_scales(Format format, const SourceBlock& source, std::size_t row, std::byte* out,
                  std::byte* super) {
  const BlockLayout layout = layout_of(format);
  if (!has_super_blocks(format)) {
    set_half(out, layout.d + 2 * row, source.d);
    if (has_min(format)) set_half(out, layout.m + 2 * row, source.m);
    return;
  }
  set_half(super, 2 * row, source.d);
  set_byte(out, layout.d + row, source.scales[0]);
  if (format == Format::q6_scaled) {
    set_byte(out, layout.d + k_row_block + row, source.scales[1]);
  } else {
    set_half(super, 2 * k_row_block + 2 * row, source.m);
    set_byte(out, layout.m + row, source.min);
  }
}

constexpr std::uint16_t k_half_exponent = 0x7c00;
constexpr std::uint16_t k_bfloat_exponent = 0x7f80;
constexpr std::uint32_t k_float_exponent = 0x7f800000;

bool is_finite_half(std::uint16_t bits) { return (bits & k_half_exponent) != k_half_exponent; }

/// Numbers whose exponent has all bits set are NaN or infinite.
template <typename Bits>
bool no_exponent_is_full(const std::byte* values, std::size_t count, Bits exponent) {
  bool none = true;
  for (std::size_t i = 0; i < count; ++i) {
    Bits bits = 0;
    std::memcpy(&bits, values + i * sizeof bits, sizeof bits);
    none = none && (bits & exponent) != exponent;
  }
  return none;
}

bool are_finite(Format format, const std::byte* row, std::size_t columns) {
  if (format == Format::f32) return no_exponent_is_full(row, columns, k_float_exponent);
  return no_exponent_is_full(row, columns,
                             format == Format::f16 ? k_half_exponent : k_bfloat_exponent);
}

}  // namespace

std::optional<Format> format_of(std::string_view gguf_type) {
  for (std::size_t i = 0; i < k_types.size(); ++i) {
    if (k_types[i].gguf == gguf_type) return static_cast<Format>(i);
  }
  return std::nullopt;
}

std::string_view gguf_type_of(Format format) { return entry_of(format).gguf; }

std::size_t column_step(Format format) {
  return has_super_blocks(format) ? k_super_block * k_block : k_block;
}

std::size_t source_row_bytes(Format format, std::size_t columns) {
  return columns / entry_of(format).block_columns * entry_of(format).block_bytes;
}

bool pack_row_block(Format format, const std::byte* rows, std::size_t row_count,
                    std::size_t columns, std::byte* out) {
  const std::size_t row_bytes = source_row_bytes(format, columns);
  if (row_count < k_row_block) {
    // A half of 0 as scale makes the missing rows 0.
    std::memset(out, 0, row_block_bytes(format, columns / k_block));
  }
  bool finite = true;
  for (std::size_t row = 0; row < row_count; ++row) {
    const std::byte* const from = rows + row * row_bytes;
    if (is_float(format)) {
      const std::size_t bytes = entry_of(format).block_bytes;
      finite = are_finite(format, from, columns) && finite;
      for (std::size_t k = 0; k < columns; ++k) {
        std::memcpy(out + (k * k_row_block + row) * bytes, from + k * bytes, bytes);
      }
      continue;
    }
    for (std::size_t block = 0; block < columns / k_block; ++block) {
      const SourceBlock source = read_block(format, from, block);
      finite = finite && is_finite_half(source.d) && is_finite_half(source.m);
      std::byte* const to = out + block_offset(format, block);
      write_integers(format, source.q, row, to);
      write_scales(format, source, row, to, out + super_offset(format, block));
    }
  }
  return finite;
}

void unpack_row(Format format, const std::byte* row_block, std::size_t row, std::size_t blocks,
                float* out) {
  for (std::size_t block = 0; block < blocks; ++block) {
    for (std::size_t k = 0; k < k_block; ++k, ++out) {
      if (is_float(format)) {
        *out = float_value(format, row_block, row, block * k_block + k);
        continue;
      }
      const int q = stored_integer(format, row_block, block, row, k) - zero_of(format);
      *out = scale_of(format, row_block, block, row, k / 16) * static_cast<float>(q);
      if (has_min(format)) *out += min_of(format, row_block, block, row);
    }
  }
}

}  // namespace paceline::runtime::native
