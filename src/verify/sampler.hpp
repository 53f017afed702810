// The sampler chain: from a row of logits to one token. Pure: the random number for a token is a
// function of the seed and the token's position, so the same seed gives the same text however many
// rows a pass had.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/result.hpp"
#include "core/token.hpp"

namespace paceline::verify {

/// Steps run in this order: logit bias, penalties, top-k, top-p, min-p, temperature, draw.
struct SamplerOptions {
  double temperature = 0;         // 0: the largest logit, lowest id of equals
  std::size_t top_k = 0;          // 0: off
  double top_p = 1;               // 1: off
  double min_p = 0;               // 0: off; relative to the most probable token
  double repetition_penalty = 1;  // Keskar et al. 2019: divides positive, multiplies negative
  double presence_penalty = 0;
  double frequency_penalty = 0;
  std::size_t penalty_window = 64;  // last tokens, prompt included, that the penalties look at
  std::vector<std::pair<Token, double>> logit_bias = {};
  std::uint64_t seed = 0;

  bool has_penalties() const {
    return repetition_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0;
  }
};

/// Errors (invalid_argument) name the field, the value seen and the range.
Result<void> check_sampler_options(const SamplerOptions& options, std::size_t vocabulary_size);

/// State of one text. Rows must be given along the emitted path only: `choose` for a row, then
/// `push` with the token that was emitted. One thread.
class Sampler {
 public:
  Sampler(SamplerOptions options, std::size_t vocabulary_size);

  /// False where the argmax of the untouched logits is the answer.
  bool needs_logits() const;
  /// The token for `logits` [vocabulary size] as the emitted token number `position`.
  Token choose(std::span<const float> logits, std::uint64_t position);
  /// Appends a token of the prompt or an emitted one to the history.
  void push(Token token);

 private:
  struct Candidate {
    float logit;
    std::int32_t id;
  };

  void apply_bias_and_penalties();
  void keep_top_k();
  void keep_top_p();
  void keep_min_p();
  Token draw(std::uint64_t position);

  SamplerOptions options_;
  std::vector<Token> history_;  // at most the last penalty_window tokens are looked at
  std::vector<Candidate> candidates_;
  std::vector<double> weights_;
  std::size_t vocabulary_size_;
};

}  // namespace paceline::verify
