// Wrappers that look over a runtime's and a drafter's shoulder while the canary writes a text.
#pragma once

#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "compat/replay.hpp"
#include "draft/drafter.hpp"
#include "runtime/runtime.hpp"

namespace paceline::compat {

/// Passes everything on and notes the rows of the passes behind the prompt, for one sequence at a
/// time. Checks that the sequence has the length that was committed.
class WatchedRuntime final : public runtime::Runtime {
 public:
  WatchedRuntime(runtime::Runtime& inner, std::size_t prompt_tokens)
      : inner_(inner), prompt_tokens_(prompt_tokens) {}

  const std::vector<PassShape>& rounds() const { return rounds_; }
  /// The first length that was not as committed; empty: none.
  const std::string& fault() const { return fault_; }

  const runtime::RuntimeLimits& limits() const override { return inner_.limits(); }
  runtime::Capabilities capabilities() const override { return inner_.capabilities(); }
  runtime::RuntimeInfo info() const override { return inner_.info(); }
  runtime::PassCounters counters() const override { return inner_.counters(); }
  Result<runtime::SequenceId> create_sequence() override { return inner_.create_sequence(); }
  Result<runtime::SequenceId> fork(runtime::SequenceId sequence) override {
    return inner_.fork(sequence);
  }
  void release(runtime::SequenceId sequence) override { inner_.release(sequence); }
  std::size_t length(runtime::SequenceId sequence) const override {
    return inner_.length(sequence);
  }
  Result<void> forward(std::span<const runtime::Row> rows, std::stop_token stop) override;
  Token argmax(std::size_t row) const override { return inner_.argmax(row); }
  std::span<const float> logits(std::size_t row) const override { return inner_.logits(row); }
  std::span<const float> feature(std::size_t row) const override { return inner_.feature(row); }
  Result<void> accept(runtime::SequenceId sequence, std::span<const std::int32_t> path) override;
  Result<void> truncate(runtime::SequenceId sequence, std::size_t length) override {
    return inner_.truncate(sequence, length);
  }

 private:
  runtime::Runtime& inner_;
  std::size_t prompt_tokens_;
  std::size_t committed_ = 0;
  std::vector<std::int32_t> parents_;  // of the last pass
  std::vector<PassShape> rounds_;
  std::string fault_;
};

/// Passes everything on and notes what the drafter was told before each draft. One slot.
class WatchedDrafter final : public draft::Drafter {
 public:
  explicit WatchedDrafter(draft::Drafter& inner) : inner_(inner) {}

  const std::vector<Token>& observed() const { return observed_; }
  /// [draft call] tokens that had been observed by then.
  const std::vector<std::size_t>& observed_at() const { return observed_at_; }

  Result<draft::DraftSlot> open() override { return inner_.open(); }
  void close(draft::DraftSlot slot) override { inner_.close(slot); }
  Result<void> observe(draft::DraftSlot slot, std::span<const Token> tokens) override;
  Result<void> draft(std::span<draft::DraftRequest> requests, std::stop_token stop) override;
  std::size_t max_leaves() const override { return inner_.max_leaves(); }
  std::uint64_t forwards() const override { return inner_.forwards(); }

 private:
  draft::Drafter& inner_;
  std::vector<Token> observed_;
  std::vector<std::size_t> observed_at_;
};

}  // namespace paceline::compat
