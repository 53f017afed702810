#include "runtime/llama/llama_vocabulary.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <format>
#include <limits>
#include <optional>

#include "core/text.hpp"
#include "runtime/llama/chat_template.hpp"
#include "runtime/llama/llama_version.hpp"

namespace paceline::runtime {

namespace {

constexpr std::size_t k_longest_text = std::numeric_limits<std::int32_t>::max() / 2;

std::string special_text(const llama_vocab* vocab, llama_token token) {
  if (token == LLAMA_TOKEN_NULL) return {};
  const char* text = llama_vocab_get_text(vocab, token);
  return text != nullptr ? text : "";
}

// The text by one of libllama's built-in templates; none where it does not know this template.
std::optional<std::string> render_built_in(const std::string& source,
                                           const std::vector<ChatMessage>& messages) {
  std::vector<llama_chat_message> views;
  std::size_t bytes = 0;
  for (const ChatMessage& message : messages) {
    views.push_back({message.role.c_str(), message.content.c_str()});
    bytes += message.role.size() + message.content.size() + 64;
  }
  std::string text(2 * bytes, '\0');
  for (;;) {
    const std::int32_t length =
        llama_chat_apply_template(source.c_str(), views.data(), views.size(), true, text.data(),
                                  static_cast<std::int32_t>(text.size()));
    if (length < 0) return std::nullopt;
    const auto needed = static_cast<std::size_t>(length);
    const bool fits = needed <= text.size();
    text.resize(needed);
    if (fits) return text;
  }
}

std::string join_plainly(const std::vector<ChatMessage>& messages) {
  std::vector<std::string> parts;
  for (const ChatMessage& message : messages) parts.push_back(message.content);
  return join(parts, "\n\n");
}

}  // namespace

LlamaVocabulary::LlamaVocabulary(const llama_model* model)
    : vocab_(llama_model_get_vocab(model)),
      size_(static_cast<std::size_t>(llama_vocab_n_tokens(vocab_))),
      begin_of_text_(special_text(vocab_, llama_vocab_bos(vocab_))),
      end_of_text_(special_text(vocab_, llama_vocab_eos(vocab_))) {
  const char* source = llama_model_chat_template(model, nullptr);
  if (source != nullptr) chat_template_ = source;
}

std::size_t LlamaVocabulary::size() const { return size_; }

bool LlamaVocabulary::contains(Token token) const {
  return to_int(token) >= 0 && to_index(token) < size_;
}

Result<std::vector<Token>> LlamaVocabulary::tokenize(std::string_view text,
                                                     TokenizeOptions options) const {
  if (text.size() > k_longest_text) {
    return fail(ErrorCode::invalid_argument,
                std::format("a text of {} bytes, at most {} can be tokenised", text.size(),
                            k_longest_text));
  }
  std::vector<llama_token> tokens(text.size() / 2 + 16);
  try {
    for (;;) {
      const std::int32_t count = llama_tokenize(
          vocab_, text.data(), static_cast<std::int32_t>(text.size()), tokens.data(),
          static_cast<std::int32_t>(tokens.size()), options.add_special, options.parse_special);
      if (count >= 0) {
        tokens.resize(static_cast<std::size_t>(count));
        break;
      }
      if (count == std::numeric_limits<std::int32_t>::min()) {
        return fail(ErrorCode::invalid_argument, "the text has more tokens than can be counted");
      }
      tokens.resize(static_cast<std::size_t>(-count));
    }
  } catch (const std::exception& error) {
    return fail(ErrorCode::invalid_argument,
                std::format("the text cannot be tokenised: {}", error.what()));
  }
  std::vector<Token> result(tokens.size());
  std::ranges::transform(tokens, result.begin(), [](llama_token id) { return Token{id}; });
  return result;
}

std::string LlamaVocabulary::piece(Token token, bool show_special) const {
  if (!contains(token)) return {};
  std::string text(32, '\0');
  for (;;) {
    const std::int32_t length =
        llama_token_to_piece(vocab_, to_int(token), text.data(),
                             static_cast<std::int32_t>(text.size()), 0, show_special);
    if (length >= 0) {
      text.resize(static_cast<std::size_t>(length));
      return text;
    }
    text.resize(static_cast<std::size_t>(-length));
  }
}

bool LlamaVocabulary::is_end_of_text(Token token) const {
  return contains(token) && llama_vocab_is_eog(vocab_, to_int(token));
}

std::string LlamaVocabulary::chat_template() const { return chat_template_; }

Result<Vocabulary::RenderedChat> LlamaVocabulary::render_chat(
    const std::vector<ChatMessage>& messages) const {
  RenderedChat chat;
  if (chat_template_.empty()) {
    chat.text = join_plainly(messages);
    chat.renderer = "none";
  } else if (auto text = render_built_in(chat_template_, messages)) {
    chat.text = *std::move(text);
    chat.renderer = "built-in";
  } else {
    PACELINE_TRY(chat.text,
                 render_with_minja(chat_template_, begin_of_text_, end_of_text_, messages));
    chat.renderer = "minja";
  }
  chat.adds_begin_of_text = !begin_of_text_.empty() && chat.text.starts_with(begin_of_text_);
  return chat;
}

}  // namespace paceline::runtime
