// The key and the differences come from one list: equal keys, no differences, and the reverse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "record/record.hpp"
#include "support/sample_record.hpp"

namespace paceline::record {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Change = std::function<void(Environment&)>;

Environment sample() {
  test::SampleShape shape;
  shape.prompts = 0;
  shape.arms = {test::SampleShape::draft_arm(3)};
  return test::sample_record(shape).environment;
}

TEST(EnvironmentKey, DoesNotChangeWithWhatDoesNotMatter) {
  const std::vector<Change> harmless = {
      [](Environment& e) { e.target.path = "/elsewhere"; },
      [](Environment& e) { e.target.name = "another name of the same file"; },
      [](Environment& e) { e.target.description = "x"; },
      [](Environment& e) { e.drafts.front().path = "/elsewhere"; },
      [](Environment& e) { e.packages["g++"] = "5:17"; },
      [](Environment& e) { e.packages.erase("g++"); },
      [](Environment& e) { e.host.nice = 19; },
      [](Environment& e) { e.host.governor = "powersave"; },
      [](Environment& e) { e.host.cores = 64; },
      [](Environment& e) { *e.host.memory_bytes += 4096; },
  };
  const Environment base = sample();
  for (std::size_t i = 0; i < harmless.size(); ++i) {
    Environment changed = base;
    harmless[i](changed);
    EXPECT_NE(changed, base) << "change " << i;
    EXPECT_EQ(changed.key(), base.key()) << "change " << i;
    EXPECT_THAT(environment_differences(base, changed), testing::IsEmpty()) << "change " << i;
  }
}

TEST(EnvironmentKey, AgreesWithTheDifferences) {
  const std::vector<Change> changes = {
      [](Environment& e) { e.packages["libllama0"] = "1:0.8.0"; },
      [](Environment& e) { e.packages["libggml0"] = "1"; },
      [](Environment& e) { e.packages.erase("libllama0"); },
      [](Environment& e) { e.host.memory_bytes = std::uint64_t{64} << 30; },
      [](Environment& e) { e.host.memory_bytes.reset(); },
      [](Environment& e) { e.host.memory_limit_bytes.reset(); },
      [](Environment& e) { e.host.cpu_quota = 1.5; },
      [](Environment& e) { e.host.machine = "aarch64"; },
      [](Environment& e) { e.sanitizers = "address"; },
      [](Environment& e) { e.paceline_version = "9"; },
      [](Environment& e) { e.drafts.front().sha256 = "0"; },
      [](Environment& e) { e.draft_runtimes.front().threads = 9; },
      [](Environment& e) { e.target_runtime.backend = "CUDA"; },
      [](Environment& e) { e.target_runtime.flash_attention = "on"; },
      [](Environment& e) { e.target_runtime.kv_type_k = "q8_0"; },
      [](Environment& e) { e.target_runtime.name = "native"; },
      [](Environment& e) { e.target.chat_renderer = "minja"; },
  };
  const Environment base = sample();
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Environment changed = base;
    changes[i](changed);
    EXPECT_NE(changed.key(), base.key()) << "change " << i;
    EXPECT_EQ(environment_differences(base, changed).size(), 1U) << "change " << i;
    EXPECT_EQ(environment_differences(changed, base).size(), 1U) << "change " << i;
  }
}

TEST(EnvironmentKey, CountsDraftsThatCameOrWent) {
  const Environment base = sample();
  Environment without = base;
  without.drafts.clear();
  EXPECT_NE(without.key(), base.key());
  EXPECT_THAT(environment_differences(base, without),
              testing::Contains(testing::AllOf(HasSubstr("draft 1: "), HasSubstr("-> absent"))));
  EXPECT_THAT(environment_differences(without, base), testing::Contains(HasSubstr("absent -> ")));
}

TEST(EnvironmentKey, TakesTheNameOfAModelWithoutAFile) {
  Environment seven = sample();
  seven.target.sha256.reset();
  seven.target.name = "toy:7";
  Environment eight = seven;
  eight.target.name = "toy:8";
  EXPECT_NE(seven.key(), eight.key());
  EXPECT_THAT(environment_differences(seven, eight), ElementsAre("target: toy:7 -> toy:8"));
}

/// Values cannot run into each other: a separator inside a value is no separator.
TEST(EnvironmentKey, KeepsPartsApart) {
  Environment a = sample();
  Environment b = a;
  a.build_type = "Release\",\"compiler";
  b.build_type = "Release";
  b.compiler = "compiler" + b.compiler;
  EXPECT_NE(a.key(), b.key());
  EXPECT_EQ(a.key().size(), 64U);
}

}  // namespace
}  // namespace paceline::record
