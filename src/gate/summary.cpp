// Derives an arm's aggregates from its raw samples. Definitions: docs/glossary.md.
#include <algorithm>
#include <array>
#include <cmath>
#include <format>

#include "gate/statistics.hpp"
#include "gate/summary_impl.hpp"

namespace paceline::gate {
namespace {

using record::Round;
using record::Sample;

constexpr double k_ns_per_ms = 1e6;

std::optional<double> ratio(double numerator, double denominator) {
  if (!(denominator > 0)) return std::nullopt;
  return numerator / denominator;
}

/// Counts by position, from one sample. `tried[i]`: drafted at i when all before it were accepted.
struct Positions {
  std::vector<double> tried;
  std::vector<double> accepted;
};

/// True where the rounds are chains, so that they tell what was drafted and accepted where.
bool rounds_are_chains(const Sample& sample) {
  for (std::size_t i = 0; i < sample.accepted_at.size(); ++i) {
    std::uint64_t drafted = 0;
    std::uint64_t accepted = 0;
    for (const Round& round : sample.rounds) {
      drafted += round.drafted > i ? 1 : 0;
      accepted += round.accepted > i ? 1 : 0;
    }
    if (i >= sample.drafted_at.size() || drafted != sample.drafted_at[i]) return false;
    if (accepted != sample.accepted_at[i]) return false;
  }
  return true;
}

Positions positions_of(const Sample& sample) {
  Positions result;
  const std::size_t depth = std::min(sample.drafted_at.size(), sample.accepted_at.size());
  const bool chains = rounds_are_chains(sample);
  for (std::size_t i = 0; i < depth; ++i) {
    double tried = 0;
    if (chains) {
      for (const Round& round : sample.rounds) {
        tried += round.drafted > i && round.accepted >= i ? 1 : 0;
      }
    } else {
      tried = sample.drafted_at[i];
      if (i > 0) tried = std::min<double>(tried, sample.accepted_at[i - 1]);
    }
    result.tried.push_back(tried);
    result.accepted.push_back(sample.accepted_at[i]);
  }
  return result;
}

void add(std::vector<double>& sums, const std::vector<double>& values) {
  if (sums.size() < values.size()) sums.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) sums[i] += values[i];
}

double rounds_ns(const Sample& sample) {
  double sum = 0;
  for (const Round& round : sample.rounds) {
    for (const std::int64_t part :
         {round.draft_ns, round.verify_ns, round.accept_ns, round.other_ns}) {
      sum += static_cast<double>(part);
    }
  }
  return sum;
}

bool accepts_more_than_drafted(const Sample& sample) {
  return std::ranges::any_of(sample.rounds,
                             [](const Round& round) { return round.accepted > round.drafted; });
}

bool emits_more_than_accepted(const Sample& sample) {
  return std::ranges::any_of(sample.rounds, [](const Round& round) {
    return round.emitted > std::uint64_t{round.accepted} + 1 || round.accepted > round.emitted;
  });
}

bool loses_count_of_tokens(const Sample& sample) {
  std::uint64_t emitted = sample.tokens.empty() ? 0 : 1;
  for (const Round& round : sample.rounds) emitted += round.emitted;
  return emitted != sample.tokens.size();
}

bool positions_disagree(const Sample& sample) {
  std::uint64_t by_round = 0;
  std::uint64_t by_position = 0;
  for (const Round& round : sample.rounds) by_round += round.accepted;
  for (const std::uint32_t count : sample.accepted_at) by_position += count;
  return !sample.accepted_at.empty() && by_round != by_position;
}

bool fewer_forwards_than_rounds(const Sample& sample) {
  return sample.target_forwards < sample.rounds.size();
}

/// Sums of nanoseconds up to 2^53 are exact in a double, so this compares exactly.
bool parts_miss_the_whole(const Sample& sample) {
  const double parts = static_cast<double>(sample.prefill_ns) + rounds_ns(sample) +
                       static_cast<double>(sample.other_ns);
  return parts != static_cast<double>(sample.elapsed_ns);
}

bool runs_backwards(const Sample& sample) {
  std::int64_t last = 0;
  for (const std::int64_t at : {sample.first_token_ns, sample.elapsed_ns}) {
    if (at < last) return true;
    last = at;
  }
  return std::ranges::any_of(sample.rounds, [](const Round& round) {
    return std::min({round.draft_ns, round.verify_ns, round.accept_ns, round.delivered_ns}) < 0;
  });
}

}  // namespace

DraftStatistics draft_statistics(const Samples& samples) {
  DraftStatistics sums;
  double round_rows = 0;
  std::vector<double> tried;
  std::vector<double> accepted;
  for (const Sample* sample : samples) {
    sums.rounds += sample->rounds.size();
    sums.emitted += sample->tokens.size();
    sums.target_forwards += sample->target_forwards;
    sums.target_rows += sample->target_rows;
    for (const Round& round : sample->rounds) {
      sums.drafted += round.drafted;
      sums.accepted += round.accepted;
      sums.emitted_by_rounds += round.emitted;
      round_rows += round.rows;
    }
    const Positions positions = positions_of(*sample);
    add(tried, positions.tried);
    add(accepted, positions.accepted);
  }
  const auto rounds = static_cast<double>(sums.rounds);
  const auto emitted = static_cast<double>(sums.emitted_by_rounds);
  sums.acceptance_rate =
      ratio(static_cast<double>(sums.accepted), static_cast<double>(sums.drafted));
  sums.tokens_per_round = ratio(emitted, rounds);
  sums.rows_per_token = ratio(round_rows, emitted);
  for (std::size_t i = 0; i < tried.size(); ++i) {
    sums.acceptance_at.push_back(ratio(accepted[i], tried[i]));
    sums.unconditional_at.push_back(ratio(accepted[i], rounds));
  }
  return sums;
}

CostSplit cost_split(const Samples& samples) {
  double wall = 0;
  double prefill = 0;
  double draft = 0;
  double verify = 0;
  double accept = 0;
  for (const Sample* sample : samples) {
    wall += static_cast<double>(sample->elapsed_ns);
    prefill += static_cast<double>(sample->prefill_ns);
    for (const Round& round : sample->rounds) {
      draft += static_cast<double>(round.draft_ns);
      verify += static_cast<double>(round.verify_ns);
      accept += static_cast<double>(round.accept_ns);
    }
  }
  const double other = wall - prefill - draft - verify - accept;
  return {.wall_ms = wall / k_ns_per_ms,
          .prefill_ms = prefill / k_ns_per_ms,
          .draft_ms = draft / k_ns_per_ms,
          .verify_ms = verify / k_ns_per_ms,
          .accept_ms = accept / k_ns_per_ms,
          .other_ms = other / k_ns_per_ms};
}

std::optional<double> longest_gap_ms(const Samples& samples) {
  std::optional<double> longest;
  for (const Sample* sample : samples) {
    if (sample->tokens.empty()) continue;
    auto last = static_cast<double>(sample->first_token_ns);
    for (const Round& round : sample->rounds) {
      if (round.emitted == 0) continue;
      const auto at = static_cast<double>(round.delivered_ns);
      longest = std::max(longest.value_or(0), at - last);
      last = at;
    }
  }
  if (longest) *longest /= k_ns_per_ms;
  return longest;
}

std::optional<double> decode_tokens_per_s(const Samples& samples) {
  std::vector<double> speeds;
  for (const Sample* sample : samples) {
    if (sample->tokens.size() < 2) continue;
    const double seconds =
        (static_cast<double>(sample->elapsed_ns) - static_cast<double>(sample->first_token_ns)) /
        1e9;
    if (seconds > 0) speeds.push_back(static_cast<double>(sample->tokens.size() - 1) / seconds);
  }
  return median(speeds);
}

double looped_share(const Samples& samples) {
  double looped = 0;
  double all = 0;
  for (const Sample* sample : samples) {
    const auto onset = loop_onset(sample->tokens);
    if (onset) looped += static_cast<double>(sample->tokens.size() - *onset);
    all += static_cast<double>(sample->tokens.size());
  }
  return all > 0 ? looped / all : 0;
}

std::optional<RoundCost> mean_round(const Samples& samples) {
  RoundCost sum;
  double rounds = 0;
  for (const Sample* sample : samples) {
    sum.whole_ns += rounds_ns(*sample);
    for (const Round& round : sample->rounds) {
      sum.draft_ns += static_cast<double>(round.draft_ns);
      sum.verify_ns += static_cast<double>(round.verify_ns);
    }
    rounds += static_cast<double>(sample->rounds.size());
  }
  if (!(rounds > 0) || !(sum.whole_ns > 0)) return std::nullopt;
  return RoundCost{.whole_ns = sum.whole_ns / rounds,
                   .draft_ns = sum.draft_ns / rounds,
                   .verify_ns = sum.verify_ns / rounds};
}

std::vector<std::string> violated_identities(const Samples& samples) {
  struct Identity {
    bool (*violated)(const Sample&);
    const char* sentence;
  };
  static constexpr std::array<Identity, 7> identities = {{
      {accepts_more_than_drafted, "more tokens were accepted than drafted"},
      {emits_more_than_accepted,
       "a round emitted fewer tokens than it accepted, or more than those and one"},
      {loses_count_of_tokens, "the text is not the first token and what the rounds emitted"},
      {positions_disagree, "accepted tokens by position do not sum to accepted tokens by round"},
      {fewer_forwards_than_rounds, "there were fewer target forwards than rounds"},
      {parts_miss_the_whole,
       "prefill, draft, verify, accept and other do not sum to the wall time"},
      {runs_backwards, "a time is negative or earlier than the one before it"},
  }};
  std::vector<std::string> notes;
  for (const Identity& identity : identities) {
    const auto count = std::ranges::count_if(
        samples, [&](const Sample* sample) { return identity.violated(*sample); });
    if (count == 0) continue;
    const Sample* example = *std::ranges::find_if(
        samples, [&](const Sample* sample) { return identity.violated(*sample); });
    notes.push_back(std::format("the record contradicts itself in {} of {} samples of {}: {}",
                                count, samples.size(), example->arm, identity.sentence));
  }
  return notes;
}

}  // namespace paceline::gate
