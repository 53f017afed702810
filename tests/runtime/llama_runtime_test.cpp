// The llama runtime on small generated models.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include "runtime/llama/llama_model.hpp"
#include "runtime/llama_checks.hpp"
#include "support/gguf_builder.hpp"
#include "support/matchers.hpp"
#include "support/temporary_folder.hpp"

namespace paceline::test {
namespace {

using runtime::k_committed_end;
using runtime::load_llama_model;
using runtime::Model;
using runtime::Row;
using runtime::Wants;
using testing::AllOf;
using testing::HasSubstr;
using Kind = TinyModel::Kind;

std::shared_ptr<const Model> tiny(Kind kind = Kind::dense,
                                  TinyModel::Weights weights = TinyModel::Weights::f32) {
  const TemporaryFolder folder;  // the mapping outlives the name
  write_tiny(folder.path() / "m.gguf", {.kind = kind, .weights = weights});
  return value_of(load_llama_model(folder.path() / "m.gguf"));
}

struct Case {
  const char* name;
  Kind kind;
  TinyModel::Weights weights;
};

// Models with attention; the window is 8 tokens, so that these tests run past it.
class LlamaRuntimes : public testing::TestWithParam<Case> {
 protected:
  const std::shared_ptr<const Model> model_ = tiny(GetParam().kind, GetParam().weights);
};

INSTANTIATE_TEST_SUITE_P(
    Tiny, LlamaRuntimes,
    testing::Values(Case{"Dense", Kind::dense, TinyModel::Weights::f32},
                    Case{"DenseQuantised", Kind::dense, TinyModel::Weights::q4_1},
                    Case{"SlidingWindow", Kind::sliding_window, TinyModel::Weights::f32}),
    [](const auto& one) { return one.param.name; });

TEST_P(LlamaRuntimes, RowsDoNotDependOnTheWidth) {
  check_widths(*model_, 5, 48);
  // Over 256 cells libllama computes with 512; ggml then likes to split the work between threads.
  check_widths(*model_, 250, 24, 2);
}

TEST(LlamaRuntime, SaysWhereLogitsAreNoNumbers) {
  const TemporaryFolder folder;
  TinyModel wild;  // finite weights, products that are not
  wild.tensors_of["output.weight"] = 3e38F;
  write_tiny(folder.path() / "m.gguf", wild);
  check_that_logits_are_no_numbers(*value_of(load_llama_model(folder.path() / "m.gguf")));
}

TEST_P(LlamaRuntimes, RowsDoNotDependOnTheThreads) { check_threads(*model_, 300); }

TEST_P(LlamaRuntimes, TreeRowsEqualTheChainOfTheirPath) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) check_tree_rows(*model_, 1 + seed * 2, seed);
  check_tree_rows(*model_, 252, 100);
}

TEST_P(LlamaRuntimes, EveryAcceptedPathContinuesAsPlainDecoding) {
  check_every_path(*model_, 6, branching_tree(*model_, 5));
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    check_every_path(*model_, 3 + seed, random_tree(*model_, 8, 3, seed));
  }
}

TEST_P(LlamaRuntimes, RoundsOfTreesEqualPlainDecoding) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) check_random_rounds(*model_, 40, 9, 4, seed);
}

TEST_P(LlamaRuntimes, RoundsOfChainsEqualPlainDecoding) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) check_random_rounds(*model_, 40, 6, 1, seed);
}

TEST_P(LlamaRuntimes, SequencesInOneBatchEqualSingleRuns) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) check_sequences(*model_, 3, 12, seed);
}

TEST_P(LlamaRuntimes, TruncatedSequencesContinueAsPlainDecoding) {
  check_truncate(*model_, 30, 1);
  check_truncate(*model_, 30, 3);
}

TEST_P(LlamaRuntimes, ForksContinueAsPlainDecoding) { check_fork(*model_, 20); }

TEST_P(LlamaRuntimes, FeaturesLeaveLogitsAsTheyAre) { check_features(*model_, 12); }

TEST_P(LlamaRuntimes, RowsNotAcceptedAreDroppedByTheNextPass) {
  const Tokens start = random_tokens(*model_, 9, 1);
  const Tokens rejected = random_tokens(*model_, 4, 2);
  const Tokens after = random_tokens(*model_, 1, 3);
  Session session(*model_, {.leaves = 2});
  session.append(start);
  session.look(rejected, std::vector<std::int32_t>{k_committed_end, 0, 0, 2});
  const auto logits = session.append(after);
  Tokens all = start;
  all.push_back(after.front());
  EXPECT_TRUE(same_bits(logits.front(), plain_logits(*model_, start.size(), all)));
}

TEST_P(LlamaRuntimes, ACancelledPassLeavesEverythingAsItWas) {
  const Tokens start = random_tokens(*model_, 9, 1);
  const Tokens after = random_tokens(*model_, 3, 2);
  std::stop_source stopped;
  stopped.request_stop();
  for (const std::size_t leaves : {1U, 3U}) {
    Session session(*model_, {.leaves = leaves});
    session.append(start);
    std::vector<Row> rows;
    for (std::size_t i = 0; i < 40; ++i) {
      rows.push_back({session.sequence(), start[i % 9], static_cast<std::int32_t>(i) - 1});
    }
    EXPECT_THAT(session.runtime().forward(rows, stopped.get_token()),
                FailsWith(ErrorCode::cancelled));
    EXPECT_EQ(session.length(), start.size());
    const auto logits = session.append_singly(after);
    Session plain(*model_);
    plain.append(start);
    const auto expected = plain.append_singly(after);
    for (std::size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(same_bits(logits[i], expected[i]));
  }
}

TEST_P(LlamaRuntimes, ACancelledPassKeepsWhatIsToBePutThroughAgain) {
  const Tokens start = random_tokens(*model_, 6, 1);
  const Tokens after = random_tokens(*model_, 2, 2);
  const Tree tree = branching_tree(*model_, 3);
  const auto path = tree.path_to(4);  // not the first rows
  Session session(*model_, {.leaves = 3});
  session.append(start);
  session.look(tree.tokens, tree.parents);
  session.accept(path);
  std::stop_source stopped;
  stopped.request_stop();
  const Row row{session.sequence(), after[0], k_committed_end, Wants::logits};
  EXPECT_THAT(session.runtime().forward({&row, 1}, stopped.get_token()),
              FailsWith(ErrorCode::cancelled));
  EXPECT_EQ(session.length(), start.size() + path.size());
  const auto logits = session.append_singly(after);
  Session plain(*model_);
  plain.append(start);
  plain.append_singly(tree.tokens_on(path));
  const auto expected = plain.append_singly(after);
  for (std::size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(same_bits(logits[i], expected[i]));
}

// A cache that keeps only the window would have overwritten the cells that are needed again.
TEST(LlamaRuntime, GoesBackBehindTheWindow) {
  const auto model = tiny(Kind::sliding_window);
  const Tokens tokens = random_tokens(*model, 480, 1);
  const Tokens after = random_tokens(*model, 3, 2);
  const std::span<const Token> all = tokens;
  Session session(*model, {.context = 512, .rows = 16});
  for (std::size_t i = 0; i < all.size(); i += 16) session.append(all.subspan(i, 16));
  value_of(session.runtime().truncate(session.sequence(), 96));
  Session plain(*model, {.context = 512, .rows = 16});
  for (std::size_t i = 0; i < 96; i += 16) plain.append(all.subspan(i, 16));
  const auto logits = session.append_singly(after);
  const auto expected = plain.append_singly(after);
  for (std::size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(same_bits(logits[i], expected[i]));
}

TEST(LlamaRuntime, TruncatesIntoWhatIsToBePutThroughAgain) {
  const auto model = tiny();
  const Tokens start = random_tokens(*model, 6, 1);
  const Tokens after = random_tokens(*model, 2, 2);
  const Tree tree = branching_tree(*model, 3);
  const auto path = tree.path_to(4);
  for (std::size_t kept = 0; kept <= start.size() + path.size(); ++kept) {
    SCOPED_TRACE(kept);
    Session session(*model, {.leaves = 3});
    session.append(start);
    session.look(tree.tokens, tree.parents);
    session.accept(path);
    value_of(session.runtime().truncate(session.sequence(), kept));
    const auto logits = session.append_singly(after);
    Session plain(*model);
    plain.append(std::span<const Token>(start).first(std::min(kept, start.size())));
    if (kept > start.size()) {
      const Tokens accepted = tree.tokens_on(path);
      plain.append_singly(std::span<const Token>(accepted).first(kept - start.size()));
    }
    const auto expected = plain.append_singly(after);
    for (std::size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(same_bits(logits[i], expected[i]));
  }
}

TEST(LlamaRuntime, PutsThroughOnlyRowsThatAreOutOfOrderAndCountsThem) {
  const auto model = tiny();
  const Tree tree{random_tokens(*model, 4, 1), {k_committed_end, 0, 0, 2}};
  Session session(*model, {.leaves = 2});
  session.append(random_tokens(*model, 3, 2));
  session.look(tree.tokens, tree.parents);
  session.accept(std::vector<std::int32_t>{0, 2, 3});
  EXPECT_EQ(session.runtime().counters().replayed_rows, 0U);
  session.append(random_tokens(*model, 1, 3));
  const auto counters = session.runtime().counters();
  EXPECT_EQ(counters.replayed_rows, 2U);
  EXPECT_EQ(counters.rows, 3U + 4U + 1U + 2U);
  EXPECT_EQ(counters.forwards, 3U);
}

TEST(LlamaRuntime, PutsThroughMoreThanFitsBesideTheRows) {
  const auto model = tiny();
  // 150 rows on a path that is not the first: more than the room for them in one pass.
  Tree tree;
  tree.tokens = random_tokens(*model, 151, 1);
  tree.parents = {k_committed_end, k_committed_end};
  for (std::int32_t i = 1; i < 150; ++i) tree.parents.push_back(i);
  const auto path = tree.path_to(150);
  ASSERT_EQ(path.size(), 150U);
  const Tokens after = random_tokens(*model, 151, 2);
  Session session(*model, {.rows = 151, .leaves = 2});
  session.look(tree.tokens, tree.parents);
  session.accept(path);
  const auto logits = session.append(after);
  EXPECT_EQ(session.length(), 301U);
  EXPECT_EQ(session.runtime().counters().replayed_rows, 150U);
  Session plain(*model);
  plain.append(tree.tokens_on(path));
  const auto expected = plain.append(after);
  EXPECT_TRUE(same_bits(logits.front(), expected.front()));
  EXPECT_TRUE(same_bits(logits.back(), expected.back()));
}

TEST(LlamaRuntime, SeveralSequencesOfTreesKeepTheirOwnTokens) {
  const auto model = tiny();
  const auto runtime =
      value_of(model->create_runtime({.sequences = 3, .context = 128, .leaves = 3, .threads = 1}));
  std::vector<Session> sessions;
  std::vector<Tokens> committed(3);
  for (std::size_t s = 0; s < 3; ++s) {
    sessions.emplace_back(*runtime, value_of(runtime->create_sequence()));
    committed[s] = random_tokens(*model, 4 + s, s);
    sessions[s].append(committed[s]);
  }
  for (std::uint64_t round = 0; round < 6; ++round) {
    std::vector<Row> rows;
    std::vector<Tree> trees;
    std::vector<std::int32_t> first;
    for (std::size_t s = 0; s < 3; ++s) {
      trees.push_back(random_tree(*model, 5, 3, round * 10 + s));
      first.push_back(static_cast<std::int32_t>(rows.size()));
      for (std::size_t i = 0; i < 5; ++i) {
        const std::int32_t parent = trees[s].parents[i];
        rows.push_back({sessions[s].sequence(), trees[s].tokens[i],
                        parent == k_committed_end ? parent : parent + first[s], Wants::argmax});
      }
    }
    value_of(runtime->forward(rows, {}));
    for (std::size_t s = 0; s < 3; ++s) {
      auto path = trees[s].path_to(static_cast<std::int32_t>((round + 2 * s) % 5));
      for (const Token token : trees[s].tokens_on(path)) committed[s].push_back(token);
      for (std::int32_t& row : path) row += first[s];
      sessions[s].accept(path);
      EXPECT_EQ(sessions[s].length(), committed[s].size());
    }
  }
  // Beside each other their cells lie in another order than alone: equal up to rounding only.
  const Tokens after = random_tokens(*model, 1, 99);
  for (std::size_t s = 0; s < 3; ++s) {
    const Logits logits = sessions[s].append(after).front();
    Tokens all = committed[s];
    all.push_back(after.front());
    const Logits expected = plain_logits(*model, 1, all);
    for (std::size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(logits[i], expected[i], 0.5F);
  }
}

TEST(LlamaRuntime, ForkSharesWhatIsToBePutThroughAgain) {
  const auto model = tiny();
  const Tree tree = branching_tree(*model, 3);
  const auto path = tree.path_to(6);
  Session original(*model, {.sequences = 2, .leaves = 3});
  original.append(random_tokens(*model, 4, 1));
  original.look(tree.tokens, tree.parents);
  original.accept(path);
  Session copied(original.runtime(), value_of(original.runtime().fork(original.sequence())));
  EXPECT_EQ(copied.length(), original.length());
  const Tokens after = random_tokens(*model, 1, 2);
  const auto a = original.append(after).front();
  const auto b = copied.append(after).front();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 0.5F);
}

TEST(LlamaRuntime, SequencesComeAndGo) {
  const auto model = tiny();
  const auto runtime =
      value_of(model->create_runtime({.sequences = 2, .context = 64, .threads = 1}));
  const auto first = value_of(runtime->create_sequence());
  const auto second = value_of(runtime->create_sequence());
  EXPECT_THAT(runtime->create_sequence(), FailsWith(ErrorCode::busy, HasSubstr("2")));
  const Tokens tokens = random_tokens(*model, 8, 1);
  Session(*runtime, first).append(tokens);
  Session(*runtime, second).append(tokens);
  runtime->release(first);
  const auto third = value_of(runtime->create_sequence());
  EXPECT_EQ(runtime->length(third), 0U);
  EXPECT_TRUE(
      same_bits(Session(*runtime, third).append(tokens).back(), plain_logits(*model, 8, tokens)));
  EXPECT_EQ(runtime->length(second), 8U);
}

TEST(LlamaRuntime, ReportsLimitsInEffect) {
  const auto model = tiny();
  const auto runtime = value_of(model->create_runtime({}));
  EXPECT_EQ(runtime->limits().context, 512U);
  EXPECT_GE(runtime->limits().threads, 1U);
  const auto info = runtime->info();
  EXPECT_EQ(info.name, "llama");
  EXPECT_EQ(info.kv_type_k, "f16");
  if (info.backend.starts_with("CPU") && info.backend.find('+') == std::string::npos) {
    EXPECT_EQ(info.kv_type_v, "bf16");
    EXPECT_EQ(info.flash_attention, "enabled");
  }
  EXPECT_EQ(info.context, 512U);
  EXPECT_FALSE(runtime->capabilities().trees);
  EXPECT_TRUE(runtime->capabilities().rollback);
  EXPECT_TRUE(value_of(model->create_runtime({.leaves = 2}))->capabilities().trees);
}

TEST(LlamaRuntime, RefusesLimitsThatCannotBe) {
  const auto model = tiny();
  EXPECT_THAT(model->create_runtime({.sequences = 0}), FailsWith(ErrorCode::invalid_argument));
  EXPECT_THAT(model->create_runtime({.rows = 0}), FailsWith(ErrorCode::invalid_argument));
  EXPECT_THAT(model->create_runtime({.sequences = 1000, .leaves = 1000}),
              FailsWith(ErrorCode::invalid_argument, HasSubstr("1000 leaves")));
  EXPECT_THAT(model->create_runtime({.context = std::size_t{1} << 40U}),
              FailsWith(ErrorCode::invalid_argument, HasSubstr("m.gguf")));
}

TEST(LlamaRuntime, RefusesWhatDoesNotFit) {
  const auto model = tiny();
  Session session(*model, {.context = 16, .rows = 12, .leaves = 2});
  auto& runtime = session.runtime();
  session.append(random_tokens(*model, 12, 1));
  const auto rows_of = [&](std::size_t count) {
    std::vector<Row> rows;
    for (std::size_t i = 0; i < count; ++i) {
      rows.push_back(
          {session.sequence(), Token{5}, static_cast<std::int32_t>(i) - 1, Wants::argmax});
    }
    return rows;
  };
  EXPECT_THAT(runtime.forward(rows_of(13), {}), FailsWith(ErrorCode::invalid_argument));
  EXPECT_THAT(runtime.forward(rows_of(5), {}), FailsWith(ErrorCode::invalid_argument));
  std::vector<Row> wide = rows_of(1);
  wide.push_back(wide.front());
  wide.push_back(wide.front());
  EXPECT_THAT(runtime.forward(wide, {}), FailsWith(ErrorCode::invalid_argument));
  wide.pop_back();
  EXPECT_THAT(runtime.forward(wide, {}), IsOk());
  std::vector<Row> unknown = rows_of(1);
  unknown.front().token = to_token(model->vocabulary().size());
  EXPECT_THAT(runtime.forward(unknown, {}), FailsWith(ErrorCode::invalid_argument));
  std::vector<Row> feature = rows_of(1);
  feature.front().wants = Wants::feature;
  EXPECT_THAT(runtime.forward(feature, {}), FailsWith(ErrorCode::invalid_argument));
  EXPECT_EQ(session.length(), 12U);
  EXPECT_THAT(runtime.forward(rows_of(4), {}), IsOk());  // up to the last position
  session.accept(std::vector<std::int32_t>{0, 1, 2, 3});
  EXPECT_THAT(runtime.forward(rows_of(1), {}), FailsWith(ErrorCode::invalid_argument));
}

TEST(LlamaRuntime, AcceptsOnlyOpenRowsThatAreAPath) {
  const auto model = tiny();
  Session session(*model, {.leaves = 2});
  const Tree tree = branching_tree(*model, 1);
  session.append(random_tokens(*model, 3, 1));
  auto& runtime = session.runtime();
  const auto accept = [&](std::vector<std::int32_t> path) {
    return runtime.accept(session.sequence(), path);
  };
  EXPECT_THAT(accept({}), IsOk());
  EXPECT_THAT(accept({0}), FailsWith(ErrorCode::invalid_argument));
  session.look(std::span(tree.tokens).first(4), std::span(tree.parents).first(4));
  EXPECT_THAT(accept({1}), FailsWith(ErrorCode::invalid_argument));
  EXPECT_THAT(accept({0, 2}), FailsWith(ErrorCode::invalid_argument));
  EXPECT_THAT(accept({0, 9}), FailsWith(ErrorCode::invalid_argument));
  EXPECT_THAT(accept({0, 1, 3}), IsOk());
  EXPECT_THAT(accept({0}), FailsWith(ErrorCode::invalid_argument));
  EXPECT_EQ(session.length(), 6U);
}

TEST(LlamaRuntime, ArgmaxIsTheLowestIdOfTheLargestLogit) {
  const TemporaryFolder folder;
  PermModel perm;
  perm.next.resize(perm.vocabulary.size());
  for (std::size_t i = 0; i < perm.next.size(); ++i) {  // ties, the first not always in front
    perm.next[i] = {{to_token(300)}, {to_token(3 + i % 250)}, {to_token(299)}};
  }
  write_perm(folder.path() / "p.gguf", perm);
  const auto model = value_of(load_llama_model(folder.path() / "p.gguf"));
  const auto runtime = value_of(model->create_runtime({.threads = 1}));
  const auto sequence = value_of(runtime->create_sequence());
  std::vector<Row> rows;
  for (std::size_t i = 0; i < 300; ++i) {
    rows.push_back({sequence, to_token(i), static_cast<std::int32_t>(i) - 1, Wants::argmax});
  }
  value_of(runtime->forward(rows, {}));
  for (std::size_t i = 0; i < 300; ++i) EXPECT_EQ(runtime->argmax(i), to_token(3 + i % 250));
}

TEST(LlamaRuntime, APermModelFollowsItsTable) {
  const TemporaryFolder folder;
  PermModel perm;
  perm.next.resize(perm.vocabulary.size());
  Tokens script;
  for (const char letter : std::string("measure twice, cut once")) {
    script.push_back(byte_token(static_cast<unsigned char>(letter)));
  }
  for (std::size_t i = 0; i < perm.next.size(); ++i) {
    perm.next[i] = {{to_token((i * 7 + 11) % perm.next.size())}};
  }
  write_perm(folder.path() / "p.gguf", perm);
  const auto model = value_of(load_llama_model(folder.path() / "p.gguf"));
  const auto runtime = value_of(model->create_runtime({.threads = 1}));
  const auto sequence = value_of(runtime->create_sequence());
  Token token = script.front();
  for (std::size_t i = 0; i < 100; ++i) {
    const Row row{sequence, token, k_committed_end, Wants::argmax};
    value_of(runtime->forward({&row, 1}, {}));
    ASSERT_EQ(runtime->argmax(0), perm.next[to_index(token)].front().token);
    token = runtime->argmax(0);
    value_of(runtime->accept(sequence, std::vector<std::int32_t>{0}));
  }
}

TEST(LlamaRuntime, APermModelHasTheDistributionOfItsWeights) {
  const TemporaryFolder folder;
  PermModel perm;
  perm.next = {{}, {{Token{5}, 6.0}, {Token{9}, 3.0}, {Token{7}, 1.0}}};
  write_perm(folder.path() / "p.gguf", perm);
  const auto model = value_of(load_llama_model(folder.path() / "p.gguf"));
  Session session(*model);
  const Logits logits = session.append(Tokens{Token{1}}).front();
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  const auto probability = [&](std::size_t id) {
    return std::exp(static_cast<double>(logits[id])) / sum;
  };
  EXPECT_NEAR(probability(5), 0.6, 1e-3);
  EXPECT_NEAR(probability(9), 0.3, 1e-3);
  EXPECT_NEAR(probability(7), 0.1, 1e-3);
  const Logits ended = session.append(Tokens{Token{5}}).front();  // nothing listed: the end
  EXPECT_EQ(std::ranges::max_element(ended) - ended.begin(), to_int(k_end));
}

TEST(LlamaRuntime, ARecurrentModelWritesButDoesNotGoBack) {
  const auto model = tiny(Kind::recurrent);
  EXPECT_THAT(model->create_runtime({.leaves = 2}),
              FailsWith(ErrorCode::unsupported, HasSubstr("mamba")));
  Session session(*model);
  auto& runtime = session.runtime();
  EXPECT_FALSE(runtime.capabilities().rollback);
  EXPECT_THAT(runtime.capabilities().rollback_reason, HasSubstr("mamba"));
  session.append(random_tokens(*model, 7, 1));
  session.append_singly(random_tokens(*model, 5, 2));
  EXPECT_EQ(session.length(), 12U);
  EXPECT_THAT(runtime.truncate(session.sequence(), 11),
              FailsWith(ErrorCode::unsupported, HasSubstr("recurrent")));
  EXPECT_THAT(runtime.truncate(session.sequence(), 12), IsOk());
  std::stop_source stopped;
  stopped.request_stop();
  const Row row{session.sequence(), Token{9}, k_committed_end, Wants::logits};
  EXPECT_THAT(runtime.forward({&row, 1}, stopped.get_token()), FailsWith(ErrorCode::cancelled));
  EXPECT_EQ(session.length(), 12U);
  session.look(random_tokens(*model, 2, 3), std::vector<std::int32_t>{k_committed_end, 0});
  EXPECT_THAT(runtime.accept(session.sequence(), std::vector<std::int32_t>{0}),
              FailsWith(ErrorCode::unsupported, AllOf(HasSubstr("1 of 2"), HasSubstr("mamba"))));
  session.accept(std::vector<std::int32_t>{0, 1});
  EXPECT_EQ(session.length(), 14U);
}

TEST(LlamaRuntime, ARecurrentSequenceWithOpenRowsIsLostAtTheNextPass) {
  const auto model = tiny(Kind::recurrent);
  Session session(*model);
  auto& runtime = session.runtime();
  session.look(random_tokens(*model, 2, 3), std::vector<std::int32_t>{k_committed_end, 0});
  const Row row{session.sequence(), Token{9}, k_committed_end, Wants::logits};
  EXPECT_THAT(runtime.forward({&row, 1}, {}), FailsWith(ErrorCode::unsupported));
  EXPECT_THAT(runtime.forward({&row, 1}, {}),
              FailsWith(ErrorCode::runtime_failed, HasSubstr("released")));
  runtime.release(session.sequence());
  const auto again = value_of(runtime.create_sequence());
  const Tokens tokens = random_tokens(*model, 3, 4);
  EXPECT_TRUE(
      same_bits(Session(runtime, again).append(tokens).back(), plain_logits(*model, 3, tokens)));
}

TEST(LlamaRuntime, ARecurrentModelForksAndStartsAnew) {
  const auto model = tiny(Kind::recurrent);
  const Tokens start = random_tokens(*model, 6, 1);
  const Tokens after = random_tokens(*model, 1, 2);
  Session session(*model, {.sequences = 2});
  session.append(start);
  Session copied(session.runtime(), value_of(session.runtime().fork(session.sequence())));
  const auto original_logits = session.append(after).front();
  EXPECT_TRUE(same_bits(copied.append(after).front(), original_logits));
  value_of(session.runtime().truncate(session.sequence(), 0));
  session.append(start);
  EXPECT_TRUE(same_bits(session.append(after).front(), original_logits));
}

}  // namespace
}  // namespace paceline::test
