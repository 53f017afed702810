#include "runtime/largest.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <format>
#include <limits>
#include <string>

#include "core/text.hpp"

namespace paceline::runtime {

// One pass: a block's maximum is found in 16 lanes, which the compiler keeps in registers, and only
// the winning block is searched for its first place.
Largest find_largest(std::span<const float> logits) {
  constexpr std::size_t k_lanes = 16;
  constexpr std::size_t k_block = 16 * k_lanes;
  float best = -std::numeric_limits<float>::infinity();
  std::size_t best_block = 0;
  std::array<float, k_lanes> odd{};  // not 0 where a lane has seen NaN
  for (std::size_t block = 0; block < logits.size(); block += k_block) {
    const std::span<const float> part =
        logits.subspan(block, std::min(k_block, logits.size() - block));
    std::array<float, k_lanes> lanes;
    lanes.fill(-std::numeric_limits<float>::infinity());
    std::size_t i = 0;
    for (; i + k_lanes <= part.size(); i += k_lanes) {
      for (std::size_t lane = 0; lane < k_lanes; ++lane) {
        const float value = part[i + lane];
        lanes[lane] = value > lanes[lane] ? value : lanes[lane];
        odd[lane] = value == value ? odd[lane] : 1.0F;
      }
    }
    for (; i < part.size(); ++i) {
      lanes[0] = part[i] > lanes[0] ? part[i] : lanes[0];
      if (std::isnan(part[i])) odd[0] = 1.0F;
    }
    const float largest = *std::ranges::max_element(lanes);
    if (largest > best) {
      best = largest;
      best_block = block;
    }
  }
  std::size_t id = best_block;
  while (id < logits.size() && logits[id] != best) ++id;
  const bool numbers = std::ranges::all_of(odd, [](float mark) { return mark == 0.0F; });
  return {.token = to_token(id < logits.size() ? id : 0), .finite = numbers && std::isfinite(best)};
}

Error logits_not_finite(std::string_view model, std::size_t position, std::string_view runtime) {
  const std::string other = runtime == "native"  ? ", or try --runtime llama"
                            : runtime == "llama" ? ", or try --runtime native"
                                                 : "";
  return fail(ErrorCode::bad_format,
              std::format("\"{}\" gives logits that are no numbers (NaN or infinite) at position "
                          "{}, so nothing can be chosen from them: its weights are damaged, or the "
                          "runtime {} computes them wrongly; compare the file's checksum with its "
                          "source and fetch it again{}",
                          escape(model, 400), position, runtime, other),
              std::string(k_logits_not_finite));
}

}  // namespace paceline::runtime
