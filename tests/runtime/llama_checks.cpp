#include "runtime/llama_checks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <format>
#include <numeric>
#include <string>

#include "core/random.hpp"
#include "support/matchers.hpp"

namespace paceline::test {

using runtime::k_committed_end;
using runtime::Model;
using runtime::Row;
using runtime::RuntimeLimits;
using runtime::Wants;

namespace {

std::vector<std::int32_t> first_rows(std::size_t count) {
  std::vector<std::int32_t> rows(count);
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

std::vector<std::int32_t> chain_parents(std::size_t count) {
  std::vector<std::int32_t> parents(count);
  std::iota(parents.begin(), parents.end(), k_committed_end);
  return parents;
}

Logits copy(std::span<const float> values) { return {values.begin(), values.end()}; }

Tokens joined(const Tokens& a, const Tokens& b) {
  Tokens all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

bool all_finite(const Logits& logits) {
  return std::ranges::all_of(logits, [](float value) { return std::isfinite(value); });
}

// Differences read better as a place and a size than as two lists.
std::string difference(const Logits& a, const Logits& b) {
  if (a.size() != b.size()) return std::format("{} and {} logits", a.size(), b.size());
  std::size_t unequal = 0;
  float largest = 0.0F;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(float)) == 0) continue;
    ++unequal;
    largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  return std::format("{} of {} logits differ, by up to {}", unequal, a.size(), largest);
}

// A context that is long enough for these tests and made quickly; one thread, so that tests that
// run beside each other do not wait at barriers.
RuntimeLimits small_limits(RuntimeLimits limits) {
  if (limits.context == 0) limits.context = 640;
  if (limits.threads == 0) limits.threads = 1;
  return limits;
}

#define EXPECT_SAME_BITS(a, b) EXPECT_TRUE(same_bits(a, b)) << difference(a, b)

}  // namespace

Session::Session(const Model& model, RuntimeLimits limits)
    : owned_(value_of(model.create_runtime(small_limits(limits)))),
      runtime_(owned_.get()),
      sequence_(value_of(runtime_->create_sequence())) {}

Session::Session(runtime::Runtime& shared, runtime::SequenceId sequence)
    : runtime_(&shared), sequence_(sequence) {}

std::vector<Logits> Session::look(std::span<const Token> tokens,
                                  std::span<const std::int32_t> parents) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    rows.push_back({sequence_, tokens[i], parents[i], Wants::logits});
  }
  value_of(runtime_->forward(rows, {}));
  std::vector<Logits> all;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    all.push_back(copy(runtime_->logits(i)));
    EXPECT_TRUE(all_finite(all.back())) << "row " << i << " of " << rows.size();
  }
  return all;
}

void Session::accept(std::span<const std::int32_t> path) {
  value_of(runtime_->accept(sequence_, path));
}

std::vector<Logits> Session::append(std::span<const Token> tokens) {
  auto all = look(tokens, chain_parents(tokens.size()));
  accept(first_rows(tokens.size()));
  return all;
}

std::vector<Logits> Session::append_singly(std::span<const Token> tokens) {
  std::vector<Logits> all;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    all.push_back(append(tokens.subspan(i, 1)).front());
  }
  return all;
}

bool same_bits(const Logits& a, const Logits& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

Tokens random_tokens(const Model& model, std::size_t count, std::uint64_t seed) {
  Random random(seed);
  Tokens tokens;
  for (std::size_t i = 0; i < count; ++i) {
    tokens.push_back(to_token(random.below(model.vocabulary().size())));
  }
  return tokens;
}

std::vector<std::int32_t> Tree::path_to(std::int32_t row) const {
  std::vector<std::int32_t> path;
  for (; row != k_committed_end; row = parents[static_cast<std::size_t>(row)]) path.push_back(row);
  std::ranges::reverse(path);
  return path;
}

Tokens Tree::tokens_on(std::span<const std::int32_t> path) const {
  Tokens on_path;
  for (const std::int32_t row : path) on_path.push_back(tokens[static_cast<std::size_t>(row)]);
  return on_path;
}

std::size_t Tree::leaves() const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < parents.size(); ++i) {
    if (!std::ranges::contains(parents, static_cast<std::int32_t>(i))) ++count;
  }
  return count;
}

Tree random_tree(const Model& model, std::size_t rows, std::size_t most_leaves,
                 std::uint64_t seed) {
  Random random(seed);
  Tree tree;
  tree.tokens = random_tokens(model, rows, seed + 1);
  for (std::size_t i = 0; i < rows; ++i) {
    const auto any = static_cast<std::int32_t>(random.below(i + 1)) - 1;
    tree.parents.push_back(any);
    if (tree.leaves() > most_leaves) tree.parents.back() = static_cast<std::int32_t>(i) - 1;
  }
  return tree;
}

Tree branching_tree(const Model& model, std::uint64_t seed) {
  return {random_tokens(model, 7, seed), {k_committed_end, 0, 1, 1, 3, k_committed_end, 5}};
}

Logits plain_logits(const Model& model, std::size_t prompt, const Tokens& tokens) {
  Session plain(model);
  const std::span<const Token> all = tokens;
  std::vector<Logits> logits;
  if (prompt > 0) logits = plain.append(all.first(prompt));
  if (all.size() > prompt) logits = plain.append_singly(all.subspan(prompt));
  return logits.back();
}

Tokens greedy(const Model& model, const Tokens& prompt, std::size_t count) {
  Session session(model);
  Logits last = session.append(prompt).back();
  Tokens text;
  for (std::size_t i = 0; i < count; ++i) {
    text.push_back(
        to_token(static_cast<std::size_t>(std::ranges::max_element(last) - last.begin())));
    last = session.append({&text.back(), 1}).back();
  }
  return text;
}

void check_widths(const Model& model, std::size_t prompt, std::size_t count, std::size_t threads) {
  const Tokens start = random_tokens(model, prompt, 11);
  const Tokens tokens = random_tokens(model, count, 12);
  Session plain(model, {.threads = threads});
  plain.append(start);
  const auto expected = plain.append_singly(tokens);
  Session wide(model, {.threads = threads});
  wide.append(start);
  for (const std::size_t width : {1U, 2U, 3U, 5U, 8U, 16U}) {
    for (std::size_t i = 0; i < count; i += width) {
      const auto part = std::span<const Token>(tokens).subspan(i, std::min(width, count - i));
      const auto logits = wide.append(part);
      for (std::size_t row = 0; row < part.size(); ++row) {
        SCOPED_TRACE(std::format("width {}, token {}", width, i + row));
        EXPECT_SAME_BITS(logits[row], expected[i + row]);
      }
    }
    value_of(wide.runtime().truncate(wide.sequence(), prompt));
  }
}

void check_threads(const Model& model, std::size_t prompt) {
  const Tokens tokens = random_tokens(model, prompt, 13);
  Session one(model, {.threads = 1});
  Session two(model, {.threads = 2});
  const auto expected = one.append(tokens);
  const auto logits = two.append(tokens);
  for (std::size_t i = 0; i < prompt; ++i) EXPECT_SAME_BITS(logits[i], expected[i]);
}

void check_tree_rows(const Model& model, std::size_t prompt, std::uint64_t seed) {
  const Tokens start = random_tokens(model, prompt, seed);
  const Tree tree = random_tree(model, 9, 4, seed);
  Session session(model, {.leaves = 4});
  session.append(start);
  const auto logits = session.look(tree.tokens, tree.parents);
  for (std::size_t row = 0; row < tree.tokens.size(); ++row) {
    SCOPED_TRACE(std::format("seed {}, row {}", seed, row));
    const auto path = tree.path_to(static_cast<std::int32_t>(row));
    EXPECT_SAME_BITS(logits[row], plain_logits(model, prompt, joined(start, tree.tokens_on(path))));
  }
}

void check_every_path(const Model& model, std::size_t prompt, const Tree& tree) {
  const Tokens start = random_tokens(model, prompt, 21);
  const Tokens after = random_tokens(model, 3, 22);
  const auto rows = static_cast<std::int32_t>(tree.tokens.size());
  for (std::int32_t last = k_committed_end; last < rows; ++last) {
    SCOPED_TRACE(std::format("path to row {}", last));
    const auto path = tree.path_to(last);
    const Tokens accepted = tree.tokens_on(path);
    Session session(model, {.leaves = tree.leaves()});
    session.append(start);
    session.look(tree.tokens, tree.parents);
    session.accept(path);
    EXPECT_EQ(session.length(), prompt + path.size());
    const auto logits = session.append_singly(after);

    Session plain(model);
    plain.append(start);
    plain.append_singly(accepted);
    const auto expected = plain.append_singly(after);
    for (std::size_t i = 0; i < after.size(); ++i) {
      SCOPED_TRACE(std::format("token {} after it", i));
      EXPECT_SAME_BITS(logits[i], expected[i]);
    }
  }
}

void check_random_rounds(const Model& model, std::size_t rounds, std::size_t most_rows,
                         std::size_t leaves, std::uint64_t seed) {
  Random random(seed);
  const Tokens start = random_tokens(model, 9, seed);
  Session session(model, {.leaves = leaves});
  Session plain(model);
  session.append(start);
  plain.append(start);
  for (std::size_t round = 0; round < rounds; ++round) {
    SCOPED_TRACE(std::format("seed {}, round {}", seed, round));
    const Tree tree = random_tree(model, 1 + random.below(most_rows), leaves, seed * 1000 + round);
    const auto logits = session.look(tree.tokens, tree.parents);
    const auto last =
        static_cast<std::int32_t>(random.below(tree.tokens.size() + 1)) + k_committed_end;
    const auto path = tree.path_to(last);
    session.accept(path);
    const auto expected = plain.append_singly(tree.tokens_on(path));
    for (std::size_t i = 0; i < path.size(); ++i) {
      EXPECT_SAME_BITS(logits[static_cast<std::size_t>(path[i])], expected[i]);
    }
    ASSERT_EQ(session.length(), plain.length());
  }
  const auto counters = session.runtime().counters();
  const bool replays = leaves > 1 && session.runtime().info().name == "llama";
  EXPECT_EQ(counters.replayed_rows > 0, replays);
}

void check_sequences(const Model& model, std::size_t sequences, std::size_t rounds,
                     std::uint64_t seed) {
  Random random(seed);
  const auto shared = value_of(model.create_runtime(small_limits({.sequences = sequences})));
  std::vector<Session> together;
  std::vector<Session> alone;
  for (std::size_t i = 0; i < sequences; ++i) {
    together.emplace_back(*shared, value_of(shared->create_sequence()));
    alone.emplace_back(model);
    const Tokens start = random_tokens(model, 3 + 4 * i, seed + i);
    together.back().append(start);
    alone.back().append(start);
  }
  for (std::size_t round = 0; round < rounds; ++round) {
    std::vector<Row> rows;
    std::vector<std::size_t> owner;
    std::vector<std::int32_t> last(sequences, k_committed_end);
    for (std::size_t i = 0; i < 3 * sequences; ++i) {
      const std::size_t s = random.below(sequences);
      rows.push_back({together[s].sequence(), to_token(random.below(model.vocabulary().size())),
                      last[s], Wants::logits});
      last[s] = static_cast<std::int32_t>(i);
      owner.push_back(s);
    }
    value_of(shared->forward(rows, {}));
    std::vector<std::vector<std::int32_t>> paths(sequences);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      SCOPED_TRACE(std::format("seed {}, round {}, row {}", seed, round, i));
      const std::size_t s = owner[i];
      if (paths[s].size() == 3) continue;  // the fourth and later rows are rejected
      paths[s].push_back(static_cast<std::int32_t>(i));
      const auto expected = alone[s].append({&rows[i].token, 1}).front();
      EXPECT_SAME_BITS(copy(shared->logits(i)), expected);
    }
    for (std::size_t s = 0; s < sequences; ++s) {
      together[s].accept(paths[s]);
      ASSERT_EQ(together[s].length(), alone[s].length());
    }
  }
}

void check_truncate(const Model& model, std::size_t prompt, std::size_t leaves) {
  const Tokens tokens = random_tokens(model, prompt, 31);
  const Tokens after = random_tokens(model, 4, 32);
  for (const std::size_t length : {prompt - 1, prompt / 2, std::size_t{1}, std::size_t{0}}) {
    SCOPED_TRACE(std::format("shortened to {}", length));
    Session session(model, {.leaves = leaves});
    session.append(tokens);
    session.look(after, chain_parents(after.size()));  // open rows are dropped as well
    value_of(session.runtime().truncate(session.sequence(), length));
    EXPECT_EQ(session.length(), length);
    const auto logits = session.append_singly(after);
    Session plain(model);
    if (length > 0) plain.append(std::span<const Token>(tokens).first(length));
    const auto expected = plain.append_singly(after);
    for (std::size_t i = 0; i < after.size(); ++i) EXPECT_SAME_BITS(logits[i], expected[i]);
  }
  Session session(model);
  session.append(tokens);
  EXPECT_THAT(session.runtime().truncate(session.sequence(), prompt + 1),
              FailsWith(ErrorCode::invalid_argument));
  EXPECT_EQ(session.length(), prompt);
}

void check_fork(const Model& model, std::size_t prompt) {
  const Tokens start = random_tokens(model, prompt, 41);
  const Tokens left = random_tokens(model, 5, 42);
  const Tokens right = random_tokens(model, 5, 43);
  Session original(model, {.sequences = 2});
  original.append(start);
  original.look(left, chain_parents(left.size()));  // open rows do not go along
  Session copied(original.runtime(), value_of(original.runtime().fork(original.sequence())));
  EXPECT_EQ(copied.length(), prompt);
  EXPECT_THAT(original.runtime().fork(original.sequence()), FailsWith(ErrorCode::busy));

  const auto from_copy = copied.append_singly(right);
  const auto from_original = original.append_singly(left);
  Session plain_left(model);
  plain_left.append(start);
  Session plain_right(model);
  plain_right.append(start);
  const auto expected_left = plain_left.append_singly(left);
  const auto expected_right = plain_right.append_singly(right);
  for (std::size_t i = 0; i < left.size(); ++i) {
    EXPECT_SAME_BITS(from_original[i], expected_left[i]);
    EXPECT_SAME_BITS(from_copy[i], expected_right[i]);
  }
}

void check_features(const Model& model, std::size_t prompt) {
  const Tokens start = random_tokens(model, prompt, 51);
  Session plain(model);
  const auto expected = plain.append(start);
  const auto runtime = value_of(model.create_runtime(small_limits({.features = true})));
  EXPECT_TRUE(runtime->capabilities().features);
  const auto sequence = value_of(runtime->create_sequence());
  std::vector<Row> rows;
  for (std::size_t i = 0; i < prompt; ++i) {
    rows.push_back({sequence, start[i], static_cast<std::int32_t>(i) - 1,
                    i % 2 == 0 ? Wants::feature | Wants::logits : Wants::nothing});
  }
  value_of(runtime->forward(rows, {}));
  for (std::size_t i = 0; i < prompt; i += 2) {
    EXPECT_SAME_BITS(copy(runtime->logits(i)), expected[i]);
    const auto feature = runtime->feature(i);
    ASSERT_EQ(feature.size(), model.info().hidden);
    EXPECT_TRUE(std::ranges::any_of(feature, [](float value) { return value != 0.0F; }));
  }
}

void check_that_logits_are_no_numbers(const Model& model) {
  Session session(model);
  const Tokens tokens = random_tokens(model, 8, 3);
  for (const Wants wants : {Wants::argmax, Wants::logits}) {
    for (const std::size_t width : {1U, 3U, 8U}) {
      std::vector<Row> rows;
      for (std::size_t i = 0; i < width; ++i) {
        rows.push_back({.sequence = session.sequence(),
                        .token = tokens[i],
                        .parent = static_cast<std::int32_t>(i) - 1,
                        .wants = i + 1 == width ? wants : Wants::nothing});
      }
      const auto passed = session.runtime().forward(rows, {});
      EXPECT_THAT(passed, FailsWith(ErrorCode::bad_format,
                                    testing::HasSubstr(std::format("position {}", width - 1))));
      if (!passed) {
        EXPECT_EQ(passed.error().word, "logits_not_finite");
      }
      EXPECT_EQ(session.length(), 0U);
    }
  }
}

}  // namespace paceline::test
