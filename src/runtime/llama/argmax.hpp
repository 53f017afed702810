// Greedy choice over a row of logits.
#pragma once

#include <span>

#include "core/token.hpp"

namespace paceline::runtime {

/// The lowest id of the largest logit. Values that are not numbers never win; 0 where none does.
Token lowest_argmax(std::span<const float> logits);

}  // namespace paceline::runtime
