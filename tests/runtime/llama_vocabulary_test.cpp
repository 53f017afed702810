// Tokens, pieces and chat templates of GGUF files.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/llama/llama_model.hpp"
#include "runtime/llama_checks.hpp"
#include "support/gguf_builder.hpp"
#include "support/matchers.hpp"
#include "support/temporary_folder.hpp"

namespace paceline::test {
namespace {

using runtime::chat_tokens;
using runtime::ChatMessage;
using runtime::load_llama_model;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* k_chatml =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] "
    "+ "
    "'<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' "
    "}}{% endif %}";
// No words that libllama looks for.
constexpr const char* k_unusual =
    "{{ bos_token }}{% for message in messages %}[{{ message.role | upper }}] {{ message.content }}"
    "{{ eos_token }}{% endfor %}{% if add_generation_prompt %}[ANSWER] {% endif %}";

std::shared_ptr<const runtime::Model> tiny(const TemporaryFolder& folder,
                                           const GgufVocabulary& vocabulary) {
  write_tiny(folder.path() / "m.gguf", {.vocabulary = vocabulary});
  return value_of(load_llama_model(folder.path() / "m.gguf"));
}

std::shared_ptr<const runtime::Model> with_template(const TemporaryFolder& folder,
                                                    const std::string& source) {
  GgufVocabulary vocabulary = small_vocabulary();
  vocabulary.chat_template = source;
  return tiny(folder, vocabulary);
}

std::string text_of(const runtime::Vocabulary& vocabulary, const Tokens& tokens) {
  std::string text;
  for (const Token token : tokens) text += vocabulary.piece(token, false);
  return text;
}

TEST(LlamaVocabulary, TextSurvivesTokenising) {
  const TemporaryFolder folder;
  const auto model = tiny(folder, small_vocabulary());
  const auto& vocabulary = model->vocabulary();
  for (const std::string text : {"", "the end of the thing", "  two  spaces ", "line\nline\ttab",
                                 "日本語 é → 🚴 x", "<|im_start|>", "a\0b"}) {
    SCOPED_TRACE(text);
    const auto tokens =
        value_of(vocabulary.tokenize(text, {.add_special = false, .parse_special = false}));
    EXPECT_EQ(text_of(vocabulary, tokens), text);
  }
  const std::string long_text(20'000, '~');  // every byte its own token, more than first guessed
  EXPECT_EQ(text_of(vocabulary, value_of(vocabulary.tokenize(
                                    long_text, {.add_special = false, .parse_special = false}))),
            long_text);
}

TEST(LlamaVocabulary, PiecesMayBePartsOfACharacter) {
  const TemporaryFolder folder;
  const auto model = tiny(folder, small_vocabulary());
  const auto& vocabulary = model->vocabulary();
  const auto tokens = value_of(vocabulary.tokenize("🚴", {.add_special = false}));
  ASSERT_EQ(tokens.size(), 4U);
  EXPECT_EQ(vocabulary.piece(tokens[0], false), "\xf0");
  EXPECT_EQ(vocabulary.piece(tokens[3], false), "\xb4");
  EXPECT_EQ(vocabulary.piece(k_first_piece, false), " the");
}

TEST(LlamaVocabulary, BytesThatAreNoTextDoNotStopIt) {
  const TemporaryFolder folder;
  const auto model = tiny(folder, small_vocabulary());
  EXPECT_THAT(model->vocabulary().tokenize("\xff\xfe\xc3", {}), IsOk());
}

TEST(LlamaVocabulary, BeginOfTextIsAddedAsTheModelAsks) {
  const TemporaryFolder folder;
  GgufVocabulary spec = small_vocabulary();
  const auto adds = tiny(folder, spec);
  EXPECT_EQ(value_of(adds->vocabulary().tokenize("a", {})).front(), k_begin);
  EXPECT_NE(value_of(adds->vocabulary().tokenize("a", {.add_special = false})).front(), k_begin);
  spec.add_begin_of_text = false;
  const auto does_not = tiny(folder, spec);
  EXPECT_NE(value_of(does_not->vocabulary().tokenize("a", {})).front(), k_begin);
}

TEST(LlamaVocabulary, ControlTokensAreParsedAndShownOnRequest) {
  const TemporaryFolder folder;
  const auto model = tiny(folder, small_vocabulary());
  const auto& vocabulary = model->vocabulary();
  EXPECT_THAT(value_of(vocabulary.tokenize("<|im_end|>", {.add_special = false})),
              ElementsAre(k_turn_end));
  EXPECT_GT(
      value_of(vocabulary.tokenize("<|im_end|>", {.add_special = false, .parse_special = false}))
          .size(),
      1U);
  EXPECT_EQ(vocabulary.piece(k_turn_end, false), "");
  EXPECT_EQ(vocabulary.piece(k_turn_end, true), "<|im_end|>");
}

TEST(LlamaVocabulary, KnowsEveryEndOfText) {
  const TemporaryFolder folder;
  const auto model = tiny(folder, small_vocabulary());
  const auto& vocabulary = model->vocabulary();
  EXPECT_TRUE(vocabulary.is_end_of_text(k_end));
  EXPECT_TRUE(vocabulary.is_end_of_text(k_turn_end));
  EXPECT_FALSE(vocabulary.is_end_of_text(k_first_piece));
  EXPECT_FALSE(vocabulary.is_end_of_text(Token{-1}));
  EXPECT_FALSE(vocabulary.is_end_of_text(to_token(vocabulary.size())));
}

TEST(LlamaVocabulary, IdsOutOfRangeGiveNothing) {
  const TemporaryFolder folder;
  const auto model = tiny(folder, small_vocabulary());
  EXPECT_EQ(model->vocabulary().piece(Token{-1}, true), "");
  EXPECT_EQ(model->vocabulary().piece(to_token(model->vocabulary().size()), true), "");
}

TEST(LlamaVocabulary, CountsPadding) {
  const TemporaryFolder folder;
  GgufVocabulary spec = small_vocabulary();
  const std::size_t used = spec.size();
  spec.padding = 64;
  EXPECT_EQ(tiny(folder, spec)->vocabulary().size(), used + 64);
}

TEST(LlamaVocabulary, UsesLibllamasTemplateWhereItKnowsIt) {
  const TemporaryFolder folder;
  const auto model = with_template(folder, k_chatml);
  EXPECT_EQ(model->vocabulary().chat_template(), k_chatml);
  const auto chat =
      value_of(model->vocabulary().render_chat({{"system", "Be kind."}, {"user", "Hi!"}}));
  EXPECT_EQ(chat.renderer, "built-in");
  EXPECT_EQ(chat.text,
            "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi!<|im_end|>\n"
            "<|im_start|>assistant\n");
  EXPECT_FALSE(chat.adds_begin_of_text);
  const auto tokens = value_of(chat_tokens(model->vocabulary(), {{"user", "Hi!"}}));
  ASSERT_GE(tokens.size(), 2U);
  EXPECT_EQ(tokens[0], k_begin);
  EXPECT_EQ(tokens[1], k_turn_start);
}

TEST(LlamaVocabulary, UsesMinjaForOtherTemplates) {
  const TemporaryFolder folder;
  const auto model = with_template(folder, k_unusual);
  const auto chat = value_of(model->vocabulary().render_chat({{"user", "Hi!"}}));
  EXPECT_EQ(chat.renderer, "minja");
  EXPECT_EQ(chat.text, "<s>[USER] Hi!</s>[ANSWER] ");
  EXPECT_TRUE(chat.adds_begin_of_text);
  const auto tokens = value_of(chat_tokens(model->vocabulary(), {{"user", "Hi!"}}));
  EXPECT_EQ(std::ranges::count(tokens, k_begin), 1);
}

TEST(LlamaVocabulary, ATemplateThatFailsIsAnError) {
  const TemporaryFolder folder;
  for (const char* source : {"{% for %}", "{{ raise_exception('no such role') }}", "{{ 1 / }}"}) {
    SCOPED_TRACE(source);
    const auto model = with_template(folder, source);
    EXPECT_THAT(model->vocabulary().render_chat({{"user", "Hi!"}}),
                FailsWith(ErrorCode::bad_format, HasSubstr("template")));
  }
}

TEST(LlamaVocabulary, TemplatesMayWriteTheDate) {
  const TemporaryFolder folder;
  const auto model = with_template(folder, "{{ strftime_now('%Y') }} {{ messages[0].content }}");
  const auto chat = value_of(model->vocabulary().render_chat({{"user", "Hi!"}}));
  EXPECT_THAT(chat.text, testing::MatchesRegex("20[0-9][0-9] Hi!"));
}

TEST(LlamaVocabulary, WithoutATemplateMessagesAreJoined) {
  const TemporaryFolder folder;
  const auto model = tiny(folder, small_vocabulary());
  const auto chat =
      value_of(model->vocabulary().render_chat({{"system", "Be kind."}, {"user", "Hi!"}}));
  EXPECT_EQ(chat.renderer, "none");
  EXPECT_EQ(chat.text, "Be kind.\n\nHi!");
}

TEST(LlamaVocabulary, ServesSeveralThreads) {
  const TemporaryFolder folder;
  const auto model = with_template(folder, k_unusual);
  const auto expected = value_of(chat_tokens(model->vocabulary(), {{"user", "the end"}}));
  std::vector<Tokens> seen(4);
  {
    std::vector<std::jthread> threads;
    for (Tokens& mine : seen) {
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) {
          mine = value_of(chat_tokens(model->vocabulary(), {{"user", "the end"}}));
        }
      });
    }
  }
  for (const Tokens& one : seen) EXPECT_EQ(one, expected);
}

}  // namespace
}  // namespace paceline::test
