// The native runtime on small generated models: what holds for every runtime, and what libllama
// computes from the same files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <format>
#include <limits>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "runtime/llama/llama_model.hpp"
#include "runtime/llama_checks.hpp"
#include "runtime/native/native_model.hpp"
#include "support/gguf_builder.hpp"
#include "support/matchers.hpp"
#include "support/temporary_folder.hpp"

namespace paceline::test {
namespace {

using runtime::k_committed_end;
using runtime::load_llama_model;
using runtime::load_native_model;
using runtime::Model;
using runtime::Row;
using runtime::Wants;
using runtime::native::Isa;
using testing::AllOf;
using testing::HasSubstr;
using Kind = TinyModel::Kind;
using Weights = TinyModel::Weights;

struct Pair {
  std::shared_ptr<const Model> native;
  std::shared_ptr<const Model> llama;
};

std::shared_ptr<const Model> native_of(const TinyModel& tiny, std::optional<Isa> isa = {}) {
  const TemporaryFolder folder;
  write_tiny(folder.path() / "m.gguf", tiny);
  return value_of(load_native_model(folder.path() / "m.gguf", {.isa = isa}));
}
Pair both_of(const TinyModel& tiny) {
  const TemporaryFolder folder;
  write_tiny(folder.path() / "m.gguf", tiny);
  return {value_of(load_native_model(folder.path() / "m.gguf")),
          value_of(load_llama_model(folder.path() / "m.gguf"))};
}

TinyModel wide_tiny(Weights weights) {
  return {.weights = weights, .width = 256, .feed_forward = 512, .heads = 4, .key_value_heads = 2};
}

// --- what every runtime must hold
// -------------------------------------------------------------------

struct Case {
  const char* name;
  TinyModel tiny;
  std::optional<Isa> isa = {};
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

class NativeRuntimes : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto isa = GetParam().isa;
    if (isa && runtime::native::find_kernels(*isa) == nullptr) {
      GTEST_SKIP() << "this processor has no " << runtime::native::to_string(*isa);
    }
    model_ = native_of(GetParam().tiny, isa);
  }
  std::shared_ptr<const Model> model_;
};

INSTANTIATE_TEST_SUITE_P(
    Tiny, NativeRuntimes,
    testing::Values(Case{"F32", {}}, Case{"Q4_1", {.weights = Weights::q4_1}},
                    Case{"Q4_1Avx2", {.weights = Weights::q4_1}, Isa::avx2},
                    Case{"Q4_1Scalar", {.weights = Weights::q4_1}, Isa::scalar},
                    Case{"Q8_0", {.weights = Weights::q8_0, .tied = true}},
                    Case{"Q6_K", wide_tiny(Weights::q6_k)}, Case{"Q4_K", wide_tiny(Weights::q4_k)},
                    Case{"Biased", {.kind = Kind::biased, .weights = Weights::q4_0}},
                    Case{"Normed", {.kind = Kind::normed, .weights = Weights::f16}}),
    [](const auto& one) { return one.param.name; });

TEST_P(NativeRuntimes, RowsDoNotDependOnTheWidth) {
  check_widths(*model_, 5, 48);
  check_widths(*model_, 250, 24, 2);
}

TEST_P(NativeRuntimes, RowsDoNotDependOnTheThreads) { check_threads(*model_, 300); }

TEST_P(NativeRuntimes, TreeRowsEqualTheChainOfTheirPath) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) check_tree_rows(*model_, 1 + seed * 2, seed);
  check_tree_rows(*model_, 252, 100);
  check_tree_rows(*model_, 254, 101);
}

TEST_P(NativeRuntimes, EveryAcceptedPathContinuesAsPlainDecoding) {
  check_every_path(*model_, 6, branching_tree(*model_, 5));
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    check_every_path(*model_, 3 + seed, random_tree(*model_, 8, 3, seed));
  }
}

TEST_P(NativeRuntimes, RoundsOfTreesEqualPlainDecoding) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) check_random_rounds(*model_, 40, 9, 4, seed);
}

TEST_P(NativeRuntimes, RoundsOfChainsEqualPlainDecoding) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) check_random_rounds(*model_, 40, 6, 1, seed);
}

TEST_P(NativeRuntimes, SequencesInOneBatchEqualSingleRuns) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) check_sequences(*model_, 3, 12, seed);
}

TEST_P(NativeRuntimes, TruncatedSequencesContinueAsPlainDecoding) {
  check_truncate(*model_, 30, 1);
  check_truncate(*model_, 30, 3);
}

TEST_P(NativeRuntimes, ForksContinueAsPlainDecoding) { check_fork(*model_, 20); }

TEST_P(NativeRuntimes, FeaturesLeaveLogitsAsTheyAre) { check_features(*model_, 12); }

TEST_P(NativeRuntimes, ACancelledPassLeavesEverythingAsItWas) {
  const Tokens start = random_tokens(*model_, 9, 1);
  const Tokens after = random_tokens(*model_, 3, 2);
  std::stop_source stopped;
  stopped.request_stop();
  Session session(*model_, {.leaves = 3});
  session.append(start);
  std::vector<Row> rows;
  for (std::size_t i = 0; i < 40; ++i) {
    rows.push_back({session.sequence(), start[i % 9], static_cast<std::int32_t>(i) - 1});
  }
  EXPECT_THAT(session.runtime().forward(rows, stopped.get_token()),
              FailsWith(ErrorCode::cancelled));
  EXPECT_THAT(session.runtime().accept(session.sequence(), std::vector<std::int32_t>{0}),
              FailsWith(ErrorCode::invalid_argument));
  EXPECT_EQ(session.length(), start.size());
  const auto logits = session.append_singly(after);
  Session plain(*model_);
  plain.append(start);
  const auto expected = plain.append_singly(after);
  for (std::size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(same_bits(logits[i], expected[i]));
}

TEST_P(NativeRuntimes, RowsOfTreesOfSeveralSequencesEqualSingleRuns) {
  const auto shared =
      value_of(model_->create_runtime({.sequences = 3, .context = 400, .leaves = 3, .threads = 2}));
  std::vector<Session> sessions;
  std::vector<Tokens> starts;
  std::vector<Tree> trees;
  std::vector<Row> rows;
  std::vector<std::int32_t> first;
  for (std::size_t s = 0; s < 3; ++s) {
    sessions.emplace_back(*shared, value_of(shared->create_sequence()));
    starts.push_back(random_tokens(*model_, 4 + 126 * s, s));
    sessions[s].append(starts[s]);
    trees.push_back(random_tree(*model_, 8, 3, 10 + s));
  }
  for (std::size_t s = 0; s < 3; ++s) {
    first.push_back(static_cast<std::int32_t>(rows.size()));
    for (std::size_t i = 0; i < 8; ++i) {
      const std::int32_t parent = trees[s].parents[i];
      rows.push_back({sessions[s].sequence(), trees[s].tokens[i],
                      parent == k_committed_end ? parent : parent + first[s], Wants::logits});
    }
  }
  value_of(shared->forward(rows, {}));
  for (std::size_t s = 0; s < 3; ++s) {
    for (std::int32_t i = 0; i < 8; ++i) {
      Tokens all = starts[s];
      const auto path = trees[s].path_to(i);
      for (const Token token : trees[s].tokens_on(path)) all.push_back(token);
      const auto logits = shared->logits(static_cast<std::size_t>(first[s] + i));
      EXPECT_TRUE(
          same_bits({logits.begin(), logits.end()}, plain_logits(*model_, starts[s].size(), all)))
          << "sequence " << s << ", row " << i;
    }
  }
}

TEST(NativeRuntime, EveryInstructionSetGivesTheSameBits) {
  for (const Weights weights : {Weights::q4_0, Weights::q5_1, Weights::q4_k, Weights::q6_k}) {
    const TinyModel tiny = wide_tiny(weights);
    const auto model = native_of(tiny, Isa::scalar);
    const Tokens tokens = random_tokens(*model, 12, 1);
    const Logits expected = plain_logits(*model, 6, tokens);
    for (const Isa isa : runtime::native_isas()) {
      const auto other = native_of(tiny, isa);
      EXPECT_TRUE(same_bits(plain_logits(*other, 6, tokens), expected))
          << runtime::native::to_string(isa);
    }
  }
}

// --- against libllama
// -----------------------------------------------------------------------------

// Mean over positions of the divergence of the next token's distribution.
double divergence(const std::vector<Logits>& from, const std::vector<Logits>& to) {
  double sum = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto log_sum = [](const Logits& logits) {
      const double top = static_cast<double>(*std::ranges::max_element(logits));
      double total = 0;
      for (const float x : logits) total += std::exp(static_cast<double>(x) - top);
      return top + std::log(total);
    };
    const double a = log_sum(from[i]);
    const double b = log_sum(to[i]);
    for (std::size_t t = 0; t < from[i].size(); ++t) {
      const double p = static_cast<double>(from[i][t]) - a;
      sum += std::exp(p) * (p - (static_cast<double>(to[i][t]) - b));
    }
  }
  return sum / static_cast<double>(from.size());
}

void expect_like_llama(const TinyModel& tiny, double limit) {
  const Pair pair = both_of(tiny);
  EXPECT_EQ(pair.native->info().parameters, pair.llama->info().parameters);
  const Tokens tokens = random_tokens(*pair.native, 200, 4);
  Session native(*pair.native);
  Session llama(*pair.llama);
  EXPECT_LT(divergence(llama.append(tokens), native.append(tokens)), limit);
}

TEST(NativeRuntime, ComputesEveryWeightTypeAsLibllamaDoes) {
  struct Limit {
    const char* name;
    Weights weights;
    double divergence;
  };
  // Activations are rounded to 8 bits on the way, by both, but not in the same places.
  for (const Limit& one : {Limit{"F32", Weights::f32, 1e-4}, Limit{"F16", Weights::f16, 1e-4},
                           Limit{"BF16", Weights::bf16, 1e-3}, Limit{"Q8_0", Weights::q8_0, 0.01},
                           Limit{"Q4_0", Weights::q4_0, 0.01}, Limit{"Q4_1", Weights::q4_1, 0.01},
                           Limit{"Q5_0", Weights::q5_0, 0.01}, Limit{"Q5_1", Weights::q5_1, 0.01},
                           Limit{"Q4_K", Weights::q4_k, 0.01}, Limit{"Q5_K", Weights::q5_k, 0.01},
                           Limit{"Q6_K", Weights::q6_k, 0.01}}) {
    SCOPED_TRACE(one.name);
    expect_like_llama(wide_tiny(one.weights), one.divergence);
  }
}

TEST(NativeRuntime, ComputesEveryArchitectureAsLibllamaDoes) {
  // Weights in full precision: what remains is the rounding of the caches.
  expect_like_llama({.tied = true}, 1e-4);
  expect_like_llama({.kind = Kind::biased}, 1e-4);
  expect_like_llama({.kind = Kind::normed, .heads = 4, .key_value_heads = 2}, 1e-4);
  expect_like_llama({.rope_scale = 4.0F}, 1e-4);
  expect_like_llama({.rope_divisors = true}, 1e-4);
}

// --- what it says and refuses
// -----------------------------------------------------------------------

TEST(NativeRuntime, ReportsWhatItIs) {
  const auto model = native_of({.weights = Weights::q4_0}, Isa::scalar);
  const auto runtime = value_of(model->create_runtime({.leaves = 2, .threads = 3}));
  EXPECT_EQ(runtime->info().name, "native");
  EXPECT_EQ(runtime->info().backend, "CPU (scalar)");
  EXPECT_EQ(runtime->info().threads, 3U);
  EXPECT_EQ(runtime->info().context, 512U);
  EXPECT_TRUE(runtime->capabilities().trees);
  EXPECT_TRUE(runtime->capabilities().exact_widths);
  EXPECT_FALSE(value_of(model->create_runtime({}))->capabilities().trees);
}

TEST(NativeRuntime, RefusesLimitsThatCannotBe) {
  const auto model = native_of({});
  EXPECT_THAT(model->create_runtime({.sequences = 0}), FailsWith(ErrorCode::invalid_argument));
  EXPECT_THAT(model->create_runtime({.rows = 0}), FailsWith(ErrorCode::invalid_argument));
  EXPECT_THAT(model->create_runtime({.context = std::size_t{1} << 40U}),
              FailsWith(ErrorCode::invalid_argument, HasSubstr("m.gguf")));
}

TEST(NativeRuntime, RefusesWhatItDoesNotCompute) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "m.gguf";
  write_tiny(path, {.kind = Kind::sliding_window});
  EXPECT_THAT(load_native_model(path),
              FailsWith(ErrorCode::unsupported, AllOf(HasSubstr("m.gguf"), HasSubstr("\"gemma2\""),
                                                      HasSubstr("use --runtime llama"))));
  write_tiny(path, {.kind = Kind::recurrent});
  EXPECT_THAT(load_native_model(path), FailsWith(ErrorCode::unsupported, HasSubstr("\"mamba\"")));
  write_tiny(path, {.kind = Kind::encoder});
  EXPECT_THAT(load_native_model(path), FailsWith(ErrorCode::unsupported, HasSubstr("encoder")));
  write_tiny(path, {.width = 48, .heads = 3});
  EXPECT_THAT(load_native_model(path), FailsWith(ErrorCode::unsupported, HasSubstr("48")));
}

TEST(NativeRuntime, RefusesAMissingOrDamagedFile) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "m.gguf";
  EXPECT_THAT(load_native_model(path), FailsWith(ErrorCode::not_found));
  write_tiny(path);
  cut_file(path, 0.7);
  EXPECT_THAT(load_native_model(path), FailsWith(ErrorCode::bad_format, HasSubstr("cut")));
}

TEST(NativeRuntime, NamesTheTensorWhoseWeightsAreNoNumbers) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "m.gguf";
  for (const Weights weights : {Weights::f32, Weights::f16, Weights::bf16}) {
    for (const char* tensor : {"blk.1.attn_k.weight", "token_embd.weight", "output_norm.weight"}) {
      TinyModel tiny{.weights = weights};
      tiny.tensors_of[tensor] = std::numeric_limits<float>::quiet_NaN();
      write_tiny(path, tiny);
      EXPECT_THAT(load_native_model(path),
                  FailsWith(ErrorCode::bad_format, AllOf(HasSubstr("m.gguf"), HasSubstr(tensor))));
    }
  }
}

// Finite weights, products that are not; at every width and on every instruction set.
TEST(NativeRuntime, SaysWhereLogitsAreNoNumbers) {
  for (const Isa isa : runtime::native_isas()) {
    for (const char* tensor : {"output.weight", "blk.0.attn_norm.weight", "blk.1.attn_k.weight"}) {
      TinyModel wild{.weights = Weights::bf16};
      wild.tensors_of[tensor] = 3e38F;
      check_that_logits_are_no_numbers(*native_of(wild, isa));
    }
  }
}

TEST(NativeRuntime, RefusesAnInstructionSetThatIsNotHere) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "m.gguf";
  write_tiny(path);
  for (const Isa isa : {Isa::avx2, Isa::avx512_vnni, Isa::neon}) {
    if (runtime::native::find_kernels(isa) != nullptr) continue;
    EXPECT_THAT(load_native_model(path, {.isa = isa}),
                FailsWith(ErrorCode::unsupported, HasSubstr("scalar")));
  }
}

TEST(NativeRuntime, ReportsProgressAndCanBeCancelled) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "m.gguf";
  write_tiny(path);
  float last = -1.0F;
  EXPECT_THAT(load_native_model(path, {.progress =
                                           [&](float part) {
                                             EXPECT_GE(part, last);
                                             last = part;
                                             return true;
                                           }}),
              IsOk());
  EXPECT_EQ(last, 1.0F);
  EXPECT_THAT(load_native_model(path, {.progress = [](float) { return false; }}),
              FailsWith(ErrorCode::cancelled));
}

TEST(NativeRuntime, LoadsShards) {
  const TemporaryFolder folder;
  const TinyModel tiny{.weights = Weights::q5_0};
  const auto shards = write_tiny_shards(folder.path() / "s", 3, tiny);
  const auto split = value_of(load_native_model(shards[1]));
  const auto whole = native_of(tiny);
  const Tokens tokens = random_tokens(*whole, 9, 1);
  EXPECT_TRUE(same_bits(plain_logits(*split, 5, tokens), plain_logits(*whole, 5, tokens)));
}

TEST(NativeRuntime, SequencesComeAndGo) {
  const auto model = native_of({});
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

TEST(NativeRuntime, AcceptsOnlyOpenRowsThatAreAPath) {
  const auto model = native_of({});
  Session session(*model, {.leaves = 2});
  const Tree tree = branching_tree(*model, 1);
  session.append(random_tokens(*model, 3, 1));
  const auto accept = [&](std::vector<std::int32_t> path) {
    return session.runtime().accept(session.sequence(), path);
  };
  EXPECT_THAT(accept({}), IsOk());
  EXPECT_THAT(accept({0}), FailsWith(ErrorCode::invalid_argument));
  session.look(std::span(tree.tokens).first(4), std::span(tree.parents).first(4));
  EXPECT_THAT(accept({1}), FailsWith(ErrorCode::invalid_argument));
  EXPECT_THAT(accept({0, 9}), FailsWith(ErrorCode::invalid_argument));
  EXPECT_THAT(accept({0, 1, 3}), IsOk());
  EXPECT_THAT(accept({0}), FailsWith(ErrorCode::invalid_argument));
  EXPECT_EQ(session.length(), 6U);
}

TEST(NativeRuntime, ArgmaxIsTheLowestIdOfTheLargestLogit) {
  const TemporaryFolder folder;
  PermModel perm;
  perm.next.resize(perm.vocabulary.size());
  for (std::size_t i = 0; i < perm.next.size(); ++i) {  // ties, the first not always in front
    perm.next[i] = {{to_token(300)}, {to_token(3 + i % 250)}, {to_token(299)}};
  }
  write_perm(folder.path() / "p.gguf", perm);
  const auto model = value_of(load_native_model(folder.path() / "p.gguf"));
  const auto runtime = value_of(model->create_runtime({.threads = 1}));
  const auto sequence = value_of(runtime->create_sequence());
  std::vector<Row> rows;
  for (std::size_t i = 0; i < 300; ++i) {
    rows.push_back({sequence, to_token(i), static_cast<std::int32_t>(i) - 1, Wants::argmax});
  }
  value_of(runtime->forward(rows, {}));
  for (std::size_t i = 0; i < 300; ++i) EXPECT_EQ(runtime->argmax(i), to_token(3 + i % 250));
}

}  // namespace
}  // namespace paceline::test
