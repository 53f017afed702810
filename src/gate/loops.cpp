// Finds where a text falls into a loop that it does not leave (see loop_onset in gate.hpp).
#include <algorithm>

#include "gate/gate.hpp"

namespace paceline::gate {

std::optional<std::size_t> loop_onset(const std::vector<std::int32_t>& tokens) {
  const std::size_t size = tokens.size();
  std::optional<std::size_t> earliest;
  for (std::size_t period = 1; period <= k_longest_period && period < size; ++period) {
    // The longest end of the text in which every token repeats the one `period` before it.
    std::size_t onset = size;
    while (onset > period && tokens[onset - 1] == tokens[onset - 1 - period]) --onset;
    const std::size_t covered = size - onset + period;  // the first turn counts
    const bool loops = covered >= std::max(k_shortest_repeats * period, k_shortest_loop);
    if (loops && (!earliest || onset < *earliest)) earliest = onset;
  }
  return earliest;
}

}  // namespace paceline::gate
