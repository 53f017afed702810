// The greedy choice over a row of logits, and whether the row holds numbers at all.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "core/result.hpp"
#include "core/token.hpp"

namespace paceline::runtime {

struct Largest {
  Token token{};       // the lowest id of the largest logit; what is no number never wins
  bool finite = true;  // false: some logit is NaN, or the largest is infinite
};
Largest find_largest(std::span<const float> logits);

/// Word of the error that `forward` gives where a row that it was asked for has no finite largest
/// logit. Damaged weights do that, and a back end that computes them wrongly: nothing that is made
/// of such a row says anything.
inline constexpr std::string_view k_logits_not_finite = "logits_not_finite";

/// That error: bad_format. `model` is the file or name, `position` the token's in its sequence.
Error logits_not_finite(std::string_view model, std::size_t position, std::string_view runtime);

}  // namespace paceline::runtime
