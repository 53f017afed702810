// Which instruction sets the vector kernels are compiled for. Included before Highway.
#pragma once

#include "runtime/native/kernels/kernels.hpp"

// Only these are of use: older x86 sets have no fused multiply-add, newer ones add nothing here.
// The baseline must stay enabled; the kernels leave it out themselves.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS                                                                \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HWY_AVX3_ZEN4 | HWY_AVX3_SPR | HWY_AVX10_2 | HWY_SVE | \
   HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif
