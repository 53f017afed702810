#include "draft/draft_model.hpp"

#include <algorithm>
#include <cmath>
#include <format>
#include <map>
#include <vector>

#include "core/check.hpp"

namespace paceline::draft {

namespace {

using runtime::Row;
using runtime::SequenceId;
using runtime::Wants;

struct Slot {
  SequenceId sequence{};
  std::vector<Token> observed;   // the text as it is
  std::vector<Token> committed;  // what the runtime's sequence holds
};

/// Probability of the largest logit.
double top_probability(std::span<const float> logits) {
  const float largest = *std::ranges::max_element(logits);
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit - largest));
  return 1 / total;
}

class DraftModelDrafter final : public Drafter {
 public:
  DraftModelDrafter(std::unique_ptr<runtime::Runtime> runtime, const DraftModelOptions& options)
      : runtime_(std::move(runtime)), options_(options) {}

  Result<DraftSlot> open() override {
    PACELINE_TRY(const SequenceId sequence, runtime_->create_sequence());
    const auto slot = static_cast<DraftSlot>(static_cast<std::uint32_t>(sequence));
    slots_[slot] = Slot{.sequence = sequence, .observed = {}, .committed = {}};
    return slot;
  }

  void close(DraftSlot slot) override {
    runtime_->release(at(slot).sequence);
    slots_.erase(slot);
  }

  Result<void> observe(DraftSlot slot, std::span<const Token> tokens) override {
    auto& observed = at(slot).observed;
    observed.insert(observed.end(), tokens.begin(), tokens.end());
    return {};
  }

  std::uint64_t forwards() const override { return runtime_->counters().forwards; }

  Result<void> draft(std::span<DraftRequest> requests, std::stop_token stop) override {
    std::vector<DraftRequest*> active;
    for (DraftRequest& request : requests) {
      request.tree.nodes.clear();
      const Slot& slot = at(request.slot);
      // Depth d needs positions up to observed + d - 1.
      const std::size_t context = runtime_->limits().context;
      const std::size_t room =
          context >= slot.observed.size() ? context - slot.observed.size() + 1 : 0;
      request.depth = std::min(request.depth, room);
      if (request.depth > 0 && !slot.observed.empty()) active.push_back(&request);
    }
    for (DraftRequest* request : active) PACELINE_TRY_VOID(rewind(at(request->slot)));
    PACELINE_TRY_VOID(catch_up(active, stop));
    while (!active.empty()) {
      std::vector<Row> rows;
      std::vector<DraftRequest*> next;
      for (DraftRequest* request : active) {
        if (request->tree.size() >= request->depth) continue;
        rows.push_back({at(request->slot).sequence, request->tree.nodes.back().token,
                        runtime::k_committed_end, wants()});
        next.push_back(request);
      }
      active = std::move(next);
      if (active.empty()) break;
      PACELINE_TRY_VOID(runtime_->forward(rows, stop));
      std::vector<bool> went_on(active.size());
      for (std::size_t i = 0; i < active.size(); ++i) went_on[i] = propose(*active[i], i);
      for (std::size_t i = 0; i < active.size(); ++i) {
        PACELINE_TRY_VOID(commit(at(active[i]->slot), rows, i, 1));
      }
      std::size_t i = 0;
      std::erase_if(active, [&](DraftRequest*) { return !went_on[i++]; });
    }
    return {};
  }

 private:
  Slot& at(DraftSlot slot) {
    const auto found = slots_.find(slot);
    PACELINE_CHECK(found != slots_.end(), "no such draft slot");
    return found->second;
  }

  Wants wants() const {
    return options_.confidence > 0 ? Wants::argmax | Wants::logits : Wants::argmax;
  }

  /// Drops what the sequence holds beyond the observed text. One observed token at least is left
  /// to compute, since its result is the first proposal.
  Result<void> rewind(Slot& slot) {
    const std::size_t limit = std::min(slot.committed.size(), slot.observed.size() - 1);
    std::size_t common = 0;
    while (common < limit && slot.committed[common] == slot.observed[common]) ++common;
    if (common == slot.committed.size()) return {};
    PACELINE_TRY_VOID(runtime_->truncate(slot.sequence, common));
    slot.committed.resize(common);
    return {};
  }

  /// Computes the observed tokens that the sequences lack, in chunks, and proposes from the last.
  Result<void> catch_up(std::vector<DraftRequest*>& active, std::stop_token stop) {
    std::vector<DraftRequest*> behind = active;
    while (!behind.empty()) {
      struct Part {
        DraftRequest* request;
        std::size_t begin;
        std::size_t count;
        bool last;
      };
      std::vector<Row> rows;
      std::vector<Part> parts;
      for (DraftRequest* request : behind) {
        const Slot& slot = at(request->slot);
        const std::size_t missing = slot.observed.size() - slot.committed.size();
        const std::size_t count = std::min(missing, runtime_->limits().rows - rows.size());
        if (count == 0) break;
        const bool last = count == missing;
        const std::size_t begin = rows.size();
        for (std::size_t i = 0; i < count; ++i) {
          rows.push_back(
              {slot.sequence, slot.observed[slot.committed.size() + i],
               i == 0 ? runtime::k_committed_end : static_cast<std::int32_t>(begin + i) - 1,
               last && i + 1 == count ? wants() : Wants::nothing});
        }
        parts.push_back({request, begin, count, last});
      }
      PACELINE_TRY_VOID(runtime_->forward(rows, stop));
      for (const Part& part : parts) {
        if (!part.last) continue;
        if (!propose(*part.request, part.begin + part.count - 1)) std::erase(active, part.request);
        std::erase(behind, part.request);
      }
      for (const Part& part : parts) {
        PACELINE_TRY_VOID(commit(at(part.request->slot), rows, part.begin, part.count));
      }
    }
    return {};
  }

  /// Adds the row's choice to the chain; false where the draft ends here.
  bool propose(DraftRequest& request, std::size_t row) {
    const Token token = runtime_->argmax(row);
    if (to_index(token) >= options_.target_vocabulary) return false;
    if (options_.confidence > 0 && top_probability(runtime_->logits(row)) < options_.confidence) {
      return false;
    }
    request.tree.add(token, static_cast<std::int32_t>(request.tree.size()) - 1);
    return true;
  }

  Result<void> commit(Slot& slot, std::span<const Row> rows, std::size_t begin, std::size_t count) {
    std::vector<std::int32_t> path(count);
    for (std::size_t i = 0; i < count; ++i) path[i] = static_cast<std::int32_t>(begin + i);
    PACELINE_TRY_VOID(runtime_->accept(slot.sequence, path));
    for (const Row& row : rows.subspan(begin, count)) slot.committed.push_back(row.token);
    return {};
  }

  std::unique_ptr<runtime::Runtime> runtime_;
  DraftModelOptions options_;
  std::map<DraftSlot, Slot> slots_;
};

}  // namespace

Result<std::unique_ptr<Drafter>> make_draft_model_drafter(std::unique_ptr<runtime::Runtime> runtime,
                                                          const DraftModelOptions& options) {
  const runtime::Capabilities capabilities = runtime->capabilities();
  if (!capabilities.rollback) {
    return fail(
        ErrorCode::unsupported,
        std::format("the draft model cannot take tokens back: {}", capabilities.rollback_reason),
        "draft_model_no_rollback");
  }
  if (!(options.confidence >= 0 && options.confidence < 1)) {
    return fail(ErrorCode::invalid_argument,
                std::format("draft confidence is {}, it must be at least 0 and below 1",
                            options.confidence));
  }
  if (options.target_vocabulary == 0) {
    return fail(ErrorCode::invalid_argument, "the target's vocabulary has no tokens to draft");
  }
  const runtime::RuntimeLimits& limits = runtime->limits();
  if (limits.most_results() < limits.sequences) {
    return fail(ErrorCode::invalid_argument,
                std::format("a draft runtime with results of {} rows cannot step its {} sequences "
                            "at once",
                            limits.most_results(), limits.sequences));
  }
  return std::make_unique<DraftModelDrafter>(std::move(runtime), options);
}

}  // namespace paceline::draft
