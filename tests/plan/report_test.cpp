// What is derived from a measured curve, by hand-made numbers.
#include "plan/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json.hpp"

namespace paceline::plan {
namespace {

using ::testing::HasSubstr;

Curve curve(std::size_t subject, std::vector<Point> points) {
  return {.subject = subject, .context = 64, .points = std::move(points)};
}

record::RuntimeEvidence runtime(std::string name) {
  record::RuntimeEvidence evidence;
  evidence.name = std::move(name);
  evidence.threads = 2;
  return evidence;
}

// A target at 10 ms a row on native and 20 on llama; its draft takes a tenth on native.
Report sample() {
  Report report;
  report.target.name = "big";
  report.target.file_type = "Q4_0";
  report.host.cpu_model = "Example CPU";
  for (const char* name : {"native", "llama"}) {
    report.runtimes.push_back(runtime(name));
    report.isas.emplace_back("avx2");
  }
  report.settings = {.rows = {1, 4}, .contexts = {64}, .repeats = 3};
  report.measured.repeats = 3;
  report.measured.complete = true;
  report.measured.curves = {curve(0, {{.rows = 1, .results = 1, .ms = {10, 12, 10}},
                                      {.rows = 4, .results = 4, .ms = {12, 15, 12}}}),
                            curve(1, {{.rows = 1, .results = 1, .ms = {20, 18, 40}},
                                      {.rows = 4, .results = 4, .ms = {60, 45, 60}}})};
  report.measured.ceilings = {{.isa = "avx2",
                               .threads = 2,
                               .buffer_bytes = 1,
                               .read_bytes_per_second = {900, 1000},
                               .multiply_adds_per_second = {5000, 4000}}};
  report.work =
      PassWork{.body_bytes = 8, .body_multiply_adds = 10, .head_bytes = 1, .head_multiply_adds = 2};
  return report;
}

TEST(ReadCurves, CostsAreOverOneRowRepeatByRepeat) {
  const Report report = sample();
  const auto curves = read_curves(report);
  ASSERT_EQ(curves.size(), 2U);
  EXPECT_DOUBLE_EQ(curves[0].points[0].cost.value(), 1);
  EXPECT_DOUBLE_EQ(curves[0].points[1].cost.value(), 1.2);  // of 1.2, 1.25, 1.2
  EXPECT_DOUBLE_EQ(curves[1].points[1].cost.value(), 2.5);  // of 3, 2.5, 1.5: not 60 / 20
}

TEST(ReadCurves, BoundsComeFromTheBestCeilingAndTheLeastTime) {
  const Report report = sample();
  const PointReading one = read_curves(report)[0].points[0];
  EXPECT_DOUBLE_EQ(one.bound_ms.value(), 9);  // 9 bytes at 1000 a second
  EXPECT_DOUBLE_EQ(one.over_bound.value(), 10.0 / 9);
  const PointReading four = read_curves(report)[0].points[1];
  EXPECT_DOUBLE_EQ(four.bound_ms.value(), 9.6);  // 48 multiply-adds at 5000 a second
}

TEST(ReadCurves, BreakEvenAndBestDepthWithFreeDrafts) {
  const Report report = sample();
  const CurveReading native = read_curves(report)[0];
  EXPECT_FALSE(native.draft_cost.has_value());
  EXPECT_FALSE(native.points[0].speedups.has_value());  // one row is no round
  EXPECT_NEAR((*native.points[1].speedups)[1], (1 + 0.8 + 0.64 + 0.512) / 1.2, 1e-12);
  ASSERT_EQ(native.best.size(), k_acceptances.size());
  EXPECT_EQ(native.best[0].first, 3U);
  const CurveReading llama = read_curves(report)[1];
  EXPECT_EQ(llama.best[0].first, 0U);  // 2.176 tokens at 2.5 steps: plain decoding
  EXPECT_EQ(llama.best[0].second, 1);
}

TEST(ReadCurves, AMeasuredDraftCostsItsSteps) {
  Report report = sample();
  report.draft.emplace().name = "small";
  report.drafts = {runtime("native"), runtime("llama")};
  report.measured.curves.push_back(curve(2, {{.rows = 1, .results = 1, .ms = {1, 1, 1}}}));
  report.measured.curves.push_back(curve(3, {{.rows = 1, .results = 1, .ms = {30, 30, 30}}}));
  const auto curves = read_curves(report);
  ASSERT_EQ(curves.size(), 2U);  // the draft's own are not shown
  EXPECT_DOUBLE_EQ(curves[0].draft_cost.value(), 0.1);
  EXPECT_NEAR((*curves[0].points[1].speedups)[1], (1 + 0.8 + 0.64 + 0.512) / 1.5, 1e-12);
  EXPECT_FALSE(curves[1].points[1].pays_from.has_value());  // 2.5 + 4.5 steps for 4 tokens
  EXPECT_THAT(to_text(report), HasSubstr("never"));
}

TEST(ReadCurves, WithoutOneRowThereIsNoCost) {
  Report report = sample();
  for (Curve& c : report.measured.curves) c.points.erase(c.points.begin());
  const auto curves = read_curves(report);
  EXPECT_FALSE(curves[0].points[0].cost.has_value());
  EXPECT_TRUE(curves[0].best.empty());
  EXPECT_TRUE(to_json(report)["curves"][0]["points"][0]["cost"].is_null());
}

TEST(CompareRuntimes, RatiosAreOfTheSameRepeat) {
  const auto ratios = compare_runtimes(sample());
  ASSERT_EQ(ratios.size(), 2U);
  EXPECT_DOUBLE_EQ(ratios[0].median, 2);  // of 2, 1.5, 4
  EXPECT_DOUBLE_EQ(ratios[0].of_least, 1.8);
  EXPECT_DOUBLE_EQ(ratios[1].median, 5);
  EXPECT_EQ(ratios[1].rows, 4U);
}

TEST(PlanText, ShowsTheCurveAndFitsEightyColumns) {
  const std::string text = to_text(sample());
  EXPECT_THAT(text, HasSubstr("cost of a pass of big on Example CPU"));
  EXPECT_THAT(text, HasSubstr("llama / native, context 64,   4 rows: 5.00"));
  EXPECT_THAT(text, HasSubstr("0.60: depth 3, 1.81x"));
  std::size_t column = 0;
  for (const char c : text) {
    column = c == '\n' ? 0 : column + 1;
    ASSERT_LE(column, 80U) << text;
  }
}

TEST(PlanText, SaysWhyThereIsNoBound) {
  Report report = sample();
  report.work.reset();
  report.no_work_reason = "the model has experts";
  EXPECT_THAT(to_text(report), HasSubstr("no bound: the model has experts"));
  EXPECT_TRUE(to_json(report)["curves"][0]["points"][0]["bound_ms"].is_null());
}

}  // namespace
}  // namespace paceline::plan
