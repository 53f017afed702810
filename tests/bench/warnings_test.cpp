// From invented records to named warnings.
#include "bench/warnings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

record::Arm arm(std::string id, record::ArmKind kind, std::size_t depth) {
  record::Arm made;
  made.id = std::move(id);
  made.kind = kind;
  made.num_draft_tokens = depth;
  return made;
}

record::Sample sample(std::string id, std::size_t drafted) {
  record::Sample made;
  made.arm = std::move(id);
  made.prompt_tokens = 40;
  made.rounds = {{.rows = 1, .drafted = static_cast<std::uint32_t>(drafted), .emitted = 1}};
  return made;
}

host::HostState reading(double at, double busy_seconds, double own_seconds) {
  host::HostState state;
  state.at_unix_seconds = at;
  state.steal_seconds = 5;
  state.busy_seconds = busy_seconds;
  state.own_cpu_seconds = own_seconds;
  return state;
}

/// Nothing to complain about: a release build with all cores on a quiet host.
record::Record quiet_record() {
  record::Record record;
  record.environment.build_type = "Release";
  record.environment.host.cores = 4;
  record.environment.host.cores_allowed = 4;
  record.environment.host.governor = "performance";
  record.environment.target_runtime.name = "llama";
  record.environment.target_runtime.threads = 4;
  record.plan.arms = {arm("plain", record::ArmKind::plain, 0),
                      arm("lookup-3", record::ArmKind::lookup, 3)};
  for (int i = 0; i < 3; ++i) {
    record::Block block;
    block.fixture = "code";
    block.prompt = "p" + std::to_string(i);
    block.samples = {sample("plain", 0), sample("lookup-3", 2)};
    record.blocks.push_back(block);
  }
  record.warmup = record::Warmup{.first_arm_ms = {1, 1, 1}, .stable = true};
  record.host_at_start = reading(100, 50, 1);
  record.host_at_end = reading(200, 450, 401);
  return record;
}

std::vector<std::string> ids(const record::Record& record) {
  std::vector<std::string> list;
  for (const record::Warning& warning : bench::find_warnings(record)) {
    EXPECT_FALSE(warning.cause.empty()) << warning.id;
    EXPECT_FALSE(warning.hint.empty()) << warning.id;
    list.push_back(warning.id);
  }
  return list;
}

std::string cause(const record::Record& record) {
  const auto warnings = bench::find_warnings(record);
  return warnings.empty() ? std::string{} : warnings.front().cause;
}

TEST(Warnings, RandomWeightsSayNothingAboutTexts) {
  record::Record record = quiet_record();
  record.environment.target.inflation = record::Inflation{.source = "small", .shape = "7b"};
  EXPECT_THAT(ids(record), IsEmpty());
  record.environment.target.inflation->random = true;
  EXPECT_THAT(ids(record), ElementsAre("random_weights"));
  EXPECT_THAT(cause(record), HasSubstr("target"));
  record.environment.target.inflation.reset();
  record.environment.drafts.emplace_back().inflation =
      record::Inflation{.source = "small", .shape = "source", .random = true};
  EXPECT_THAT(cause(record), HasSubstr("draft"));
}

TEST(Warnings, AreNoneForAQuietReleaseRun) {
  EXPECT_THAT(ids(quiet_record()), IsEmpty());
  record::Record nothing_measured;
  nothing_measured.environment = quiet_record().environment;
  EXPECT_THAT(ids(nothing_measured), IsEmpty());
}

TEST(Warnings, TellOfBuildsWhoseTimesSayNothing) {
  auto record = quiet_record();
  record.environment.build_type = "Debug";
  EXPECT_THAT(ids(record), ElementsAre("debug_build"));
  record.environment.build_type = "RelWithDebInfo";
  EXPECT_THAT(ids(record), IsEmpty());
  record.environment.sanitizers = "address,undefined";
  EXPECT_THAT(ids(record), ElementsAre("debug_build"));
  EXPECT_THAT(cause(record), HasSubstr("address,undefined"));
}

TEST(Warnings, CompareThreadsWithCores) {
  auto record = quiet_record();
  auto& threads = record.environment.target_runtime.threads;
  threads = 1;
  EXPECT_THAT(ids(record), ElementsAre("one_thread"));
  threads = 5;
  EXPECT_THAT(ids(record), ElementsAre("too_many_threads"));
  EXPECT_THAT(cause(record), HasSubstr("5 threads share 4 cores"));
  threads = 2;
  EXPECT_THAT(ids(record), IsEmpty());
  threads = 1;
  record.environment.host.cores_allowed = 1;
  EXPECT_THAT(ids(record), IsEmpty());
  record.environment.host.cores_allowed = 4;
  record.environment.target_runtime.name = "toy";
  EXPECT_THAT(ids(record), IsEmpty());
}

TEST(Warnings, TellOfStolenTimeFromTwoPercentOn) {
  auto record = quiet_record();
  record.host_at_end->steal_seconds = 5 + 7.9;  // of 400 core seconds
  EXPECT_THAT(ids(record), IsEmpty());
  record.host_at_end->steal_seconds = 5 + 8.1;
  EXPECT_THAT(ids(record), ElementsAre("noisy_host"));
  EXPECT_THAT(cause(record), HasSubstr("2.0 %"));
  record.host_at_start->steal_seconds.reset();
  EXPECT_THAT(ids(record), IsEmpty()) << "what cannot be read is not known";
}

TEST(Warnings, TellOfOtherProgramsFromATenthOn) {
  auto record = quiet_record();
  record.host_at_end->own_cpu_seconds = 401 - 39;
  EXPECT_THAT(ids(record), IsEmpty());
  record.host_at_end->own_cpu_seconds = 401 - 60;
  EXPECT_THAT(ids(record), ElementsAre("busy_host"));
  EXPECT_THAT(cause(record), HasSubstr("15 %"));
}

TEST(Warnings, StayCalmWhereNoTimePassedOrTheClockWentBack) {
  auto record = quiet_record();
  record.host_at_end->steal_seconds = 500;
  for (const double end : {100.0, 50.0}) {
    record.host_at_end->at_unix_seconds = end;
    EXPECT_THAT(ids(record), IsEmpty());
  }
}

TEST(Warnings, NameThePowersavingGovernor) {
  auto record = quiet_record();
  record.environment.host.governor = "powersave";
  EXPECT_THAT(ids(record), ElementsAre("governor"));
  record.environment.host.governor = "not readable";
  EXPECT_THAT(ids(record), IsEmpty());
}

TEST(Warnings, CountShortPromptsOnceEach) {
  auto record = quiet_record();
  for (auto& sample : record.blocks[1].samples) sample.prompt_tokens = 15;
  for (auto& sample : record.blocks[2].samples) sample.prompt_tokens = 16;
  EXPECT_THAT(ids(record), ElementsAre("short_prompt"));
  EXPECT_THAT(cause(record), HasSubstr("fewer than 16 tokens"));
  EXPECT_THAT(cause(record), HasSubstr("\"p1\""));
  EXPECT_THAT(cause(record), testing::StartsWith("1 "));
}

TEST(Warnings, TellOfAWarmUpThatDidNotSettle) {
  auto record = quiet_record();
  record.warmup->stable = false;
  EXPECT_THAT(ids(record), ElementsAre("unstable_warmup"));
  record.warmup.reset();
  EXPECT_THAT(ids(record), IsEmpty());
}

// A11, A12c: a drafter that is on and never proposes anything.
TEST(Warnings, TellOfDraftersThatNeverDraft) {
  auto record = quiet_record();
  for (auto& block : record.blocks) block.samples[1] = sample("lookup-3", 0);
  EXPECT_THAT(ids(record), ElementsAre("no_drafts"));
  EXPECT_THAT(cause(record), HasSubstr("lookup-3 has drafted nothing in 3 samples"));
  EXPECT_THAT(bench::find_warnings(record).front().hint, HasSubstr("repeats"));
  record.plan.arms[1].kind = record::ArmKind::draft_model;
  EXPECT_THAT(bench::find_warnings(record).front().hint, HasSubstr("confidence"));
  record.blocks.pop_back();
  EXPECT_THAT(ids(record), IsEmpty()) << "two samples are too few to say so";
}

TEST(Warnings, TellWhatWasLeftOutAndWhy) {
  auto record = quiet_record();
  record.blocks[2].status = record::CellStatus::failed;
  record.blocks[2].reason = "still running after 300.0 s";
  EXPECT_THAT(ids(record), ElementsAre("blocks_left_out"));
  EXPECT_THAT(cause(record), HasSubstr("1 of 3 blocks"));
  EXPECT_THAT(cause(record), HasSubstr("code p2: still running"));
}

TEST(Warnings, ComeInOneOrder) {
  auto record = quiet_record();
  record.environment.build_type = "Debug";
  record.environment.target_runtime.threads = 1;
  record.environment.host.governor = "powersave";
  record.host_at_end->steal_seconds = 100;
  record.warmup->stable = false;
  record.blocks[0].status = record::CellStatus::skipped;
  for (auto& block : record.blocks) {
    block.samples[1] = sample("lookup-3", 0);
    block.samples[0].prompt_tokens = 3;
  }
  EXPECT_THAT(ids(record),
              ElementsAre("debug_build", "one_thread", "noisy_host", "governor", "short_prompt",
                          "unstable_warmup", "no_drafts", "blocks_left_out"));
}

}  // namespace
}  // namespace paceline::test
