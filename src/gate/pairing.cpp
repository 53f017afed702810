// Pairs samples within blocks and finds the tokens over which both arms can be timed.
#include <algorithm>
#include <cmath>
#include <format>
#include <set>
#include <utility>

#include "gate/pairing_impl.hpp"
#include "gate/statistics.hpp"

namespace paceline::gate {
namespace {

using record::Block;
using record::CellStatus;
using record::Record;
using record::Sample;

const Sample* find_sample(const Block& block, std::string_view arm) {
  const auto found = std::ranges::find(block.samples, arm, &Sample::arm);
  return found == block.samples.end() ? nullptr : &*found;
}

std::size_t common_prefix(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

/// The token ids decide; whether a difference is a tie only the run could know.
Outputs compare_outputs(const Block& block, const Sample& plain, const Sample& speculative) {
  if (plain.tokens == speculative.tokens) return Outputs::equal;
  for (const auto& comparison : block.comparisons) {
    if (comparison.arm == speculative.arm && comparison.baseline == plain.arm &&
        comparison.numeric_tie) {
      return Outputs::tied;
    }
  }
  return Outputs::different;
}

/// Tokens arrive in bursts: after `tokens` of them, `at_ns` had passed.
struct Delivery {
  std::size_t tokens = 0;
  std::int64_t at_ns = 0;
};

std::vector<Delivery> deliveries(const Sample& sample) {
  std::vector<Delivery> result;
  if (sample.tokens.empty()) return result;
  result.push_back({.tokens = 1, .at_ns = sample.first_token_ns});
  for (const auto& round : sample.rounds) {
    if (round.emitted == 0) continue;
    const std::size_t before = result.back().tokens;
    const std::size_t left = sample.tokens.size() - before;
    if (left == 0) break;
    result.push_back({.tokens = before + std::min<std::size_t>(round.emitted, left),
                      .at_ns = round.delivered_ns});
  }
  return result;
}

/// Times to deliver a number of tokens, by that number. None where the clock went backwards.
std::optional<std::map<std::size_t, std::int64_t>> times_by_tokens(const Sample& sample) {
  std::map<std::size_t, std::int64_t> times;
  std::int64_t last = 0;
  for (const Delivery& delivery : deliveries(sample)) {
    if (delivery.at_ns < last) return std::nullopt;
    last = delivery.at_ns;
    times[delivery.tokens] = delivery.at_ns;
  }
  if (sample.elapsed_ns < last) return std::nullopt;
  return times;
}

/// Why the two texts share so little, for a pair that is left out.
std::string too_short(std::size_t common, std::size_t horizon, std::optional<std::size_t> loop) {
  if (loop && *loop <= common) {
    return std::format("the text loops after {} tokens, too early to time", *loop);
  }
  if (horizon < common) {
    return std::format("the texts share {} tokens but were delivered together up to {} only",
                       common, horizon);
  }
  return std::format("the texts part after {} tokens, too early to time", common);
}

/// Sets the pair's horizon and times, or why there are none.
void time_pair(Pair& pair) {
  const Sample& plain = *pair.plain;
  const Sample& speculative = *pair.speculative;
  const std::size_t longer = std::max(plain.tokens.size(), speculative.tokens.size());
  if (longer <= 1 || plain.tokens.empty() || speculative.tokens.empty()) {
    pair.left_out = "the text ended at once";
    return;
  }
  const auto plain_times = times_by_tokens(plain);
  const auto speculative_times = times_by_tokens(speculative);
  if (!plain_times || !speculative_times) {
    pair.left_out = "the clock went backwards";
    return;
  }
  const std::size_t common = common_prefix(plain.tokens, speculative.tokens);
  const auto loop = loop_onset(plain.tokens);
  const std::size_t limit = std::min(common, loop.value_or(common));
  if (limit == longer) {  // both whole texts, equal
    pair.horizon = limit;
    pair.plain_ns = static_cast<double>(plain.elapsed_ns);
    pair.speculative_ns = static_cast<double>(speculative.elapsed_ns);
  } else {
    for (const auto& [tokens, at_ns] : *speculative_times) {
      const auto same = plain_times->find(tokens);
      if (tokens > limit || same == plain_times->end()) continue;
      pair.horizon = tokens;
      pair.plain_ns = static_cast<double>(same->second);
      pair.speculative_ns = static_cast<double>(at_ns);
    }
    if (pair.horizon < k_shortest_horizon) {
      pair.left_out = too_short(common, pair.horizon, loop);
      return;
    }
  }
  if (!(pair.plain_ns > 0 && pair.speculative_ns > 0)) {
    pair.left_out = "the clock stood still";
    return;
  }
  pair.log_speedup = std::log(pair.plain_ns / pair.speculative_ns);
  const double plain_decode = pair.plain_ns - static_cast<double>(plain.first_token_ns);
  const double speculative_decode =
      pair.speculative_ns - static_cast<double>(speculative.first_token_ns);
  if (plain_decode > 0 && speculative_decode > 0) {
    pair.log_decode_speedup = std::log(plain_decode / speculative_decode);
  }
}

void time_first_token(Pair& pair) {
  const auto plain = static_cast<double>(pair.plain->first_token_ns);
  const auto speculative = static_cast<double>(pair.speculative->first_token_ns);
  if (pair.plain->tokens.empty() || pair.speculative->tokens.empty()) return;
  if (plain > 0 && speculative > 0) pair.log_ttft_ratio = std::log(speculative / plain);
}

/// How a sample's time arises: so much per prompt token, so much per round.
struct Pace {
  double prompt_token_ns = 0;
  double round_ns = 0;
};

std::optional<Pace> pace_of_others(const Record& record, const Sample& one) {
  std::vector<double> per_prompt_token;
  std::vector<double> per_round;
  for (const Block& block : record.blocks) {
    if (block.status != CellStatus::ok) continue;
    for (const Sample& sample : block.samples) {
      if (&sample == &one || sample.arm != one.arm) continue;
      const auto prefill = static_cast<double>(sample.prefill_ns);
      if (sample.prompt_tokens > 0) {
        per_prompt_token.push_back(prefill / static_cast<double>(sample.prompt_tokens));
      }
      if (!sample.rounds.empty()) {
        per_round.push_back((static_cast<double>(sample.elapsed_ns) - prefill) /
                            static_cast<double>(sample.rounds.size()));
      }
    }
  }
  if (per_prompt_token.size() < 4 || per_round.size() < 4) return std::nullopt;
  return Pace{.prompt_token_ns = *median(per_prompt_token), .round_ns = *median(per_round)};
}

struct ColdStart {
  const Sample* sample = nullptr;
  double times = 1;
};

/// The sample that ran first of all, where it was far slower than the arm's others.
std::optional<ColdStart> cold_start(const Record& record) {
  if (record.blocks.empty() || record.blocks.front().status != CellStatus::ok) return std::nullopt;
  const auto& samples = record.blocks.front().samples;
  const auto first = std::ranges::min_element(samples, {}, &Sample::order);
  if (first == samples.end()) return std::nullopt;
  const auto pace = pace_of_others(record, *first);
  if (!pace) return std::nullopt;
  const double expected = pace->prompt_token_ns * static_cast<double>(first->prompt_tokens) +
                          pace->round_ns * static_cast<double>(first->rounds.size());
  const double times = static_cast<double>(first->elapsed_ns) / expected;
  if (!(expected > 0) || !(times >= k_cold_start)) return std::nullopt;
  return ColdStart{.sample = &*first, .times = times};
}

Pair make_pair_of(const Block& block, const Sample& plain, const Sample& speculative,
                  const std::optional<ColdStart>& cold) {
  Pair pair;
  pair.block = &block;
  pair.plain = &plain;
  pair.speculative = &speculative;
  pair.outputs = compare_outputs(block, plain, speculative);
  if (cold && (cold->sample == &plain || cold->sample == &speculative)) {
    pair.left_out =
        std::format("the run's first sample ({}) took {:.1f} times what it should: a cold start",
                    cold->sample->arm, cold->times);
    return pair;
  }
  time_pair(pair);
  time_first_token(pair);
  return pair;
}

bool stands_alone(std::string_view content_class) {
  return content_class == "custom" || content_class.empty();
}

/// Names scopes: classes by their own name, custom fixtures by their id, never two alike.
class ScopeNames {
 public:
  explicit ScopeNames(const Record& record) {
    taken_.insert("overall");
    for (const auto& fixture : record.plan.fixtures) take(fixture.content_class);
    for (const auto& block : record.blocks) take(block.content_class);
  }

  std::string of(const std::string& content_class, const std::string& fixture) const {
    if (!stands_alone(content_class)) {
      return content_class == "overall" ? "class:overall" : content_class;
    }
    return taken_.contains(fixture) ? "custom:" + fixture : fixture;
  }

 private:
  void take(const std::string& content_class) {
    if (!stands_alone(content_class)) taken_.insert(content_class);
  }
  std::set<std::string> taken_;
};

Scope& scope_named(std::vector<Scope>& scopes, const std::string& name) {
  const auto found = std::ranges::find(scopes, name, &Scope::name);
  if (found != scopes.end()) return *found;
  scopes.push_back({});
  scopes.back().name = name;
  return scopes.back();
}

using PromptKey = std::pair<std::string_view, std::string_view>;

PromptKey prompt_key(const Pair& pair) { return {pair.block->fixture, pair.block->prompt}; }

}  // namespace

std::vector<Scope> make_scopes(const Record& record, const record::Arm& arm,
                               std::string_view baseline) {
  const ScopeNames names(record);
  std::vector<Scope> scopes;
  for (const auto& fixture : record.plan.fixtures) {
    scope_named(scopes, names.of(fixture.content_class, fixture.id)).planned_prompts +=
        fixture.prompts;
  }
  const auto cold = cold_start(record);
  for (const Block& block : record.blocks) {
    Scope& scope = scope_named(scopes, names.of(block.content_class, block.fixture));
    const Sample* plain = find_sample(block, baseline);
    const Sample* speculative = find_sample(block, arm.id);
    if (block.status != CellStatus::ok || plain == nullptr || speculative == nullptr) {
      scope.blocks_not_ok.push_back(&block);
      continue;
    }
    scope.pairs.push_back(make_pair_of(block, *plain, *speculative, cold));
  }
  return scopes;
}

std::vector<double> prompt_means(const std::vector<Pair>& pairs,
                                 std::optional<double> Pair::* value) {
  std::map<PromptKey, std::size_t> positions;
  std::vector<double> sums;
  std::vector<double> counts;
  for (const Pair& pair : pairs) {
    if (!(pair.*value)) continue;
    const auto [position, is_new] = positions.try_emplace(prompt_key(pair), sums.size());
    if (is_new) {
      sums.push_back(0);
      counts.push_back(0);
    }
    sums[position->second] += *(pair.*value);
    counts[position->second] += 1;
  }
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] /= counts[i];
  return sums;
}

std::vector<std::vector<std::size_t>> prompt_clusters(const std::vector<Pair>& pairs) {
  std::map<PromptKey, std::size_t> positions;
  std::vector<std::vector<std::size_t>> clusters;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (!pairs[i].log_speedup) continue;
    const auto [position, is_new] = positions.try_emplace(prompt_key(pairs[i]), clusters.size());
    if (is_new) clusters.emplace_back();
    clusters[position->second].push_back(i);
  }
  return clusters;
}

}  // namespace paceline::gate
