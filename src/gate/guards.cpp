// Guard rails over p95 latency, time to the first token, and sustained speed.
#include "gate/guards_impl.hpp"

#include <algorithm>
#include <cmath>
#include <format>
#include <optional>
#include <span>

#include "gate/statistics.hpp"

namespace paceline::gate {
namespace {

using record::Sample;

constexpr double k_p95 = 0.95;
constexpr std::size_t k_p95_is_maximum_below = 20;
constexpr std::size_t k_p95_has_no_bound_below = 59;  // 0.95^59 < 0.05

enum class LimitIs { ceiling, floor };

/// Broken only where the whole interval lies beyond the limit.
std::string state_of(const Estimate& ratio, double limit, LimitIs limit_is) {
  if (!ratio.value) return "not_measured";
  if (!ratio.low || !ratio.high) return "undecided";
  if (limit_is == LimitIs::ceiling) {
    if (*ratio.high <= limit) return "ok";
    return *ratio.low > limit ? "broken" : "undecided";
  }
  if (*ratio.low >= limit) return "ok";
  return *ratio.high < limit ? "broken" : "undecided";
}

/// p95 over p95 of the pairs at the given positions of each scope's clusters.
class LatencyRatio {
 public:
  explicit LatencyRatio(const Scopes& scopes) : scopes_(scopes) {
    for (const Scope* scope : scopes) {
      clusters_.push_back(prompt_clusters(scope->pairs));
      sizes_.push_back(clusters_.back().size());
    }
  }

  const std::vector<std::size_t>& sizes() const { return sizes_; }

  std::optional<double> operator()(const std::vector<std::vector<std::size_t>>& drawn) {
    plain_.clear();
    speculative_.clear();
    for (std::size_t c = 0; c < drawn.size(); ++c) {
      for (const std::size_t cluster : drawn[c]) {
        for (const std::size_t position : clusters_[c][cluster]) {
          plain_.push_back(scopes_[c]->pairs[position].plain_ns);
          speculative_.push_back(scopes_[c]->pairs[position].speculative_ns);
        }
      }
    }
    const auto plain = nearest_rank_of(plain_, k_p95);
    const auto speculative = nearest_rank_of(speculative_, k_p95);
    if (!plain || !speculative || !(*plain > 0)) return std::nullopt;
    return *speculative / *plain;
  }

  std::size_t pairs() const { return plain_.size(); }

 private:
  const Scopes& scopes_;
  std::vector<std::vector<std::vector<std::size_t>>> clusters_;
  std::vector<std::size_t> sizes_;
  std::vector<double> plain_;
  std::vector<double> speculative_;
};

std::vector<std::vector<std::size_t>> every_cluster(const std::vector<std::size_t>& sizes) {
  std::vector<std::vector<std::size_t>> all;
  for (const std::size_t size : sizes) {
    all.emplace_back();
    for (std::size_t i = 0; i < size; ++i) all.back().push_back(i);
  }
  return all;
}

std::string percentile_note(std::size_t pairs) {
  if (pairs == 0 || pairs >= k_p95_has_no_bound_below) return {};
  const std::string bound =
      std::format("below {} pairs a p95 has no 95 % upper bound", k_p95_has_no_bound_below);
  if (pairs >= k_p95_is_maximum_below) return std::format("n = {}: {}", pairs, bound);
  return std::format("n = {}: the p95 is the maximum, and {}", pairs, bound);
}

void set_interval(Estimate& estimate, const std::optional<Interval>& interval, std::string reason) {
  if (interval) {
    estimate.low = interval->low;
    estimate.high = interval->high;
    estimate.method = "bootstrap";
  } else {
    estimate.method = "none";
    estimate.reason = std::move(reason);
  }
}

double tokens_per_s(const Sample& sample) {
  return static_cast<double>(sample.tokens.size()) /
         std::max(static_cast<double>(sample.elapsed_ns) / 1e9, 1e-9);
}

/// The end of the window, or of its last sample where it was broken off.
double end_of(const record::Sustained& sustained) {
  double end = sustained.ended_at_unix_seconds;
  for (const Sample& sample : sustained.samples) {
    end = std::max(end, sample.ended_at_unix_seconds);
  }
  return end;
}

std::vector<double> last_window_speeds(const record::Sustained& sustained, std::string_view arm) {
  const double window_start = end_of(sustained) - sustained.last_window_seconds;
  std::vector<double> speeds;
  for (const Sample& sample : sustained.samples) {
    if (sample.arm == arm && sample.ended_at_unix_seconds >= window_start) {
      speeds.push_back(tokens_per_s(sample));
    }
  }
  return speeds;
}

/// "plain 0.93x": the last third's median speed over the first third's.
std::optional<std::string> drift(const record::Sustained& sustained, const std::string& arm) {
  std::vector<double> speeds;
  for (const Sample& sample : sustained.samples) {
    if (sample.arm == arm) speeds.push_back(tokens_per_s(sample));
  }
  const std::size_t third = speeds.size() / 3;
  if (third == 0) return std::nullopt;
  const double first = *median(std::span(speeds).first(third));
  const double last = *median(std::span(speeds).last(third));
  if (!(first > 0)) return std::nullopt;
  return std::format("{} {:.2f}x", arm, last / first);
}

}  // namespace

Guard latency_guard(const Scopes& scopes, const Policy& policy) {
  Guard guard{
      .name = "p95_latency", .state = {}, .ratio = {}, .limit = policy.latency_guard, .note = {}};
  LatencyRatio ratio(scopes);
  guard.ratio.value = ratio(every_cluster(ratio.sizes()));
  const std::size_t pairs = ratio.pairs();
  for (const std::size_t size : ratio.sizes()) guard.ratio.n += size;
  if (guard.ratio.value) {
    set_interval(guard.ratio,
                 percentile_bootstrap(
                     ratio.sizes(), [&](const auto& drawn) { return ratio(drawn); },
                     policy.confidence, policy.seed),
                 "an interval needs two prompts");
  } else {
    set_interval(guard.ratio, std::nullopt, "no pair could be used");
  }
  guard.state = state_of(guard.ratio, guard.limit, LimitIs::ceiling);
  guard.note = percentile_note(pairs);
  return guard;
}

Guard ttft_guard(const Estimate& ttft_ratio, const Policy& policy) {
  return {.name = "ttft",
          .state = state_of(ttft_ratio, policy.ttft_guard, LimitIs::ceiling),
          .ratio = ttft_ratio,
          .limit = policy.ttft_guard,
          .note = {}};
}

Guard sustained_guard(const record::Record& record, const record::Arm& arm,
                      const std::string& baseline, const Policy& policy) {
  Guard guard{.name = "sustained",
              .state = {},
              .ratio = {},
              .limit = policy.sustained_ratio_floor.value_or(policy.ratio_floor),
              .note = {}};
  guard.ratio.method = "none";
  if (!record.sustained) {
    guard.ratio.reason = "no sustained window was run";
    guard.state = "not_measured";
    return guard;
  }
  const auto plain = last_window_speeds(*record.sustained, baseline);
  const auto speculative = last_window_speeds(*record.sustained, arm.id);
  guard.ratio.n = std::min(plain.size(), speculative.size());
  const auto plain_median = median(plain);
  const auto speculative_median = median(speculative);
  if (plain_median && speculative_median && *plain_median > 0) {
    guard.ratio.value = *speculative_median / *plain_median;
    std::optional<Interval> interval;
    if (guard.ratio.n >= 2) {
      const auto statistic = [&](const std::vector<std::vector<std::size_t>>& drawn) {
        std::vector<double> a;
        std::vector<double> b;
        for (const std::size_t i : drawn[0]) a.push_back(plain[i]);
        for (const std::size_t i : drawn[1]) b.push_back(speculative[i]);
        const double denominator = *median(a);
        return denominator > 0 ? std::optional(*median(b) / denominator) : std::nullopt;
      };
      interval = percentile_bootstrap({plain.size(), speculative.size()}, statistic,
                                      policy.confidence, policy.seed);
    }
    set_interval(guard.ratio, interval, "an interval needs two samples of each arm in the window");
  } else {
    guard.ratio.reason = "the last window holds no sample of one arm";
  }
  guard.state = state_of(guard.ratio, guard.limit, LimitIs::floor);
  const auto plain_drift = drift(*record.sustained, baseline);
  const auto speculative_drift = drift(*record.sustained, arm.id);
  if (plain_drift && speculative_drift) {
    guard.note = std::format("speed of the last third over the first: {}, {}", *plain_drift,
                             *speculative_drift);
  }
  return guard;
}

}  // namespace paceline::gate
