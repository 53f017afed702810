// Sums over the samples of one arm: drafting, cost, gaps, speed, and whether the counters agree
// with each other. Internal to gate.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/gate.hpp"
#include "record/record.hpp"

namespace paceline::gate {

using Samples = std::vector<const record::Sample*>;

DraftStatistics draft_statistics(const Samples& samples);
CostSplit cost_split(const Samples& samples);
/// Between one delivery and the next of one text, the longest. None: no text had two.
std::optional<double> longest_gap_ms(const Samples& samples);
/// Median over the samples of tokens after the first per second.
std::optional<double> decode_tokens_per_s(const Samples& samples);
/// Tokens inside a loop over all tokens.
double looped_share(const Samples& samples);

/// Mean time of a round, and of its parts.
struct RoundCost {
  double whole_ns = 0;
  double draft_ns = 0;
  double verify_ns = 0;
};
/// None: no round took time.
std::optional<RoundCost> mean_round(const Samples& samples);

/// One sentence for each identity that samples violate (accepted <= drafted, ...).
std::vector<std::string> violated_identities(const Samples& samples);

}  // namespace paceline::gate
