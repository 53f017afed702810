// Does a drafter keep in step with its text?
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "core/result.hpp"
#include "core/token.hpp"
#include "draft/drafter.hpp"

namespace paceline::compat {

struct DrafterSteps {
  std::size_t tokens = 0;  // of the text
  std::size_t rounds = 0;
  std::size_t drafted = 0;
  std::size_t stale = 0;        // rounds whose draft no drafter that read the text anew gave
  std::size_t first_stale = 0;  // index of the first of them
  std::size_t noisy = 0;        // rounds in which two that read it in different parts disagreed
  bool computes = false;        // the drafts come out of a model's passes

  /// Passes of different widths may round differently, so a model is allowed as many stale rounds
  /// as its own arithmetic explains, and one more. What only looks things up is allowed none.
  bool is_fault() const { return stale > (computes ? noisy + 1 : 0); }
};

/// A text that goes on otherwise than the model would, and says all of it twice, so that there is
/// something to look up: the first half of `tokens` with every fifth token replaced.
std::vector<Token> turned_text(std::vector<Token> tokens, std::size_t vocabulary);

/// Shows `emitted` to a drafter in steps of 1, 2, ... depth + 1 tokens, over and over, with a draft
/// before each, whatever was drafted. At every step two others read the whole text anew, in one
/// part and in two. Errors: those of the drafters, cancelled.
Result<DrafterSteps> check_drafter_steps(
    const std::function<Result<std::unique_ptr<draft::Drafter>>()>& make,
    const std::vector<Token>& emitted, std::span<const Token> prompt, std::size_t depth,
    std::stop_token stop);

}  // namespace paceline::compat
