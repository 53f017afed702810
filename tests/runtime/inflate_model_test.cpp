// A real chat model inflated writes what it writes itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>

#include "runtime/llama/inflate.hpp"
#include "runtime/llama/llama_model.hpp"
#include "runtime/llama_checks.hpp"
#include "support/matchers.hpp"
#include "support/real_model.hpp"
#include "support/temporary_folder.hpp"

namespace paceline::test {
namespace {

constexpr std::size_t k_tokens = 32;

class InflatedSmolLm2 : public SmolLm2 {
 protected:
  /// The share of the source's own tokens that `other` would write too, each behind the source's
  /// text so far: unlike the length of a common text it does not hang on a single close choice.
  double agreement_with(const runtime::Model& other) {
    std::size_t agreed = 0;
    std::size_t all = 0;
    for (const char* question :
         {"What is the capital of France?", "Write a short poem about the sea.",
          "List three uses of copper.", "Explain why the sky is blue in two sentences."}) {
      const auto prompt =
          value_of(runtime::chat_tokens(model().vocabulary(), {{"user", question}}));
      EXPECT_EQ(value_of(runtime::chat_tokens(other.vocabulary(), {{"user", question}})), prompt);
      const Tokens text = greedy(model(), prompt, k_tokens);
      Session session(other);
      Logits last = session.append(prompt).back();
      for (const Token token : text) {
        const auto largest = std::ranges::max_element(last) - last.begin();
        if (to_token(static_cast<std::size_t>(largest)) == token) ++agreed;
        last = session.append({&token, 1}).back();
      }
      all += text.size();
    }
    return static_cast<double>(agreed) / static_cast<double>(all);
  }
};

TEST_F(InflatedSmolLm2, WritesMostlyTheSameTextInItsOwnType) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "big.gguf";
  const auto made = value_of(
      runtime::inflate_model(model().info().path, path, {.shape = "0.5b", .type = "Q4_1"}));
  EXPECT_NEAR(static_cast<double>(made.parameters), 0.45e9, 0.05e9);
  const auto large = value_of(runtime::load_llama_model(path));
  EXPECT_EQ(large->info().hidden, 1024U);
  const double agreement = agreement_with(*large);
  std::printf("%.0f %% of the tokens are the source's\n", 100 * agreement);
  EXPECT_GE(agreement, 0.8);  // the head is requantised
}

TEST_F(InflatedSmolLm2, PartsFromItsTextWithNoise) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "noisy.gguf";
  ASSERT_THAT(runtime::inflate_model(model().info().path, path,
                                     {.shape = "source", .type = "Q4_1", .noise = 0.3}),
              IsOk());
  EXPECT_LT(agreement_with(*value_of(runtime::load_llama_model(path))), 0.8);
}

}  // namespace
}  // namespace paceline::test
