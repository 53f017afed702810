// A GGUF file's vocabulary through libllama.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/vocabulary.hpp"

struct llama_model;
struct llama_vocab;

namespace paceline::runtime {

/// Refers to the model, which outlives it. Const methods from any thread.
class LlamaVocabulary final : public Vocabulary {
 public:
  explicit LlamaVocabulary(const llama_model* model);

  std::size_t size() const override;
  Result<std::vector<Token>> tokenize(std::string_view text,
                                      TokenizeOptions options) const override;
  std::string piece(Token token, bool show_special) const override;
  bool is_end_of_text(Token token) const override;
  std::string chat_template() const override;
  Result<RenderedChat> render_chat(const std::vector<ChatMessage>& messages) const override;

 private:
  bool contains(Token token) const;

  const llama_vocab* vocab_;
  std::size_t size_;
  std::string chat_template_;
  std::string begin_of_text_;  // empty where there is none
  std::string end_of_text_;
};

}  // namespace paceline::runtime
