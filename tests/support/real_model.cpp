#include "support/real_model.hpp"

#include <cstdlib>
#include <string>

#include "models/models.hpp"
#include "runtime/llama/llama_model.hpp"

namespace paceline::test {
namespace {

std::shared_ptr<const runtime::Model> loaded;

Result<std::shared_ptr<const runtime::Model>> load() {
  PACELINE_TRY(const auto path, models::ensure_model("smollm2-135m"));
  return runtime::load_llama_model(path);
}

}  // namespace

void SmolLm2::TearDownTestSuite() { loaded.reset(); }

void SmolLm2::SetUp() {
  if (loaded != nullptr) return;
  auto model = load();
  if (model) {
    loaded = *std::move(model);
    return;
  }
  const char* const ci = std::getenv("CI");
  if (ci != nullptr && *ci != '\0') FAIL() << model.error().message;
  GTEST_SKIP() << model.error().message;
}

const runtime::Model& SmolLm2::model() { return *loaded; }

}  // namespace paceline::test
