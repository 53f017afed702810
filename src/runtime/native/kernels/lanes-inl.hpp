// Per target: vector types and the fixed 16 lanes that sums are kept in. No include guard of the
// usual kind: Highway includes it once per target.
#if defined(PACELINE_LANES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef PACELINE_LANES_INL_HPP
#undef PACELINE_LANES_INL_HPP
#else
#define PACELINE_LANES_INL_HPP
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "runtime/native/kernels/exponential.hpp"
#include "runtime/native/kernels/packed.hpp"

// Targets with fused multiply-add and fixed vector size.
#undef PACELINE_VECTOR_TARGET
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON || \
    HWY_TARGET == HWY_NEON_WITHOUT_AES || HWY_TARGET == HWY_NEON_BF16
#define PACELINE_VECTOR_TARGET 1
#else
#define PACELINE_VECTOR_TARGET 0
#endif

HWY_BEFORE_NAMESPACE();
namespace paceline::runtime::native::HWY_NAMESPACE {
#if PACELINE_VECTOR_TARGET
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::CappedTag<float, k_lanes>;
using I32 = hn::RebindToSigned<F32>;
using U32 = hn::RebindToUnsigned<F32>;
using I16 = hn::Repartition<std::int16_t, I32>;
using U16 = hn::Repartition<std::uint16_t, I32>;
using I8 = hn::Repartition<std::int8_t, I32>;
using U8 = hn::Repartition<std::uint8_t, I32>;

inline constexpr std::size_t k_width = HWY_MAX_BYTES / 4 < k_lanes ? HWY_MAX_BYTES / 4 : k_lanes;
inline constexpr std::size_t k_parts = k_lanes / k_width;  // vectors that hold 16 lanes

// 16 lanes.
struct Lanes {
  hn::Vec<F32> part[k_parts];
};

HWY_INLINE Lanes same_lanes(float value) {
  Lanes lanes;
  HWY_UNROLL(4)
  for (std::size_t i = 0; i < k_parts; ++i) lanes.part[i] = hn::Set(F32(), value);
  return lanes;
}
HWY_INLINE Lanes load_lanes(const float* from) {
  Lanes lanes;
  HWY_UNROLL(4)
  for (std::size_t i = 0; i < k_parts; ++i) lanes.part[i] = hn::LoadU(F32(), from + i * k_width);
  return lanes;
}
HWY_INLINE Lanes load_halves(const std::uint16_t* from) {
  const hn::Rebind<hwy::float16_t, F32> d;
  Lanes lanes;
  HWY_UNROLL(4)
  for (std::size_t i = 0; i < k_parts; ++i) {
    const auto* const at = reinterpret_cast<const hwy::float16_t*>(from + i * k_width);
    lanes.part[i] = hn::PromoteTo(F32(), hn::LoadU(d, at));
  }
  return lanes;
}
HWY_INLINE void store_lanes(const Lanes& lanes, float* to) {
  HWY_UNROLL(4)
  for (std::size_t i = 0; i < k_parts; ++i) hn::StoreU(lanes.part[i], F32(), to + i * k_width);
}
/// a * b + c, fused.
HWY_INLINE Lanes multiply_add(const Lanes& a, const Lanes& b, const Lanes& c) {
  Lanes lanes;
  HWY_UNROLL(4)
  for (std::size_t i = 0; i < k_parts; ++i) {
    lanes.part[i] = hn::MulAdd(a.part[i], b.part[i], c.part[i]);
  }
  return lanes;
}
HWY_INLINE Lanes larger(const Lanes& a, const Lanes& b) {
  Lanes lanes;
  HWY_UNROLL(4)
  for (std::size_t i = 0; i < k_parts; ++i) lanes.part[i] = hn::Max(a.part[i], b.part[i]);
  return lanes;
}

/// Folded by halves.
HWY_INLINE float sum_of(const Lanes& lanes) {
  alignas(64) float values[k_lanes];
  store_lanes(lanes, values);
  for (std::size_t half = k_lanes / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) values[i] += values[i + half];
  }
  return values[0];
}

HWY_INLINE hn::Vec<F32> exponential(hn::Vec<F32> x) {
  const F32 d;
  // On x86 the second operand is kept where one is NaN, so NaN gives NaN.
  x = hn::Min(hn::Set(d, k_exp_high), hn::Max(hn::Set(d, k_exp_low), x));
  const auto n = hn::Round(hn::Mul(x, hn::Set(d, k_log2_e)));
  auto r = hn::MulAdd(n, hn::Set(d, -k_ln2_high), x);
  r = hn::MulAdd(n, hn::Set(d, -k_ln2_low), r);
  auto p = hn::Set(d, k_exp_terms[0]);
  HWY_UNROLL(8)
  for (std::size_t i = 1; i < k_exp_terms.size(); ++i) {
    p = hn::MulAdd(p, r, hn::Set(d, k_exp_terms[i]));
  }
  const auto exponent = hn::Add(hn::ConvertTo(I32(), n), hn::Set(I32(), 127));
  return hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(exponent)));
}
#endif  // PACELINE_VECTOR_TARGET
}  // namespace paceline::runtime::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
