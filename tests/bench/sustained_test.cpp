// The window of continuous generation behind the blocks.
#include <gtest/gtest.h>

#include <map>

#include "bench/scene.hpp"
#include "support/matchers.hpp"

namespace paceline::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::SizeIs;

/// Every pass takes 100 ms of the scripted clock.
std::unique_ptr<Scene> slow_scene() {
  auto scene = lookup_scene(1, 3);
  scene->clock = ManualClock();
  scene->target.before_pass = [scene = scene.get()](auto, auto) -> Result<void> {
    scene->clock.advance(milliseconds(100));
    return {};
  };
  scene->setup.sustained_seconds = 20;
  scene->setup.last_window_seconds = 5;
  return scene;
}

TEST(SustainedWindow, LastsAsLongAsAskedForWithTheArmsTakingTurns) {
  const auto scene = slow_scene();
  ASSERT_THAT(scene->run(), IsOk());
  ASSERT_TRUE(scene->record.sustained.has_value());
  const record::Sustained& sustained = *scene->record.sustained;
  EXPECT_EQ(sustained.requested_seconds, 20);
  EXPECT_EQ(sustained.last_window_seconds, 5);
  const double length = sustained.ended_at_unix_seconds - sustained.started_at_unix_seconds;
  EXPECT_GE(length, 20);
  EXPECT_LT(length, 20 + 2 * 2.5);  // the last turn is finished
  std::map<std::string, std::size_t> count;
  for (std::size_t i = 0; i < sustained.samples.size(); i += 2) {
    ASSERT_LT(i + 1, sustained.samples.size());
    EXPECT_NE(sustained.samples[i].arm, sustained.samples[i + 1].arm);
    EXPECT_EQ(sustained.samples[i].order, 0U);
    ++count[sustained.samples[i].arm];
  }
  EXPECT_THAT(count, SizeIs(2)) << "the same arm was always first";
  EXPECT_TRUE(scene->record.complete);
}

TEST(SustainedWindow, IsLeftOutUnlessAskedFor) {
  const auto scene = lookup_scene(1, 2);
  ASSERT_THAT(scene->run(), IsOk());
  EXPECT_FALSE(scene->record.sustained.has_value());
}

TEST(SustainedWindow, ThatTheWholeRunsLimitCutsShortIsKeptWithAReason) {
  const auto scene = slow_scene();
  scene->record.plan.time_limit_seconds = 1000;
  scene->setup.progress = [&](const bench::Progress& progress) {
    if (progress.stage == "sustained" && progress.done > 8) scene->clock.advance(seconds(1000));
  };
  scene->setup.sustained_seconds = 5000;
  ASSERT_THAT(scene->run(), IsOk());
  EXPECT_THAT(scene->record.blocks, SizeIs(3));
  EXPECT_FALSE(scene->record.complete);
  EXPECT_THAT(scene->record.incomplete_reason, HasSubstr("sustained window"));
  ASSERT_TRUE(scene->record.sustained.has_value());
  EXPECT_FALSE(scene->record.sustained->samples.empty());
  EXPECT_GT(scene->record.sustained->ended_at_unix_seconds,
            scene->record.sustained->started_at_unix_seconds);
}

TEST(SustainedWindow, ThatFailsLeavesTheBlocksToBeJudged) {
  const auto scene = slow_scene();
  bool sustained = false;
  scene->setup.progress = [&](const bench::Progress& progress) {
    sustained = progress.stage == "sustained" && progress.done > 8;
  };
  scene->target.before_pass = [&](auto, auto) -> Result<void> {
    scene->clock.advance(milliseconds(100));
    if (sustained) return fail(ErrorCode::runtime_failed, "too hot");
    return {};
  };
  ASSERT_THAT(scene->run(), IsOk());
  EXPECT_THAT(scene->record.incomplete_reason, HasSubstr("too hot"));
  EXPECT_FALSE(scene->record.complete);
  EXPECT_THAT(scene->record.blocks, SizeIs(3));
}

TEST(SustainedWindow, EndsWithACancellation) {
  const auto scene = slow_scene();
  std::stop_source stop;
  scene->setup.progress = [&](const bench::Progress& progress) {
    if (progress.stage == "sustained") stop.request_stop();
  };
  EXPECT_THAT(scene->run(stop.get_token()), FailsWith(ErrorCode::cancelled));
  EXPECT_THAT(scene->record.blocks, SizeIs(3));
}

}  // namespace
}  // namespace paceline::test
