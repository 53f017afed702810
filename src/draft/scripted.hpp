// Drafts with a forced acceptance pattern, for tests and for what-if runs that are labelled so.
// It knows what the target will say, so its "acceptance" says nothing about any real drafter.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "draft/drafter.hpp"

namespace paceline::draft {

struct ScriptedOptions {
  /// The text that the target will emit after the prompt (first token included).
  std::vector<Token> oracle = {};
  std::size_t prompt_tokens = 0;
  /// Whether the draft for emitted token number `index` shall be right.
  std::function<bool(std::size_t index)> right = {};
  std::size_t vocabulary = 0;
  /// Wrong siblings of every node: `decoys_before` stand before the scripted one in the tree, so
  /// that the accepted path is not the first rows of the pass.
  std::size_t decoys_before = 0;
};

std::unique_ptr<Drafter> make_scripted_drafter(ScriptedOptions options);

/// A pattern that is right with the given probability, the same for every run of one seed.
std::function<bool(std::size_t)> right_with_probability(double probability, std::uint64_t seed);

}  // namespace paceline::draft
