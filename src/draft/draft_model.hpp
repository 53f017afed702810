// A small model as drafter (Leviathan et al. 2023): proposes its own greedy continuation.
#pragma once

#include <memory>

#include "draft/drafter.hpp"
#include "runtime/runtime.hpp"

namespace paceline::draft {

struct DraftModelOptions {
  /// Drafting stops before a token whose probability is below this; 0: never.
  double confidence = 0;
  /// At least 1. Ids from here on are never proposed (a draft's vocabulary may be padded further).
  std::size_t target_vocabulary = 0;
};

/// Owns the runtime, one sequence of it per slot. After every round the sequence is brought back
/// to the longest prefix that it shares with the observed text, so no token is computed twice and
/// none is left over. Where the draft's context ends it proposes nothing.
/// Errors: unsupported where the draft model cannot roll back; invalid_argument (confidence, no
/// target vocabulary, fewer rows than sequences).
Result<std::unique_ptr<Drafter>> make_draft_model_drafter(std::unique_ptr<runtime::Runtime> runtime,
                                                          const DraftModelOptions& options);

}  // namespace paceline::draft
