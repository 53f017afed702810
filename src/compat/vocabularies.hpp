// May the tokens of a draft stand for those of a target?
#pragma once

#include "core/result.hpp"
#include "runtime/vocabulary.hpp"

namespace paceline::compat {

/// Compares the token tables id by id. A vocabulary may be longer than the other (padding): the
/// shorter length counts. Error unsupported, word draft_model_tokenizer_mismatch: names the first
/// differing id with both texts.
Result<void> check_vocabularies(const runtime::Vocabulary& target,
                                const runtime::Vocabulary& draft);

}  // namespace paceline::compat
