// The native runtime on a real chat model, beside libllama.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "runtime/llama_checks.hpp"
#include "runtime/native/native_model.hpp"
#include "support/matchers.hpp"
#include "support/native_model.hpp"
#include "workload/fixture.hpp"

namespace paceline::test {
namespace {

using runtime::Row;
using runtime::Wants;

TEST_F(NativeSmolLm2, NamesTheTypeOfItsWeights) { EXPECT_EQ(model().info().file_type, "Q4_1"); }

TEST_F(NativeSmolLm2, RowsDoNotDependOnTheWidth) {
  check_widths(model(), 17, 16);
  check_widths(model(), 300, 13, 2);
}
TEST_F(NativeSmolLm2, RowsDoNotDependOnTheThreads) { check_threads(model(), 80); }
TEST_F(NativeSmolLm2, TreeRowsEqualTheChainOfTheirPath) { check_tree_rows(model(), 12, 3); }
TEST_F(NativeSmolLm2, EveryAcceptedPathContinuesAsPlainDecoding) {
  check_every_path(model(), 10, branching_tree(model(), 5));
}
TEST_F(NativeSmolLm2, RoundsOfTreesEqualPlainDecoding) { check_random_rounds(model(), 8, 7, 3, 1); }
TEST_F(NativeSmolLm2, SequencesInOneBatchEqualSingleRuns) { check_sequences(model(), 3, 3, 1); }
TEST_F(NativeSmolLm2, TruncatedSequencesContinueAsPlainDecoding) { check_truncate(model(), 20, 1); }
TEST_F(NativeSmolLm2, ForksContinueAsPlainDecoding) { check_fork(model(), 20); }
TEST_F(NativeSmolLm2, FeaturesLeaveLogitsAsTheyAre) { check_features(model(), 8); }

TEST_F(NativeSmolLm2, EveryInstructionSetGivesTheSameBits) {
  const Tokens tokens = random_tokens(model(), 3, 1);
  const Logits expected = plain_logits(model(), 2, tokens);
  for (const auto isa : runtime::native_isas()) {
    const auto other = value_of(runtime::load_native_model(llama().info().path, {.isa = isa}));
    EXPECT_TRUE(same_bits(plain_logits(*other, 2, tokens), expected))
        << runtime::native::to_string(isa);
  }
}

TEST_F(NativeSmolLm2, APassCancelledInTheMiddleLeavesEverythingAsItWas) {
  const Tokens start = random_tokens(model(), 9, 1);
  const Tokens long_prompt = random_tokens(model(), 400, 2);
  const Tokens after = random_tokens(model(), 2, 3);
  Session session(model());
  session.append(start);
  std::vector<Row> rows;
  for (std::size_t i = 0; i < long_prompt.size(); ++i) {
    rows.push_back({session.sequence(), long_prompt[i], static_cast<std::int32_t>(i) - 1});
  }
  for (const int after_ms : {1, 5, 20}) {
    std::stop_source source;
    const std::jthread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));
      source.request_stop();
    });
    EXPECT_THAT(session.runtime().forward(rows, source.get_token()),
                FailsWith(ErrorCode::cancelled));
    EXPECT_EQ(session.length(), start.size());
  }
  const auto logits = session.append_singly(after);
  Session plain(model());
  plain.append(start);
  const auto expected = plain.append_singly(after);
  for (std::size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(same_bits(logits[i], expected[i]));
}

// What two distributions over the next token say about real text.
struct Agreement {
  double divergence = 0;  // mean, of the native one from libllama's
  double same_top = 0;    // part of positions
  double perplexity_ratio = 0;
};

Agreement compare(const runtime::Model& llama, const runtime::Model& native,
                  const std::vector<Tokens>& texts) {
  Agreement result;
  double log_ratio = 0;
  std::size_t positions = 0;
  for (const Tokens& text : texts) {
    Session a(llama, {.threads = 2});
    Session b(native, {.threads = 2});
    const auto expected = a.append(text);
    const auto seen = b.append(text);
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
      const auto logs = [](const Logits& logits) {
        const double top = static_cast<double>(*std::ranges::max_element(logits));
        double sum = 0;
        for (const float x : logits) sum += std::exp(static_cast<double>(x) - top);
        return top + std::log(sum);
      };
      const double p0 = logs(expected[i]);
      const double q0 = logs(seen[i]);
      for (std::size_t t = 0; t < expected[i].size(); ++t) {
        const double p = static_cast<double>(expected[i][t]) - p0;
        result.divergence += std::exp(p) * (p - static_cast<double>(seen[i][t]) + q0);
      }
      const std::size_t next = to_index(text[i + 1]);
      log_ratio +=
          static_cast<double>(expected[i][next]) - p0 - (static_cast<double>(seen[i][next]) - q0);
      const auto top = [](const Logits& logits) {
        return std::ranges::max_element(logits) - logits.begin();
      };
      result.same_top += top(expected[i]) == top(seen[i]) ? 1 : 0;
      ++positions;
    }
  }
  const auto count = static_cast<double>(positions);
  result.divergence /= count;
  result.same_top /= count;
  result.perplexity_ratio = std::exp(log_ratio / count);
  return result;
}

std::vector<Tokens> real_texts(const runtime::Model& model, std::size_t positions) {
  std::vector<Tokens> texts;
  std::string text;
  for (const auto content_class : workload::all_classes()) {
    const auto fixture =
        value_of(workload::load_fixture(std::string(workload::to_string(content_class))));
    for (const auto& prompt : fixture.prompts) {
      for (const auto& message : prompt.messages) text += message.content + "\n\n";
    }
  }
  const Tokens all = value_of(model.vocabulary().tokenize(text, {.add_special = false}));
  for (std::size_t i = 0; i + 256 <= all.size() && texts.size() * 256 < positions; i += 256) {
    texts.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(i),
                       all.begin() + static_cast<std::ptrdiff_t>(i + 256));
  }
  return texts;
}

TEST_F(NativeSmolLm2, AgreesWithLibllamaOnRealText) {
  const auto texts = real_texts(model(), 2048);
  ASSERT_GE(texts.size(), 8U);
  const Agreement seen = compare(llama(), model(), texts);
  RecordProperty("divergence", std::to_string(seen.divergence));
  RecordProperty("same_top", std::to_string(seen.same_top));
  RecordProperty("perplexity_ratio", std::to_string(seen.perplexity_ratio));
  std::printf("mean divergence %.5f, same top token %.2f %%, perplexity ratio %.5f\n",
              seen.divergence, 100 * seen.same_top, seen.perplexity_ratio);
  EXPECT_LT(seen.divergence, 0.008);
  EXPECT_GT(seen.same_top, 0.93);
  EXPECT_NEAR(seen.perplexity_ratio, 1.0, 0.004);
}

}  // namespace
}  // namespace paceline::test
