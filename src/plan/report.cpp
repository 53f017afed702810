#include "plan/report.hpp"

#include <algorithm>

#include "plan/break_even.hpp"

namespace paceline::plan {

namespace {

double median_ratio(const Point& over, const Point& under) {
  Point ratios;
  for (std::size_t i = 0; i < std::min(over.ms.size(), under.ms.size()); ++i) {
    ratios.ms.push_back(over.ms[i] / under.ms[i]);
  }
  return ratios.median_ms();
}

const Curve* curve_of(const Report& report, std::size_t subject, std::size_t context) {
  for (const Curve& curve : report.measured.curves) {
    if (curve.subject == subject && curve.context == context) return &curve;
  }
  return nullptr;
}

const Ceiling* ceiling_of(const Report& report, std::size_t runtime) {
  for (const Ceiling& ceiling : report.measured.ceilings) {
    if (ceiling.isa == report.isas[runtime] &&
        ceiling.threads == report.runtimes[runtime].threads) {
      return &ceiling;
    }
  }
  return nullptr;
}

PointReading read_point(const Report& report, const CurveReading& curve, const Point& point) {
  PointReading reading;
  reading.point = &point;
  const Ceiling* const ceiling = ceiling_of(report, curve.curve->subject);
  if (report.work && ceiling != nullptr) {
    reading.bound_ms = bound_ms(*report.work, point.rows, point.results, ceiling->read_speed(),
                                ceiling->multiply_add_speed());
    reading.over_bound = point.least_ms() / *reading.bound_ms;
  }
  const Point* const plain = curve.curve->at(1);
  if (plain == nullptr) return reading;
  reading.cost = median_ratio(point, *plain);
  if (point.rows < 2 || point.rows > k_most_verified_rows) return reading;
  const std::size_t depth = point.rows - 1;
  const RoundCost cost{.pass = *reading.cost,
                       .draft = curve.draft_cost.value_or(0) * static_cast<double>(depth)};
  reading.pays_from = break_even_acceptance(depth, cost);
  reading.speedups.emplace();
  for (std::size_t a = 0; a < k_acceptances.size(); ++a) {
    (*reading.speedups)[a] = speedup(k_acceptances[a], depth, cost);
  }
  return reading;
}

}  // namespace

std::vector<CurveReading> read_curves(const Report& report) {
  std::vector<CurveReading> readings;
  for (const Curve& curve : report.measured.curves) {
    if (curve.subject >= report.runtimes.size()) continue;  // a draft's
    CurveReading reading;
    reading.curve = &curve;
    reading.runtime = &report.runtimes[curve.subject];
    const Point* const plain = curve.at(1);
    if (!report.drafts.empty() && plain != nullptr) {
      const Curve* const draft =
          curve_of(report, report.runtimes.size() + curve.subject, curve.context);
      if (draft != nullptr) reading.draft_cost = median_ratio(draft->points.front(), *plain);
    }
    for (const Point& point : curve.points) {
      reading.points.push_back(read_point(report, reading, point));
    }
    for (std::size_t a = 0; a < k_acceptances.size() && plain != nullptr; ++a) {
      std::pair<std::size_t, double> best{0, 1};
      for (const PointReading& point : reading.points) {
        if (point.speedups && (*point.speedups)[a] > best.second) {
          best = {point.point->rows - 1, (*point.speedups)[a]};
        }
      }
      reading.best.push_back(best);
    }
    readings.push_back(std::move(reading));
  }
  return readings;
}

std::vector<RuntimeRatio> compare_runtimes(const Report& report) {
  std::vector<RuntimeRatio> ratios;
  for (const Curve& under : report.measured.curves) {
    if (under.subject != 0) continue;
    for (std::size_t r = 1; r < report.runtimes.size(); ++r) {
      const Curve* const over = curve_of(report, r, under.context);
      if (over == nullptr) continue;
      for (const Point& point : under.points) {
        const Point* const other = over->at(point.rows);
        if (other == nullptr) continue;
        ratios.push_back({.over = r,
                          .under = 0,
                          .context = under.context,
                          .rows = point.rows,
                          .median = median_ratio(*other, point),
                          .of_least = other->least_ms() / point.least_ms()});
      }
    }
  }
  return ratios;
}

}  // namespace paceline::plan
