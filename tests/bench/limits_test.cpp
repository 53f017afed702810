// What goes wrong in a run: limits, failures, cancellation, a full disk; and going on afterwards.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "bench/scene.hpp"
#include "runtime/largest.hpp"
#include "support/matchers.hpp"

namespace paceline::test {
namespace {

using record::CellStatus;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::SizeIs;

std::vector<const record::Block*> with_status(const record::Record& record, CellStatus status) {
  std::vector<const record::Block*> found;
  for (const record::Block& block : record.blocks) {
    if (block.status == status) found.push_back(&block);
  }
  return found;
}

/// Does `what` in passes over this prompt, from its first row on.
void at_prompt(Scene& scene, std::size_t prompt,
               std::function<Result<void>(std::stop_token)> what) {
  const std::vector<Token> text = scene.setup.prompts.at(prompt).tokens;
  scene.target.before_pass = [=](std::span<const runtime::Row> rows,
                                 std::stop_token stop) -> Result<void> {
    const bool here =
        rows.size() == text.size() &&
        std::ranges::equal(rows, text, {}, [](const runtime::Row& row) { return row.token; });
    return here ? what(stop) : Result<void>{};
  };
}

TEST(RunLimit, MakesAHangingRunAFailedBlockAndTheRestGoesOn) {
  const auto scene = lookup_scene(1, 4);
  scene->record.plan.run_time_limit_seconds = 1;  // the others need well under a millisecond
  at_prompt(*scene, 2, hang);
  ASSERT_THAT(scene->run(), IsOk());
  EXPECT_THAT(scene->record.blocks, SizeIs(4));
  const auto failed = with_status(scene->record, CellStatus::failed);
  ASSERT_THAT(failed, SizeIs(1));
  EXPECT_EQ(failed.front()->prompt, "a-2");
  EXPECT_THAT(failed.front()->reason, HasSubstr("still running after 1.0 s"));
  EXPECT_TRUE(failed.front()->comparisons.empty());
  EXPECT_TRUE(scene->record.complete);
}

TEST(Failure, OfAModelThatGivesNoNumbersEndsTheRun) {
  const auto scene = lookup_scene(1, 4);
  scene->target.bend = [](std::size_t, std::vector<float>& logits) {
    std::ranges::fill(logits, std::numeric_limits<float>::quiet_NaN());
  };
  const auto ran = scene->run();
  EXPECT_THAT(ran, FailsWith(ErrorCode::bad_format));
  EXPECT_EQ(ran.error().word, "logits_not_finite");
  EXPECT_THAT(scene->record.blocks, SizeIs(0));
  EXPECT_FALSE(scene->record.complete);
}

TEST(Failure, OfNumbersInTheMiddleOfARunKeepsTheBlocksBeforeIt) {
  const auto scene = lookup_scene(1, 4);
  at_prompt(*scene, 2, [](std::stop_token) -> Result<void> {
    return runtime::logits_not_finite("x.gguf", 40, "llama");
  });
  const auto ran = scene->run();
  EXPECT_THAT(ran, FailsWith(ErrorCode::bad_format));
  EXPECT_THAT(ran.error().message, HasSubstr("a-2"));
  EXPECT_THAT(with_status(scene->record, CellStatus::failed), SizeIs(0));
  EXPECT_LT(scene->record.blocks.size(), 4U);
}

// F5
TEST(RunLimit, EndsAWarmUpThatHangsAndTheBlocksSaySo) {
  const auto scene = lookup_scene(1, 2);
  scene->record.plan.run_time_limit_seconds = 0.02;
  scene->target.before_pass = [](auto, std::stop_token stop) { return hang(stop); };
  ASSERT_THAT(scene->run(), IsOk());
  EXPECT_THAT(with_status(scene->record, CellStatus::failed), SizeIs(2));
  EXPECT_EQ(scene->record.warmup, std::nullopt);
}

TEST(FailingArm, IsAFailedBlockWithItsReasonAndTheRestGoesOn) {
  const auto scene = lookup_scene(1, 4);
  at_prompt(*scene, 1, [](std::stop_token) -> Result<void> {
    return fail(ErrorCode::runtime_failed, "the back end gave up: code -3");
  });
  ASSERT_THAT(scene->run(), IsOk());
  const auto failed = with_status(scene->record, CellStatus::failed);
  ASSERT_THAT(failed, SizeIs(1));
  EXPECT_EQ(failed.front()->prompt, "a-1");
  EXPECT_EQ(failed.front()->reason, "the back end gave up: code -3");
  EXPECT_THAT(with_status(scene->record, CellStatus::ok), SizeIs(3));
}

TEST(FailingArm, InTheWarmUpLeavesTheOtherPromptsTheirChance) {
  const auto scene = lookup_scene(1, 4);
  at_prompt(*scene, 0, [](std::stop_token) -> Result<void> {
    return fail(ErrorCode::runtime_failed, "the back end gave up");
  });
  ASSERT_THAT(scene->run(), IsOk());
  EXPECT_THAT(with_status(scene->record, CellStatus::failed), SizeIs(1));
  EXPECT_THAT(with_status(scene->record, CellStatus::ok), SizeIs(3));
}

TEST(FailingArm, ThatTheTargetCannotServeEndsTheRunBeforeTheFirstBlock) {
  Scene scene;
  scene.add_plain();
  scene.add_lookup(3);
  scene.setup.contenders.back().drafter = nullptr;
  scene.add_prompts("a", 2);
  EXPECT_THAT(scene.run(), FailsWith(ErrorCode::unsupported, HasSubstr("warming up arm lookup-3")));
  EXPECT_TRUE(scene.record.blocks.empty());
  EXPECT_THAT(scene.record.incomplete_reason, HasSubstr("lookup-3"));
}

TEST(UnusablePrompt, IsSkippedWithItsReason) {
  const auto scene = lookup_scene(1, 3);
  scene->setup.prompts[0].unusable = "600 prompt tokens and 24 new ones do not fit";
  ASSERT_THAT(scene->run(), IsOk());
  const auto skipped = with_status(scene->record, CellStatus::skipped);
  ASSERT_THAT(skipped, SizeIs(1));
  EXPECT_EQ(skipped.front()->prompt, "a-0");
  EXPECT_EQ(skipped.front()->reason, "600 prompt tokens and 24 new ones do not fit");
  EXPECT_TRUE(skipped.front()->samples.empty());
  EXPECT_THAT(with_status(scene->record, CellStatus::ok), SizeIs(2));
  EXPECT_TRUE(scene->record.warmup.has_value()) << "the next prompt can warm up";
}

TEST(UnusablePrompt, LeavesNothingToWarmUpWhereAllAre) {
  const auto scene = lookup_scene(1, 2);
  for (auto& prompt : scene->setup.prompts) prompt.unusable = "too long";
  ASSERT_THAT(scene->run(), IsOk());
  EXPECT_THAT(with_status(scene->record, CellStatus::skipped), SizeIs(2));
  EXPECT_EQ(scene->target.counters().forwards, 0U);
}

TEST(TimeLimit, EndsTheRunWithTheFinishedBlocksAndAReason) {
  const auto scene = lookup_scene(2, 8);
  scene->record.plan.time_limit_seconds = 1000;
  scene->setup.progress = [&](const bench::Progress& progress) {
    if (progress.stage == "measuring" && progress.done == 5) scene->clock.advance(seconds(1000));
  };
  ASSERT_THAT(scene->run(), IsOk());
  EXPECT_THAT(scene->record.blocks, SizeIs(5));
  EXPECT_THAT(with_status(scene->record, CellStatus::ok), SizeIs(5));
  EXPECT_FALSE(scene->record.complete);
  EXPECT_EQ(scene->record.incomplete_reason, "the time limit of 1000 s was reached after 5 blocks");
}

TEST(TimeLimit, DoesNotCallTheBlockThatItBreaksOffAFailure) {
  const auto scene = lookup_scene(1, 3);
  scene->record.plan.time_limit_seconds = 1000;
  at_prompt(*scene, 2, [&](std::stop_token) -> Result<void> {
    scene->clock.advance(seconds(1000));
    return fail(ErrorCode::timed_out, "the time was up");
  });
  ASSERT_THAT(scene->run(), IsOk());
  EXPECT_TRUE(with_status(scene->record, CellStatus::failed).empty());
  EXPECT_THAT(scene->record.incomplete_reason, HasSubstr("time limit"));
}

TEST(Cancellation, KeepsTheFinishedBlocks) {
  const auto scene = lookup_scene(2, 8);
  std::stop_source stop;
  scene->target.before_pass = [&](auto, auto) -> Result<void> {
    if (scene->record.blocks.size() == 3) stop.request_stop();  // in the middle of the fourth
    return {};
  };
  EXPECT_THAT(scene->run(stop.get_token()), FailsWith(ErrorCode::cancelled));
  EXPECT_THAT(with_status(scene->record, CellStatus::ok), SizeIs(3));
  EXPECT_THAT(scene->record.blocks, SizeIs(3));
  EXPECT_FALSE(scene->record.complete);
  EXPECT_EQ(scene->record.incomplete_reason, "the run was cancelled");
}

TEST(Cancellation, EndsAPassThatHangs) {
  const auto scene = lookup_scene(1, 4);
  std::stop_source stop;
  at_prompt(*scene, 3, [&](std::stop_token pass) {
    stop.request_stop();
    return hang(pass);
  });
  EXPECT_THAT(scene->run(stop.get_token()), FailsWith(ErrorCode::cancelled));
  EXPECT_TRUE(with_status(scene->record, CellStatus::failed).empty());
}

TEST(Saving, ComesBeforeTheFirstBlockAfterEachAndAtTheEnd) {
  const auto scene = lookup_scene(1, 3);
  std::vector<std::size_t> sizes;
  std::vector<bool> complete;
  scene->setup.save = [&](const record::Record& record) -> Result<void> {
    sizes.push_back(record.blocks.size());
    complete.push_back(record.complete);
    return {};
  };
  ASSERT_THAT(scene->run(), IsOk());
  EXPECT_THAT(sizes, testing::ElementsAre(0, 1, 2, 3, 3));
  EXPECT_THAT(complete, testing::ElementsAre(false, false, false, false, true));
}

TEST(Saving, EndsTheRunWhereItFails) {
  const auto scene = lookup_scene(1, 6);
  scene->setup.save = [&](const record::Record& record) -> Result<void> {
    if (record.blocks.size() < 2) return {};
    return fail(ErrorCode::io, "No space left on device");
  };
  EXPECT_THAT(scene->run(), FailsWith(ErrorCode::io, "No space left on device"));
  EXPECT_THAT(scene->record.blocks, SizeIs(2));
  EXPECT_FALSE(scene->record.complete);
}

TEST(Saving, ThatFailsAtOnceEndsTheRunBeforeAnyPass) {
  const auto scene = lookup_scene(1, 2);
  scene->setup.save = [](const record::Record&) -> Result<void> {
    return fail(ErrorCode::io, "Read-only file system");
  };
  EXPECT_THAT(scene->run(), FailsWith(ErrorCode::io));
  EXPECT_EQ(scene->target.counters().forwards, 0U);
}

TEST(ContinuedRun, GivesWhatAnUnbrokenOneGivesAndRunsOnlyWhatIsMissing) {
  const auto unbroken = lookup_scene(2, 5, 2);
  ASSERT_THAT(unbroken->run(), IsOk());

  const auto broken = lookup_scene(2, 5, 2);
  broken->setup.save = [](const record::Record& record) -> Result<void> {
    if (record.blocks.size() < 7) return {};
    return fail(ErrorCode::io, "killed");
  };
  ASSERT_THAT(broken->run(), FailsWith(ErrorCode::io));

  const auto continued = lookup_scene(2, 5, 2);
  continued->record.blocks = broken->record.blocks;
  std::size_t samples = 0;
  continued->target.on_sequence = [&] { ++samples; };
  continued->setup.progress = [&](const bench::Progress& progress) {
    if (progress.stage == "measuring" && progress.done == 7) samples = 0;
  };
  ASSERT_THAT(continued->run(), IsOk());
  EXPECT_EQ(samples, 2U * (20 - 7));
  EXPECT_TRUE(continued->record.complete);
  EXPECT_EQ(without_times(continued->record.blocks), without_times(unbroken->record.blocks));
  EXPECT_TRUE(std::equal(broken->record.blocks.begin(), broken->record.blocks.end(),
                         continued->record.blocks.begin()));
}

TEST(Progress, CountsFinishedBlocksAndEstimatesTheRest) {
  const auto scene = lookup_scene(1, 4);
  std::vector<bench::Progress> seen;
  scene->setup.progress = [&](const bench::Progress& progress) {
    if (progress.stage == "measuring") seen.push_back(progress);
    scene->clock.advance(seconds(10));
  };
  ASSERT_THAT(scene->run(), IsOk());
  ASSERT_THAT(seen, SizeIs(5));
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].done, i);
    EXPECT_EQ(seen[i].total, 4U);
    if (i == 0) {
      EXPECT_EQ(seen[i].seconds_left, std::nullopt) << "nothing is known yet";
    }
    if (i > 0) {
      EXPECT_NEAR(seen[i].seconds_left.value_or(-1), 10.0 * static_cast<double>(4 - i), 1);
    }
  }
}

}  // namespace
}  // namespace paceline::test
