// From the command line to arms, fixtures and runs.
#include "cli/bench_options.hpp"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <format>
#include <span>

#include "support/matchers.hpp"

namespace paceline::test {
namespace {

using cli::BenchOptions;
using record::ArmKind;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// As the program parses it; a usage error fails the test.
BenchOptions parse(const std::string& line) {
  BenchOptions options;
  CLI::App app;
  cli::add_bench_options(app, options);
  try {
    app.parse(line);
  } catch (const CLI::ParseError& error) {
    ADD_FAILURE() << line << ": " << error.what();
  }
  return options;
}

bool is_refused(const std::string& line) {
  BenchOptions options;
  CLI::App app;
  cli::add_bench_options(app, options);
  try {
    app.parse(line);
    return false;
  } catch (const CLI::ParseError&) {
    return true;
  }
}

std::vector<std::string> arm_ids(const BenchOptions& options) {
  std::vector<std::string> ids;
  for (const record::Arm& arm : value_of(cli::make_arms(options))) ids.push_back(arm.id);
  return ids;
}

TEST(Arms, ArePlainAndLookupByDefault) {
  const auto arms = value_of(cli::make_arms(parse("")));
  ASSERT_THAT(arms, SizeIs(2));
  EXPECT_EQ(arms[0].id, "plain");
  EXPECT_EQ(arms[0].kind, ArmKind::plain);
  EXPECT_EQ(arms[0].num_draft_tokens, 0U);
  EXPECT_EQ(arms[0].baseline, std::nullopt);
  EXPECT_EQ(arms[1].id, "lookup-3");
  EXPECT_EQ(arms[1].kind, ArmKind::lookup);
  EXPECT_EQ(arms[1].num_draft_tokens, 3U);
  EXPECT_EQ(arms[1].baseline, "plain");
  EXPECT_EQ(arms[1].runtime, "auto");
}

TEST(Arms, ThatAreAskedForReplaceTheDefault) {
  EXPECT_THAT(arm_ids(parse("--draft models/small.gguf")), ElementsAre("plain", "draft-small-3"));
  EXPECT_THAT(arm_ids(parse("--draft small --lookup")),
              ElementsAre("plain", "lookup-3", "draft-small-3"));
  EXPECT_THAT(arm_ids(parse("--scripted 0.5")), ElementsAre("plain", "what-if-0.5-3"));
  EXPECT_THAT(arm_ids(parse("--control")), ElementsAre("plain", "control"));
}

TEST(Arms, AreMadeForEveryDepthAndEveryDraft) {
  EXPECT_THAT(arm_ids(parse("-d one -d two -n 2 -n 4")),
              ElementsAre("plain", "draft-one-2", "draft-two-2", "draft-one-4", "draft-two-4"));
}

TEST(Arms, CarryWhatTheirDraftersNeed) {
  const auto arms =
      value_of(cli::make_arms(parse("-t toy:1 -d toy:1,agree=0.5 --draft-confidence 0.4 -n 5")));
  EXPECT_EQ(arms[1].id, "draft-toy:1,agree=0.5-5");
  EXPECT_EQ(arms[1].kind, ArmKind::draft_model);
  EXPECT_EQ(arms[1].draft_model, "toy:1,agree=0.5");
  EXPECT_EQ(arms[1].draft_confidence, 0.4);
  EXPECT_EQ(arms[1].runtime, "toy");
  EXPECT_EQ(value_of(cli::make_arms(parse("--scripted 0.5")))[1].scripted_acceptance, 0.5);
}

TEST(Arms, ThatContradictEachOtherAreRefused) {
  EXPECT_THAT(cli::make_arms(parse("--control --lookup")),
              FailsWith(ErrorCode::invalid_argument, HasSubstr("--control")));
  EXPECT_THAT(cli::make_arms(parse("--control --draft x")), FailsWith(ErrorCode::invalid_argument));
  EXPECT_THAT(cli::make_arms(parse("-n 3 -n 3")),
              FailsWith(ErrorCode::invalid_argument, HasSubstr("lookup-3 was asked for twice")));
  EXPECT_THAT(cli::make_arms(parse("--draft-confidence 0.5")),
              FailsWith(ErrorCode::invalid_argument, HasSubstr("without --draft")));
}

TEST(Options, AreCheckedForTheirRange) {
  for (const char* line :
       {"-n 0", "-n 17", "-n x", "--scripted 1.1", "--draft-confidence 1", "--max-tokens 0",
        "--temperature -1", "--top-p 1.5", "--format xml", "--runtime torch", "--time-limit 0",
        "--threads 0", "--recommend-ratio-floor 0", "--max-context-tokens 1", "--no-such 1"}) {
    EXPECT_TRUE(is_refused(line)) << line;
  }
}

TEST(Repetitions, AreOneAndThreeForASinglePublishedFixture) {
  const auto repetitions = [](const std::string& line) {
    const BenchOptions options = parse(line);
    return cli::choose_repetitions(options, value_of(cli::choose_fixtures(options)));
  };
  EXPECT_EQ(value_of(repetitions("-f code")), 1U);
  EXPECT_EQ(value_of(repetitions("-f spec028-code-iso8601-v1")), 3U);
  EXPECT_EQ(value_of(repetitions("-f spec028-code-iso8601-v1 -f code")), 1U);
  EXPECT_EQ(value_of(repetitions("-f code --baseline-runs 4")), 4U);
  EXPECT_EQ(value_of(repetitions("-f code --spec-runs 5")), 5U);
  EXPECT_EQ(value_of(repetitions("-f code --baseline-runs 2 --spec-runs 2")), 2U);
}

TEST(Repetitions, MustBeEqualAndAboveZero) {
  EXPECT_THAT(cli::choose_repetitions(parse("--baseline-runs 2 --spec-runs 3"), {}),
              FailsWith(ErrorCode::invalid_argument,
                        AllOf(HasSubstr("--baseline-runs 2"), HasSubstr("--spec-runs 3"))));
  EXPECT_THAT(
      cli::choose_repetitions(parse("--baseline-runs 1001"), {}),
      FailsWith(ErrorCode::invalid_argument, "--baseline-runs is 1001, at most 1000 is wanted"));
  EXPECT_THAT(
      cli::choose_repetitions(parse("--spec-runs 18446744073709551615"), {}),
      FailsWith(ErrorCode::invalid_argument, HasSubstr("--spec-runs is 18446744073709551615")));
  EXPECT_THAT(cli::choose_repetitions(parse("--spec-runs 0"), {}),
              FailsWith(ErrorCode::invalid_argument, "--spec-runs must be > 0"));
  EXPECT_THAT(cli::choose_repetitions(parse("--baseline-runs 0"), {}),
              FailsWith(ErrorCode::invalid_argument, "--baseline-runs must be > 0"));
  EXPECT_THAT(cli::choose_repetitions(parse("--spec-runs 0 --baseline-runs 1"), {}),
              FailsWith(ErrorCode::invalid_argument, "--spec-runs must be > 0"));
}

TEST(Fixtures, AreAllClassesByDefaultAndFourWhenQuick) {
  const auto ids = [](const std::string& line) {
    std::vector<std::string> list;
    for (const auto& fixture : value_of(cli::choose_fixtures(parse(line)))) {
      list.push_back(fixture.id);
    }
    return list;
  };
  EXPECT_THAT(ids(""),
              ElementsAre("code", "edit", "chat", "reasoning", "extraction", "multilingual"));
  EXPECT_THAT(ids("--quick"), ElementsAre("code", "edit", "chat", "extraction"));
  EXPECT_THAT(ids("--quick -f reasoning"), ElementsAre("reasoning"));
  EXPECT_EQ(cli::prompts_per_fixture(parse("")), 0U);
  EXPECT_EQ(cli::prompts_per_fixture(parse("--quick")), 3U);
}

TEST(Fixtures, TakeTheOptionsOverTheirOwnSettings) {
  const auto first = [](const std::string& line) {
    return value_of(cli::choose_fixtures(parse(line))).front();
  };
  EXPECT_EQ(first("-f code").max_tokens, std::nullopt);
  EXPECT_EQ(first("-f code --quick").max_tokens, 64U);
  EXPECT_EQ(first("-f code --quick --max-tokens 200").max_tokens, 200U);
  EXPECT_EQ(first("-f code --temperature 0.7").temperature, 0.7);
  EXPECT_EQ(first("-f code --top-p 0.4").top_p, 0.4);
  EXPECT_THAT(cli::choose_fixtures(parse("-f code -f code")),
              FailsWith(ErrorCode::invalid_argument, HasSubstr("\"code\" was given twice")));
}

/// Every option that takes a number, with one value below its range and one above.
struct Numeric {
  const char* name;
  const char* below;
  const char* above;
};

TEST(NumericOptions, RefuseWhatIsOutOfTheirRange) {
  constexpr Numeric k_fractions[] = {{"--draft-confidence", "-0.1", "1"},
                                     {"--scripted", "-0.1", "1.1"},
                                     {"--sustained-seconds", "-1", "1e7"},
                                     {"--last-window-seconds", "0", "1e7"},
                                     {"--temperature", "-1", "101"},
                                     {"--top-p", "-0.1", "1.1"},
                                     {"--min-p", "-0.1", "1.1"},
                                     {"--repetition-penalty", "0", "101"},
                                     {"--time-limit", "0", "1e8"},
                                     {"--run-time-limit", "0", "1e7"},
                                     {"--recommend-ratio-floor", "0", "101"},
                                     {"--max-p95-latency-ratio", "0", "101"},
                                     {"--max-p95-ttft-ratio", "0", "101"},
                                     {"--recommend-acceptance-floor", "-0.1", "1.1"}};
  constexpr Numeric k_counts[] = {{"--num-draft-tokens", "0", "17"},
                                  {"--max-tokens", "0", "1048577"},
                                  {"--max-context-tokens", "1", "16777217"},
                                  {"--baseline-runs", "-1", "18446744073709551616"},
                                  {"--spec-runs", "-1", "18446744073709551616"},
                                  {"--top-k", "-1", "16777217"},
                                  {"--seed", "-1", "18446744073709551616"},
                                  {"--threads", "0", "1025"}};
  for (const auto& options :
       {std::span<const Numeric>(k_fractions), std::span<const Numeric>(k_counts)}) {
    for (const Numeric& option : options) {
      for (const char* value : {option.below, option.above, "nan", "-nan", "inf", "-inf", "x"}) {
        EXPECT_TRUE(is_refused(std::format("{}={}", option.name, value)))
            << option.name << " " << value;
      }
    }
  }
}

}  // namespace
}  // namespace paceline::test
