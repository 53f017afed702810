// When speculation pays by a cost curve.
#pragma once

#include <cstddef>
#include <optional>

namespace paceline::plan {

/// Tokens that a round of `depth` drafted tokens gives on average where each is accepted with this
/// probability, given that those before it were: (1 - a^(depth+1)) / (1 - a) (Leviathan et al.
/// 2023, "Fast inference from transformers via speculative decoding", eq. 1).
double tokens_per_round(double acceptance, std::size_t depth);

/// What a round costs, in plain steps: the pass over depth + 1 rows, and the drafting.
struct RoundCost {
  double pass = 0;   // C(depth + 1)
  double draft = 0;  // of all drafted tokens

  double total() const { return pass + draft; }
};

/// Times as fast as plain decoding.
double speedup(double acceptance, std::size_t depth, const RoundCost& cost);

/// The acceptance from which a round is no slower than plain decoding; none where even an
/// acceptance of 1 is not enough. 0 where nothing needs to be accepted.
std::optional<double> break_even_acceptance(std::size_t depth, const RoundCost& cost);

}  // namespace paceline::plan
