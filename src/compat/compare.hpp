// May the tokens of a draft stand for those of a target, and what else sets the two apart? Every
// difference is listed, with its weight and what to do.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compat/candidate.hpp"
#include "core/result.hpp"
#include "runtime/vocabulary.hpp"

namespace paceline::compat {

enum class Severity {
  hard,      // the pair cannot be used
  soft,      // it can be used; fewer drafts may be accepted, or other programs may refuse it
  cosmetic,  // no effect on tokens or acceptance
};
std::string_view to_string(Severity severity);

/// The first token that the two vocabularies do not share.
struct TokenDifference {
  std::size_t id = 0;
  std::string target_text;  // raw bytes
  std::string draft_text;
};

struct Difference {
  std::string component;  // a stable word: "token_texts", "merges", "rollback", ...
  Severity severity = Severity::cosmetic;
  std::string word = {};    // stable error word of hard ones, else empty
  std::string message;      // one sentence with both values
  std::string advice = {};  // what to do; empty where nothing has to be done
  std::optional<TokenDifference> token = {};
  std::size_t count = 0;  // how many tokens, merges or texts differ, where they are counted
};

/// What one model alone has against being a target (or a draft), hard ones only.
std::vector<Difference> check_alone(const Candidate& candidate, bool as_draft);

/// Everything that sets a draft apart from its target, hard ones first; the first hard one is what
/// to tell a user who wants one reason. What each model has against it alone is part of it.
/// Two snapshots are compared by the published fingerprint, all others by their tables and, where
/// both have one, their probes.
std::vector<Difference> compare(const Candidate& target, const Candidate& draft);

/// Null where the list has no hard difference.
const Difference* first_hard(const std::vector<Difference>& differences);

/// The same comparison for vocabularies that are open: tables and probes. Error unsupported, word
/// draft_model_tokenizer_mismatch: the first hard difference.
Result<void> check_vocabularies(const runtime::Vocabulary& target,
                                const runtime::Vocabulary& draft);

/// Most rows by which two vocabularies may differ in length or in unused rows.
inline constexpr std::size_t k_most_padding = 128;

}  // namespace paceline::compat
