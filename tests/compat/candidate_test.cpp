// Facts and tokens of generated GGUF files, and every way in which a file is refused.
#include "compat/candidate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "compat/check.hpp"
#include "support/gguf_builder.hpp"
#include "support/matchers.hpp"
#include "support/temporary_folder.hpp"

namespace paceline::test {
namespace {

using compat::Candidate;
using compat::Difference;
using compat::read_candidate;
using testing::AllOf;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class Gguf : public testing::Test {
 protected:
  Candidate read(const TinyModel& model) {
    const auto path = folder_.path() / "m.gguf";
    write_tiny(path, model);
    return value_of(read_candidate(path, "m"));
  }
  /// What sets a changed TINY apart from the plain one.
  std::vector<Difference> differences(const TinyModel& changed) {
    const Candidate target = read({});
    return compat::compare(target, read(changed));
  }
  static auto has(const std::string& component, compat::Severity severity) {
    return Contains(
        AllOf(Field(&Difference::component, component), Field(&Difference::severity, severity)));
  }

  TemporaryFolder folder_;
};

TEST_F(Gguf, GivesItsFacts) {
  TinyModel model{.context = 300, .name = "little"};
  model.vocabulary.chat_template = "{{ x }}";
  const Candidate c = read(model);
  EXPECT_EQ(c.kind, compat::CandidateKind::gguf);
  EXPECT_EQ(c.architecture, "llama");
  EXPECT_EQ(c.layers, 2U);
  EXPECT_EQ(c.hidden, 64U);
  EXPECT_EQ(c.key_value_heads, 1U);
  EXPECT_EQ(c.key_width, 32U);
  EXPECT_EQ(c.value_width, 32U);
  EXPECT_EQ(c.trained_context, 300U);
  EXPECT_EQ(c.vocabulary, small_vocabulary().size());
  EXPECT_EQ(c.chat_template, "{{ x }}");
  EXPECT_EQ(c.kv_type_k, "f16");
  EXPECT_EQ(c.bytes, std::filesystem::file_size(c.path));
  EXPECT_FALSE(c.recurrent);
  ASSERT_TRUE(c.tokens);
  EXPECT_EQ(c.tokens->tokenizer, "llama");
  EXPECT_EQ(c.tokens->texts[to_index(k_end)], "</s>");
  EXPECT_EQ(c.tokens->special_ids.at("eos"), 2U);
  EXPECT_TRUE(c.tokens->flags.at("add_bos_token"));
}

// A14, C1
TEST_F(Gguf, TellsRecurrenceAndWindowsFromItsKeys) {
  EXPECT_TRUE(read({.kind = TinyModel::Kind::recurrent}).recurrent);
  const Candidate window = read({.kind = TinyModel::Kind::sliding_window, .window = 8});
  EXPECT_EQ(window.sliding_window, 8U);
  EXPECT_FALSE(window.recurrent);
  EXPECT_FALSE(read({.kind = TinyModel::Kind::encoder}).causal);
}

TEST_F(Gguf, FindsNoDifferenceToItselfButItsSize) {
  const auto list = differences({});
  ASSERT_THAT(list, SizeIs(1));
  EXPECT_EQ(list[0].component, "size");
}

// A1
TEST_F(Gguf, WithOtherWordsIsRefusedWithTheFirst) {
  TinyModel other;
  other.vocabulary.pieces.at(3) += "x";
  const auto list = differences(other);
  ASSERT_NE(compat::first_hard(list), nullptr);
  EXPECT_THAT(compat::first_hard(list)->message,
              HasSubstr("token 264 is \"▁to\" in the target and \"▁tox\" in the draft; 1 of"));
}

// A4
TEST_F(Gguf, MayHavePaddedRows) {
  TinyModel padded;
  padded.vocabulary.padding = 64;
  const auto list = differences(padded);
  EXPECT_EQ(compat::first_hard(list), nullptr);
  EXPECT_THAT(list, has("vocabulary_size", compat::Severity::cosmetic));
}

// A6
TEST_F(Gguf, WithAnotherBeginOfTextFlagIsNamedBeforeAnythingIsLoaded) {
  TinyModel other;
  other.vocabulary.add_begin_of_text = false;
  EXPECT_THAT(differences(other), has("add_bos_token", compat::Severity::soft));
  other.vocabulary.add_begin_of_text = std::nullopt;
  EXPECT_THAT(differences(other), has("add_bos_token", compat::Severity::cosmetic));
}

TEST_F(Gguf, NamesEachChangedPartOfItsTokenizer) {
  TinyModel other;
  other.vocabulary.other_scores = {{261, 5.0F}};
  EXPECT_THAT(differences(other), has("scores", compat::Severity::soft));
  other = {};
  other.vocabulary.other_kinds = {{261, 4}};
  EXPECT_THAT(differences(other), has("token_types", compat::Severity::soft));
  other = {};
  other.metadata = {{"tokenizer.ggml.eos_token_id", 260U}};
  EXPECT_THAT(differences(other), has("eos_token", compat::Severity::soft));
  other.metadata = {{"tokenizer.ggml.pre", std::string("other")}};
  EXPECT_THAT(differences(other), has("pre_tokenizer", compat::Severity::soft));
  other.metadata = {{"tokenizer.ggml.model", std::string("gpt2")}};
  EXPECT_THAT(differences(other), has("tokenizer_type", compat::Severity::hard));
  other = {};
  other.vocabulary.chat_template = "other";  // A16
  EXPECT_THAT(differences(other), has("chat_template", compat::Severity::soft));
  EXPECT_THAT(differences({.context = 64}), has("context", compat::Severity::soft));  // C8
}

TEST_F(Gguf, IsReadFromAnyShard) {
  write_tiny(folder_.path() / "whole.gguf");
  const Candidate whole = value_of(read_candidate(folder_.path() / "whole.gguf", "w"));
  for (const auto& shard : write_tiny_shards(folder_.path() / "part", 3)) {
    const Candidate c = value_of(read_candidate(shard, "s"));
    EXPECT_THAT(c.files, SizeIs(3));
    EXPECT_EQ(c.parameters, whole.parameters);
    EXPECT_EQ(c.tokens->texts, whole.tokens->texts);
  }
}

TEST_F(Gguf, WithoutTokensIsNoCandidateForAnything) {
  TinyModel mute;
  mute.vocabulary.tokenizer = false;
  const Candidate c = read(mute);
  EXPECT_FALSE(c.tokens);
  const auto list = compat::check_alone(c, true);
  ASSERT_THAT(list, SizeIs(1));
  EXPECT_THAT(list[0].message, HasSubstr("tokenizer.ggml.tokens"));
}

TEST_F(Gguf, CutAnywhereIsRefusedByName) {
  const auto path = folder_.path() / "cut.gguf";
  for (const double part : {0.999, 0.5, 0.1, 0.05, 0.001}) {
    write_tiny(path);
    cut_file(path, part);
    EXPECT_THAT(read_candidate(path, "cut"),
                FailsWith(ErrorCode::bad_format, HasSubstr("cut.gguf")));
  }
}

TEST_F(Gguf, OfTheWrongKindIsRefused) {
  std::ofstream(folder_.path() / "text.gguf") << "some text\n";
  EXPECT_THAT(read_candidate(folder_.path() / "text.gguf", "t"), FailsWith(ErrorCode::bad_format));
  EXPECT_THAT(read_candidate(folder_.path() / "none.gguf", "n"), FailsWith(ErrorCode::not_found));
  EXPECT_THAT(read_candidate(folder_.path(), "f"),
              FailsWith(ErrorCode::bad_format, HasSubstr("paceline check FOLDER")));
}

}  // namespace
}  // namespace paceline::test
