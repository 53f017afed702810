#include <format>

#include "compat/canary_watch_impl.hpp"

namespace paceline::compat {

Result<void> WatchedRuntime::forward(std::span<const runtime::Row> rows, std::stop_token stop) {
  parents_.clear();
  for (const runtime::Row& row : rows) parents_.push_back(row.parent);
  return inner_.forward(rows, std::move(stop));
}

Result<void> WatchedRuntime::accept(runtime::SequenceId sequence,
                                    std::span<const std::int32_t> path) {
  PACELINE_TRY_VOID(inner_.accept(sequence, path));
  if (committed_ >= prompt_tokens_) {
    rounds_.push_back({.parents = parents_, .path = {path.begin(), path.end()}});
  }
  committed_ += path.size();
  if (fault_.empty() && inner_.length(sequence) != committed_) {
    fault_ = std::format("after round {} the runtime holds {} tokens, {} were committed",
                         rounds_.size(), inner_.length(sequence), committed_);
  }
  return {};
}

Result<void> WatchedDrafter::observe(draft::DraftSlot slot, std::span<const Token> tokens) {
  observed_.insert(observed_.end(), tokens.begin(), tokens.end());
  return inner_.observe(slot, tokens);
}

Result<void> WatchedDrafter::draft(std::span<draft::DraftRequest> requests, std::stop_token stop) {
  observed_at_.push_back(observed_.size());
  return inner_.draft(requests, std::move(stop));
}

}  // namespace paceline::compat
