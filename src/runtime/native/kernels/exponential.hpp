// exp(x) by reduction to |r| <= ln(2) / 2 and the series up to r^7; the same in every kernel.
#pragma once

#include <array>

namespace paceline::runtime::native {

inline constexpr float k_exp_low = -87.0F;  // below it the result is no normal number
inline constexpr float k_exp_high = 88.0F;
inline constexpr float k_log2_e = 1.44269504F;
inline constexpr float k_ln2_high = 0.693359375F;  // few bits: n * k_ln2_high is exact
inline constexpr float k_ln2_low = -2.12194440e-4F;
inline constexpr std::array<float, 8> k_exp_terms = {
    1.0F / 5040.0F, 1.0F / 720.0F, 1.0F / 120.0F, 1.0F / 24.0F, 1.0F / 6.0F, 0.5F, 1.0F, 1.0F};

}  // namespace paceline::runtime::native
