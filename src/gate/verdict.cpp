// The rules that turn an interval into a difference and a verdict.
#include <algorithm>
#include <cmath>
#include <format>

#include "core/text.hpp"
#include "gate/judgement_impl.hpp"
#include "gate/statistics.hpp"

namespace paceline::gate {
namespace {

constexpr double k_most_further_pairs = 10000;

/// Why the build that measured may not publish a verdict. Empty: it may.
std::string build_refusal(const record::Environment& environment) {
  std::string build_type = environment.build_type;
  for (char& c : build_type) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (!environment.sanitizers.empty()) {
    return std::format("measured by a sanitizer build ({}), whose times mean nothing",
                       environment.sanitizers);
  }
  if (build_type == "debug") {
    return std::format("measured by a {} build, whose times mean nothing", environment.build_type);
  }
  return {};
}

/// Why verdicts cannot follow from these thresholds. Empty: they can.
std::string policy_refusal(const Policy& policy) {
  for (const double limit :
       {policy.ratio_floor, policy.latency_guard, policy.ttft_guard, policy.parity_low,
        policy.parity_high, policy.sustained_ratio_floor.value_or(policy.ratio_floor)}) {
    if (!std::isfinite(limit) || limit <= 0) {
      return "the policy has a limit that is no positive number";
    }
  }
  return {};
}

Difference difference_of(const Estimate& speedup, const Policy& policy) {
  if (!speedup.value) return Difference::not_measured;
  if (!speedup.low || !speedup.high) return Difference::undecided;
  if (*speedup.low >= policy.parity_low && *speedup.high <= policy.parity_high) {
    return Difference::parity;
  }
  if (*speedup.low > 1) return Difference::faster;
  if (*speedup.high < 1) return Difference::slower;
  return Difference::undecided;
}

/// How many more prompts would settle on which side of the floor the ratio lies, at today's value
/// and spread, with a chance of 80 %.
std::optional<std::size_t> further_pairs(const Comparison& comparison,
                                         const Circumstances& circumstances) {
  const auto mean = stratified_mean(circumstances.log_speedups);
  if (!mean || !mean->standard_error || !(circumstances.policy.ratio_floor > 0)) {
    return std::nullopt;
  }
  const double distance = std::abs(mean->mean - std::log(circumstances.policy.ratio_floor));
  const double reach =
      (normal_quantile(0.5 + circumstances.policy.confidence / 2) + normal_quantile(0.8)) *
      *mean->standard_error;
  const auto now = static_cast<double>(comparison.speedup.n);
  const double wanted = std::max(now * std::pow(reach / distance, 2), now + 1);
  if (!(wanted - now <= k_most_further_pairs)) return std::nullopt;
  return static_cast<std::size_t>(std::ceil(wanted - now));
}

std::string nothing_drafted(const Comparison& comparison, const record::Arm& arm) {
  const std::string so =
      std::format("{} drafted nothing in {}: ", arm.id, counted(comparison.pairs, "pair"));
  if (comparison.draft.rounds == 0) return so + "every text ended with its first token";
  if (arm.num_draft_tokens == 0) return so + "its draft depth is 0";
  switch (arm.kind) {
    case record::ArmKind::lookup:
      return so + "no passage of the prompts or texts came up a second time";
    case record::ArmKind::draft_model:
      if (arm.draft_confidence) {
        return so + std::format("the draft model was never surer than the asked-for {:.2f}",
                                *arm.draft_confidence);
      }
      return so + "the draft model proposed no token; the warnings may say why";
    case record::ArmKind::scripted:
      return so + "its script proposes no token";
    case record::ArmKind::plain:
      break;
  }
  return so + "it has no drafter";
}

std::string outputs_differ(const Comparison& comparison) {
  const std::size_t all =
      comparison.outputs_equal + comparison.outputs_tied + comparison.outputs_different;
  return std::format(
      "outputs differ: in {} of {} the text is not that of plain decoding, and not "
      "by a numeric tie",
      comparison.outputs_different, counted(all, "pair"));
}

std::string guard_broken(const Guard& guard) {
  const bool floor = guard.name == "sustained";
  return std::format("{} ratio {} is {} {:.2f}", guard.name,
                     with_interval(guard.ratio, guard.limit),
                     floor ? "below the floor of" : "beyond the limit of", guard.limit);
}

std::vector<std::string> slow_classes(const std::vector<Judged>& classes) {
  std::vector<std::string> slow;
  for (const Judged& judged : classes) {
    const Estimate& speedup = judged.comparison.speedup;
    if (speedup.high && *speedup.high < 1) {
      slow.push_back(std::format("{} {}", judged.comparison.scope, with_interval(speedup, 1)));
    }
  }
  return slow;
}

class Judge {
 public:
  Judge(Comparison measured, const Circumstances& circumstances)
      : circumstances_(circumstances), policy_(circumstances.policy) {
    result_.comparison = std::move(measured);
    comparison().difference = difference_of(comparison().speedup, policy_);
  }

  Judged run() {
    if (const auto refusal = policy_refusal(policy_); !refusal.empty()) {
      comparison().difference = Difference::not_measured;
      settle(Verdict::not_benchmarkable, Cause::policy, refusal);
    } else if (const auto build = build_refusal(circumstances_.record.environment);
               !build.empty()) {
      comparison().difference = Difference::not_measured;
      settle(Verdict::not_benchmarkable, Cause::build, build);
    } else if (comparison().pairs == 0) {
      settle(Verdict::not_benchmarkable, Cause::not_measured, why_not_measured());
    } else if (circumstances_.record.plan.control) {
      result_.cause = Cause::control;
      if (comparison().outputs_different > 0) {
        comparison().reasons.push_back(outputs_differ(comparison()));
      }
    } else {
      judge_measured();
    }
    return std::move(result_);
  }

 private:
  Comparison& comparison() { return result_.comparison; }

  void settle(Verdict verdict, Cause cause, std::string reason) {
    comparison().verdict = verdict;
    result_.cause = cause;
    result_.settled_by = reason;
    comparison().reasons.push_back(std::move(reason));
  }

  /// The obstacle of the arm, or of its baseline.
  std::string why_not_measured() const {
    const record::Arm& arm = circumstances_.arm;
    for (const record::Obstacle& obstacle : circumstances_.record.obstacles) {
      if (obstacle.arm == arm.id || obstacle.arm == arm.baseline) return obstacle.reason;
    }
    return "no pair could be used";
  }

  void judge_measured() {
    if (comparison().draft.drafted == 0) {
      comparison().difference = Difference::not_exercised;
      settle(Verdict::do_not_enable, Cause::not_exercised,
             nothing_drafted(comparison(), circumstances_.arm));
    } else if (circumstances_.arm.kind == record::ArmKind::scripted) {
      judge_what_if();
    } else {
      judge_interval();
      judge_classes();
      judge_guards();
    }
    if (comparison().outputs_different > 0) {
      settle(Verdict::do_not_enable, Cause::outputs, outputs_differ(comparison()));
      comparison().further_pairs.reset();
    }
  }

  void judge_what_if() {
    settle(Verdict::inconclusive, Cause::what_if,
           std::format("a what-if run: acceptance was forced{}, no drafter was measured",
                       forced_acceptance(circumstances_.arm)));
  }

  void judge_interval() {
    const Estimate& speedup = comparison().speedup;
    const double floor = policy_.ratio_floor;
    if (!speedup.low || !speedup.high) {
      settle(Verdict::inconclusive, Cause::no_interval,
             std::format("no interval: {}", speedup.reason));
    } else if (*speedup.low >= floor) {
      settle(Verdict::enable, Cause::reaches_floor,
             std::format("the lower bound {} reaches the floor of {:.2f}",
                         figure(*speedup.low, floor), floor));
    } else if (*speedup.high < floor) {
      settle(Verdict::do_not_enable, Cause::below_floor,
             std::format("the upper bound {} is below the floor of {:.2f}",
                         figure(*speedup.high, floor), floor));
    } else {
      comparison().further_pairs = further_pairs(comparison(), circumstances_);
      settle(Verdict::inconclusive, Cause::straddles,
             std::format("the interval [{}, {}] contains the floor of {:.2f}",
                         figure(*speedup.low, floor), figure(*speedup.high, floor), floor));
    }
  }

  void judge_guards() {
    for (const Guard& guard : comparison().guards) {
      if (guard.state == "undecided") {
        comparison().notes.push_back(
            std::format("guard {} is undecided: {} against {:.2f}", guard.name,
                        with_interval(guard.ratio, guard.limit), guard.limit));
      }
      if (guard.state != "broken") continue;
      if (comparison().verdict == Verdict::do_not_enable) {
        comparison().reasons.push_back(guard_broken(guard));
      } else {
        settle(Verdict::do_not_enable, Cause::guard, guard_broken(guard));
        comparison().further_pairs.reset();
      }
    }
  }

  void judge_classes() {
    const auto slow = slow_classes(circumstances_.classes);
    if (slow.empty() || comparison().verdict != Verdict::enable) return;
    settle(Verdict::do_not_enable, Cause::slow_class,
           std::format("slower than plain decoding in: {}", join(slow, ", ")));
  }

  const Circumstances& circumstances_;
  const Policy& policy_;
  Judged result_;
};

}  // namespace

std::string_view to_string(Difference difference) {
  switch (difference) {
    case Difference::faster:
      return "faster";
    case Difference::slower:
      return "slower";
    case Difference::parity:
      return "parity";
    case Difference::undecided:
      return "undecided";
    case Difference::not_exercised:
      return "not_exercised";
    case Difference::not_measured:
      return "not_measured";
  }
  return "not_measured";
}

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::enable:
      return "enable";
    case Verdict::do_not_enable:
      return "do_not_enable";
    case Verdict::inconclusive:
      return "inconclusive";
    case Verdict::not_benchmarkable:
      return "not_benchmarkable";
  }
  return "not_benchmarkable";
}

Judged judge(Comparison measured, const Circumstances& circumstances) {
  return Judge(std::move(measured), circumstances).run();
}

}  // namespace paceline::gate
