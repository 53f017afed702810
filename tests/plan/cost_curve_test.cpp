// What is measured and how passes are made, on runtimes that note what they were asked.
#include "plan/cost_curve.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "support/fake_runtime.hpp"
#include "support/matchers.hpp"

namespace paceline::plan {
namespace {

using test::FailsWith;
using test::value_of;

constexpr std::size_t k_vocabulary = 32;

Subject subject(const CurveSettings& settings, bool draft = false) {
  Subject made;
  made.runtime = std::make_unique<test::FakeRuntime>(
      k_vocabulary, limits_for(settings, 1),
      [](std::span<const Token>) { return std::vector<float>(k_vocabulary, 0.0F); });
  made.draft = draft;
  made.text = test::tokens({3, 4, 5});
  return made;
}

const test::FakeRuntime& fake(const Subject& subject) {
  return dynamic_cast<const test::FakeRuntime&>(*subject.runtime);
}

TEST(CostCurve, MeasuresEveryNumberOfRowsOncePerRepeat) {
  const CurveSettings settings{.rows = {1, 2, 5}, .contexts = {7, 3}, .repeats = 4};
  std::vector<Subject> subjects;
  subjects.push_back(subject(settings));
  subjects.push_back(subject(settings));
  const Measured measured = value_of(measure_curves(subjects, {}, settings, {}));
  EXPECT_TRUE(measured.complete);
  EXPECT_EQ(measured.repeats, 4U);
  ASSERT_EQ(measured.curves.size(), 4U);
  EXPECT_EQ(measured.curves.front().context, 3U);  // shortest first: contexts only grow
  EXPECT_EQ(measured.curves.back().context, 7U);
  for (const Curve& curve : measured.curves) {
    ASSERT_EQ(curve.points.size(), 3U);
    for (const Point& point : curve.points) {
      EXPECT_EQ(point.ms.size(), 4U);
      EXPECT_GT(point.least_ms(), 0);
      EXPECT_LE(point.least_ms(), point.median_ms());
    }
    EXPECT_EQ(curve.at(5)->rows, 5U);
    EXPECT_EQ(curve.at(4), nullptr);
  }
}

TEST(CostCurve, PassesAreChainsBehindTheContextAndLeaveNothing) {
  const CurveSettings settings{.rows = {1, 4}, .contexts = {6}, .repeats = 2};
  std::vector<Subject> subjects;
  subjects.push_back(subject(settings));
  value_of(measure_curves(subjects, {}, settings, {}));
  const test::FakeRuntime& runtime = fake(subjects.front());
  EXPECT_EQ(runtime.contents(runtime::SequenceId{0}), test::tokens({3, 4, 5, 3, 4, 5}));
  std::set<std::size_t> widths;
  for (const auto& pass : runtime.passes()) {
    widths.insert(pass.size());
    if (pass.size() != 4) continue;
    for (std::size_t i = 0; i < pass.size(); ++i) {
      EXPECT_EQ(pass[i].parent, static_cast<std::int32_t>(i) - 1);
      EXPECT_EQ(pass[i].wants, runtime::Wants::argmax);
    }
  }
  EXPECT_EQ(widths, (std::set<std::size_t>{1, 4, 6}));
}

TEST(CostCurve, WidePassesAreChunksOfAPrompt) {
  const CurveSettings settings{.rows = {k_most_verified_rows + 1}, .contexts = {2}, .repeats = 1};
  EXPECT_EQ(limits_for(settings, 1).results, 1U);
  std::vector<Subject> subjects;
  subjects.push_back(subject(settings));
  const Measured measured = value_of(measure_curves(subjects, {}, settings, {}));
  EXPECT_EQ(measured.curves.front().points.front().results, 1U);
  const auto& pass = fake(subjects.front()).passes().back();
  EXPECT_EQ(pass.back().wants, runtime::Wants::argmax);
  EXPECT_EQ(pass.front().wants, runtime::Wants::nothing);
}

TEST(CostCurve, RowsAreSpreadOverSequences) {
  const CurveSettings settings{.rows = {2, 5}, .contexts = {4}, .sequences = 3, .repeats = 1};
  std::vector<Subject> subjects;
  subjects.push_back(subject(settings));
  value_of(measure_curves(subjects, {}, settings, {}));
  for (const auto& pass : fake(subjects.front()).passes()) {
    std::map<runtime::SequenceId, std::size_t> rows;
    for (const runtime::Row& row : pass) ++rows[row.sequence];
    if (pass.size() == 5) {
      EXPECT_EQ(rows.size(), 3U);
      EXPECT_EQ(rows[runtime::SequenceId{0}], 1U);
      EXPECT_EQ(rows[runtime::SequenceId{2}], 2U);
    }
    if (pass.size() == 2) {
      EXPECT_EQ(rows.size(), 2U);
    }
  }
}

TEST(CostCurve, ADraftIsMeasuredAtOneRow) {
  const CurveSettings settings{.rows = {2, 4}, .contexts = {4}, .repeats = 1};
  std::vector<Subject> subjects;
  subjects.push_back(subject(settings));
  subjects.push_back(subject(settings, true));
  const Measured measured = value_of(measure_curves(subjects, {}, settings, {}));
  ASSERT_EQ(measured.curves.back().points.size(), 1U);
  EXPECT_EQ(measured.curves.back().points.front().rows, 1U);
}

TEST(CostCurve, CeilingsComeFromTheSameRepeats) {
  std::vector<runtime::CeilingMeter> meters;
  meters.push_back(value_of(runtime::CeilingMeter::create(2, {}, std::size_t{4} << 20)));
  const CurveSettings settings{.rows = {1}, .contexts = {1}, .repeats = 3};
  std::vector<Subject> subjects;
  subjects.push_back(subject(settings));
  const Measured measured = value_of(measure_curves(subjects, meters, settings, {}));
  ASSERT_EQ(measured.ceilings.size(), 1U);
  const Ceiling& ceiling = measured.ceilings.front();
  EXPECT_EQ(ceiling.threads, 2U);
  EXPECT_EQ(ceiling.read_bytes_per_second.size(), 3U);
  EXPECT_GT(ceiling.read_speed(), 1e6);
  EXPECT_GT(ceiling.multiply_add_speed(), 1e6);
}

TEST(CostCurve, AStopLeavesWholeRepeats) {
  const CurveSettings settings{.rows = {1, 2}, .contexts = {2}, .repeats = 5};
  std::stop_source source;
  std::vector<Subject> subjects;
  subjects.push_back(subject(settings));
  const Measured measured =
      value_of(measure_curves(subjects, {}, settings, source.get_token(), [&](const Progress& p) {
        if (p.repeat == 3) source.request_stop();
      }));
  EXPECT_FALSE(measured.complete);
  EXPECT_EQ(measured.repeats, 2U);
  for (const Point& point : measured.curves.front().points) EXPECT_EQ(point.ms.size(), 2U);
}

TEST(CostCurve, AStopBeforeTheFirstRepeatIsAnError) {
  const CurveSettings settings{.rows = {1}, .contexts = {2}, .repeats = 5};
  std::stop_source source;
  std::vector<Subject> subjects;
  subjects.push_back(subject(settings));
  EXPECT_THAT(measure_curves(subjects, {}, settings, source.get_token(),
                             [&](const Progress&) { source.request_stop(); }),
              FailsWith(ErrorCode::cancelled));
}

TEST(CeilingMeter, RefusesNothingToReadAndSetsThatAreNotHere) {
  EXPECT_THAT(runtime::CeilingMeter::create(1, {}, 0), FailsWith(ErrorCode::invalid_argument));
  for (const auto isa : {runtime::native::Isa::neon, runtime::native::Isa::avx2}) {
    if (runtime::native::find_kernels(isa) != nullptr) continue;
    EXPECT_THAT(runtime::CeilingMeter::create(1, isa, 1 << 20), FailsWith(ErrorCode::unsupported));
  }
}

}  // namespace
}  // namespace paceline::plan
