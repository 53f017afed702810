// A vocabulary as a table, wherever it comes from: a GGUF header, a snapshot's tokenizer.json, or a
// vocabulary that is open already.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "runtime/llama/gguf_header.hpp"
#include "runtime/vocabulary.hpp"

namespace paceline::compat {

/// What is not known is empty. Token ids are indices of `texts`.
struct TokenTable {
  /// How the texts are spelled; tables of different spelling cannot be compared.
  enum class Spelling {
    file,    // as GGUF and tokenizer.json write them: "Ġthe", "▁the", "<0x0A>"
    pieces,  // the bytes that a token adds to the text
  };
  /// GGUF's numbers of the kinds of tokens.
  enum Kind : std::int32_t {
    normal = 1,
    unknown = 2,
    control = 3,
    user_defined = 4,
    unused = 5,
    byte = 6
  };

  Spelling spelling = Spelling::file;
  std::string tokenizer;      // tokenizer.ggml.model: "gpt2", "llama", ...
  std::string pre_tokenizer;  // tokenizer.ggml.pre
  std::vector<std::string_view> texts;
  std::vector<std::int32_t> kinds;
  std::vector<float> scores;
  std::vector<std::string_view> merges;
  std::map<std::string, std::uint64_t> special_ids;  // "bos", "eos", "padding", ...
  std::map<std::string, bool> flags;                 // "add_bos_token", "add_space_prefix", ...
  std::shared_ptr<const void> storage;               // what the views refer to

  std::size_t size() const { return texts.size(); }
  /// An id that no text gives: marked unused, "[PAD7]", or a piece without bytes.
  bool is_padding(std::size_t id) const;
};

/// Error bad_format: no tokens, or lists of different lengths.
Result<TokenTable> token_table(const runtime::GgufHeader& header);

TokenTable token_table(const runtime::Vocabulary& vocabulary);

/// From the text of a tokenizer.json: model.vocab and added_tokens. Ids that nothing fills become
/// "[PADn]". Errors: bad_format; unsupported where the vocabulary has a form that is not known.
Result<TokenTable> token_table_of_tokenizer_json(std::string_view text, std::string_view what);

}  // namespace paceline::compat
