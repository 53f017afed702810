// The kernels in plain C++, one value at a time: the definition that every vector version equals
// bit for bit.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/native/kernels/exponential.hpp"
#include "runtime/native/kernels/half.hpp"
#include "runtime/native/kernels/kernels.hpp"
#include "runtime/native/kernels/unpack.hpp"

namespace paceline::runtime::native {

namespace {

using Lanes = std::array<float, k_lanes>;

float exponential(float x) {
  if (std::isnan(x)) return x;
  x = std::min(std::max(x, k_exp_low), k_exp_high);
  const float n = std::nearbyint(x * k_log2_e);
  float r = std::fma(n, -k_ln2_high, x);
  r = std::fma(n, -k_ln2_low, r);
  float p = k_exp_terms[0];
  for (std::size_t i = 1; i < k_exp_terms.size(); ++i) p = std::fma(p, r, k_exp_terms[i]);
  const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127) << 23U;
  return p * std::bit_cast<float>(exponent);
}

float sum_of(Lanes lanes) {
  for (std::size_t half = k_lanes / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

template <Format format>
void matmul_integer(const std::byte* weights, const ActivationTile& tile, float* out,
                    std::size_t stride) {
  for (std::size_t c = 0; c < tile.columns; ++c) {
    for (std::size_t row = 0; row < k_row_block; ++row) {
      float sum = 0.0F;
      for (std::size_t b = 0; b < tile.blocks; ++b) {
        const ActivationBlock& x = tile.quantised[b * tile.columns + c];
        std::array<std::int32_t, 2> halves{};
        for (std::size_t k = 0; k < k_block; ++k) {
          const int q = stored_integer(format, weights, b, row, k) - zero_of(format);
          halves[k / 16] += q * x.q[k];
        }
        if constexpr (format == Format::q6_scaled) {
          for (std::size_t half = 0; half < 2; ++half) {
            const float scale = scale_of(format, weights, b, row, half) * x.scale;
            sum = std::fma(static_cast<float>(halves[half]), scale, sum);
          }
        } else {
          const float scale = scale_of(format, weights, b, row, 0) * x.scale;
          sum = std::fma(static_cast<float>(halves[0] + halves[1]), scale, sum);
        }
        if constexpr (has_min(format)) sum = std::fma(min_of(format, weights, b, row), x.sum, sum);
      }
      out[c * stride + row] = sum;
    }
  }
}

template <Format format>
void matmul_float(const std::byte* weights, const ActivationTile& tile, float* out,
                  std::size_t stride) {
  for (std::size_t c = 0; c < tile.columns; ++c) {
    for (std::size_t row = 0; row < k_row_block; ++row) {
      float sum = 0.0F;
      for (std::size_t k = 0; k < tile.blocks * k_block; ++k) {
        sum =
            std::fma(float_value(format, weights, row, k), tile.values[k * tile.columns + c], sum);
      }
      out[c * stride + row] = sum;
    }
  }
}

void quantise(const float* x, std::size_t blocks, ActivationBlock* out, std::size_t stride) {
  for (std::size_t b = 0; b < blocks; ++b, x += k_block, out += stride) {
    // As integers: NaN is larger than any number, so it becomes the scale and is not lost.
    std::int32_t top = 0;
    for (std::size_t i = 0; i < k_block; ++i) {
      top = std::max(top, std::bit_cast<std::int32_t>(std::abs(x[i])));
    }
    const auto largest = std::bit_cast<float>(top);
    const float inverse = largest > 0.0F ? 127.0F / largest : 0.0F;
    std::array<std::int32_t, 2> sums{};
    for (std::size_t i = 0; i < k_block; ++i) {
      const float scaled = std::fmin(std::fmax(std::nearbyint(x[i] * inverse), -127.0F), 127.0F);
      out->q[i] = static_cast<std::int8_t>(scaled);
      sums[i / 16] += out->q[i];
    }
    out->scale = largest / 127.0F;
    out->sum = out->scale * static_cast<float>(sums[0] + sums[1]);
    out->zero = -8 * (sums[0] + sums[1]);
    out->zero_low = -8 * sums[0];
  }
}

void rms_norm(const float* x, const float* weight, float epsilon, std::size_t n, float* out) {
  Lanes squares{};
  for (std::size_t i = 0; i < n; ++i)
    squares[i % k_lanes] = std::fma(x[i], x[i], squares[i % k_lanes]);
  const float mean = sum_of(squares) / static_cast<float>(n);
  const float scale = 1.0F / std::sqrt(mean + epsilon);
  for (std::size_t i = 0; i < n; ++i) out[i] = x[i] * scale * weight[i];
}

void swiglu(float* gate, const float* up, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    gate[i] = gate[i] / (1.0F + exponential(-gate[i])) * up[i];
  }
}

void add(float* x, const float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) x[i] += y[i];
}

void rotate(float* x, const float* cosines, const float* sines, std::size_t pairs, bool halves) {
  for (std::size_t i = 0; i < pairs; ++i) {
    float& first = halves ? x[i] : x[2 * i];
    float& second = halves ? x[i + pairs] : x[2 * i + 1];
    const float turned = first * cosines[i] - second * sines[i];
    second = first * sines[i] + second * cosines[i];
    first = turned;
  }
}

void scale(float* x, float factor, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) x[i] *= factor;
}

void store(const float* key, const float* value, std::size_t width, std::size_t cell,
           const HeadCache& cache) {
  std::uint16_t* const keys = cache.keys + cell / k_lanes * width * k_lanes + cell % k_lanes;
  for (std::size_t i = 0; i < width; ++i) {
    keys[i * k_lanes] = to_half(key[i]);
    cache.values[cell * width + i] = to_half(value[i]);
  }
}

void attend(const AttendJob& job) {
  const std::size_t first = job.chunk * k_chunk;
  for (std::size_t i = 0; i < job.query_count; ++i) {
    const Query& query = job.queries[i];
    float* const values = job.values + i * job.width;
    std::fill_n(values, job.width, 0.0F);
    job.partials[i] = {};
    if (query.length <= first) continue;
    const std::size_t count = std::min(query.length - first, k_chunk);
    const auto cell_of = [&](std::size_t position) {
      if (query.path == nullptr || position < job.committed) return position;
      return job.committed + static_cast<std::size_t>(query.path[position - job.committed]);
    };
    std::array<float, k_chunk> scores;
    float largest = -std::numeric_limits<float>::infinity();
    for (std::size_t p = 0; p < count; ++p) {
      const std::size_t cell = cell_of(first + p);
      const std::uint16_t* const keys =
          job.cache.keys + cell / k_lanes * job.width * k_lanes + cell % k_lanes;
      float score = 0.0F;
      for (std::size_t d = 0; d < job.width; ++d) {
        score = std::fma(query.q[d], from_half(keys[d * k_lanes]), score);
      }
      scores[p] = score;
      largest = std::max(largest, score);
    }
    Lanes weights{};
    for (std::size_t p = 0; p < count; ++p) {
      const float weight = exponential(scores[p] - largest);
      weights[p % k_lanes] += weight;
      const std::uint16_t* const value = job.cache.values + cell_of(first + p) * job.width;
      for (std::size_t d = 0; d < job.width; ++d) {
        values[d] = std::fma(weight, from_half(value[d]), values[d]);
      }
    }
    job.partials[i] = {.max = largest, .weight = sum_of(weights)};
  }
}

void merge(Partial& into, float* into_values, const Partial& from, const float* from_values,
           std::size_t width) {
  if (from.weight == 0.0F) return;
  if (into.weight == 0.0F) {
    into = from;
    std::copy_n(from_values, width, into_values);
    return;
  }
  const float largest = std::max(into.max, from.max);
  const float a = exponential(into.max - largest);
  const float b = exponential(from.max - largest);
  into.max = largest;
  into.weight = std::fma(into.weight, a, from.weight * b);
  for (std::size_t d = 0; d < width; ++d) {
    into_values[d] = std::fma(into_values[d], a, from_values[d] * b);
  }
}

std::uint64_t read(const std::byte* data, std::size_t bytes) {
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < bytes; i += sizeof seen) {
    std::uint64_t word = 0;
    std::memcpy(&word, data + i, sizeof word);
    seen ^= word;
  }
  return seen;
}

std::uint64_t multiply_adds(std::size_t repeats) {
  constexpr std::size_t products = 64;
  volatile std::int8_t factor = 2;
  volatile std::int32_t kept = 0;
  std::int32_t sum = 0;
  for (std::size_t r = 0; r < repeats; ++r) {
    const std::int8_t x = factor;
    for (std::size_t i = 0; i < products; ++i) sum += static_cast<std::int8_t>(i) * x;
    kept = sum;
    sum = kept & 0xffff;
  }
  return std::uint64_t{repeats} * products;
}

}  // namespace

const Kernels& scalar_kernels() {
  static const Kernels kernels = {
      .isa = Isa::scalar,
      .matmul = {matmul_integer<Format::q4>, matmul_integer<Format::q4_min>,
                 matmul_integer<Format::q4_scaled>, matmul_integer<Format::q5>,
                 matmul_integer<Format::q5_min>, matmul_integer<Format::q5_scaled>,
                 matmul_integer<Format::q6_scaled>, matmul_integer<Format::q8>,
                 matmul_float<Format::f16>, matmul_float<Format::bf16>, matmul_float<Format::f32>},
      .quantise = quantise,
      .rms_norm = rms_norm,
      .swiglu = swiglu,
      .add = add,
      .rotate = rotate,
      .scale = scale,
      .store = store,
      .attend = attend,
      .merge = merge,
      .read = read,
      .multiply_adds = multiply_adds};
  return kernels;
}

}  // namespace paceline::runtime::native
