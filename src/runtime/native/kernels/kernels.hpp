// The inner loops of the native runtime, once per instruction set. Every set gives the same bits:
// the order of operations is fixed by the layout, 16 lanes wide, with fused multiply-adds. So
// the plain C++ of `reference` checks all others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/native/kernels/packed.hpp"

namespace paceline::runtime::native {

enum class Isa : std::uint8_t { scalar, avx2, avx512_vnni, neon };
std::string_view to_string(Isa isa);

/// Keys and values of one head of one sequence. Keys: f16 [cell / 16][width][cell % 16]; values:
/// f16 [cell][width].
struct HeadCache {
  std::uint16_t* keys = nullptr;
  std::uint16_t* values = nullptr;
};

/// One query: attends to positions 0 to `length - 1`. Positions from `committed` on lie in the
/// cells `committed + path[i]`, earlier ones in the cell of their number.
struct Query {
  const float* q = nullptr;            // [width], scaled
  const std::int32_t* path = nullptr;  // null: cell = position
  std::size_t length = 0;
};

/// What attention over some positions gave: exp-weighted values and their weight.
struct Partial {
  float max = 0.0F;
  float weight = 0.0F;  // 0: nothing seen yet
};

/// Positions are taken in chunks of this many, whose results are merged in order.
inline constexpr std::size_t k_chunk = 256;
inline constexpr std::size_t k_most_queries = 16;  // of one call of `attend`

struct AttendJob {
  HeadCache cache;
  std::size_t width = 0;      // of a head; a multiple of 16
  std::size_t committed = 0;  // cells that follow position order
  std::size_t cells = 0;      // cells in use, those of the pass included
  std::size_t chunk = 0;      // positions chunk * k_chunk and on
  const Query* queries = nullptr;
  std::size_t query_count = 0;
  float* scores = nullptr;  // scratch: query_count * score_stride floats
  std::size_t score_stride = 0;
  // Results of this chunk alone:
  Partial* partials = nullptr;  // [query_count]
  float* values = nullptr;      // [query_count][width]
};

struct Kernels {
  Isa isa = Isa::scalar;
  /// out[column * out_stride + row] of one row block (32 rows), for every column of the tile.
  using Matmul = void (*)(const std::byte* weights, const ActivationTile& tile, float* out,
                          std::size_t out_stride);
  std::array<Matmul, k_formats> matmul{};
  /// Quantises `blocks` blocks; block b goes to out[b * stride].
  void (*quantise)(const float* x, std::size_t blocks, ActivationBlock* out, std::size_t stride);
  /// out = x / sqrt(mean(x^2) + epsilon) * weight; n is a multiple of 16.
  void (*rms_norm)(const float* x, const float* weight, float epsilon, std::size_t n, float* out);
  /// gate = gate / (1 + exp(-gate)) * up; n is a multiple of 16.
  void (*swiglu)(float* gate, const float* up, std::size_t n);
  /// x += y; n is a multiple of 16.
  void (*add)(float* x, const float* y, std::size_t n);
  /// Turns `pairs` pairs of x by the angles whose cosines and sines are given. Pairs are (i, i +
  /// pairs) with `halves`, else (2 i, 2 i + 1).
  void (*rotate)(float* x, const float* cosines, const float* sines, std::size_t pairs,
                 bool halves);
  /// x *= factor; n is a multiple of 16.
  void (*scale)(float* x, float factor, std::size_t n);
  /// Writes key and value of one token.
  void (*store)(const float* key, const float* value, std::size_t width, std::size_t cell,
                const HeadCache& cache);
  void (*attend)(const AttendJob& job);
  /// Merges a later chunk into an earlier result: both values arrays are [width].
  void (*merge)(Partial& into, float* into_values, const Partial& from, const float* from_values,
                std::size_t width);
  /// Reads `bytes` (a multiple of 256) as fast as it can; the result depends on all of them.
  std::uint64_t (*read)(const std::byte* data, std::size_t bytes);
  /// Multiplies and adds 8-bit integers as fast as registers allow; gives how many it did.
  std::uint64_t (*multiply_adds)(std::size_t repeats);
};

/// Plain C++, no vector code: what the others are tested against, and the last resort.
const Kernels& scalar_kernels();
/// The sets that this build has and this processor can run, best first; scalar is the last.
std::vector<const Kernels*> available_kernels();
/// Null where the build or the processor lacks it.
const Kernels* find_kernels(Isa isa);

}  // namespace paceline::runtime::native
