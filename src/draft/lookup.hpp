// Prompt lookup: what followed the last n tokens when they stood in the text before.
// (Saxena 2023, "Prompt Lookup Decoding"; Yang et al. 2023, "Inference with Reference".)
#pragma once

#include <memory>

#include "draft/drafter.hpp"

namespace paceline::draft {

struct LookupOptions {
  std::size_t shortest_ngram = 2;  // at least 1
  std::size_t longest_ngram = 4;   // tried first
  /// Most continuations of one draft: the latest place of each n-gram length, as a tree.
  std::size_t branches = 1;
  std::size_t slots = 1;
};

/// Errors: invalid_argument names the field and the range.
Result<std::unique_ptr<Drafter>> make_lookup_drafter(const LookupOptions& options);

}  // namespace paceline::draft
