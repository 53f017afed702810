// Decoding: plain and speculative are one loop (plain is depth 0). Each step puts the rows of all
// given texts into one pass of the target.
//
// A step of one text in the middle of writing is a round:
//   propose  the drafter gives a tree of at most num_draft_tokens levels
//   verify   one pass over the last emitted token and the tree
//   accept   sample-and-match down the tree; the accepted rows are committed
// The prompt is put through in chunks; its last row gives the first token, which is delivered
// before the drafter sees anything.
#pragma once

#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "core/clock.hpp"
#include "core/result.hpp"
#include "draft/drafter.hpp"
#include "engine/generation.hpp"
#include "runtime/runtime.hpp"

namespace paceline::engine {

/// One thread. The target, the vocabulary, the drafter and the clock must outlive it.
class Engine {
 public:
  /// `drafter` may be null: then only depth 0 is possible.
  Engine(runtime::Runtime& target, const runtime::Vocabulary& vocabulary, draft::Drafter* drafter,
         Clock& clock);

  /// A new text. Errors: invalid_argument (empty prompt, prompt longer than the context, sampler
  /// options), unsupported (depth without a drafter, without rollback, or trees with more leaves
  /// than the target's runtime was made for), busy (no sequence or no draft slot is free).
  Result<std::unique_ptr<Generation>> start(GenerationOptions options);

  /// One pass over the texts that are not finished. Each text that is being written gets one row,
  /// then their trees get what is left, in order, then the prompts. Deliveries are given in the
  /// same order as the texts.
  /// Errors: cancelled, runtime_failed; the texts are then as they were before the step, apart
  /// from what the drafter has seen. A text whose rows could not be committed has failed() and
  /// cannot be stepped again; the others can, and the next step also delivers what they wrote.
  Result<std::vector<Delivery>> step(std::span<Generation* const> texts, std::stop_token stop);

  /// Steps one text until it is finished.
  Result<void> run(Generation& text, std::stop_token stop);

 private:
  friend class Generation;
  struct PassTimes {
    Nanoseconds begin{};
    Nanoseconds proposed{};
    Nanoseconds chosen{};
    Nanoseconds verified{};
  };

  Result<void> pass(std::span<Generation* const> texts, std::stop_token stop);
  Result<void> propose(std::span<Generation* const> texts, std::stop_token stop);
  std::vector<runtime::Row> choose_rows(std::span<Generation* const> texts);
  Result<void> consume(Generation& text, const PassTimes& times);
  Result<void> consume_prompt(Generation& text);
  Result<void> consume_round(Generation& text);
  void forget(Generation& text);

  runtime::Runtime& target_;
  const runtime::Vocabulary& vocabulary_;
  draft::Drafter* drafter_;
  Clock& clock_;
};

}  // namespace paceline::engine
