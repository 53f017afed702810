// The parts of the comparison that look at tokens.
#pragma once

#include <utility>
#include <vector>

#include "compat/compare.hpp"

namespace paceline::compat {

/// Collects differences.
class Differences {
 public:
  void add(Difference difference) { list_.push_back(std::move(difference)); }
  /// Hard before soft before cosmetic, else in the order they were found.
  std::vector<Difference> sorted() &&;

 private:
  std::vector<Difference> list_;
};

/// Lengths and texts.
void compare_texts(const TokenTable& target, const TokenTable& draft, Differences& out);
/// The above and tokenizer, kinds, scores, merges, special ids, flags.
void compare_tables(const TokenTable& target, const TokenTable& draft, Differences& out);
/// `texts`, where given, names the tokens.
void compare_probes(const Probe& target, const Probe& draft, const TokenTable* texts,
                    Differences& out);

}  // namespace paceline::compat
