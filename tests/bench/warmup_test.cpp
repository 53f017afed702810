// Short runs until they take the same time.
#include <gtest/gtest.h>

#include "bench/scene.hpp"
#include "support/matchers.hpp"

namespace paceline::test {
namespace {

using std::chrono::milliseconds;
using testing::SizeIs;

/// A scene with a plain arm only whose run number i takes `ms(i)`, each pass the same part of it.
std::unique_ptr<Scene> timed_scene(std::function<int(std::size_t)> ms) {
  auto scene = std::make_unique<Scene>();
  scene->clock = ManualClock();
  scene->add_plain();
  scene->add_prompts("a", 1);
  auto runs = std::make_shared<std::size_t>(0);
  scene->target.on_sequence = [scene = scene.get(), runs, ms] {
    scene->clock.advance(milliseconds(ms((*runs)++)));
  };
  return scene;
}

const record::Warmup& warmup_of(Scene& scene) {
  EXPECT_THAT(scene.run(), IsOk());
  static const record::Warmup none;
  return scene.record.warmup ? *scene.record.warmup : none;
}

TEST(WarmUp, EndsWhenThreeRunsAgree) {
  const auto scene = timed_scene([](std::size_t) { return 100; });
  const auto& warmup = warmup_of(*scene);
  EXPECT_THAT(warmup.first_arm_ms, SizeIs(3));
  EXPECT_NEAR(warmup.first_arm_ms.front(), 100, 1e-9);
  EXPECT_TRUE(warmup.stable);
  EXPECT_FALSE(warmup.slow_first);
}

// G4
TEST(WarmUp, FlagsASlowFirstRunAndWaitsItOut) {
  const auto scene = timed_scene([](std::size_t run) { return run == 0 ? 1000 : 100; });
  const auto& warmup = warmup_of(*scene);
  EXPECT_THAT(warmup.first_arm_ms, SizeIs(4));
  EXPECT_TRUE(warmup.stable);
  EXPECT_TRUE(warmup.slow_first);
}

TEST(WarmUp, GivesUpAfterTenRuns) {
  const auto scene = timed_scene([](std::size_t run) { return run % 2 == 0 ? 100 : 130; });
  const auto& warmup = warmup_of(*scene);
  EXPECT_THAT(warmup.first_arm_ms, SizeIs(10));
  EXPECT_FALSE(warmup.stable);
  EXPECT_FALSE(warmup.slow_first);
}

TEST(WarmUp, GivesUpAfterTwentySeconds) {
  const auto scene = timed_scene([](std::size_t run) { return run % 2 == 0 ? 9000 : 6000; });
  const auto& warmup = warmup_of(*scene);
  EXPECT_THAT(warmup.first_arm_ms, SizeIs(3));
  EXPECT_FALSE(warmup.stable);
}

TEST(WarmUp, RunsEveryArmWithFewTokens) {
  Scene scene;
  scene.add_plain();
  scene.add_lookup(3);
  scene.add_draft("toy:7,agree=0.5", 2);
  scene.add_prompts("a", 1);
  std::size_t samples = 0;
  std::uint64_t forwards = 0;
  scene.target.on_sequence = [&] { ++samples; };
  scene.setup.progress = [&](const bench::Progress& progress) {
    if (progress.stage == "measuring" && progress.done == 0) {
      forwards = scene.target.counters().forwards;
      EXPECT_EQ(samples, 9U);
    }
  };
  ASSERT_THAT(scene.run(), IsOk());
  EXPECT_GT(forwards, 9U);
  EXPECT_LE(forwards, 9U * 16);
}

}  // namespace
}  // namespace paceline::test
