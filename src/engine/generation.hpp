// One text that is being written: what was asked for, and its state between steps of the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/token.hpp"
#include "core/tree.hpp"
#include "draft/drafter.hpp"
#include "engine/text_stream.hpp"
#include "runtime/runtime.hpp"
#include "verify/sampler.hpp"

namespace paceline::engine {

struct GenerationOptions {
  std::vector<Token> prompt = {};
  std::size_t max_tokens = 0;          // at least 1
  std::vector<std::string> stop = {};  // text before the earliest one is kept
  verify::SamplerOptions sampler = {};
  std::size_t num_draft_tokens = 0;  // depth; 0: plain decoding
};

/// stop: an end-of-text token or a stop string; length: max_tokens; context: the context is full.
enum class FinishReason { none, stop, length, context };
std::string_view to_string(FinishReason reason);

/// What one round did. The four times sum to the wall time between the end of the step before and
/// the end of this one.
struct Round {
  std::size_t rows = 0;  // target rows of this text in the pass
  std::size_t drafted = 0;
  std::size_t accepted = 0;  // drafted tokens that were emitted
  std::size_t emitted = 0;
  Nanoseconds draft{};
  Nanoseconds verify{};
  Nanoseconds accept{};
  Nanoseconds other{};
  Nanoseconds delivered{};  // since the generation's start
};

/// What a step gave to the reader of the text.
struct Delivery {
  std::vector<Token> tokens;
  std::string text;
};

/// State of one text. Made by Engine::start, advanced by Engine::step, read by anybody in between.
/// One thread. Must not outlive its engine.
class Generation {
 public:
  ~Generation();
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  bool finished() const { return finish_ != FinishReason::none; }
  /// True after a step whose rows the runtime could not commit: only to be destroyed.
  bool failed() const { return failed_; }
  FinishReason finish_reason() const { return finish_; }
  const std::vector<Token>& tokens() const { return emitted_; }
  const std::string& text() const { return text_; }
  const std::vector<Round>& rounds() const { return rounds_; }
  /// [depth] how often a token was drafted, and accepted, at each place of a path.
  const std::vector<std::size_t>& drafted_at() const { return drafted_at_; }
  const std::vector<std::size_t>& accepted_at() const { return accepted_at_; }
  std::size_t prompt_tokens() const { return options_.prompt.size(); }
  /// Times since the start: end of the prompt's passes, first token id known, first text given.
  Nanoseconds prefill_time() const { return prefill_; }
  Nanoseconds first_token_time() const { return first_token_; }
  std::optional<Nanoseconds> first_text_time() const { return first_text_; }
  Nanoseconds started_at() const { return start_; }
  std::size_t deliveries_with_text() const { return deliveries_with_text_; }

 private:
  friend class Engine;
  Generation(class Engine& engine, GenerationOptions options, runtime::SequenceId sequence,
             std::size_t vocabulary_size, Nanoseconds now);

  bool in_prompt() const { return prompt_done_ < options_.prompt.size(); }
  /// Takes one emitted token; false where the text ends with it.
  bool emit(Token token);
  std::size_t depth_limit() const;

  Engine& engine_;
  GenerationOptions options_;
  runtime::SequenceId sequence_;
  std::optional<draft::DraftSlot> slot_;
  verify::Sampler sampler_;
  TextStream stream_;

  std::size_t prompt_done_ = 0;  // prompt tokens committed
  std::size_t observed_ = 0;     // emitted tokens that the drafter has been told; 0: nothing
  std::size_t delivered_ = 0;    // emitted tokens that a step has given
  std::vector<Token> emitted_;
  std::string text_;
  std::string fresh_text_;  // of this step
  FinishReason finish_ = FinishReason::none;
  bool failed_ = false;

  // The rows of the step under way.
  std::size_t first_row_ = 0;
  std::size_t row_count_ = 0;
  DraftTree tree_;

  Nanoseconds start_{};
  Nanoseconds mark_{};  // end of the step before
  Nanoseconds prefill_{};
  Nanoseconds first_token_{};
  std::optional<Nanoseconds> first_text_;
  std::size_t deliveries_with_text_ = 0;
  std::vector<Round> rounds_;
  std::vector<std::size_t> drafted_at_;
  std::vector<std::size_t> accepted_at_;
};

}  // namespace paceline::engine
