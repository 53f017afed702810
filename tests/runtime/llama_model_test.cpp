// The llama runtime on a real chat model, SmolLM2-135M-Instruct in Q4_1.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "runtime/llama_checks.hpp"
#include "support/matchers.hpp"
#include "support/real_model.hpp"

namespace paceline::test {
namespace {

using runtime::chat_tokens;
using runtime::Row;
using runtime::Wants;

TEST_F(SmolLm2, DescribesItself) {
  const auto& info = model().info();
  EXPECT_EQ(info.architecture, "llama");
  EXPECT_EQ(info.file_type, "Q4_1");
  EXPECT_EQ(info.layers, 30U);
  EXPECT_EQ(info.hidden, 576U);
  EXPECT_EQ(info.trained_context, 8192U);
  EXPECT_EQ(info.parameters, 134'515'008U);
  EXPECT_EQ(info.file_bytes, 98'362'432U);
  EXPECT_EQ(model().vocabulary().size(), 49'152U);
}

TEST_F(SmolLm2, TokenisesAndRendersChats) {
  const auto& vocabulary = model().vocabulary();
  for (const std::string text : {"Hello, world!", "fn main() {\n\tprintln!(\"x\");\n}", "日本語 🚴",
                                 "naïve café — “quoted”", "  "}) {
    std::string again;
    for (const Token token : value_of(vocabulary.tokenize(text, {.add_special = false}))) {
      again += vocabulary.piece(token, false);
    }
    EXPECT_EQ(again, text);
  }
  const auto chat = value_of(vocabulary.render_chat({{"user", "Hi!"}}));
  EXPECT_EQ(chat.renderer, "built-in");
  EXPECT_EQ(chat.text, "<|im_start|>user\nHi!<|im_end|>\n<|im_start|>assistant\n");
  const auto tokens = value_of(chat_tokens(vocabulary, {{"user", "Hi!"}}));
  EXPECT_EQ(vocabulary.piece(tokens.front(), true), "<|im_start|>");
  EXPECT_EQ(vocabulary.piece(tokens[1], true), "user");
  EXPECT_TRUE(vocabulary.is_end_of_text(tokens[5]))  // <|im_start|> user \n Hi ! <|im_end|>
      << vocabulary.piece(tokens[5], true);
}

TEST_F(SmolLm2, AnswersAQuestion) {
  const auto prompt =
      value_of(chat_tokens(model().vocabulary(), {{"user", "What is the capital of France?"}}));
  Session session(model());
  Logits logits = session.append(prompt).back();
  std::string answer;
  for (int i = 0; i < 24; ++i) {
    const auto id = std::ranges::max_element(logits) - logits.begin();
    const Token token = to_token(static_cast<std::size_t>(id));
    if (model().vocabulary().is_end_of_text(token)) break;
    answer += model().vocabulary().piece(token, false);
    logits = session.append({&token, 1}).front();
  }
  EXPECT_THAT(answer, testing::HasSubstr("Paris"));
}

TEST_F(SmolLm2, RowsDoNotDependOnTheWidth) {
  check_widths(model(), 17, 16);
  check_widths(model(), 300, 13, 2);  // more than 256 cells
}

TEST_F(SmolLm2, TreeRowsEqualTheChainOfTheirPath) { check_tree_rows(model(), 12, 3); }

TEST_F(SmolLm2, EveryAcceptedPathContinuesAsPlainDecoding) {
  check_every_path(model(), 10, branching_tree(model(), 5));
}

TEST_F(SmolLm2, RoundsOfTreesEqualPlainDecoding) { check_random_rounds(model(), 8, 7, 3, 1); }

TEST_F(SmolLm2, RoundsOfChainsEqualPlainDecoding) { check_random_rounds(model(), 8, 5, 1, 2); }

TEST_F(SmolLm2, SequencesInOneBatchEqualSingleRuns) { check_sequences(model(), 3, 3, 1); }

TEST_F(SmolLm2, TruncatedSequencesContinueAsPlainDecoding) { check_truncate(model(), 20, 1); }

TEST_F(SmolLm2, ForksContinueAsPlainDecoding) { check_fork(model(), 20); }

TEST_F(SmolLm2, FeaturesLeaveLogitsAsTheyAre) { check_features(model(), 8); }

TEST_F(SmolLm2, APassCancelledInTheMiddleLeavesEverythingAsItWas) {
  const Tokens start = random_tokens(model(), 9, 1);
  const Tokens long_prompt = random_tokens(model(), 400, 2);
  const Tokens after = random_tokens(model(), 2, 3);
  Session session(model());
  session.append(start);
  std::vector<Row> rows;
  for (std::size_t i = 0; i < long_prompt.size(); ++i) {
    rows.push_back({session.sequence(), long_prompt[i], static_cast<std::int32_t>(i) - 1});
  }
  // The pass takes hundreds of milliseconds; the moment of the request need not be exact.
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

}  // namespace
}  // namespace paceline::test
