// Tokens and their texts, chat templates, end-of-text. No weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "core/token.hpp"

namespace paceline::runtime {

struct ChatMessage {
  std::string role;  // system, user, assistant
  std::string content;
};

struct TokenizeOptions {
  bool add_special = true;    // begin-of-text and the like, as the model asks for
  bool parse_special = true;  // "<|im_end|>" in the text becomes the control token
};

/// Const methods from any thread.
class Vocabulary {
 public:
  virtual ~Vocabulary() = default;

  /// Number of token ids, padding included.
  virtual std::size_t size() const = 0;
  /// Errors: invalid_argument where the text cannot be tokenised.
  virtual Result<std::vector<Token>> tokenize(std::string_view text,
                                              TokenizeOptions options) const = 0;
  /// The bytes that the token adds to the text (may be part of a UTF-8 character). Control tokens
  /// give their name only with `show_special`. Ids out of range give nothing.
  virtual std::string piece(Token token, bool show_special) const = 0;
  /// True for every token that ends a text or a turn.
  virtual bool is_end_of_text(Token token) const = 0;
  /// The chat template's source, empty where the model has none.
  virtual std::string chat_template() const = 0;
  /// The prompt text of a conversation, ending where the assistant's answer begins. Tokenise the
  /// result with parse_special, and add_special only where `adds_begin_of_text` is false.
  struct RenderedChat {
    std::string text;
    bool adds_begin_of_text = false;  // the template wrote it already
    std::string renderer;             // "built-in", "minja" or "none": how it was made
  };
  virtual Result<RenderedChat> render_chat(const std::vector<ChatMessage>& messages) const = 0;
};

/// Text of a conversation as prompt tokens: rendered, then tokenised.
Result<std::vector<Token>> chat_tokens(const Vocabulary& vocabulary,
                                       const std::vector<ChatMessage>& messages);

}  // namespace paceline::runtime
