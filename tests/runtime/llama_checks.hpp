// What every model behind the llama runtime must hold, whatever its weights: the tests on small
// generated files and those on a real model share these checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/token.hpp"
#include "runtime/runtime.hpp"

namespace paceline::test {

using Tokens = std::vector<Token>;
using Logits = std::vector<float>;

/// One sequence of a runtime. Failures end the test program.
class Session {
 public:
  explicit Session(const runtime::Model& model, runtime::RuntimeLimits limits = {});
  Session(runtime::Runtime& shared, runtime::SequenceId sequence);

  runtime::Runtime& runtime() { return *runtime_; }
  runtime::SequenceId sequence() const { return sequence_; }
  std::size_t length() const { return runtime_->length(sequence_); }

  /// Commits the tokens by one pass; the logits behind each of them.
  std::vector<Logits> append(std::span<const Token> tokens);
  /// Commits the tokens by one pass each; the logits behind each of them.
  std::vector<Logits> append_singly(std::span<const Token> tokens);
  /// Computes a tree without accepting; `parents` as in Row. The logits of each row.
  std::vector<Logits> look(std::span<const Token> tokens, std::span<const std::int32_t> parents);
  void accept(std::span<const std::int32_t> path);

 private:
  std::unique_ptr<runtime::Runtime> owned_;
  runtime::Runtime* runtime_;
  runtime::SequenceId sequence_;
};

/// Equal in every bit.
bool same_bits(const Logits& a, const Logits& b);

/// `count` tokens that the model's vocabulary has, seeded.
Tokens random_tokens(const runtime::Model& model, std::size_t count, std::uint64_t seed);

struct Tree {
  Tokens tokens;
  std::vector<std::int32_t> parents;

  /// Rows from the committed end down to `row`.
  std::vector<std::int32_t> path_to(std::int32_t row) const;
  Tokens tokens_on(std::span<const std::int32_t> path) const;
  std::size_t leaves() const;
};
Tree random_tree(const runtime::Model& model, std::size_t rows, std::size_t most_leaves,
                 std::uint64_t seed);
/// A chain of two that splits into (one more row) and (two more rows), then a second root.
Tree branching_tree(const runtime::Model& model, std::uint64_t seed);

/// Logits behind `tokens` by plain decoding: the first `prompt` tokens in one pass, then one by
/// one.
Logits plain_logits(const runtime::Model& model, std::size_t prompt, const Tokens& tokens);

/// What the model writes behind the prompt, one token at a time.
Tokens greedy(const runtime::Model& model, const Tokens& prompt, std::size_t count);

// Checks. Each reports through gtest.
void check_widths(const runtime::Model& model, std::size_t prompt, std::size_t count,
                  std::size_t threads = 1);
void check_threads(const runtime::Model& model, std::size_t prompt);
void check_tree_rows(const runtime::Model& model, std::size_t prompt, std::uint64_t seed);
void check_every_path(const runtime::Model& model, std::size_t prompt, const Tree& tree);
void check_random_rounds(const runtime::Model& model, std::size_t rounds, std::size_t most_rows,
                         std::size_t leaves, std::uint64_t seed);
void check_sequences(const runtime::Model& model, std::size_t sequences, std::size_t rounds,
                     std::uint64_t seed);
void check_truncate(const runtime::Model& model, std::size_t prompt, std::size_t leaves);
void check_fork(const runtime::Model& model, std::size_t prompt);
void check_features(const runtime::Model& model, std::size_t prompt);
/// Of a model that is made to overflow: every pass that wants a row says so and changes nothing.
void check_that_logits_are_no_numbers(const runtime::Model& model);

}  // namespace paceline::test
