// Thresholds: defaults, then the policy file, then options.
#include <gtest/gtest.h>

#include <fstream>

#include "cli/bench_options.hpp"
#include "support/matchers.hpp"
#include "support/temporary_folder.hpp"

namespace paceline::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class PolicyFile : public testing::Test {
 protected:
  Result<gate::Policy> read(const std::string& text, const std::string& name = "policy.yaml") {
    const auto path = folder.path() / name;
    std::ofstream(path) << text;
    options.policy_file = path.string();
    return cli::make_policy(options);
  }

  TemporaryFolder folder;
  cli::BenchOptions options;
};

TEST_F(PolicyFile, IsNotNeeded) {
  const auto policy = value_of(cli::make_policy(options));
  EXPECT_EQ(policy.ratio_floor, 1.15);
  EXPECT_EQ(policy.spec028_latency_limit, 1.0);
  EXPECT_EQ(policy.latency_guard, 1.10);
}

TEST_F(PolicyFile, MayBeYamlOrJson) {
  auto policy = value_of(read("ratio_floor: 1.3\nconfidence: 0.9\n"));
  EXPECT_EQ(policy.ratio_floor, 1.3);
  EXPECT_EQ(policy.confidence, 0.9);
  EXPECT_EQ(policy.ttft_guard, 1.10);
  policy = value_of(read(R"({"ratio_floor": 1.4, "parity_low": 0.9})", "policy.json"));
  EXPECT_EQ(policy.ratio_floor, 1.4);
  EXPECT_EQ(policy.parity_low, 0.9);
}

TEST_F(PolicyFile, SetsEveryKeyThatItKnows) {
  const auto policy =
      value_of(read("ratio_floor: 2\nacceptance_floor: 0.1\nspec028_latency_limit: 3\n"
                    "spec028_ttft_limit: 4\nlatency_guard: 5\nttft_guard: 6\nconfidence: 0.6\n"
                    "parity_low: 0.7\nparity_high: 1.8\n"));
  EXPECT_EQ(policy.ratio_floor, 2);
  EXPECT_EQ(policy.acceptance_floor, 0.1);
  EXPECT_EQ(policy.spec028_latency_limit, 3);
  EXPECT_EQ(policy.spec028_ttft_limit, 4);
  EXPECT_EQ(policy.latency_guard, 5);
  EXPECT_EQ(policy.ttft_guard, 6);
  EXPECT_EQ(policy.confidence, 0.6);
  EXPECT_EQ(policy.parity_low, 0.7);
  EXPECT_EQ(policy.parity_high, 1.8);
}

TEST_F(PolicyFile, GivesWayToOptions) {
  options.ratio_floor = 1.05;
  options.max_p95_latency_ratio = 1.2;
  options.max_p95_ttft_ratio = 1.3;
  options.acceptance_floor = 0.5;
  const auto policy = value_of(read("ratio_floor: 2\nlatency_guard: 9\nttft_guard: 9\n"));
  EXPECT_EQ(policy.ratio_floor, 1.05);
  EXPECT_EQ(policy.latency_guard, 1.2);
  EXPECT_EQ(policy.spec028_latency_limit, 1.2);
  EXPECT_EQ(policy.ttft_guard, 1.3);
  EXPECT_EQ(policy.spec028_ttft_limit, 1.3);
  EXPECT_EQ(policy.acceptance_floor, 0.5);
}

TEST_F(PolicyFile, WithAnUnknownKeyListsTheKnownOnes) {
  EXPECT_THAT(
      read("ratio_flor: 1\n"),
      FailsWith(ErrorCode::bad_format, AllOf(HasSubstr("policy.yaml"), HasSubstr("\"ratio_flor\""),
                                             HasSubstr("ratio_floor, acceptance_floor"))));
}

TEST_F(PolicyFile, WithAValueOutOfRangeNamesKeyValueAndRange) {
  for (const char* text : {"confidence: 0.4", "confidence: 1", "confidence: .nan",
                           "confidence: high", "confidence: [0.9]", "confidence:"}) {
    EXPECT_THAT(read(text), FailsWith(ErrorCode::bad_format,
                                      AllOf(HasSubstr("policy.yaml"), HasSubstr("confidence"),
                                            HasSubstr("from 0.5 to 0.999"))))
        << text;
  }
}

TEST_F(PolicyFile, ThatIsNoMapIsRefused) {
  for (const char* text : {"", "just words", "- 1\n- 2\n", "a: b: c", "{\"ratio_floor\": 1"}) {
    EXPECT_THAT(read(text), FailsWith(ErrorCode::bad_format, HasSubstr("policy.yaml"))) << text;
  }
}

TEST_F(PolicyFile, ThatIsMissingIsNamed) {
  options.policy_file = (folder.path() / "none.yaml").string();
  EXPECT_THAT(cli::make_policy(options), FailsWith(ErrorCode::not_found, HasSubstr("none.yaml")));
}

}  // namespace
}  // namespace paceline::test
