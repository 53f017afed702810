// A folder of candidates, and the result as text and as a JSON document that fits its schema.
#include "compat/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json-schema.hpp>

#include "compat/check_text.hpp"
#include "core/json.hpp"
#include "support/gguf_builder.hpp"
#include "support/matchers.hpp"
#include "support/temporary_folder.hpp"

namespace paceline::test {
namespace {

namespace fs = std::filesystem;
using compat::FolderCheck;
using compat::FolderEntry;
using compat::PairCheck;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string schema_error(const Json& document) {
  static const nlohmann::json_schema::json_validator validator(
      value_of(parse_json(compat::check_schema(), "schema")));
  try {
    validator.validate(document);
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

class Folder : public testing::Test {
 protected:
  fs::path path(const std::string& name) const { return folder_.path() / name; }
  void tiny(const std::string& name, const TinyModel& model = {}) {
    fs::create_directories(path(name).parent_path());
    write_tiny(path(name), model);
  }
  FolderCheck check() {
    std::vector<FolderEntry> entries;
    for (const fs::path& found : value_of(compat::find_candidates(folder_.path()))) {
      FolderEntry entry{
          .name = found.lexically_relative(folder_.path()).string(), .candidate = {}, .error = {}};
      if (auto candidate = compat::read_candidate(found, entry.name)) {
        entry.candidate = *std::move(candidate);
      } else {
        entry.error = candidate.error().message;
      }
      entries.push_back(std::move(entry));
    }
    return compat::check_folder("models", std::move(entries));
  }

  TemporaryFolder folder_;
};

// A3: three files, one of them a fitting draft; and a damaged one.
TEST_F(Folder, ExplainsEveryCandidate) {
  TinyModel small{.layers = 1};
  tiny("target.gguf");
  tiny("draft.gguf", small);
  TinyModel other = small;
  other.vocabulary.pieces.at(3) += "x";
  tiny("other.gguf", other);
  tiny("recurrent.gguf", {.kind = TinyModel::Kind::recurrent});
  tiny("cut.gguf");
  cut_file(path("cut.gguf"), 0.5);

  const FolderCheck result = check();
  const std::string text = compat::to_text(result, 200);
  EXPECT_THAT(text, AllOf(HasSubstr("models: 4 candidates, 1 usable pairs"),
                          HasSubstr("drafts   draft.gguf (1 soft)"),
                          HasSubstr("not      other.gguf: token_texts: token 264"),
                          HasSubstr("target   no: rollback: the target (\"mamba\")"),
                          HasSubstr("larger   "), HasSubstr("cut.gguf\" is cut: the file ends")));
  const Json document = compat::to_json(result);
  EXPECT_EQ(schema_error(document), "");
  EXPECT_EQ(document["pairs"].size(), 12U);
  for (const Json& pair : document["pairs"]) {
    const bool fits = pair["target"] == "target.gguf" && pair["draft"] == "draft.gguf";
    EXPECT_EQ(pair["result"] == "usable", fits) << pair;
  }
}

TEST_F(Folder, IsSearchedForFilesShardsAndSnapshots) {
  tiny("org/model/a.gguf");
  write_tiny_shards(path("part"), 3);
  fs::create_directories(path("snap/deeper"));
  std::ofstream(path("snap/config.json")) << "{}";
  std::ofstream(path("snap/deeper/config.json")) << "{}";
  tiny(".hidden/b.gguf");
  std::ofstream(path("readme.txt")) << "no model";
  fs::create_directory_symlink(path("org"), path("link"));
  std::vector<std::string> names;
  for (const fs::path& found : value_of(compat::find_candidates(folder_.path()))) {
    names.push_back(found.lexically_relative(folder_.path()).string());
  }
  EXPECT_THAT(names, ElementsAre("org/model/a.gguf", "part-00001-of-00003.gguf", "snap"));
  fs::remove(path("part-00001-of-00003.gguf"));
  EXPECT_THAT(value_of(compat::find_candidates(folder_.path()))[1].filename().string(),
              "part-00002-of-00003.gguf");
  EXPECT_THAT(compat::find_candidates(path("none")), FailsWith(ErrorCode::not_found));
  EXPECT_THAT(compat::find_candidates(path("readme.txt")), FailsWith(ErrorCode::not_found));
}

TEST_F(Folder, SharesEqualTokenTables) {
  tiny("a.gguf");
  tiny("b.gguf", {.seed = 2});
  const FolderCheck result = check();
  EXPECT_EQ(result.entries[0].candidate->tokens, result.entries[1].candidate->tokens);
}

TEST_F(Folder, OfAPairGivesTextAndADocumentThatFitsItsSchema) {
  tiny("a.gguf");
  TinyModel other{.layers = 1};
  other.vocabulary.other_texts = {{265, "\xff\"\n"}};
  tiny("b.gguf", other);
  const auto read = [&](const char* name) {
    return value_of(compat::read_candidate(path(name), name));
  };
  const PairCheck refused = compat::check_pair(read("a.gguf"), read("b.gguf"));
  EXPECT_FALSE(refused.usable());
  Json document = compat::to_json(refused);
  EXPECT_EQ(schema_error(document), "");
  EXPECT_EQ(document["result"], "not_usable");
  EXPECT_EQ(document["code"], "draft_model_tokenizer_mismatch");
  EXPECT_EQ(document["differences"][0]["first_token"]["id"], 265);
  EXPECT_THAT(compat::to_text(refused, 80),
              AllOf(HasSubstr("May b.gguf draft for a.gguf? No."),
                    HasSubstr("hard     token_texts"), HasSubstr("memory ")));

  PairCheck usable = compat::check_pair(read("a.gguf"), read("a.gguf"));
  usable.draft_artifact_sha256 = std::string(64, 'a');
  EXPECT_TRUE(usable.usable());
  EXPECT_EQ(schema_error(compat::to_json(usable)), "");
  EXPECT_EQ(compat::to_json(usable)["result"], "usable");
  EXPECT_THAT(compat::to_text(usable, 80), HasSubstr("Yes."));

  const PairCheck alone = compat::check_pair(read("a.gguf"), std::nullopt);
  EXPECT_EQ(schema_error(compat::to_json(alone)), "");
  EXPECT_THAT(compat::to_text(alone, 80), HasSubstr("May a.gguf be a target? Yes."));

  document["result"] = "perhaps";
  EXPECT_NE(schema_error(document), "");
  document = compat::to_json(usable);
  document["extra"] = 1;
  EXPECT_NE(schema_error(document), "");
}

TEST_F(Folder, WrapsItsLines) {
  tiny("a.gguf");
  tiny("b.gguf", {.kind = TinyModel::Kind::sliding_window});
  const PairCheck check =
      compat::check_pair(value_of(compat::read_candidate(path("a.gguf"), "a.gguf")),
                         value_of(compat::read_candidate(path("b.gguf"), "b.gguf")));
  const std::string text = compat::to_text(check, 60);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    EXPECT_LE(end - at, 60U) << text.substr(at, end - at);
    at = end + 1;
  }
}

}  // namespace
}  // namespace paceline::test
