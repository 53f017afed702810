#include "compat/vocabularies.hpp"

#include <algorithm>
#include <format>

#include "core/text.hpp"

namespace paceline::compat {

namespace {

constexpr std::size_t k_most_padding = 128;  // rows; seen between sizes of one family

}  // namespace

Result<void> check_vocabularies(const runtime::Vocabulary& target,
                                const runtime::Vocabulary& draft) {
  const auto mismatch = [](std::string message) {
    return fail(ErrorCode::unsupported,
                message + "; take a draft of the same family, or --lookup, which needs none",
                "draft_model_tokenizer_mismatch");
  };
  const std::size_t common = std::min(target.size(), draft.size());
  for (std::size_t id = 0; id < common; ++id) {
    const Token token = to_token(id);
    const std::string ours = target.piece(token, true);
    const std::string theirs = draft.piece(token, true);
    if (ours != theirs) {
      return mismatch(std::format("token {} is \"{}\" in the target and \"{}\" in the draft", id,
                                  escape(ours, 40), escape(theirs, 40)));
    }
    if (target.is_end_of_text(token) != draft.is_end_of_text(token)) {
      return mismatch(std::format("token {} (\"{}\") ends the text in the {} only", id,
                                  escape(ours, 40),
                                  target.is_end_of_text(token) ? "target" : "draft"));
    }
  }
  const std::size_t padding = std::max(target.size(), draft.size()) - common;
  if (padding > k_most_padding) {
    return mismatch(
        std::format("the target has {} tokens, the draft {}; up to {} rows of padding "
                    "are allowed",
                    target.size(), draft.size(), k_most_padding));
  }
  return {};
}

}  // namespace paceline::compat
