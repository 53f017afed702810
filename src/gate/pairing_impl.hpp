// From blocks to pairs: which two samples are compared, over how many tokens, and how long each
// arm took for them. Internal to gate.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/gate.hpp"
#include "record/record.hpp"

namespace paceline::gate {

/// Texts that have fewer tokens in common say nothing about speed, unless that was the whole text.
inline constexpr std::size_t k_shortest_horizon = 8;
/// The run's very first sample is a cold start when it takes this many times what the arm's
/// other samples lead one to expect.
inline constexpr double k_cold_start = 3.0;

enum class Outputs { equal, tied, different };

/// One prompt, one repetition, one arm and its baseline. Pointers are into the record.
struct Pair {
  const record::Block* block = nullptr;
  const record::Sample* plain = nullptr;
  const record::Sample* speculative = nullptr;
  Outputs outputs = Outputs::equal;
  std::string left_out;     // why it has no speed-up; empty: it has one
  std::size_t horizon = 0;  // tokens that both times below are for
  double plain_ns = 0;      // to deliver them
  double speculative_ns = 0;
  std::optional<double> log_speedup;
  std::optional<double> log_decode_speedup;
  std::optional<double> log_ttft_ratio;
};

/// A content class, or one fixture of class "custom".
struct Scope {
  std::string name;
  std::vector<Pair> pairs;
  std::vector<const record::Block*> blocks_not_ok;
  std::size_t planned_prompts = 0;  // 0: not planned in the record
};

/// The scopes of one arm, in the order of the plan.
std::vector<Scope> make_scopes(const record::Record& record, const record::Arm& arm,
                               std::string_view baseline);

/// Means of `value` over the repetitions of each prompt, in order of first appearance.
std::vector<double> prompt_means(const std::vector<Pair>& pairs,
                                 std::optional<double> Pair::* value);

/// The positions in `pairs` of each prompt's pairs that entered the speed-up.
std::vector<std::vector<std::size_t>> prompt_clusters(const std::vector<Pair>& pairs);

}  // namespace paceline::gate
