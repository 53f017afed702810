// The verdict in plain words.
#include <algorithm>
#include <cmath>
#include <format>

#include "core/text.hpp"
#include "gate/judgement_impl.hpp"

namespace paceline::gate {
namespace {

std::string shown(double value, int digits) {
  if (value >= 1e6) return std::format("{:.3g}", value);
  return std::format("{:.{}f}", value, digits);
}

/// Digits that show on which side of `limit` a value lies.
int digits_for(double value, double limit) {
  int digits = 2;
  while (digits < 5 && value != limit && shown(value, digits) == shown(limit, digits)) ++digits;
  return digits;
}

/// "48 prompts", or "31 of 48 prompts" where more were planned.
std::string prompts_of(const Comparison& comparison, const record::Record& record) {
  std::size_t planned = 0;
  for (const auto& fixture : record.plan.fixtures) planned += fixture.prompts;
  const std::size_t used = comparison.speedup.n;
  if (planned > used && used > 0) return std::format("{} of {} prompts", used, planned);
  return counted(used, "prompt");
}

const Judged* extreme_class(const std::vector<Judged>& classes, bool best) {
  const Judged* found = nullptr;
  for (const Judged& judged : classes) {
    const auto& value = judged.comparison.speedup.value;
    if (!value || judged.comparison.difference == Difference::not_exercised) continue;
    if (found == nullptr || (best ? *value > *found->comparison.speedup.value
                                  : *value < *found->comparison.speedup.value)) {
      found = &judged;
    }
  }
  return found;
}

/// "; best class edit 1.10x [1.02, 1.19]", where there are several classes.
std::string class_clause(const Circumstances& circumstances, bool best) {
  if (circumstances.classes.size() < 2) return {};
  const Judged* found = extreme_class(circumstances.classes, best);
  if (found == nullptr) return {};
  return std::format("; {} class {} {}", best ? "best" : "weakest", found->comparison.scope,
                     with_interval(found->comparison.speedup, circumstances.policy.ratio_floor));
}

std::string measured_clause(const Comparison& comparison, const Circumstances& circumstances) {
  return std::format("{} over {}",
                     with_interval(comparison.speedup, circumstances.policy.ratio_floor),
                     prompts_of(comparison, circumstances.record));
}

const Guard* broken_guard(const Comparison& comparison) {
  const auto found = std::ranges::find(comparison.guards, "broken", &Guard::state);
  return found == comparison.guards.end() ? nullptr : &*found;
}

std::string guard_words(const Guard& guard) {
  const std::string ratio = with_interval(guard.ratio, guard.limit);
  if (guard.name == "p95_latency") {
    return std::format("its p95 latency is {} that of plain decoding, beyond the limit of {:.2f}",
                       ratio, guard.limit);
  }
  if (guard.name == "ttft") {
    return std::format(
        "its time to the first token is {} that of plain decoding, beyond the limit of {:.2f}",
        ratio, guard.limit);
  }
  return std::format(
      "in continuous use its speed is {} that of plain decoding, below the floor "
      "of {:.2f}",
      ratio, guard.limit);
}

std::string control_sentence(const Comparison& comparison, const Circumstances& circumstances) {
  const std::string measured =
      std::format("plain against plain {} over {}", with_interval(comparison.speedup, 1),
                  prompts_of(comparison, circumstances.record));
  const auto& policy = circumstances.policy;
  switch (comparison.difference) {
    case Difference::parity:
      return std::format("No bias shown: {} lies within {:.2f} to {:.2f}.", measured,
                         policy.parity_low, policy.parity_high);
    case Difference::faster:
    case Difference::slower:
      return std::format("The harness or this host is biased: {}, where 1.00x was due.", measured);
    case Difference::undecided:
    case Difference::not_exercised:
    case Difference::not_measured:
      break;
  }
  return std::format(
      "Undecided whether the harness is biased: {} is too wide to lie within "
      "{:.2f} to {:.2f}.",
      measured, policy.parity_low, policy.parity_high);
}

/// Why not, as the clause after "Do not enable X for Y on this host: ".
std::string why_not(const Judged& overall, const Circumstances& circumstances) {
  const Comparison& comparison = overall.comparison;
  const std::string measured = measured_clause(comparison, circumstances);
  switch (overall.cause) {
    case Cause::outputs:
      return std::format(
          "its text differs from plain decoding in {} of {}, and not by a numeric "
          "tie ({})",
          comparison.outputs_different,
          counted(comparison.outputs_equal + comparison.outputs_tied + comparison.outputs_different,
                  "pair"),
          measured);
    case Cause::not_exercised:
      return overall.settled_by;
    case Cause::guard:
      if (const Guard* guard = broken_guard(comparison)) {
        return std::format("{} ({})", guard_words(*guard), measured);
      }
      break;
    case Cause::slow_class:
      return std::format("{} would reach the floor of {:.2f}, but it is {}", measured,
                         circumstances.policy.ratio_floor, overall.settled_by);
    default:
      break;
  }
  return std::format("{}, below the floor of {:.2f}{}", measured, circumstances.policy.ratio_floor,
                     class_clause(circumstances, true));
}

std::string inconclusive_sentence(const Judged& overall, const Circumstances& circumstances,
                                  const std::string& who) {
  const Comparison& comparison = overall.comparison;
  if (overall.cause == Cause::no_interval) {
    return std::format("Inconclusive for {}: {} over {}, and {}.", who,
                       with_interval(comparison.speedup, circumstances.policy.ratio_floor),
                       prompts_of(comparison, circumstances.record), comparison.speedup.reason);
  }
  const std::string further =
      comparison.further_pairs
          ? std::format("about {} more would probably decide it",
                        counted(*comparison.further_pairs, "prompt"))
          : std::string("it lies so near the floor that more prompts will hardly decide it");
  return std::format("Inconclusive for {}: {} straddles the floor of {:.2f}; {}.", who,
                     measured_clause(comparison, circumstances), circumstances.policy.ratio_floor,
                     further);
}

std::string what_if_sentence(const Judged& overall, const Circumstances& circumstances) {
  return std::format(
      "What if: with acceptance forced{}, {} runs {} at {}; no drafter was measured.",
      forced_acceptance(circumstances.arm), circumstances.arm.id, target_name(circumstances.record),
      measured_clause(overall.comparison, circumstances));
}

}  // namespace

std::string figure(double value, double limit) { return shown(value, digits_for(value, limit)); }

std::string with_interval(const Estimate& estimate, double limit) {
  if (!estimate.value) return "not measured";
  if (!estimate.low || !estimate.high) return figure(*estimate.value, limit) + "x";
  const int digits = std::max(digits_for(*estimate.low, limit), digits_for(*estimate.high, limit));
  return std::format("{}x [{}, {}]", shown(*estimate.value, digits), shown(*estimate.low, digits),
                     shown(*estimate.high, digits));
}

std::string counted(std::size_t count, std::string_view noun) {
  return std::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string forced_acceptance(const record::Arm& arm) {
  if (!arm.scripted_acceptance || !std::isfinite(*arm.scripted_acceptance)) return {};
  return std::format(" to {:.2f}", *arm.scripted_acceptance);
}

std::string target_name(const record::Record& record) {
  // As the user named it; of a path the last part. Files' own names are often those of checkpoints.
  const std::string& name = record.environment.target.name;
  return name.empty() ? "the target" : name.substr(name.find_last_of('/') + 1);
}

std::string sentence_of(const Judged& overall, const Circumstances& circumstances) {
  const Comparison& comparison = overall.comparison;
  const std::string who = std::format("{} with {} on this host", circumstances.arm.id,
                                      target_name(circumstances.record));
  if (overall.cause == Cause::control) return control_sentence(comparison, circumstances);
  if (overall.cause == Cause::what_if) return what_if_sentence(overall, circumstances);
  const std::string what = std::format("{} for {} on this host", circumstances.arm.id,
                                       target_name(circumstances.record));
  switch (comparison.verdict) {
    case Verdict::enable:
      return std::format("Enable {}: {}, not below the floor of {:.2f}{}.", what,
                         measured_clause(comparison, circumstances),
                         circumstances.policy.ratio_floor, class_clause(circumstances, false));
    case Verdict::do_not_enable:
      return std::format("Do not enable {}: {}.", what, why_not(overall, circumstances));
    case Verdict::inconclusive:
      return inconclusive_sentence(overall, circumstances, who);
    case Verdict::not_benchmarkable:
      break;
  }
  return std::format("Not benchmarkable: {}: {}.", who, join(comparison.reasons, "; "));
}

std::string nothing_compared(const record::Record& record) {
  std::string why = "the plan has no arm beside the plain one";
  if (record.plan.arms.empty()) why = "the plan has no arm";
  if (!record.incomplete_reason.empty()) why += std::format(" ({})", record.incomplete_reason);
  return std::format("Not benchmarkable: {} was not compared with anything: {}.",
                     target_name(record), why);
}

}  // namespace paceline::gate
