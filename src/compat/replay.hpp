// Why two texts part: arithmetic or a fault? The passes that wrote them are put through again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "core/result.hpp"
#include "core/token.hpp"
#include "runtime/runtime.hpp"
#include "verify/sampler.hpp"

namespace paceline::compat {

/// The rows of one round's pass. Row 0 holds the last emitted token, the others drafts.
struct PassShape {
  std::vector<std::int32_t> parents;  // [rows] runtime::k_committed_end for row 0
  std::vector<std::int32_t> path;     // committed rows from row 0 downwards, one per emitted token

  /// A chain of `rows` rows of which the first `committed` stay.
  static PassShape chain(std::size_t rows, std::size_t committed);
};

/// A text and how it was written. The runtime is borrowed and needs one free sequence. Null: the
/// passes are not known, a difference is then reported without an explanation.
struct WrittenText {
  runtime::Runtime* target = nullptr;
  std::vector<Token> tokens;      // emitted, first token included
  std::vector<PassShape> rounds;  // behind the prompt, which gives the first token
};

/// Where two texts part.
struct TextDifference {
  std::size_t index = 0;                 // of the first token that differs
  std::optional<Token> plain;            // absent: the text had ended
  std::optional<Token> speculative;      // absent: the text had ended
  std::optional<double> top_two_margin;  // logits; of the plain text, where both go on
  /// Largest distance of a logit between the two arms' passes, put through again.
  std::optional<double> deviation;
  /// The same distance where passes of the same widths commit all their rows.
  std::optional<double> width_noise;
  bool numeric_tie = false;
};

struct ReplaySetting {
  std::span<const Token> prompt;
  verify::SamplerOptions sampler;
  std::size_t vocabulary = 0;  // tokens
};

/// A deviation up to this many times the width noise is arithmetic: the noise of a whole text is
/// estimated from as many passes of the same widths, so it is of the same size, not a bound.
inline constexpr double k_noise_factor = 4;

/// Nothing where the tokens are equal. Where they part, the passes are put through again on fresh
/// sequences with the same rows, rejected rows holding other tokens. It is a numeric tie where
///   - both choices come out again, the speculative one whatever the rejected rows hold, and
///   - the speculative logits lie as near to the plain ones as passes of these widths do in which
///     nothing is rejected, and nearer than the logits' own standard deviation.
/// A row that should have been rolled back breaks the first, a row that was lost or put at another
/// place the second, a wide pass that computes something else the last. Errors: cancelled, busy,
/// runtime_failed.
Result<std::optional<TextDifference>> find_difference(const WrittenText& speculative,
                                                      const WrittenText& plain,
                                                      const ReplaySetting& setting,
                                                      std::stop_token stop);

}  // namespace paceline::compat
