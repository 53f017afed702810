// Bytes and multiply-adds of a pass, from files whose shapes are known.
#include "plan/pass_work.hpp"

#include <gtest/gtest.h>

#include "support/gguf_builder.hpp"
#include "support/matchers.hpp"
#include "support/temporary_folder.hpp"

namespace paceline::plan {
namespace {

using test::FailsWith;
using test::value_of;

// width 64, feed-forward 128, 2 heads of 32 and 1 of keys and values, 2 layers.
constexpr double k_layer = 64 * 64 + 2 * 64 * 32 + 64 * 64 + 3 * 64 * 128;

PassWork work_of(const test::TinyModel& model) {
  const test::TemporaryFolder folder;
  test::write_tiny(folder.path() / "tiny.gguf", model);
  return value_of(read_pass_work(folder.path() / "tiny.gguf"));
}

TEST(PassWork, CountsTheMatricesOfTheLayersAndTheHead) {
  const test::TinyModel model;
  const double vocabulary = static_cast<double>(model.vocabulary.size());
  const PassWork work = work_of(model);
  EXPECT_EQ(work.body_multiply_adds, 2 * k_layer);
  EXPECT_EQ(work.body_bytes, 2 * k_layer * 4);
  EXPECT_EQ(work.head_multiply_adds, vocabulary * 64);
  EXPECT_EQ(work.head_bytes, vocabulary * 64 * 4);
}

TEST(PassWork, ATiedEmbeddingIsTheHead) { EXPECT_EQ(work_of({.tied = true}), work_of({})); }

TEST(PassWork, RecurrentModelsHaveNone) {
  const test::TemporaryFolder folder;
  test::write_tiny(folder.path() / "r.gguf", {.kind = test::TinyModel::Kind::recurrent});
  EXPECT_THAT(read_pass_work(folder.path() / "r.gguf"), FailsWith(ErrorCode::unsupported));
}

TEST(Bound, IsTheLongerOfReadingAndMultiplying) {
  const PassWork work{
      .body_bytes = 900, .body_multiply_adds = 2000, .head_bytes = 100, .head_multiply_adds = 500};
  EXPECT_DOUBLE_EQ(bound_ms(work, 1, 1, 1000, 1e9), 1000);  // 1000 bytes at 1000 a second
  EXPECT_DOUBLE_EQ(bound_ms(work, 1, 0, 1000, 1e9), 900);
  EXPECT_DOUBLE_EQ(bound_ms(work, 8, 8, 1000, 1000), 20000);
  EXPECT_DOUBLE_EQ(bound_ms(work, 8, 1, 1000, 1000), 16500);  // a prompt's chunk: one result
}

}  // namespace
}  // namespace paceline::plan
