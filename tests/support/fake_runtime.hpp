// Hand-written fakes below and beside the engine: a runtime that keeps every sequence as a plain
// list of tokens and can be told to fail, a vocabulary of given pieces, a drafter from a function.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "draft/drafter.hpp"
#include "runtime/runtime.hpp"
#include "runtime/vocabulary.hpp"

namespace paceline::test {

/// Tokens from plain numbers: tokens({1, 2, 3}).
std::vector<Token> tokens(std::initializer_list<int> ids);

enum class Call { create_sequence, forward, accept, truncate };

/// Holds what it is given to the letter: rows that were not asked for cannot be read, rows can be
/// accepted once, ids and positions are checked. One thread.
class FakeRuntime final : public runtime::Runtime {
 public:
  /// Logits after a context of tokens, one per vocabulary entry.
  using Logits = std::function<std::vector<float>(std::span<const Token> context)>;

  FakeRuntime(std::size_t vocabulary, const runtime::RuntimeLimits& limits, Logits logits);

  /// Asked before each call is carried out; its error is what the call returns.
  std::function<Result<void>(Call)> before = [](Call) -> Result<void> { return {}; };
  runtime::Capabilities says;  // what capabilities() gives

  /// What a sequence holds; empty for one that does not exist.
  std::vector<Token> contents(runtime::SequenceId sequence) const;
  std::size_t sequences_in_use() const;
  const std::vector<std::vector<runtime::Row>>& passes() const { return passes_; }

  const runtime::RuntimeLimits& limits() const override { return limits_; }
  runtime::Capabilities capabilities() const override { return says; }
  runtime::RuntimeInfo info() const override { return {}; }
  runtime::PassCounters counters() const override { return counters_; }
  Result<runtime::SequenceId> create_sequence() override;
  Result<runtime::SequenceId> fork(runtime::SequenceId sequence) override;
  void release(runtime::SequenceId sequence) override;
  std::size_t length(runtime::SequenceId sequence) const override;
  Result<void> forward(std::span<const runtime::Row> rows, std::stop_token stop) override;
  Token argmax(std::size_t row) const override;
  std::span<const float> logits(std::size_t row) const override;
  std::span<const float> feature(std::size_t row) const override;
  Result<void> accept(runtime::SequenceId sequence, std::span<const std::int32_t> path) override;
  Result<void> truncate(runtime::SequenceId sequence, std::size_t length) override;

 private:
  struct Sequence {
    std::vector<Token> committed;
    bool open_rows = false;  // of the last pass, not accepted yet
  };
  Sequence& at(runtime::SequenceId sequence);
  const Sequence& at(runtime::SequenceId sequence) const;

  std::size_t vocabulary_;
  runtime::RuntimeLimits limits_;
  Logits logits_of_;
  std::vector<std::optional<Sequence>> sequences_;
  std::vector<runtime::Row> rows_;
  std::vector<std::vector<Token>> contexts_;  // [rows]
  std::vector<std::vector<float>> logits_;    // [rows]
  std::vector<std::vector<runtime::Row>> passes_;
  runtime::PassCounters counters_;
};

/// Logits that follow a script: after prompt + script[0..i) the largest is script[i]; after any
/// other context, and behind the script, it is `astray`. So a wrong cache shows at once.
FakeRuntime::Logits follow_script(std::size_t vocabulary, std::vector<Token> prompt,
                                  std::vector<Token> script, Token astray);

/// Token i has the bytes pieces[i]; the tokens in `ends` end the text.
class FakeVocabulary final : public runtime::Vocabulary {
 public:
  explicit FakeVocabulary(std::vector<std::string> pieces, std::vector<Token> ends = {})
      : pieces_(std::move(pieces)), ends_(std::move(ends)) {}

  std::size_t size() const override { return pieces_.size(); }
  Result<std::vector<Token>> tokenize(std::string_view text,
                                      runtime::TokenizeOptions options) const override;
  std::string piece(Token token, bool show_special) const override;
  bool is_end_of_text(Token token) const override;
  std::string chat_template() const override { return {}; }
  Result<RenderedChat> render_chat(
      const std::vector<runtime::ChatMessage>& messages) const override;

 private:
  std::vector<std::string> pieces_;
  std::vector<Token> ends_;
};

/// Drafts what a function of the observed text says. Any number of slots up to `slots`.
class FakeDrafter final : public draft::Drafter {
 public:
  using Propose = std::function<DraftTree(std::span<const Token> observed, std::size_t depth)>;

  explicit FakeDrafter(Propose propose, std::size_t slots = 1, std::size_t leaves = 1)
      : propose_(std::move(propose)), slots_(slots), leaves_(leaves) {}

  /// Asked at each draft() call; its error is what the call returns.
  std::function<Result<void>()> before_draft = []() -> Result<void> { return {}; };
  /// The text of each open slot.
  const std::map<draft::DraftSlot, std::vector<Token>>& observed() const { return observed_; }
  std::size_t drafts() const { return drafts_; }

  Result<draft::DraftSlot> open() override;
  void close(draft::DraftSlot slot) override;
  Result<void> observe(draft::DraftSlot slot, std::span<const Token> tokens) override;
  Result<void> draft(std::span<draft::DraftRequest> requests, std::stop_token stop) override;
  std::size_t max_leaves() const override { return leaves_; }

 private:
  Propose propose_;
  std::size_t slots_;
  std::size_t leaves_;
  std::size_t drafts_ = 0;
  std::map<draft::DraftSlot, std::vector<Token>> observed_;
};

/// Drafts the next tokens of `prompt + truth`, with `other(token)` where `wrong(index)` says so
/// (index into truth).
FakeDrafter::Propose propose_script(std::vector<Token> prompt, std::vector<Token> truth,
                                    std::function<bool(std::size_t index)> wrong,
                                    std::function<Token(Token)> other);

}  // namespace paceline::test
