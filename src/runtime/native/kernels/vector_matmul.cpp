// Matrix products of packed weights, compiled once per instruction set.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/native/kernels/vector_impl.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/native/kernels/vector_matmul.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "runtime/native/kernels/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace paceline::runtime::native::HWY_NAMESPACE {
#if PACELINE_VECTOR_TARGET
namespace {

// A strip is the vectors whose sums are kept at once, for up to k_strip_columns activation rows.
// With 16 registers (AVX2) fewer columns fit, and bytes, which are split, need twice as many sums.
constexpr std::size_t k_strip_columns = HWY_TARGET == HWY_AVX2 ? 4 : 8;
constexpr std::size_t strip_vectors(Format format, std::size_t columns) {
  if (HWY_TARGET != HWY_AVX2) return 2;
  if (columns == 1) return 4;
  return format == Format::q8 && columns > 2 ? 1 : 2;
}
// More sums of whole rows than this lie in memory: they are touched once per block, the sums of
// the block itself all the time.
constexpr std::size_t k_most_in_registers = HWY_TARGET == HWY_AVX2 ? 4 : 12;
// Bytes between what is multiplied and what is fetched, into the second-level cache: the first
// has too few misses outstanding to read memory and multiply at the same time.
constexpr std::size_t k_prefetch_bytes = 16384;
HWY_INLINE void fetch(const std::uint8_t* from) {
  __builtin_prefetch(from + k_prefetch_bytes, 0, 2);
}

using Bytes = hn::Vec<U8>;
using Ints = hn::Vec<I32>;

// Where vector `v` of a row block lies inside the 64 bytes of a word: its group and byte.
struct Place {
  std::size_t group;
  std::size_t lane;
};
constexpr Place place_of(std::size_t vector) {
  const std::size_t row = vector * k_width;
  return {row / k_lanes, row % k_lanes * 4};
}

template <int shift>
HWY_INLINE Bytes shifted(Bytes bytes) {
  const auto words = hn::BitCast(U16(), bytes);
  if constexpr (shift > 0) return hn::BitCast(U8(), hn::ShiftRight<shift>(words));
  if constexpr (shift < 0) return hn::BitCast(U8(), hn::ShiftLeft<-shift>(words));
  return bytes;
}

// The stored integers of columns 4 * word + i (low) and 16 + 4 * word + i (high).
template <Format format, std::size_t word>
HWY_INLINE Bytes low_word(const std::uint8_t* block, Place place) {
  if constexpr (format == Format::q8) {
    return hn::LoadU(U8(), block + place.group * 512 + word * 64 + place.lane);
  } else {
    const Bytes packed = hn::LoadU(U8(), block + place.group * 256 + word * 64 + place.lane);
    Bytes low = hn::And(packed, hn::Set(U8(), 15));
    constexpr BlockLayout layout = layout_of(format);
    constexpr int w = static_cast<int>(word);
    if constexpr (bits_of(format) == 5) {
      const Bytes high = hn::LoadU(U8(), block + layout.high + place.group * 64 + place.lane);
      low = hn::Or(low, hn::And(shifted<2 * w - 4>(high), hn::Set(U8(), 16)));
    } else if constexpr (bits_of(format) == 6) {
      const Bytes high = hn::LoadU(U8(), block + layout.high + place.group * 128 + place.lane);
      low = hn::Or(low, hn::And(shifted<2 * w - 4>(high), hn::Set(U8(), 48)));
    }
    return low;
  }
}
template <Format format, std::size_t word>
HWY_INLINE Bytes high_word(const std::uint8_t* block, Place place) {
  if constexpr (format == Format::q8) {
    return hn::LoadU(U8(), block + place.group * 512 + (word + 4) * 64 + place.lane);
  } else {
    const Bytes packed = hn::LoadU(U8(), block + place.group * 256 + word * 64 + place.lane);
    Bytes top = hn::And(shifted<4>(packed), hn::Set(U8(), 15));
    constexpr BlockLayout layout = layout_of(format);
    constexpr int w = static_cast<int>(word);
    if constexpr (bits_of(format) == 5) {
      const Bytes high = hn::LoadU(U8(), block + layout.high + place.group * 64 + place.lane);
      top = hn::Or(top, hn::And(shifted<2 * w - 3>(high), hn::Set(U8(), 16)));
    } else if constexpr (bits_of(format) == 6) {
      const Bytes high = hn::LoadU(U8(), block + layout.high + place.group * 128 + 64 + place.lane);
      top = hn::Or(top, hn::And(shifted<2 * w - 4>(high), hn::Set(U8(), 48)));
    }
    return top;
  }
}

// Four columns of an activation row in every lane.
HWY_INLINE hn::Vec<I8> activation_word(const ActivationBlock& x, std::size_t word) {
  std::int32_t bits;
  std::memcpy(&bits, x.q.data() + 4 * word, sizeof bits);
  return hn::BitCast(I8(), hn::Set(I32(), bits));
}

// Sums of one block for one vector and column. What is added in which order makes no difference:
// these are integers. `settle` keeps the compiler from doing all products first and spilling them:
// with it the AVX2 kernels need half as many moves.
#if HWY_TARGET == HWY_AVX2

template <Format format>
struct Sums {
  // 8 pairs of 15 * 127 fit into 16 bits; wider integers are widened at every step.
  static constexpr bool k_narrow = bits_of(format) == 4;
  hn::Vec<I16> narrow;
  Ints wide;

  HWY_INLINE void start(Ints) {
    narrow = hn::Zero(I16());
    wide = hn::Zero(I32());
  }
  HWY_INLINE void add(Bytes low, hn::Vec<I8> x_low, Bytes high, hn::Vec<I8> x_high) {
    const auto pairs = hn::Add(hn::SatWidenMulPairwiseAdd(I16(), low, x_low),
                               hn::SatWidenMulPairwiseAdd(I16(), high, x_high));
    if constexpr (k_narrow) {
      narrow = hn::Add(narrow, pairs);
    } else {
      wide = hn::Add(wide, hn::WidenMulPairwiseAdd(I32(), pairs, hn::Set(I16(), 1)));
    }
  }
  HWY_INLINE void settle() {
    if constexpr (k_narrow) {
      asm volatile("" : "+x"(narrow.raw));
    } else {
      asm volatile("" : "+x"(wide.raw));
    }
  }
  HWY_INLINE Ints finish(Ints zero) {
    if constexpr (k_narrow) wide = hn::WidenMulPairwiseAdd(I32(), narrow, hn::Set(I16(), 1));
    return zero_of(format) == 0 ? wide : hn::Add(wide, zero);
  }
};

// 255 * 127 twice does not fit into 16 bits: the halves of a byte are multiplied apart.
template <>
struct Sums<Format::q8> {
  hn::Vec<I16> low_half;
  hn::Vec<I16> high_half;

  HWY_INLINE void start(Ints) { low_half = high_half = hn::Zero(I16()); }
  HWY_INLINE void add(Bytes low, hn::Vec<I8> x_low, Bytes high, hn::Vec<I8> x_high) {
    low_half = hn::Add(low_half, hn::Add(hn::SatWidenMulPairwiseAdd(I16(), bottom(low), x_low),
                                         hn::SatWidenMulPairwiseAdd(I16(), bottom(high), x_high)));
    high_half = hn::Add(high_half, hn::Add(hn::SatWidenMulPairwiseAdd(I16(), top(low), x_low),
                                           hn::SatWidenMulPairwiseAdd(I16(), top(high), x_high)));
  }
  HWY_INLINE void settle() { asm volatile("" : "+x"(low_half.raw), "+x"(high_half.raw)); }
  HWY_INLINE Ints finish(Ints zero) {
    const auto low = hn::WidenMulPairwiseAdd(I32(), low_half, hn::Set(I16(), 1));
    const auto high = hn::WidenMulPairwiseAdd(I32(), high_half, hn::Set(I16(), 16));
    return hn::Add(hn::Add(low, high), zero);
  }

 private:
  HWY_INLINE static Bytes bottom(Bytes bytes) { return hn::And(bytes, hn::Set(U8(), 15)); }
  HWY_INLINE static Bytes top(Bytes bytes) { return hn::And(shifted<4>(bytes), hn::Set(U8(), 15)); }
};

#else

template <Format format>
struct Sums {
  Ints wide;

  HWY_INLINE void start(Ints zero) { wide = zero; }
  HWY_INLINE void add(Bytes low, hn::Vec<I8> x_low, Bytes high, hn::Vec<I8> x_high) {
    wide = hn::SumOfMulQuadAccumulate(I32(), low, x_low, wide);
    wide = hn::SumOfMulQuadAccumulate(I32(), high, x_high, wide);
  }
  HWY_INLINE void settle() {
#if HWY_ARCH_X86
    asm volatile("" : "+v"(wide.raw));
#endif
  }
  HWY_INLINE Ints finish(Ints) { return wide; }
};

#endif

template <Format format>
HWY_INLINE Ints scaled_zero(std::int32_t eight_times) {
  constexpr int zero = zero_of(format);
  if constexpr (zero == 0) {
    return hn::Zero(I32());
  } else {
    constexpr int shift = zero == 8 ? 0 : zero == 16 ? 1 : zero == 32 ? 2 : 4;
    return hn::ShiftLeft<shift>(hn::Set(I32(), eight_times));
  }
}

HWY_INLINE hn::Vec<F32> halves(const std::uint8_t* from) {
  const hn::Rebind<hwy::float16_t, F32> d;
  return hn::PromoteTo(F32(), hn::LoadU(d, reinterpret_cast<const hwy::float16_t*>(from)));
}
template <class T>
HWY_INLINE hn::Vec<F32> small_integers(const std::uint8_t* from) {
  const hn::Rebind<T, I32> d;
  const auto loaded = hn::LoadU(d, reinterpret_cast<const T*>(from));
  return hn::ConvertTo(F32(), hn::PromoteTo(I32(), loaded));
}

// d of the rows of one vector; `half` counts for 6 bits.
template <Format format>
HWY_INLINE hn::Vec<F32> scales(const std::uint8_t* block, const std::uint8_t* super,
                               std::size_t row, std::size_t half) {
  constexpr BlockLayout layout = layout_of(format);
  if constexpr (!has_super_blocks(format)) {
    return halves(block + layout.d + 2 * row);
  } else if constexpr (format == Format::q6_scaled) {
    return hn::Mul(halves(super + 2 * row),
                   small_integers<std::int8_t>(block + layout.d + half * k_row_block + row));
  } else {
    return hn::Mul(halves(super + 2 * row), small_integers<std::uint8_t>(block + layout.d + row));
  }
}
template <Format format>
HWY_INLINE hn::Vec<F32> minima(const std::uint8_t* block, const std::uint8_t* super,
                               std::size_t row) {
  constexpr BlockLayout layout = layout_of(format);
  if constexpr (!has_super_blocks(format)) {
    return halves(block + layout.m + 2 * row);
  } else {
    return hn::Mul(halves(super + 2 * k_row_block + 2 * row),
                   small_integers<std::uint8_t>(block + layout.m + row));
  }
}

// The sums of a strip, in registers or in memory.
template <std::size_t vectors, std::size_t columns>
struct RowSums {
  static constexpr bool k_in_memory = vectors * columns > k_most_in_registers;
  hn::Vec<F32> registers[k_in_memory ? 1 : vectors][k_in_memory ? 1 : columns];
  alignas(64) float memory[k_in_memory ? vectors * columns * k_width : 1];

  HWY_INLINE void clear() {
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < vectors; ++v) {
      HWY_UNROLL(8)
      for (std::size_t c = 0; c < columns; ++c) set(v, c, hn::Zero(F32()));
    }
  }
  HWY_INLINE hn::Vec<F32> get(std::size_t v, std::size_t c) const {
    if constexpr (k_in_memory) {
      return hn::Load(F32(), memory + (v * columns + c) * k_width);
    } else {
      return registers[v][c];
    }
  }
  HWY_INLINE void set(std::size_t v, std::size_t c, hn::Vec<F32> value) {
    if constexpr (k_in_memory) {
      hn::Store(value, F32(), memory + (v * columns + c) * k_width);
    } else {
      registers[v][c] = value;
    }
  }
  // Keeps the compiler from holding all of them in registers after all.
  HWY_INLINE void settle() {
    if constexpr (k_in_memory) asm volatile("" : "+m"(memory));
  }
};

template <Format format, std::size_t vectors, std::size_t columns>
struct Strip {
  RowSums<vectors, columns> sums;

  template <std::size_t word>
  HWY_INLINE static void add_word(const std::uint8_t* block, const ActivationBlock* x,
                                  std::size_t first_vector,
                                  Sums<format> (&block_sums)[vectors][columns]) {
    Bytes low[vectors];
    Bytes high[vectors];
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < vectors; ++v) {
      low[v] = low_word<format, word>(block, place_of(first_vector + v));
      high[v] = high_word<format, word>(block, place_of(first_vector + v));
    }
    HWY_UNROLL(8)
    for (std::size_t c = 0; c < columns; ++c) {
      const auto x_low = activation_word(x[c], word);
      const auto x_high = activation_word(x[c], word + 4);
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < vectors; ++v) {
        block_sums[v][c].add(low[v], x_low, high[v], x_high);
        block_sums[v][c].settle();
      }
    }
  }

  HWY_INLINE void add_block(const std::uint8_t* block, const std::uint8_t* super,
                            const ActivationBlock* x, std::size_t first_vector) {
    Sums<format> block_sums[vectors][columns];
    HWY_UNROLL(8)
    for (std::size_t c = 0; c < columns; ++c) {
      const Ints zero = scaled_zero<format>(x[c].zero);
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < vectors; ++v) block_sums[v][c].start(zero);
    }
    add_word<0>(block, x, first_vector, block_sums);
    add_word<1>(block, x, first_vector, block_sums);
    add_word<2>(block, x, first_vector, block_sums);
    add_word<3>(block, x, first_vector, block_sums);
    sums.settle();
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < vectors; ++v) {
      const std::size_t row = (first_vector + v) * k_width;
      const auto d = scales<format>(block, super, row, 0);
      [[maybe_unused]] hn::Vec<F32> m = d;
      if constexpr (has_min(format)) m = minima<format>(block, super, row);
      HWY_UNROLL(8)
      for (std::size_t c = 0; c < columns; ++c) {
        const Ints integers = block_sums[v][c].finish(scaled_zero<format>(x[c].zero));
        auto sum = hn::MulAdd(hn::ConvertTo(F32(), integers),
                              hn::Mul(d, hn::Set(F32(), x[c].scale)), sums.get(v, c));
        if constexpr (has_min(format)) sum = hn::MulAdd(m, hn::Set(F32(), x[c].sum), sum);
        sums.set(v, c, sum);
      }
    }
  }
};

// 6 bits have a scale for each 16 columns, so the halves of a block are summed apart.
template <std::size_t vectors, std::size_t columns>
struct Strip<Format::q6_scaled, vectors, columns> {
  static constexpr Format k_format = Format::q6_scaled;
  RowSums<vectors, columns> sums;

  template <std::size_t half, std::size_t pair>
  HWY_INLINE void add_pair(const std::uint8_t* block, const ActivationBlock* x,
                           std::size_t first_vector,
                           Sums<k_format> (&block_sums)[vectors][columns]) {
    Bytes first[vectors];
    Bytes second[vectors];
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < vectors; ++v) {
      const Place place = place_of(first_vector + v);
      if constexpr (half == 0) {
        first[v] = low_word<k_format, 2 * pair>(block, place);
        second[v] = low_word<k_format, 2 * pair + 1>(block, place);
      } else {
        first[v] = high_word<k_format, 2 * pair>(block, place);
        second[v] = high_word<k_format, 2 * pair + 1>(block, place);
      }
    }
    HWY_UNROLL(8)
    for (std::size_t c = 0; c < columns; ++c) {
      const auto x_first = activation_word(x[c], 4 * half + 2 * pair);
      const auto x_second = activation_word(x[c], 4 * half + 2 * pair + 1);
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < vectors; ++v) {
        block_sums[v][c].add(first[v], x_first, second[v], x_second);
        block_sums[v][c].settle();
      }
    }
  }
  template <std::size_t half>
  HWY_INLINE static Ints zero_of_half(const ActivationBlock& x) {
    return scaled_zero<k_format>(half == 0 ? x.zero_low : x.zero - x.zero_low);
  }
  template <std::size_t half>
  HWY_INLINE void add_half(const std::uint8_t* block, const std::uint8_t* super,
                           const ActivationBlock* x, std::size_t first_vector) {
    Sums<k_format> block_sums[vectors][columns];
    HWY_UNROLL(8)
    for (std::size_t c = 0; c < columns; ++c) {
      const Ints zero = zero_of_half<half>(x[c]);
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < vectors; ++v) block_sums[v][c].start(zero);
    }
    add_pair<half, 0>(block, x, first_vector, block_sums);
    add_pair<half, 1>(block, x, first_vector, block_sums);
    sums.settle();
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < vectors; ++v) {
      const auto d = scales<k_format>(block, super, (first_vector + v) * k_width, half);
      HWY_UNROLL(8)
      for (std::size_t c = 0; c < columns; ++c) {
        const Ints integers = block_sums[v][c].finish(zero_of_half<half>(x[c]));
        const auto scale = hn::Mul(d, hn::Set(F32(), x[c].scale));
        sums.set(v, c, hn::MulAdd(hn::ConvertTo(F32(), integers), scale, sums.get(v, c)));
      }
    }
  }
  HWY_INLINE void add_block(const std::uint8_t* block, const std::uint8_t* super,
                            const ActivationBlock* x, std::size_t first_vector) {
    add_half<0>(block, super, x, first_vector);
    add_half<1>(block, super, x, first_vector);
  }
};

template <Format format, std::size_t columns>
HWY_NOINLINE void integer_strips(const std::uint8_t* weights, const ActivationBlock* x,
                                 std::size_t x_stride, std::size_t blocks, float* out,
                                 std::size_t out_stride) {
  constexpr std::size_t vectors = strip_vectors(format, columns);
  constexpr BlockLayout layout = layout_of(format);
  for (std::size_t first = 0; first < k_row_block / k_width; first += vectors) {
    Strip<format, vectors, columns> strip;
    strip.sums.clear();
    const std::uint8_t* block = weights;
    const std::uint8_t* super = weights;
    const ActivationBlock* activation = x;
    for (std::size_t b = 0; b < blocks; ++b, block += layout.bytes, activation += x_stride) {
      if constexpr (layout.super_bytes > 0) {
        if (b % k_super_block == 0) {
          super = block;
          block += layout.super_bytes;
        }
      }
      if (first == 0) {
        HWY_UNROLL(18)
        for (std::size_t line = 0; line < layout.bytes; line += 64) {
          fetch(block + line);
        }
      }
      strip.add_block(block, super, activation, first);
    }
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < vectors; ++v) {
      HWY_UNROLL(8)
      for (std::size_t c = 0; c < columns; ++c) {
        hn::StoreU(strip.sums.get(v, c), F32(), out + c * out_stride + (first + v) * k_width);
      }
    }
  }
}

template <Format format>
HWY_INLINE hn::Vec<F32> float_weights(const std::uint8_t* from) {
  if constexpr (format == Format::f32) {
    return hn::LoadU(F32(), reinterpret_cast<const float*>(from));
  } else if constexpr (format == Format::f16) {
    return halves(from);
  } else {
    const hn::Rebind<std::uint16_t, U32> d;
    const auto bits = hn::LoadU(d, reinterpret_cast<const std::uint16_t*>(from));
    return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), bits)));
  }
}

template <Format format, std::size_t columns>
HWY_NOINLINE void float_strips(const std::uint8_t* weights, const float* x, std::size_t x_stride,
                               std::size_t inputs, float* out, std::size_t out_stride) {
  constexpr std::size_t vectors = strip_vectors(format, columns);
  constexpr std::size_t value_bytes = format == Format::f32 ? 4 : 2;
  for (std::size_t first = 0; first < k_row_block / k_width; first += vectors) {
    hn::Vec<F32> sums[vectors][columns];
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < vectors; ++v) {
      HWY_UNROLL(8)
      for (std::size_t c = 0; c < columns; ++c) sums[v][c] = hn::Zero(F32());
    }
    const std::uint8_t* column = weights;
    const float* activation = x;
    for (std::size_t k = 0; k < inputs; ++k) {
      hn::Vec<F32> w[vectors];
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < vectors; ++v) {
        w[v] = float_weights<format>(column + (first + v) * k_width * value_bytes);
      }
      if (first == 0) fetch(column);
      HWY_UNROLL(8)
      for (std::size_t c = 0; c < columns; ++c) {
        const auto value = hn::Set(F32(), activation[c]);
        HWY_UNROLL(4)
        for (std::size_t v = 0; v < vectors; ++v) sums[v][c] = hn::MulAdd(w[v], value, sums[v][c]);
      }
      column += k_row_block * value_bytes;
      activation += x_stride;
    }
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < vectors; ++v) {
      HWY_UNROLL(8)
      for (std::size_t c = 0; c < columns; ++c) {
        hn::StoreU(sums[v][c], F32(), out + c * out_stride + (first + v) * k_width);
      }
    }
  }
}

template <Format format, std::size_t columns>
void strips(const std::uint8_t* weights, const ActivationTile& tile, std::size_t first_column,
            float* out, std::size_t out_stride) {
  if constexpr (is_float(format)) {
    float_strips<format, columns>(weights, tile.values + first_column, tile.columns,
                                  tile.blocks * k_block, out, out_stride);
  } else {
    integer_strips<format, columns>(weights, tile.quantised + first_column, tile.columns,
                                    tile.blocks, out, out_stride);
  }
}

template <Format format>
void matmul(const std::byte* packed, const ActivationTile& tile, float* out,
            std::size_t out_stride) {
  const auto* const weights = reinterpret_cast<const std::uint8_t*>(packed);
  using Function =
      void (*)(const std::uint8_t*, const ActivationTile&, std::size_t, float*, std::size_t);
  static constexpr std::array<Function, 8> functions = {
      strips<format, 1>, strips<format, 2>,
      strips<format, 3>, strips<format, 4>,
      strips < format,   k_strip_columns == 8 ? 5 : 1 >,
      strips < format,   k_strip_columns == 8 ? 6 : 1 >,
      strips < format,   k_strip_columns == 8 ? 7 : 1 >,
      strips < format,   k_strip_columns == 8 ? 8 : 1 > };
  // Parts of equal size: 5 columns are 3 and 2, not 4 and 1.
  const std::size_t parts = (tile.columns + k_strip_columns - 1) / k_strip_columns;
  std::size_t first = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t columns = (tile.columns - first + parts - part - 1) / (parts - part);
    functions[columns - 1](weights, tile, first, out + first * out_stride, out_stride);
    first += columns;
  }
}

}  // namespace

void fill_matmul(Kernels& kernels) {
  kernels.matmul = {matmul<Format::q4>,        matmul<Format::q4_min>, matmul<Format::q4_scaled>,
                    matmul<Format::q5>,        matmul<Format::q5_min>, matmul<Format::q5_scaled>,
                    matmul<Format::q6_scaled>, matmul<Format::q8>,     matmul<Format::f16>,
                    matmul<Format::bf16>,      matmul<Format::f32>};
}
#endif  // PACELINE_VECTOR_TARGET
}  // namespace paceline::runtime::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
