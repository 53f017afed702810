// A measured comparison with the cause of its verdict. Internal to gate.
#pragma once

#include <string>
#include <vector>

#include "gate/gate.hpp"
#include "gate/pairing_impl.hpp"
#include "record/record.hpp"

namespace paceline::gate {

/// What settled a verdict. The sentence is built around it.
enum class Cause {
  control,        // none is given
  policy,         // its thresholds are no numbers
  build,          // a debug or sanitizer build measured
  not_measured,   // no usable pair
  outputs,        // the texts differ
  not_exercised,  // nothing was drafted
  what_if,        // acceptance was forced
  below_floor,
  guard,       // a guard rail is broken
  slow_class,  // overall it pays, but a class is slower
  reaches_floor,
  no_interval,
  straddles,  // the interval contains the floor
};

struct Judged {
  Comparison comparison;
  Cause cause = Cause::not_measured;
  std::string settled_by;  // the one of the reasons that settled it
};

/// What a verdict depends on beside the comparison itself.
struct Circumstances {
  const record::Record& record;
  const record::Arm& arm;
  const Policy& policy;
  std::vector<std::vector<double>> log_speedups;  // by stratum
  std::vector<Judged> classes;                    // of an overall comparison, else empty
};

/// Fills difference, verdict, further_pairs and reasons of a measured comparison.
Judged judge(Comparison measured, const Circumstances& circumstances);

/// The verdict on an arm's overall comparison as one plain sentence.
std::string sentence_of(const Judged& overall, const Circumstances& circumstances);
/// The same for a record in which nothing could be compared.
std::string nothing_compared(const record::Record& record);

// Words shared by reasons, notes and sentences.

/// "0.71x [0.66, 0.76]"; with as many digits as tell the numbers from `limit`.
std::string with_interval(const Estimate& estimate, double limit);
/// 1.15; with as many digits as tell it from `limit`.
std::string figure(double value, double limit);
/// "1 prompt", "48 prompts".
std::string counted(std::size_t count, std::string_view noun);
std::string target_name(const record::Record& record);
/// " to 0.80" for a scripted arm that forces an acceptance, else nothing.
std::string forced_acceptance(const record::Arm& arm);

}  // namespace paceline::gate
