#include "runtime/llama/argmax.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

namespace paceline::runtime {

// One pass: a block's maximum is found in 16 lanes, which the compiler keeps in registers, and only
// the winning block is searched for its first place.
Token lowest_argmax(std::span<const float> logits) {
  constexpr std::size_t k_lanes = 16;
  constexpr std::size_t k_block = 16 * k_lanes;
  float best = -std::numeric_limits<float>::infinity();
  std::size_t best_block = 0;
  for (std::size_t block = 0; block < logits.size(); block += k_block) {
    const std::span<const float> part =
        logits.subspan(block, std::min(k_block, logits.size() - block));
    std::array<float, k_lanes> lanes;
    lanes.fill(-std::numeric_limits<float>::infinity());
    std::size_t i = 0;
    for (; i + k_lanes <= part.size(); i += k_lanes) {
      for (std::size_t lane = 0; lane < k_lanes; ++lane) {
        lanes[lane] = part[i + lane] > lanes[lane] ? part[i + lane] : lanes[lane];
      }
    }
    for (; i < part.size(); ++i) lanes[0] = std::max(lanes[0], part[i]);
    const float largest = *std::ranges::max_element(lanes);
    if (largest > best) {
      best = largest;
      best_block = block;
    }
  }
  std::size_t id = best_block;
  while (id < logits.size() && logits[id] != best) ++id;
  return to_token(id < logits.size() ? id : 0);
}

}  // namespace paceline::runtime
