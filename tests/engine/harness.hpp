// Runs one text through the engine and checks after every step what must always hold.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.hpp"
#include "runtime/runtime.hpp"
#include "support/manual_clock.hpp"

namespace paceline::test {

/// What the engine works on. The pointers are borrowed; drafter may be null.
struct Stage {
  runtime::Runtime* target = nullptr;
  const runtime::Vocabulary* vocabulary = nullptr;
  draft::Drafter* drafter = nullptr;
};

struct Outcome {
  std::vector<Token> tokens;
  std::string text;
  engine::FinishReason finish = engine::FinishReason::none;
  std::vector<engine::Round> rounds;
  std::vector<std::size_t> drafted_at;
  std::vector<std::size_t> accepted_at;

  std::size_t drafted() const;
  std::size_t accepted() const;
};

/// Steps the text to its end on a clock that ticks at every reading. Checks after each step
///   - the target's sequence holds the prompt and all emitted tokens but the last,
///   - the counts of the round (rows, drafted, accepted, emitted) and that only the last is cut,
///   - that the round's times sum to the time since the step before,
///   - that the emitted tokens are the beginning of `expected`, where given,
/// and at the end the sums. The sequence must be the runtime's first.
Outcome run_checked(const Stage& stage, engine::GenerationOptions options,
                    const std::vector<Token>* expected = nullptr);

/// The same text without speculation.
Outcome run_plain(Stage stage, engine::GenerationOptions options);

/// EXPECTs that both wrote the same and ended for the same reason.
void expect_same_text(const Outcome& speculative, const Outcome& plain);

std::unique_ptr<runtime::Runtime> make_toy_runtime(std::string_view name,
                                                   const runtime::RuntimeLimits& limits);

/// A prompt of tokens that no end of text is among.
std::vector<Token> random_prompt(std::size_t length, std::uint64_t seed, std::size_t vocabulary);

}  // namespace paceline::test
