#include "support/odd_runtime.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "runtime/largest.hpp"

namespace paceline::test {

using runtime::Row;
using runtime::Wants;

Result<runtime::SequenceId> OddRuntime::create_sequence() {
  if (on_sequence) on_sequence();
  told_ = 0;
  return inner_->create_sequence();
}

Result<void> OddRuntime::forward(std::span<const Row> rows, std::stop_token stop) {
  if (before_pass) PACELINE_TRY_VOID(before_pass(rows, stop));
  std::vector<Row> all(rows.begin(), rows.end());
  for (Row& row : all) {
    if (row.wants != Wants::nothing) row.wants = Wants::logits;
  }
  PACELINE_TRY_VOID(inner_->forward(all, stop));
  logits_.assign(rows.size(), {});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].wants == Wants::nothing) continue;
    const auto row = inner_->logits(i);
    logits_[i].assign(row.begin(), row.end());
    if (bend) bend(rows.size(), logits_[i]);
    if (bend_row) bend_row(rows.size(), i, logits_[i]);
    if (!runtime::find_largest(logits_[i]).finite) {  // as every runtime does
      return runtime::logits_not_finite("odd.gguf", i, "odd");
    }
  }
  return {};
}

Token OddRuntime::argmax(std::size_t row) const {
  const auto& logits = logits_.at(row);
  return to_token(static_cast<std::size_t>(std::ranges::max_element(logits) - logits.begin()));
}

Result<void> OddRuntime::accept(runtime::SequenceId sequence, std::span<const std::int32_t> path) {
  std::vector<std::int32_t> rows(path.begin(), path.end());
  told_ += path.size();
  if (told_ >= faulty_from && !rows.empty()) {
    const std::size_t next = static_cast<std::size_t>(rows.back()) + 1;
    if (rolls_back_one_short && next < logits_.size()) rows.push_back(rows.back() + 1);
    if (rolls_back_one_far && rows.size() > 1) rows.pop_back();
  }
  return inner_->accept(sequence, rows);
}

Result<void> OddRuntime::truncate(runtime::SequenceId sequence, std::size_t length) {
  told_ = length;
  const bool more = truncates_one_short && length < inner_->length(sequence);
  return inner_->truncate(sequence, more ? length + 1 : length);
}

Result<void> hang(std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  wake.wait(lock, stop, [] { return false; });
  return fail(ErrorCode::cancelled, "the pass was stopped");
}

}  // namespace paceline::test
