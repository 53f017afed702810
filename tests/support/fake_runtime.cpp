#include "support/fake_runtime.hpp"

#include <algorithm>

#include "core/check.hpp"

namespace paceline::test {

using runtime::Row;
using runtime::SequenceId;
using runtime::Wants;

std::vector<Token> tokens(std::initializer_list<int> ids) {
  std::vector<Token> list;
  for (const int id : ids) list.push_back(static_cast<Token>(id));
  return list;
}

FakeRuntime::FakeRuntime(std::size_t vocabulary, const runtime::RuntimeLimits& limits,
                         Logits logits)
    : says{.rollback = true,
           .rollback_reason = {},
           .trees = limits.leaves > 1,
           .features = false,
           .exact_widths = true},
      vocabulary_(vocabulary),
      limits_(limits),
      logits_of_(std::move(logits)),
      sequences_(limits.sequences) {}

std::vector<Token> FakeRuntime::contents(SequenceId sequence) const {
  const auto& slot = sequences_[static_cast<std::size_t>(sequence)];
  return slot ? slot->committed : std::vector<Token>{};
}

std::size_t FakeRuntime::sequences_in_use() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(sequences_, [](const auto& slot) { return slot.has_value(); }));
}

FakeRuntime::Sequence& FakeRuntime::at(SequenceId sequence) {
  const auto index = static_cast<std::size_t>(sequence);
  PACELINE_CHECK(index < sequences_.size() && sequences_[index], "no such sequence");
  return *sequences_[index];
}

const FakeRuntime::Sequence& FakeRuntime::at(SequenceId sequence) const {
  const auto index = static_cast<std::size_t>(sequence);
  PACELINE_CHECK(index < sequences_.size() && sequences_[index], "no such sequence");
  return *sequences_[index];
}

Result<SequenceId> FakeRuntime::create_sequence() {
  PACELINE_TRY_VOID(before(Call::create_sequence));
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    if (sequences_[i]) continue;
    sequences_[i].emplace();
    return static_cast<SequenceId>(i);
  }
  return fail(ErrorCode::busy, "all sequences are in use");
}

Result<SequenceId> FakeRuntime::fork(SequenceId sequence) {
  PACELINE_TRY(const SequenceId copy, create_sequence());
  at(copy).committed = at(sequence).committed;
  return copy;
}

void FakeRuntime::release(SequenceId sequence) {
  at(sequence);
  sequences_[static_cast<std::size_t>(sequence)].reset();
}

std::size_t FakeRuntime::length(SequenceId sequence) const { return at(sequence).committed.size(); }

Result<void> FakeRuntime::forward(std::span<const Row> rows, std::stop_token stop) {
  std::vector<std::optional<std::size_t>> lengths(sequences_.size());
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    if (sequences_[i]) lengths[i] = sequences_[i]->committed.size();
  }
  PACELINE_TRY_VOID(runtime::check_batch(rows, limits_, vocabulary_, lengths));
  PACELINE_TRY_VOID(before(Call::forward));
  if (stop.stop_requested()) return fail(ErrorCode::cancelled, "the pass was stopped");
  for (auto& slot : sequences_) {
    if (slot) slot->open_rows = false;
  }
  rows_.assign(rows.begin(), rows.end());
  passes_.push_back(rows_);
  contexts_.clear();
  logits_.assign(rows.size(), {});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Sequence& sequence = at(rows[i].sequence);
    sequence.open_rows = true;
    contexts_.push_back(rows[i].parent == runtime::k_committed_end
                            ? sequence.committed
                            : contexts_[static_cast<std::size_t>(rows[i].parent)]);
    contexts_.back().push_back(rows[i].token);
    if (rows[i].wants == Wants::nothing) continue;
    logits_[i] = logits_of_(contexts_.back());
    PACELINE_CHECK(logits_[i].size() == vocabulary_, "the test gives logits of another size");
  }
  ++counters_.forwards;
  counters_.rows += rows.size();
  return {};
}

Token FakeRuntime::argmax(std::size_t row) const {
  PACELINE_CHECK(row < rows_.size() && includes(rows_[row].wants, Wants::argmax),
                 "the row did not want its argmax");
  return to_token(
      static_cast<std::size_t>(std::ranges::max_element(logits_[row]) - logits_[row].begin()));
}

std::span<const float> FakeRuntime::logits(std::size_t row) const {
  PACELINE_CHECK(row < rows_.size() && includes(rows_[row].wants, Wants::logits),
                 "the row did not want its logits");
  return logits_[row];
}

std::span<const float> FakeRuntime::feature(std::size_t) const {
  PACELINE_CHECK(false, "the fake has no features");
  return {};
}

Result<void> FakeRuntime::accept(SequenceId sequence, std::span<const std::int32_t> path) {
  PACELINE_TRY_VOID(before(Call::accept));
  Sequence& state = at(sequence);
  if (!state.open_rows && !path.empty()) {
    return fail(ErrorCode::invalid_argument, "the sequence has no open rows");
  }
  PACELINE_TRY_VOID(runtime::check_path(rows_, sequence, path));
  for (const std::int32_t row : path) {
    state.committed.push_back(rows_[static_cast<std::size_t>(row)].token);
  }
  state.open_rows = false;
  return {};
}

Result<void> FakeRuntime::truncate(SequenceId sequence, std::size_t length) {
  PACELINE_TRY_VOID(before(Call::truncate));
  Sequence& state = at(sequence);
  if (length > state.committed.size()) {
    return fail(ErrorCode::invalid_argument, "cannot truncate to more than there is");
  }
  state.committed.resize(length);
  state.open_rows = false;
  return {};
}

FakeRuntime::Logits follow_script(std::size_t vocabulary, std::vector<Token> prompt,
                                  std::vector<Token> script, Token astray) {
  std::vector<Token> whole = std::move(prompt);
  const std::size_t prompt_tokens = whole.size();
  whole.insert(whole.end(), script.begin(), script.end());
  return [=](std::span<const Token> context) {
    Token next = astray;
    if (context.size() >= prompt_tokens && context.size() < whole.size() &&
        std::ranges::equal(context, std::span(whole).first(context.size()))) {
      next = whole[context.size()];
    }
    std::vector<float> logits(vocabulary, 0.0f);
    logits[to_index(next)] = 1;
    return logits;
  };
}

Result<std::vector<Token>> FakeVocabulary::tokenize(std::string_view,
                                                    runtime::TokenizeOptions) const {
  return fail(ErrorCode::unsupported, "the fake vocabulary does not tokenise");
}

std::string FakeVocabulary::piece(Token token, bool) const {
  return to_index(token) < pieces_.size() ? pieces_[to_index(token)] : std::string{};
}

bool FakeVocabulary::is_end_of_text(Token token) const {
  return std::ranges::find(ends_, token) != ends_.end();
}

Result<runtime::Vocabulary::RenderedChat> FakeVocabulary::render_chat(
    const std::vector<runtime::ChatMessage>&) const {
  return fail(ErrorCode::unsupported, "the fake vocabulary has no chat template");
}

Result<draft::DraftSlot> FakeDrafter::open() {
  for (std::size_t i = 0; i < slots_; ++i) {
    const auto slot = static_cast<draft::DraftSlot>(static_cast<std::uint32_t>(i));
    if (observed_.contains(slot)) continue;
    observed_[slot];
    return slot;
  }
  return fail(ErrorCode::busy, "all slots are in use");
}

void FakeDrafter::close(draft::DraftSlot slot) {
  PACELINE_CHECK(observed_.erase(slot) == 1, "no such slot");
}

Result<void> FakeDrafter::observe(draft::DraftSlot slot, std::span<const Token> tokens) {
  auto& text = observed_.at(slot);
  text.insert(text.end(), tokens.begin(), tokens.end());
  return {};
}

Result<void> FakeDrafter::draft(std::span<draft::DraftRequest> requests, std::stop_token) {
  ++drafts_;
  PACELINE_TRY_VOID(before_draft());
  for (draft::DraftRequest& request : requests) {
    request.tree = propose_(observed_.at(request.slot), request.depth);
  }
  return {};
}

FakeDrafter::Propose propose_script(std::vector<Token> prompt, std::vector<Token> truth,
                                    std::function<bool(std::size_t)> wrong,
                                    std::function<Token(Token)> other) {
  const std::size_t prompt_tokens = prompt.size();
  return [=](std::span<const Token> observed, std::size_t depth) {
    std::vector<Token> chain;
    for (std::size_t i = observed.size() - prompt_tokens; i < truth.size() && chain.size() < depth;
         ++i) {
      chain.push_back(wrong(i) ? other(truth[i]) : truth[i]);
    }
    return DraftTree::chain(chain);
  };
}

}  // namespace paceline::test
