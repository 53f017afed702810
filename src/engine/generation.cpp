#include "engine/generation.hpp"

#include <algorithm>

#include "engine/engine.hpp"

namespace paceline::engine {

std::string_view to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::none:
      return "none";
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::context:
      return "context";
  }
  return "none";
}

Generation::Generation(Engine& engine, GenerationOptions options, runtime::SequenceId sequence,
                       std::size_t vocabulary_size, Nanoseconds now)
    : engine_(engine),
      options_(std::move(options)),
      sequence_(sequence),
      sampler_(options_.sampler, vocabulary_size),
      stream_(options_.stop),
      start_(now),
      mark_(now),
      drafted_at_(options_.num_draft_tokens, 0),
      accepted_at_(options_.num_draft_tokens, 0) {
  for (const Token token : options_.prompt) sampler_.push(token);
}

Generation::~Generation() { engine_.forget(*this); }

bool Generation::emit(Token token) {
  emitted_.push_back(token);
  sampler_.push(token);
  // The earliest terminator wins: end of text, stop string, then the limits.
  if (engine_.vocabulary_.is_end_of_text(token)) {
    finish_ = FinishReason::stop;
  } else {
    fresh_text_ += stream_.push(engine_.vocabulary_.piece(token, false));
    if (stream_.stopped()) {
      finish_ = FinishReason::stop;
    } else if (emitted_.size() >= options_.max_tokens) {
      finish_ = FinishReason::length;
    } else if (options_.prompt.size() + emitted_.size() > engine_.target_.limits().context) {
      finish_ = FinishReason::context;  // no position is left for this token's own row
    }
  }
  if (finished()) fresh_text_ += stream_.finish();
  return !finished();
}

std::size_t Generation::depth_limit() const {
  // A round of depth d emits up to d + 1 tokens and needs 1 + d positions and rows.
  const runtime::RuntimeLimits& limits = engine_.target_.limits();
  const std::size_t committed = options_.prompt.size() + emitted_.size() - 1;
  return std::min({options_.num_draft_tokens, options_.max_tokens - emitted_.size() - 1,
                   limits.context - committed - 1, limits.most_results() - 1});
}

}  // namespace paceline::engine
