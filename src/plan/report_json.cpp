#include "core/json.hpp"
#include "core/version.hpp"
#include "embedded_plan.hpp"
#include "plan/report.hpp"

namespace paceline::plan {

namespace {

constexpr int k_schema_version = 1;

Json known(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json to_json(const Ceiling& ceiling) {
  return {{"isa", ceiling.isa},
          {"threads", ceiling.threads},
          {"buffer_bytes", ceiling.buffer_bytes},
          {"read_bytes_per_second", ceiling.read_speed()},
          {"multiply_adds_per_second", ceiling.multiply_add_speed()},
          {"read_bytes_per_second_by_repeat", ceiling.read_bytes_per_second},
          {"multiply_adds_per_second_by_repeat", ceiling.multiply_adds_per_second}};
}

Json to_json(const PointReading& reading) {
  Json speedups = nullptr;
  if (reading.speedups) {
    speedups = Json::array();
    for (std::size_t a = 0; a < k_acceptances.size(); ++a) {
      speedups.push_back({{"acceptance", k_acceptances[a]}, {"speedup", (*reading.speedups)[a]}});
    }
  }
  const Point& point = *reading.point;
  return {{"rows", point.rows},
          {"results", point.results},
          {"median_ms", point.median_ms()},
          {"least_ms", point.least_ms()},
          {"cost", known(reading.cost)},
          {"bound_ms", known(reading.bound_ms)},
          {"over_bound", known(reading.over_bound)},
          {"pays_from_acceptance", known(reading.pays_from)},
          {"speedups", std::move(speedups)},
          {"ms_by_repeat", point.ms}};
}

Json to_json(const CurveReading& reading, const std::string& isa) {
  Json points = Json::array();
  for (const PointReading& point : reading.points) points.push_back(to_json(point));
  Json best = Json::array();
  for (std::size_t a = 0; a < reading.best.size(); ++a) {
    best.push_back({{"acceptance", k_acceptances[a]},
                    {"num_draft_tokens", reading.best[a].first},
                    {"speedup", reading.best[a].second}});
  }
  return {{"runtime", record::to_json(*reading.runtime)},
          {"held_against_isa", isa},
          {"context", reading.curve->context},
          {"draft_token_cost", known(reading.draft_cost)},
          {"points", std::move(points)},
          {"best_depths", std::move(best)}};
}

Json to_json(const std::optional<host::HostState>& state) {
  return state ? record::to_json(*state) : Json(nullptr);
}

}  // namespace

Json to_json(const Report& report) {
  Json ceilings = Json::array();
  for (const Ceiling& ceiling : report.measured.ceilings) ceilings.push_back(to_json(ceiling));
  Json curves = Json::array();
  for (const CurveReading& reading : read_curves(report)) {
    curves.push_back(to_json(reading, report.isas[reading.curve->subject]));
  }
  Json ratios = Json::array();
  for (const RuntimeRatio& ratio : compare_runtimes(report)) {
    ratios.push_back({{"over", ratio.over},
                      {"under", ratio.under},
                      {"context", ratio.context},
                      {"rows", ratio.rows},
                      {"median", ratio.median},
                      {"of_least", ratio.of_least}});
  }
  Json runtimes = Json::array();
  for (const record::RuntimeEvidence& runtime : report.runtimes) {
    runtimes.push_back(record::to_json(runtime));
  }
  Json work = nullptr;
  if (report.work) {
    work = {{"body_bytes", report.work->body_bytes},
            {"body_multiply_adds_per_row", report.work->body_multiply_adds},
            {"head_bytes", report.work->head_bytes},
            {"head_multiply_adds_per_result", report.work->head_multiply_adds}};
  }
  return {{"schema_version", k_schema_version},
          {"paceline_version", k_version},
          {"build_type", k_build_type},
          {"compiler", k_compiler},
          {"generated_at_unix_seconds", report.generated_at_unix_seconds},
          {"target", record::to_json(report.target)},
          {"draft", report.draft ? record::to_json(*report.draft) : Json(nullptr)},
          {"settings",
           {{"sequences", report.settings.sequences},
            {"repeats", report.settings.repeats},
            {"seed", report.settings.seed},
            {"most_verified_rows", k_most_verified_rows}}},
          {"complete", report.measured.complete},
          {"repeats", report.measured.repeats},
          {"pass_work", std::move(work)},
          {"no_pass_work_reason", report.work ? Json(nullptr) : Json(report.no_work_reason)},
          {"ceilings", std::move(ceilings)},
          {"runtimes", std::move(runtimes)},
          {"curves", std::move(curves)},
          {"runtime_ratios", std::move(ratios)},
          {"host", record::to_json(report.host)},
          {"host_at_start", to_json(report.host_at_start)},
          {"host_at_end", to_json(report.host_at_end)}};
}

std::string_view plan_schema() { return embedded::embedded_plan().front().contents; }

}  // namespace paceline::plan
