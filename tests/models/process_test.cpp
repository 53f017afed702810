// Child processes: output, status, cancellation.
#include "models/process.hpp"

#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <filesystem>

namespace paceline::models {
namespace {

using testing::HasSubstr;

TEST(RunProcess, KeepsStatusAndOutput) {
  const auto result = run_process({.command = {"sh", "-c", "echo out; echo err >&2; exit 3"}});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->exit_status, 3);
  EXPECT_EQ(result->output, "out\nerr\n");
}

TEST(RunProcess, PassesWordsWithoutAShell) {
  const auto result = run_process({.command = {"printf", "%s|", "a b", "$(id)", "'\"*", ""}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->output, "a b|$(id)|'\"*||");
}

TEST(RunProcess, KeepsTheEndOfLongOutput) {
  const auto result = run_process(
      {.command = {"sh", "-c", "i=0; while [ $i -lt 9000 ]; do echo line $i; i=$((i+1)); done"}});
  ASSERT_TRUE(result);
  EXPECT_LE(result->output.size(), 8192U);
  EXPECT_TRUE(result->output.ends_with("line 8999\n"));
}

TEST(RunProcess, ReplacesVariablesAndClosesInput) {
  const auto result = run_process({.command = {"sh", "-c", "echo $HOME $NEW; cat; echo end"},
                                   .environment = {"HOME=/else", "NEW=x y"}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->output, "/else x y\nend\n");
}

TEST(RunProcess, NamesAMissingProgram) {
  const auto result = run_process({.command = {"no-such-program-here"}});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::not_found);
  EXPECT_THAT(result.error().message, HasSubstr("no-such-program-here"));
}

TEST(RunProcess, CountsASignalAsFailure) {
  const auto result = run_process({.command = {"sh", "-c", "kill -9 $$"}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_status, 128 + SIGKILL);
}

TEST(RunProcess, StopEndsTheProgramEvenIfItDoesNotWantTo) {
  std::stop_source stop;
  const auto start = std::chrono::steady_clock::now();
  const auto result =
      run_process({.command = {"sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"},
                   .on_tick = [&] { stop.request_stop(); },
                   .stop = stop.get_token()});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::cancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(RunProcess, EndsAtItsTimeLimit) {
  const auto result = run_process(
      {.command = {"sh", "-c", "exec sleep 600"}, .time_limit = std::chrono::milliseconds(50)});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::timed_out);
  EXPECT_THAT(result.error().message, HasSubstr("0.05 s"));
}

TEST(RunProcess, KeepsErrorsApartAndTheOutputWholeWhereAsked) {
  const auto result =
      run_process({.command = {"sh", "-c",
                               "i=0; while [ $i -lt 9000 ]; do echo line $i; i=$((i+1)); done; "
                               "echo oops >&2; exit 4"},
                   .separate_errors = true});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_status, 4);
  EXPECT_EQ(result->errors, "oops\n");
  EXPECT_TRUE(result->output.starts_with("line 0\n"));
  EXPECT_TRUE(result->output.ends_with("line 8999\n"));
}

TEST(RunProcess, DoesNotWaitForGrandchildrenThatKeepTheOutputOpen) {
  const auto start = std::chrono::steady_clock::now();
  const auto result = run_process({.command = {"sh", "-c", "sleep 5 & echo done"}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->output, "done\n");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(4));
}

}  // namespace
}  // namespace paceline::models
