// The cost curve as people and machines read it, with what follows from it.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_fwd.hpp"
#include "host/host.hpp"
#include "plan/cost_curve.hpp"
#include "plan/pass_work.hpp"
#include "record/record.hpp"

namespace paceline::plan {

/// Everything that was measured and under what circumstances.
struct Report {
  record::ModelEvidence target;
  std::optional<record::ModelEvidence> draft;
  std::vector<record::RuntimeEvidence> runtimes;  // of the target, in the order of subjects
  std::vector<record::RuntimeEvidence> drafts;    // empty, or one for each of `runtimes`
  std::vector<std::string> isas;                  // that each of `runtimes` is held against
  CurveSettings settings;
  Measured measured;  // subjects: `runtimes`, then `drafts`
  std::optional<PassWork> work;
  std::string no_work_reason;  // where `work` is absent
  host::HostInfo host;
  std::optional<host::HostState> host_at_start;
  std::optional<host::HostState> host_at_end;
  double generated_at_unix_seconds = 0;
};

/// Acceptances for which the best depth is told.
inline constexpr std::array<double, 3> k_acceptances = {0.6, 0.8, 0.95};

/// What one number of rows of one runtime means.
struct PointReading {
  const Point* point = nullptr;
  std::optional<double> cost;  // C(n): over one row, median of the repeats
  std::optional<double> bound_ms;
  std::optional<double> over_bound;  // least time over the bound
  /// Of a round that verifies this many rows, where one row was measured too.
  std::optional<double> pays_from;  // acceptance; absent where no acceptance is enough
  std::optional<std::array<double, k_acceptances.size()>> speedups;
};

struct CurveReading {
  const Curve* curve = nullptr;
  const record::RuntimeEvidence* runtime = nullptr;
  std::optional<double> draft_cost;  // of one drafted token, in plain steps
  std::vector<PointReading> points;
  /// For each acceptance the depth that is fastest (0: plain decoding) and its speedup.
  std::vector<std::pair<std::size_t, double>> best;  // empty where one row was not measured
};
std::vector<CurveReading> read_curves(const Report& report);

/// Time per pass of one runtime over another's, by number of rows.
struct RuntimeRatio {
  std::size_t over = 0;  // index into `runtimes`: the numerator
  std::size_t under = 0;
  std::size_t context = 0;
  std::size_t rows = 0;
  double median = 0;    // of the ratios of each repeat
  double of_least = 0;  // ratio of the least times
};
/// Every later runtime against the first.
std::vector<RuntimeRatio> compare_runtimes(const Report& report);

/// What `to_text` begins with.
inline constexpr std::string_view k_first_words = "cost of a pass of ";
std::string to_text(const Report& report);
Json to_json(const Report& report);
std::string_view plan_schema();

}  // namespace paceline::plan
