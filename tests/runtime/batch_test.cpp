// What every runtime demands of its batches and paths.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "runtime/runtime.hpp"
#include "support/matchers.hpp"

namespace paceline::runtime {
namespace {

using test::FailsWith;
using test::IsOk;
using test::value_of;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::size_t k_vocabulary = 10;
constexpr SequenceId k_first{0};
constexpr SequenceId k_second{2};

const RuntimeLimits k_limits{.sequences = 3, .context = 8, .rows = 6, .leaves = 2};
// Sequence 1 does not exist.
const std::vector<std::optional<std::size_t>> k_lengths{3, std::nullopt, 6};

Result<BatchShape> check(const std::vector<Row>& rows) {
  return check_batch(rows, k_limits, k_vocabulary, k_lengths);
}

TEST(CheckBatch, GivesTheDepthOfEveryRow) {
  const auto shape = check({{k_first, Token{1}, k_committed_end, Wants::nothing},
                            {k_second, Token{2}, k_committed_end, Wants::nothing},
                            {k_first, Token{3}, 0, Wants::nothing},
                            {k_first, Token{4}, 0, Wants::nothing},
                            {k_first, Token{9}, 3, Wants::nothing},
                            {k_second, Token{0}, 1, Wants::nothing}});
  EXPECT_THAT(value_of(shape).depth, ElementsAre(0U, 0U, 1U, 1U, 2U, 1U));
}

TEST(CheckBatch, AllowsAnEmptyBatch) { EXPECT_THAT(check({}), IsOk()); }

TEST(CheckBatch, NamesWhatIsWrong) {
  const auto expect_refused = [](const std::vector<Row>& rows, const char* message) {
    EXPECT_THAT(check(rows), FailsWith(ErrorCode::invalid_argument, HasSubstr(message)));
  };
  const Row root{k_first, Token{1}, k_committed_end, Wants::nothing};
  expect_refused(std::vector<Row>(7, root), "7 rows");
  expect_refused({{SequenceId{1}, Token{1}, k_committed_end, Wants::nothing}}, "sequence 1");
  expect_refused({{SequenceId{3}, Token{1}, k_committed_end, Wants::nothing}}, "sequence 3");
  expect_refused({{k_first, Token{10}, k_committed_end, Wants::nothing}}, "token 10");
  expect_refused({{k_first, Token{-1}, k_committed_end, Wants::nothing}}, "token -1");
  expect_refused({{k_first, Token{1}, 0, Wants::nothing}}, "parent 0");              // itself
  expect_refused({root, {k_first, Token{1}, 2, Wants::nothing}, root}, "parent 2");  // a later row
  expect_refused({{k_first, Token{1}, -2, Wants::nothing}}, "parent -2");
  expect_refused({root, {k_second, Token{1}, 0, Wants::nothing}}, "parent 0");  // another sequence
  expect_refused({root, root, root}, "2 leaves");
}

TEST(CheckBatch, CountsLeavesForEachSequenceAlone) {
  const Row first{k_first, Token{1}, k_committed_end, Wants::nothing};
  const Row second{k_second, Token{1}, k_committed_end, Wants::nothing};
  EXPECT_THAT(check({first, second, first, second}), IsOk());
  EXPECT_THAT(check({first, second, first, second, first}), FailsWith(ErrorCode::invalid_argument));
}

TEST(CheckBatch, EndsWithTheContext) {
  // Sequence 2 holds 6 of 8 tokens: two more rows fit below each other, and any number beside.
  std::vector<Row> rows{{k_second, Token{1}, k_committed_end, Wants::nothing},
                        {k_second, Token{1}, 0, Wants::nothing},
                        {k_second, Token{2}, 0, Wants::nothing}};
  EXPECT_THAT(check(rows), IsOk());
  rows.push_back({k_second, Token{1}, 2, Wants::nothing});
  EXPECT_THAT(check(rows), FailsWith(ErrorCode::invalid_argument, HasSubstr("position 8")));
}

TEST(CheckPath, AllowsPathsFromTheCommittedEndDownwards) {
  const std::vector<Row> rows{{k_first, Token{1}, k_committed_end, Wants::nothing},
                              {k_second, Token{1}, k_committed_end, Wants::nothing},
                              {k_first, Token{2}, 0, Wants::nothing},
                              {k_first, Token{3}, 0, Wants::nothing},
                              {k_first, Token{4}, 2, Wants::nothing}};
  const auto check = [&](SequenceId sequence, const std::vector<std::int32_t>& path) {
    return check_path(rows, sequence, path);
  };
  EXPECT_THAT(check(k_first, {}), IsOk());
  EXPECT_THAT(check(k_first, {0}), IsOk());
  EXPECT_THAT(check(k_first, {0, 3}), IsOk());
  EXPECT_THAT(check(k_first, {0, 2, 4}), IsOk());
  EXPECT_THAT(check(k_second, {1}), IsOk());
  for (const std::vector<std::int32_t>& path : std::vector<std::vector<std::int32_t>>{
           {2}, {0, 4}, {0, 3, 4}, {0, 0}, {1}, {5}, {-1}, {0, -1}}) {
    EXPECT_THAT(check(k_first, path), FailsWith(ErrorCode::invalid_argument));
  }
}

}  // namespace
}  // namespace paceline::runtime
