// The cost curve as a table.
#include <format>
#include <vector>

#include "core/text.hpp"
#include "plan/report.hpp"

namespace paceline::plan {

namespace {

std::string number(const std::optional<double>& value, int digits) {
  return value ? std::format("{:.{}f}", *value, digits) : "-";
}

std::string milliseconds(double value) {
  return std::format("{:.{}f}", value, value < 10 ? 2 : value < 100 ? 1 : 0);
}

std::string row_text(const CurveReading& curve, const PointReading& reading) {
  const Point& point = *reading.point;
  const std::string pays = !reading.speedups   ? "-"
                           : reading.pays_from ? number(reading.pays_from, 2)
                                               : "never";
  return std::format("{:<8}{:>8}{:>8}{:>6}{:>9}{:>9}{:>7}{:>9}{:>7}{:>8}\n", curve.runtime->name,
                     curve.runtime->threads, curve.curve->context, point.rows,
                     milliseconds(point.median_ms()), milliseconds(point.least_ms()),
                     number(reading.cost, 2),
                     reading.bound_ms ? milliseconds(*reading.bound_ms) : "-",
                     number(reading.over_bound, 2), pays);
}

std::string best_text(const CurveReading& curve, bool drafts) {
  if (curve.best.empty() || curve.points.size() < 2) return {};
  std::string text;
  for (std::size_t a = 0; a < k_acceptances.size(); ++a) {
    const auto& [depth, speedup] = curve.best[a];
    text += std::format("{}{:.2f}: {}", a == 0 ? "" : "; ", k_acceptances[a],
                        depth == 0 ? std::string("plain decoding")
                                   : std::format("depth {}, {:.2f}x", depth, speedup));
  }
  const std::string drafting =
      !drafts ? "drafting costs nothing"
      : curve.draft_cost
          ? std::format("a drafted token costs {:.3f} plain steps", *curve.draft_cost)
          : "the draft was not measured";
  return std::format("  {} with {} threads, context {} ({}):\n    {}\n", curve.runtime->name,
                     curve.runtime->threads, curve.curve->context, drafting, text);
}

}  // namespace

std::string to_text(const Report& report) {
  std::string out = std::format("{}{}", k_first_words, report.target.name);
  if (report.draft) out += std::format(", draft {}", report.draft->name);
  out += std::format(" on {}\n", report.host.cpu_model);
  for (const Ceiling& ceiling : report.measured.ceilings) {
    out += std::format("{} threads, {}: reads {:.1f} GB/s, {:.0f} G 8-bit multiply-adds/s\n",
                       ceiling.threads, ceiling.isa, ceiling.read_speed() / 1e9,
                       ceiling.multiply_add_speed() / 1e9);
  }
  if (!report.work) out += std::format("no bound: {}\n", report.no_work_reason);
  out += std::format("\n{:<8}{:>8}{:>8}{:>6}{:>9}{:>9}{:>7}{:>9}{:>7}{:>8}\n", "runtime", "threads",
                     "context", "rows", "ms/pass", "least", "C(n)", "bound", "over", "pays at");
  const std::vector<CurveReading> curves = read_curves(report);
  for (const CurveReading& curve : curves) {
    for (const PointReading& point : curve.points) out += row_text(curve, point);
  }
  const std::vector<RuntimeRatio> ratios = compare_runtimes(report);
  if (!ratios.empty()) out += "\ntime per pass, median of the repeats (and of the least times)\n";
  for (const RuntimeRatio& ratio : ratios) {
    out += std::format("  {} / {}, context {}, {:>3} rows: {:.2f} ({:.2f})\n",
                       report.runtimes[ratio.over].name, report.runtimes[ratio.under].name,
                       ratio.context, ratio.rows, ratio.median, ratio.of_least);
  }
  std::string best;
  for (const CurveReading& curve : curves) best += best_text(curve, report.draft.has_value());
  if (!best.empty())
    out += "\nbest of the measured depths, by acceptance of each drafted token\n" + best;
  out += std::format(
      "\n{} repeats{}; C(n): over one row. bound: the weights read once or the multiply-\n"
      "adds done, whichever takes longer; over: least time / bound. pays at: acceptance\n"
      "from which a round of rows - 1 drafted tokens is no slower than plain decoding.\n",
      report.measured.repeats, report.measured.complete ? "" : " (broken off)");
  return out;
}

}  // namespace paceline::plan
