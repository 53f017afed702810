// Norms, activations, cache and attention, compiled once per instruction set, and the choice among
// the sets.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "runtime/native/kernels/vector_impl.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/native/kernels/vector_rest.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "runtime/native/kernels/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace paceline::runtime::native::HWY_NAMESPACE {
#if PACELINE_VECTOR_TARGET
void fill_matmul(Kernels& kernels);   // vector_matmul.cpp
void fill_ceiling(Kernels& kernels);  // vector_ceiling.cpp

namespace {

void quantise(const float* x, std::size_t blocks, ActivationBlock* out, std::size_t stride) {
  constexpr std::size_t vectors = k_block / k_width;
  const hn::Rebind<std::int8_t, F32> bytes;
  for (std::size_t b = 0; b < blocks; ++b, x += k_block, out += stride) {
    // As integers: NaN is larger than any number, so it becomes the scale and is not lost.
    auto largest = hn::Zero(I32());
    HWY_UNROLL(8)
    for (std::size_t v = 0; v < vectors; ++v) {
      const auto size = hn::Abs(hn::LoadU(F32(), x + v * k_width));
      largest = hn::Max(largest, hn::BitCast(I32(), size));
    }
    const auto top = std::bit_cast<float>(hn::ReduceMax(I32(), largest));
    const auto inverse = hn::Set(F32(), top > 0.0F ? 127.0F / top : 0.0F);
    auto sum_low = hn::Zero(I32());
    auto sum_high = hn::Zero(I32());
    HWY_UNROLL(8)
    for (std::size_t v = 0; v < vectors; ++v) {
      const auto scaled = hn::Round(hn::Mul(hn::LoadU(F32(), x + v * k_width), inverse));
      const auto limited =
          hn::Min(hn::Max(scaled, hn::Set(F32(), -127.0F)), hn::Set(F32(), 127.0F));
      const auto q = hn::ConvertTo(I32(), limited);
      if (v < vectors / 2) {
        sum_low = hn::Add(sum_low, q);
      } else {
        sum_high = hn::Add(sum_high, q);
      }
      hn::StoreU(hn::DemoteTo(bytes, q), bytes, out->q.data() + v * k_width);
    }
    const std::int32_t low = hn::ReduceSum(I32(), sum_low);
    const std::int32_t all = low + hn::ReduceSum(I32(), sum_high);
    out->scale = top / 127.0F;
    out->sum = out->scale * static_cast<float>(all);
    out->zero = -8 * all;
    out->zero_low = -8 * low;
  }
}

void rms_norm(const float* x, const float* weight, float epsilon, std::size_t n, float* out) {
  Lanes squares = same_lanes(0.0F);
  for (std::size_t i = 0; i < n; i += k_lanes) {
    const Lanes values = load_lanes(x + i);
    squares = multiply_add(values, values, squares);
  }
  const float mean = sum_of(squares) / static_cast<float>(n);
  const auto scale = hn::Set(F32(), 1.0F / std::sqrt(mean + epsilon));
  for (std::size_t i = 0; i < n; i += k_width) {
    const auto scaled = hn::Mul(hn::LoadU(F32(), x + i), scale);
    hn::StoreU(hn::Mul(scaled, hn::LoadU(F32(), weight + i)), F32(), out + i);
  }
}

void swiglu(float* gate, const float* up, std::size_t n) {
  for (std::size_t i = 0; i < n; i += k_width) {
    const auto g = hn::LoadU(F32(), gate + i);
    const auto divisor = hn::Add(hn::Set(F32(), 1.0F), exponential(hn::Neg(g)));
    hn::StoreU(hn::Mul(hn::Div(g, divisor), hn::LoadU(F32(), up + i)), F32(), gate + i);
  }
}

void add(float* x, const float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; i += k_width) {
    hn::StoreU(hn::Add(hn::LoadU(F32(), x + i), hn::LoadU(F32(), y + i)), F32(), x + i);
  }
}

void rotate(float* x, const float* cosines, const float* sines, std::size_t pairs, bool halves) {
  const F32 d;
  std::size_t i = 0;
  for (; i + k_width <= pairs; i += k_width) {
    const auto cosine = hn::LoadU(d, cosines + i);
    const auto sine = hn::LoadU(d, sines + i);
    hn::Vec<F32> first;
    hn::Vec<F32> second;
    if (halves) {
      first = hn::LoadU(d, x + i);
      second = hn::LoadU(d, x + i + pairs);
    } else {
      hn::LoadInterleaved2(d, x + 2 * i, first, second);
    }
    const auto turned = hn::Sub(hn::Mul(first, cosine), hn::Mul(second, sine));
    const auto other = hn::Add(hn::Mul(first, sine), hn::Mul(second, cosine));
    if (halves) {
      hn::StoreU(turned, d, x + i);
      hn::StoreU(other, d, x + i + pairs);
    } else {
      hn::StoreInterleaved2(turned, other, d, x + 2 * i);
    }
  }
  for (; i < pairs; ++i) {
    float& first = halves ? x[i] : x[2 * i];
    float& second = halves ? x[i + pairs] : x[2 * i + 1];
    const float turned = first * cosines[i] - second * sines[i];
    second = first * sines[i] + second * cosines[i];
    first = turned;
  }
}

void scale(float* x, float factor, std::size_t n) {
  const auto same = hn::Set(F32(), factor);
  for (std::size_t i = 0; i < n; i += k_width) {
    hn::StoreU(hn::Mul(hn::LoadU(F32(), x + i), same), F32(), x + i);
  }
}

HWY_INLINE void store_halves(const float* from, std::size_t n, std::uint16_t* to) {
  const hn::Rebind<hwy::float16_t, F32> d;
  for (std::size_t i = 0; i < n; i += k_width) {
    hn::StoreU(hn::DemoteTo(d, hn::LoadU(F32(), from + i)), d,
               reinterpret_cast<hwy::float16_t*>(to + i));
  }
}

void store(const float* key, const float* value, std::size_t width, std::size_t cell,
           const HeadCache& cache) {
  store_halves(value, width, cache.values + cell * width);
  std::uint16_t* const keys = cache.keys + cell / k_lanes * width * k_lanes + cell % k_lanes;
  alignas(64) std::uint16_t converted[k_lanes];
  for (std::size_t i = 0; i < width; i += k_lanes) {
    store_halves(key + i, k_lanes, converted);
    for (std::size_t j = 0; j < k_lanes; ++j) keys[(i + j) * k_lanes] = converted[j];
  }
}

// Scores of `count` queries with the cells of `groups` groups of 16, which lie behind each other.
template <std::size_t count, std::size_t groups>
HWY_INLINE void score_groups(const AttendJob& job, std::size_t first_query, std::size_t cell,
                             std::size_t first_cell) {
  Lanes sums[count][groups];
  HWY_UNROLL(4)
  for (std::size_t i = 0; i < count; ++i) {
    HWY_UNROLL(4)
    for (std::size_t g = 0; g < groups; ++g) sums[i][g] = same_lanes(0.0F);
  }
  const float* q[count];
  for (std::size_t i = 0; i < count; ++i) q[i] = job.queries[first_query + i].q;
  const std::uint16_t* keys = job.cache.keys + cell * job.width;
  for (std::size_t d = 0; d < job.width; ++d, keys += k_lanes) {
    Lanes key[groups];
    HWY_UNROLL(4)
    for (std::size_t g = 0; g < groups; ++g) key[g] = load_halves(keys + g * job.width * k_lanes);
    if (d % 2 == 0) {  // a line of what comes next of each group
      HWY_UNROLL(4)
      for (std::size_t g = 0; g < groups; ++g) {
        hwy::Prefetch(keys + (groups + g) * job.width * k_lanes);
      }
    }
    HWY_UNROLL(4)
    for (std::size_t i = 0; i < count; ++i) {
      const Lanes value = same_lanes(q[i][d]);
      HWY_UNROLL(4)
      for (std::size_t g = 0; g < groups; ++g) sums[i][g] = multiply_add(value, key[g], sums[i][g]);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    float* const scores = job.scores + (first_query + i) * job.score_stride + (cell - first_cell);
    HWY_UNROLL(4)
    for (std::size_t g = 0; g < groups; ++g) store_lanes(sums[i][g], scores + g * k_lanes);
  }
}

template <std::size_t count>
HWY_INLINE void score_queries(const AttendJob& job, std::size_t first_query, std::size_t first_cell,
                              std::size_t end_cell) {
  constexpr std::size_t most = k_parts == 1 ? (count <= 2 ? 4 : 2) : (count == 1 ? 2 : 1);
  std::size_t cell = first_cell;
  for (; cell + most * k_lanes <= end_cell; cell += most * k_lanes) {
    score_groups<count, most>(job, first_query, cell, first_cell);
  }
  for (; cell < end_cell; cell += k_lanes) {
    score_groups<count, 1>(job, first_query, cell, first_cell);
  }
}

void score(const AttendJob& job, std::size_t first_cell, std::size_t end_cell) {
  std::size_t query = 0;
  for (; query + 4 <= job.query_count; query += 4) {
    score_queries<4>(job, query, first_cell, end_cell);
  }
  switch (job.query_count - query) {
    case 3:
      score_queries<3>(job, query, first_cell, end_cell);
      break;
    case 2:
      score_queries<2>(job, query, first_cell, end_cell);
      break;
    case 1:
      score_queries<1>(job, query, first_cell, end_cell);
      break;
    default:
      break;
  }
}

// Scores to weights, in place; what lies behind `count` up to the next 16 becomes 0.
Partial weigh(float* scores, std::size_t count) {
  const std::size_t end = (count + k_lanes - 1) / k_lanes * k_lanes;
  for (std::size_t i = count; i < end; ++i) scores[i] = -std::numeric_limits<float>::infinity();
  Lanes largest = load_lanes(scores);
  for (std::size_t i = k_lanes; i < end; i += k_lanes) {
    largest = larger(largest, load_lanes(scores + i));
  }
  auto top = largest.part[0];
  for (std::size_t i = 1; i < k_parts; ++i) top = hn::Max(top, largest.part[i]);
  Partial result;
  result.max = hn::ReduceMax(F32(), top);
  const auto max = hn::Set(F32(), result.max);
  Lanes sum = same_lanes(0.0F);
  for (std::size_t i = 0; i < end; i += k_lanes) {
    HWY_UNROLL(4)
    for (std::size_t part = 0; part < k_parts; ++part) {
      const std::size_t at = i + part * k_width;
      const auto weight = exponential(hn::Sub(hn::LoadU(F32(), scores + at), max));
      const auto kept = hn::IfThenElseZero(hn::FirstN(F32(), count > at ? count - at : 0), weight);
      hn::StoreU(kept, F32(), scores + at);
      sum.part[part] = hn::Add(sum.part[part], kept);
    }
  }
  result.weight = sum_of(sum);
  return result;
}

// Positions between the value that is added and the one that is fetched into the cache.
constexpr std::size_t k_ahead = 32;

// Adds positions [0, end) of the chunk, whose cells lie behind each other from `first_cell`, to the
// `count` queries' results, `wide` times 16 columns from `column` on.
template <std::size_t count, std::size_t wide>
HWY_INLINE void add_values(const AttendJob& job, std::size_t first_query, std::size_t first_cell,
                           std::size_t end, std::size_t column) {
  Lanes sums[count][wide];
  const float* weights[count];
  HWY_UNROLL(4)
  for (std::size_t i = 0; i < count; ++i) {
    weights[i] = job.scores + (first_query + i) * job.score_stride;
    HWY_UNROLL(4)
    for (std::size_t w = 0; w < wide; ++w) sums[i][w] = same_lanes(0.0F);
  }
  const std::uint16_t* values = job.cache.values + first_cell * job.width + column;
  for (std::size_t p = 0; p < end; ++p, values += job.width) {
    Lanes value[wide];
    HWY_UNROLL(4)
    for (std::size_t w = 0; w < wide; ++w) {
      value[w] = load_halves(values + w * k_lanes);
      if (w % 2 == 0) hwy::Prefetch(values + k_ahead * job.width + w * k_lanes);
    }
    HWY_UNROLL(4)
    for (std::size_t i = 0; i < count; ++i) {
      const Lanes weight = same_lanes(weights[i][p]);
      HWY_UNROLL(4)
      for (std::size_t w = 0; w < wide; ++w) {
        sums[i][w] = multiply_add(weight, value[w], sums[i][w]);
      }
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    float* const out = job.values + (first_query + i) * job.width + column;
    HWY_UNROLL(4)
    for (std::size_t w = 0; w < wide; ++w) store_lanes(sums[i][w], out + w * k_lanes);
  }
}

template <std::size_t count>
void add_all_values(const AttendJob& job, std::size_t first_query, std::size_t first_cell,
                    std::size_t end) {
  constexpr std::size_t wide = k_parts == 1 ? 4 : 2;
  std::size_t column = 0;
  for (; column + wide * k_lanes <= job.width; column += wide * k_lanes) {
    add_values<count, wide>(job, first_query, first_cell, end, column);
  }
  for (; column < job.width; column += k_lanes) {
    add_values<count, 1>(job, first_query, first_cell, end, column);
  }
}

// One more position of one query.
HWY_INLINE void add_value(const AttendJob& job, std::size_t query, std::size_t cell, float weight) {
  float* const out = job.values + query * job.width;
  const Lanes same = same_lanes(weight);
  for (std::size_t column = 0; column < job.width; column += k_lanes) {
    const Lanes value = load_halves(job.cache.values + cell * job.width + column);
    store_lanes(multiply_add(same, value, load_lanes(out + column)), out + column);
  }
}

void attend(const AttendJob& job) {
  const std::size_t first = job.chunk * k_chunk;
  std::size_t longest = 0;
  bool paths = false;
  for (std::size_t i = 0; i < job.query_count; ++i) {
    longest = std::max(longest, job.queries[i].length);
    paths = paths || job.queries[i].path != nullptr;
  }
  std::size_t end_cell = std::min(longest, first + k_chunk);
  if (paths && end_cell > job.committed) end_cell = std::max(end_cell, job.cells);
  // The cells of a pass may lie before this chunk's positions: score from there on.
  const std::size_t first_cell = paths ? std::min(first, job.committed / k_lanes * k_lanes) : first;
  if (end_cell > first_cell && longest > first) score(job, first_cell, end_cell);

  std::array<std::size_t, k_most_queries> counts{};
  std::array<std::size_t, k_most_queries> in_order{};
  for (std::size_t i = 0; i < job.query_count; ++i) {
    const Query& query = job.queries[i];
    job.partials[i] = {};
    if (query.length <= first) continue;
    counts[i] = std::min(query.length - first, k_chunk);
    in_order[i] = counts[i];
    float* const scores = job.scores + i * job.score_stride;
    if (query.path == nullptr && first_cell < first) {
      std::copy_n(scores + (first - first_cell), counts[i], scores);
    } else if (query.path != nullptr) {
      const std::size_t committed = job.committed > first ? job.committed - first : 0;
      in_order[i] = std::min(counts[i], committed);
      // A row stands behind its ancestors, so what is read lies at or behind what is written.
      for (std::size_t p = in_order[i]; p < counts[i]; ++p) {
        const std::size_t cell =
            job.committed + static_cast<std::size_t>(query.path[first + p - job.committed]);
        scores[p] = scores[cell - first_cell];
      }
    }
    job.partials[i] = weigh(scores, counts[i]);
  }
  for (std::size_t i = 0; i < job.query_count;) {
    const std::size_t tile = std::min<std::size_t>(k_parts == 1 ? 4 : 2, job.query_count - i);
    std::size_t shared = in_order[i];
    for (std::size_t j = 1; j < tile; ++j) shared = std::min(shared, in_order[i + j]);
    switch (tile) {
      case 4:
        add_all_values<4>(job, i, first, shared);
        break;
      case 3:
        add_all_values<3>(job, i, first, shared);
        break;
      case 2:
        add_all_values<2>(job, i, first, shared);
        break;
      default:
        add_all_values<1>(job, i, first, shared);
        break;
    }
    for (std::size_t j = i; j < i + tile; ++j) {
      const float* const weights = job.scores + j * job.score_stride;
      for (std::size_t p = shared; p < counts[j]; ++p) {
        std::size_t cell = first + p;
        if (p >= in_order[j]) {
          cell = job.committed +
                 static_cast<std::size_t>(job.queries[j].path[first + p - job.committed]);
        }
        add_value(job, j, cell, weights[p]);
      }
    }
    i += tile;
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
  const auto a = exponential(hn::Set(F32(), into.max - largest));
  const auto b = exponential(hn::Set(F32(), from.max - largest));
  into.max = largest;
  into.weight = hn::GetLane(
      hn::MulAdd(hn::Set(F32(), into.weight), a, hn::Mul(hn::Set(F32(), from.weight), b)));
  for (std::size_t d = 0; d < width; d += k_width) {
    const auto added = hn::Mul(hn::LoadU(F32(), from_values + d), b);
    hn::StoreU(hn::MulAdd(hn::LoadU(F32(), into_values + d), a, added), F32(), into_values + d);
  }
}

}  // namespace

const Kernels& kernels() {
  static const Kernels table = [] {
    Kernels made;
    made.isa = HWY_TARGET == HWY_AVX2      ? Isa::avx2
               : HWY_TARGET == HWY_AVX3_DL ? Isa::avx512_vnni
                                           : Isa::neon;
    made.quantise = quantise;
    made.rms_norm = rms_norm;
    made.swiglu = swiglu;
    made.add = add;
    made.rotate = rotate;
    made.scale = scale;
    made.store = store;
    made.attend = attend;
    made.merge = merge;
    fill_matmul(made);
    fill_ceiling(made);
    return made;
  }();
  return table;
}
#endif  // PACELINE_VECTOR_TARGET
}  // namespace paceline::runtime::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paceline::runtime::native {

std::string_view to_string(Isa isa) {
  switch (isa) {
    case Isa::scalar:
      return "scalar";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512_vnni:
      return "avx512_vnni";
    case Isa::neon:
      return "neon";
  }
  return "unknown";
}

std::vector<const Kernels*> available_kernels() {
  [[maybe_unused]] const std::int64_t supported = hwy::SupportedTargets();
  std::vector<const Kernels*> found;
#if HWY_TARGETS & HWY_AVX3_DL
  if ((supported & HWY_AVX3_DL) != 0) found.push_back(&N_AVX3_DL::kernels());
#endif
#if HWY_TARGETS & HWY_AVX2
  if ((supported & HWY_AVX2) != 0) found.push_back(&N_AVX2::kernels());
#endif
#if HWY_TARGETS & HWY_NEON_BF16
  if ((supported & HWY_NEON_BF16) != 0) found.push_back(&N_NEON_BF16::kernels());
#endif
#if HWY_TARGETS & HWY_NEON
  if ((supported & HWY_NEON) != 0) found.push_back(&N_NEON::kernels());
#endif
  found.push_back(&scalar_kernels());
  return found;
}

const Kernels* find_kernels(Isa isa) {
  for (const Kernels* kernels : available_kernels()) {
    if (kernels->isa == isa) return kernels;
  }
  return nullptr;
}

}  // namespace paceline::runtime::native
#endif  // HWY_ONCE
