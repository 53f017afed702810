// The published tokenizer fingerprint: its tested cases, both layouts, and what is said of a
// mismatch. And what a snapshot directory says of its model.
#include "compat/snapshot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "compat/check.hpp"
#include "support/gguf_builder.hpp"
#include "support/matchers.hpp"
#include "support/temporary_folder.hpp"

namespace paceline::test {
namespace {

namespace fs = std::filesystem;
using compat::Fingerprint;
using compat::read_candidate;
using compat::tokenizer_fingerprint;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Files = std::map<std::string, std::string>;

const Files k_fast = {
    {"tokenizer.json", R"({"model":{"vocab":{"a":0}}})"},
    {"tokenizer_config.json", R"({ "eos_token": "</s>", "chat_template": "x", "name": "a/b" })"}};
const Files k_slow = {{"tokenizer_config.json", R"({"eos_token":"</s>"})"},
                      {"vocab.json", R"({"a":0,"b":1})"},
                      {"merges.txt", "a b\n"}};

Files with(Files files, const std::string& name, const std::string& text) {
  files[name] = text;
  return files;
}

class Snapshot : public testing::Test {
 protected:
  fs::path write(const std::string& name, const Files& files) {
    const fs::path path = folder_.path() / name;
    fs::remove_all(path);
    fs::create_directories(path);
    for (const auto& [file, text] : files) std::ofstream(path / file, std::ios::binary) << text;
    return path;
  }
  bool match(const Files& target, const Files& draft) {
    const auto a = value_of(tokenizer_fingerprint(write("a", target)));
    const auto b = value_of(tokenizer_fingerprint(write("b", draft)));
    return a.sha256 && b.sha256 && *a.sha256 == *b.sha256;
  }
  std::vector<std::string> reasons(const Files& target, const Files& draft) {
    const fs::path ours = write("a", target);
    const fs::path theirs = write("b", draft);
    return compat::explain_mismatch(ours, value_of(tokenizer_fingerprint(ours)), theirs,
                                    value_of(tokenizer_fingerprint(theirs)));
  }

  TemporaryFolder folder_;
};

// The value was computed apart, from the published rules.
TEST_F(Snapshot, HasThePublishedFingerprint) {
  const auto fingerprint = value_of(tokenizer_fingerprint(write("a", k_fast)));
  EXPECT_EQ(fingerprint.layout, compat::TokenizerLayout::fast);
  ASSERT_EQ(fingerprint.files.size(), 2U);
  EXPECT_EQ(fingerprint.files[0].name, "tokenizer.json");
  EXPECT_EQ(fingerprint.sha256, "d8cc6257b38d2cfca7563e686e50d731d90c7173a7895c9633d8e147f584a6c9");
}

// The published cases.
TEST_F(Snapshot, MatchesByThePublishedCases) {
  EXPECT_TRUE(match(k_fast, k_fast));
  EXPECT_TRUE(match(k_slow, k_slow));
  EXPECT_TRUE(match(k_fast, with(k_fast, "tokenizer_config.json",
                                 R"({"name":"a/b","eos_token":"</s>","chat_template":"other"})")))
      << "chat_template, order and spaces of the config do not count";
  EXPECT_TRUE(match(k_fast, with(k_fast, "merges.txt", "a b")))
      << "fast: merges.txt does not count";
  EXPECT_FALSE(match(
      k_fast, with(k_fast, "tokenizer_config.json", R"({"name":"a/b","eos_token":"<eos>"})")));
  EXPECT_FALSE(match(k_fast, with(k_fast, "tokenizer.json", R"({"model":{"vocab":{"b":0}}})")));
  EXPECT_FALSE(match(k_slow, with(k_slow, "merges.txt", "b a\n")));
  EXPECT_FALSE(match({}, {})) << "no file matches nothing";
}

TEST_F(Snapshot, IsAsStrictAsThePolicyIs) {
  EXPECT_FALSE(match(k_fast, k_slow));
  EXPECT_FALSE(match(k_fast, with(k_fast, "added_tokens.json", "{}")));
  EXPECT_FALSE(match(k_fast, with(k_fast, "special_tokens_map.json", "{}")));
  EXPECT_FALSE(match(k_fast, with(k_fast, "tokenizer.json", R"({"model": {"vocab":{"a":0}}})")))
      << "spaces in other files count";
  EXPECT_TRUE(match(k_fast, with(k_fast, "chat_template.jinja", "x")));
  EXPECT_TRUE(match(k_fast, with(k_fast, "vocab.json", "{}"))) << "a slow file in a fast layout";
}

TEST_F(Snapshot, FollowsLinksAndTakesFoldersForAbsent) {
  const fs::path a = write("a", k_fast);
  const fs::path b = write("b", k_fast);
  fs::remove(b / "tokenizer.json");
  fs::create_symlink(a / "tokenizer.json", b / "tokenizer.json");
  fs::create_directory(b / "added_tokens.json");
  EXPECT_EQ(value_of(tokenizer_fingerprint(a)).sha256, value_of(tokenizer_fingerprint(b)).sha256);
}

TEST_F(Snapshot, TakesAConfigThatIsNoObjectAsItIs) {
  EXPECT_FALSE(match(with(k_fast, "tokenizer_config.json", "[1]"),
                     with(k_fast, "tokenizer_config.json", "[ 1]")));
  EXPECT_THAT(tokenizer_fingerprint(write("a", with(k_fast, "tokenizer_config.json", "{"))),
              FailsWith(ErrorCode::bad_format, HasSubstr("tokenizer_config.json")));
}

TEST_F(Snapshot, ExplainsEachFileOfAMismatch) {
  EXPECT_THAT(reasons(k_fast, k_fast), IsEmpty());
  EXPECT_THAT(
      reasons(k_fast, with(k_fast, "tokenizer_config.json",
                           R"({"name":"a/b","eos_token":"<eos>","model_max_length":8})")),
      ElementsAre(AllOf(HasSubstr("tokenizer_config.json differs"),
                        HasSubstr(R"("eos_token" is \"</s>\" in the target and \"<eos>\" in the)"),
                        HasSubstr("\"model_max_length\" is absent in the target and 8 in"))));
  EXPECT_THAT(reasons(k_fast, with(k_fast, "tokenizer.json", R"({"model": {"vocab":{"a":0}}})")),
              ElementsAre(HasSubstr("only spaces, order or spelling")));
  EXPECT_THAT(reasons(with(k_slow, "added_tokens.json", "{}"), with(k_slow, "merges.txt", "x y\n")),
              ElementsAre("merges.txt differs: 4 and 4 bytes",
                          "added_tokens.json counts in the target only"));
  EXPECT_THAT(reasons(k_fast, k_slow)[0], HasSubstr("fast layout and the draft the slow one"));
  EXPECT_THAT(reasons({}, k_slow)[0], HasSubstr("the target has no tokenizer file"));
}

TEST_F(Snapshot, PairIsDecidedByTheFingerprintAlone) {
  const auto target = value_of(read_candidate(write("a", k_fast), "a"));
  EXPECT_THAT(compat::compare(target, value_of(read_candidate(write("b", k_fast), "b"))),
              IsEmpty());
  const auto other = value_of(read_candidate(
      write("b", with(k_fast, "tokenizer_config.json", R"({"eos_token":"</s>"})")), "b"));
  const auto list = compat::compare(target, other);
  ASSERT_NE(compat::first_hard(list), nullptr);
  EXPECT_EQ(compat::first_hard(list)->component, "tokenizer_fingerprint");
  EXPECT_EQ(compat::first_hard(list)->word, "draft_model_tokenizer_mismatch");
  EXPECT_THAT(compat::first_hard(list)->message,
              HasSubstr("the token tables are equal all the same"));
}

TEST_F(Snapshot, GivesTheFactsOfItsConfig) {
  const auto facts = value_of(compat::snapshot_facts(
      R"({"model_type":"gemma3","text_config":{"num_hidden_layers":18,"hidden_size":640,)"
      R"("vocab_size":262144,"max_position_embeddings":32768,"sliding_window":512}})"));
  EXPECT_EQ(facts.architecture, "gemma3");
  EXPECT_EQ(facts.layers, 18U);
  EXPECT_EQ(facts.vocabulary, 262144U);
  EXPECT_EQ(facts.sliding_window, 512U);
  EXPECT_FALSE(facts.recurrent);
  const auto recurrent = [](const char* json) {
    return value_of(compat::snapshot_facts(json)).recurrent;
  };
  EXPECT_TRUE(recurrent(R"({"layer_types":["linear_attention","full_attention"]})"));
  EXPECT_TRUE(recurrent(R"({"mamba_d_state":16})"));
  EXPECT_FALSE(recurrent(R"({"layer_types":["sliding_attention","full_attention"]})"));
  EXPECT_EQ(value_of(compat::snapshot_facts(R"({"sliding_window":4,"use_sliding_window":false})"))
                .sliding_window,
            0U);
  EXPECT_THAT(compat::snapshot_facts("[]"), FailsWith(ErrorCode::bad_format));
}

TEST_F(Snapshot, ListsItsTokensInEveryForm) {
  const auto tokens = [&](const Files& files) {
    const auto table = value_of(compat::read_snapshot_tokens(write("t", files)));
    return std::vector<std::string>(table.texts.begin(), table.texts.end());
  };
  EXPECT_THAT(tokens({{"tokenizer.json", R"({"model":{"vocab":{"a":0,"b":2}},)"
                                         R"("added_tokens":[{"id":3,"content":"<e>"}]})"}}),
              ElementsAre("a", "[PAD1]", "b", "<e>"));
  EXPECT_THAT(tokens({{"tokenizer.json", R"({"model":{"vocab":[["x",-1.5],["y",0]]}})"}}),
              ElementsAre("x", "y"));
  EXPECT_THAT(tokens(with(k_slow, "added_tokens.json", R"({"<e>":2})")),
              ElementsAre("a", "b", "<e>"));
  EXPECT_THAT(compat::read_snapshot_tokens(write("t", {{"tokenizer.model", "x"}})),
              FailsWith(ErrorCode::unsupported, HasSubstr("tokenizer.json")));
  for (const char* bad :
       {R"({"model":{"vocab":{"a":-1}}})", R"({"model":{"vocab":{"a":999999999}}})",
        R"({"model":{"vocab":[1]}})", R"({"model":{"vocab":{}}})", "[]"}) {
    EXPECT_THAT(compat::read_snapshot_tokens(write("t", {{"tokenizer.json", bad}})),
                FailsWith(ErrorCode::bad_format))
        << bad;
  }
}

// A directory and a GGUF file: the token tables are compared.
TEST_F(Snapshot, IsComparedWithAGgufByItsTokens) {
  write_tiny(folder_.path() / "m.gguf");
  const auto gguf = value_of(read_candidate(folder_.path() / "m.gguf", "m"));
  std::string vocabulary;
  const auto add = [&](std::size_t id, std::string_view text) {
    vocabulary +=
        (vocabulary.empty() ? "" : ",") + ("\"" + std::string(text) + "\":") + std::to_string(id);
  };
  for (std::size_t id = 0; id < gguf.tokens->size(); ++id) add(id, gguf.tokens->texts[id]);
  const auto snapshot = [&](const std::string& vocab) {
    return value_of(read_candidate(
        write("s", {{"tokenizer.json", R"({"model":{"vocab":{)" + vocab + "}}}"}}), "s"));
  };
  EXPECT_EQ(compat::first_hard(compat::compare(gguf, snapshot(vocabulary))), nullptr);
  EXPECT_EQ(compat::first_hard(compat::compare(snapshot(vocabulary), gguf)), nullptr);
  std::string other = vocabulary;
  other.replace(other.find("\"ing\""), 5, "\"ong\"");
  const auto list = compat::compare(gguf, snapshot(other));
  ASSERT_NE(compat::first_hard(list), nullptr);
  EXPECT_THAT(compat::first_hard(list)->message, HasSubstr("is \"ing\" in the target and \"ong\""));
}

}  // namespace
}  // namespace paceline::test
