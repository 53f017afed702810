// How a vocabulary behaves: the token ids that it gives for a set of awkward texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_fwd.hpp"
#include "core/result.hpp"
#include "runtime/runtime.hpp"
#include "runtime/vocabulary.hpp"

namespace paceline::compat {

struct ProbeText {
  std::string_view name;
  std::string_view text;
};
/// Empty, prose, code, CRLF, digits, emoji, CJK, control-looking strings, JSON, ...
std::span<const ProbeText> probe_texts();

using TokenIds = std::optional<std::vector<std::int32_t>>;  // nothing: could not be tokenised

struct Probe {
  /// [texts] as plain text, and as text with special tokens (parsed, and added at the ends).
  std::vector<TokenIds> plain;
  std::vector<TokenIds> special;
  std::vector<std::int32_t> ends;  // ids that end a text, ascending
  std::size_t tokens = 0;          // size of the vocabulary
  bool recurrent = false;          // of the model, where one was loaded

  /// What the tokenizer adds to the empty text; empty where that is unknown.
  std::vector<std::int32_t> added() const;
};

Probe probe(const runtime::Vocabulary& vocabulary);

/// JSON for the way from a child process. Error bad_format.
Json to_json(const Probe& probe);
Result<Probe> probe_from_json(const Json& json);

}  // namespace paceline::compat
