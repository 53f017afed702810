// A runtime around another one that can be made to do wrong: to hang, to fail, to compute other
// bits in wide passes, to forget a rollback.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "runtime/runtime.hpp"

namespace paceline::test {

/// One thread.
class OddRuntime final : public runtime::Runtime {
 public:
  explicit OddRuntime(std::unique_ptr<runtime::Runtime> inner) : inner_(std::move(inner)) {}

  /// Asked before each pass; its error is what the pass returns.
  std::function<Result<void>(std::span<const runtime::Row>, std::stop_token)> before_pass;
  /// Told of every new sequence: a sample has begun.
  std::function<void()> on_sequence;
  /// Changes the logits of a row of a pass of so many rows.
  std::function<void(std::size_t pass_rows, std::vector<float>& logits)> bend;
  /// The same for one row, by its index in the pass.
  std::function<void(std::size_t pass_rows, std::size_t row, std::vector<float>& logits)> bend_row;
  /// Commits one rejected row too many, as a back end that rolls back one short.
  bool rolls_back_one_short = false;
  /// Commits one accepted row too few.
  bool rolls_back_one_far = false;
  /// Where a sequence has fewer tokens the two faults above do not happen.
  std::size_t faulty_from = 0;
  /// Says the length that should be, not the one that is.
  bool hides_lengths = false;
  /// Keeps one token more than it is told to.
  bool truncates_one_short = false;

  const runtime::RuntimeLimits& limits() const override { return inner_->limits(); }
  runtime::Capabilities capabilities() const override { return inner_->capabilities(); }
  runtime::RuntimeInfo info() const override { return inner_->info(); }
  runtime::PassCounters counters() const override { return inner_->counters(); }
  Result<runtime::SequenceId> create_sequence() override;
  Result<runtime::SequenceId> fork(runtime::SequenceId sequence) override {
    return inner_->fork(sequence);
  }
  void release(runtime::SequenceId sequence) override { inner_->release(sequence); }
  std::size_t length(runtime::SequenceId sequence) const override {
    return hides_lengths ? told_ : inner_->length(sequence);
  }
  Result<void> forward(std::span<const runtime::Row> rows, std::stop_token stop) override;
  Token argmax(std::size_t row) const override;
  std::span<const float> logits(std::size_t row) const override { return logits_.at(row); }
  std::span<const float> feature(std::size_t row) const override { return inner_->feature(row); }
  Result<void> accept(runtime::SequenceId sequence, std::span<const std::int32_t> path) override;
  Result<void> truncate(runtime::SequenceId sequence, std::size_t length) override;

 private:
  std::unique_ptr<runtime::Runtime> inner_;
  std::vector<std::vector<float>> logits_;  // [rows]
  std::size_t told_ = 0;                    // committed tokens of the newest sequence
};

/// For before_pass: waits until the pass is stopped.
Result<void> hang(std::stop_token stop);

}  // namespace paceline::test
