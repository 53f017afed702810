// Loading GGUF files: what a model says about itself, and every way in which a file is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <format>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "runtime/llama/llama_model.hpp"
#include "runtime/llama_checks.hpp"
#include "support/gguf_builder.hpp"
#include "support/matchers.hpp"
#include "support/temporary_folder.hpp"

namespace paceline::test {
namespace {

using runtime::load_llama_model;
using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

TEST(LlamaLoad, DescribesTheModel) {
  const TemporaryFolder folder;
  write_tiny(folder.path() / "m.gguf", {.weights = TinyModel::Weights::q4_1, .name = "little"});
  const auto model = value_of(load_llama_model(folder.path() / "m.gguf"));
  const auto& info = model->info();
  EXPECT_EQ(info.name, "little");
  EXPECT_EQ(info.path, (folder.path() / "m.gguf").string());
  EXPECT_EQ(info.architecture, "llama");
  EXPECT_THAT(info.file_type, HasSubstr("Q4_1"));
  EXPECT_EQ(info.layers, 2U);
  EXPECT_EQ(info.hidden, 64U);
  EXPECT_EQ(info.trained_context, 512U);
  EXPECT_EQ(info.sliding_window, 0U);
  EXPECT_FALSE(info.recurrent);
  EXPECT_EQ(info.file_bytes, std::filesystem::file_size(folder.path() / "m.gguf"));
  EXPECT_GT(info.parameters, 2 * 64 * small_vocabulary().size());
  EXPECT_THAT(info.files, SizeIs(1));
}

TEST(LlamaLoad, NamesWindowAndRecurrence) {
  const TemporaryFolder folder;
  write_tiny(folder.path() / "w.gguf", {.kind = TinyModel::Kind::sliding_window, .window = 8});
  write_tiny(folder.path() / "r.gguf", {.kind = TinyModel::Kind::recurrent});
  EXPECT_EQ(value_of(load_llama_model(folder.path() / "w.gguf"))->info().sliding_window, 8U);
  const auto recurrent = value_of(load_llama_model(folder.path() / "r.gguf"));
  EXPECT_TRUE(recurrent->info().recurrent);
  EXPECT_EQ(recurrent->info().architecture, "mamba");
}

TEST(LlamaLoad, RefusesWeightsThatAreNoNumbers) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "m.gguf";
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const char* tensor : {"blk.1.attn_k.weight", "output_norm.weight"}) {
      TinyModel tiny;
      tiny.tensors_of[tensor] = bad;
      write_tiny(path, tiny);
      const auto model = load_llama_model(path);
      EXPECT_THAT(model, FailsWith(ErrorCode::bad_format));
      EXPECT_THAT(model.error().message, AllOf(HasSubstr("m.gguf"), HasSubstr(tensor)));
    }
  }
}

TEST(LlamaLoad, RefusesWhatWouldEndTheProcessInAPass) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "m.gguf";
  TinyModel tiny;
  tiny.integer_tensors = {"blk.0.ffn_up.weight"};
  write_tiny(path, tiny);
  auto model = load_llama_model(path, {.vocabulary_only = true});
  EXPECT_THAT(model, FailsWith(ErrorCode::bad_format));
  EXPECT_THAT(model.error().message, AllOf(HasSubstr("blk.0.ffn_up.weight"), HasSubstr("i32")));
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -1e-5F, 1.0F,
                          std::numeric_limits<float>::infinity()}) {
    tiny = {};
    tiny.metadata["llama.attention.layer_norm_rms_epsilon"] = bad;
    write_tiny(path, tiny);
    model = load_llama_model(path, {.vocabulary_only = true});
    EXPECT_THAT(model, FailsWith(ErrorCode::bad_format));
    EXPECT_THAT(model.error().message, HasSubstr("layer_norm_rms_epsilon"));
  }
}

TEST(LlamaLoad, FindsAllShardsFromAnyOfThem) {
  const TemporaryFolder folder;
  write_tiny(folder.path() / "whole.gguf");
  const auto shards = write_tiny_shards(folder.path() / "part", 3);
  const auto whole = value_of(load_llama_model(folder.path() / "whole.gguf"));
  const Tokens tokens = random_tokens(*whole, 12, 1);
  const Logits expected = plain_logits(*whole, 8, tokens);
  for (const auto& shard : shards) {
    SCOPED_TRACE(shard.string());
    const auto model = value_of(load_llama_model(shard));
    EXPECT_THAT(model->info().files, SizeIs(3));
    EXPECT_EQ(model->info().files.front(), shards.front().string());
    EXPECT_EQ(model->info().parameters, whole->info().parameters);
    EXPECT_GT(model->info().file_bytes, std::filesystem::file_size(shard));
    EXPECT_TRUE(same_bits(plain_logits(*model, 8, tokens), expected));
  }
}

TEST(LlamaLoad, NamesTheShardThatIsMissing) {
  const TemporaryFolder folder;
  const auto shards = write_tiny_shards(folder.path() / "part", 3);
  std::filesystem::remove(shards[1]);
  EXPECT_THAT(load_llama_model(shards[0]),
              FailsWith(ErrorCode::not_found,
                        AllOf(HasSubstr("shard 2 of 3"), HasSubstr(shards[1].string()))));
}

TEST(LlamaLoad, RefusesAShardUnderAnotherName) {
  const TemporaryFolder folder;
  const auto shards = write_tiny_shards(folder.path() / "part", 2);
  std::filesystem::copy_file(shards[1], folder.path() / "other.gguf");
  EXPECT_THAT(load_llama_model(folder.path() / "other.gguf"),
              FailsWith(ErrorCode::bad_format, HasSubstr("-00002-of-00002.gguf")));
}

TEST(LlamaLoad, RefusesAFileCutAnywhere) {
  const TemporaryFolder folder;
  for (const double part : {0.999, 0.9, 0.5, 0.2, 0.1, 0.05, 0.01, 0.001}) {
    SCOPED_TRACE(part);
    const auto path = folder.path() / "cut.gguf";
    write_tiny(path);
    cut_file(path, part);
    EXPECT_THAT(load_llama_model(path), FailsWith(ErrorCode::bad_format, HasSubstr("cut.gguf")));
  }
}

TEST(LlamaLoad, SaysWhereACutFileEndsAndWhatItNeeds) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "cut.gguf";
  write_tiny(path);
  const auto whole = std::filesystem::file_size(path);
  cut_file(path, 0.5);
  const auto half = std::filesystem::file_size(path);
  EXPECT_THAT(
      load_llama_model(path),
      FailsWith(ErrorCode::bad_format, AllOf(HasSubstr(std::format("ends at byte {}", half)),
                                             HasSubstr(std::format("need {}", whole)))));
}

TEST(LlamaLoad, RefusesACutShard) {
  const TemporaryFolder folder;
  const auto shards = write_tiny_shards(folder.path() / "part", 2);
  cut_file(shards[1], 0.9);
  EXPECT_THAT(load_llama_model(shards[0]),
              FailsWith(ErrorCode::bad_format, HasSubstr("-00002-of-00002.gguf")));
}

TEST(LlamaLoad, RefusesWhatIsNoModel) {
  const TemporaryFolder folder;
  write_text(folder.path() / "text.gguf", "# a readme\n");
  write_text(folder.path() / "empty.gguf", "");
  write_text(folder.path() / "magic.gguf", "GGUF");
  EXPECT_THAT(load_llama_model(folder.path() / "text.gguf"),
              FailsWith(ErrorCode::bad_format, HasSubstr("\"# a \"")));
  EXPECT_THAT(load_llama_model(folder.path() / "empty.gguf"), FailsWith(ErrorCode::bad_format));
  EXPECT_THAT(load_llama_model(folder.path() / "magic.gguf"), FailsWith(ErrorCode::bad_format));
  EXPECT_THAT(load_llama_model(folder.path() / "none.gguf"),
              FailsWith(ErrorCode::not_found, HasSubstr("none.gguf")));
  EXPECT_THAT(load_llama_model(folder.path() / "."),
              FailsWith(ErrorCode::bad_format, HasSubstr("folder")));
}

TEST(LlamaLoad, SurvivesGarbageInTheMetadata) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "m.gguf";
  write_tiny(path);
  std::string bytes;
  {
    std::ifstream in(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  // Counts and lengths at the front: absurd values are refused, none aborts.
  for (const std::size_t place : {4U, 8U, 15U, 16U, 23U, 24U, 31U}) {
    SCOPED_TRACE(place);
    std::string damaged = bytes;
    damaged[place] = '\x7f';
    write_text(path, damaged);
    EXPECT_FALSE(load_llama_model(path).has_value());
  }
}

TEST(LlamaLoad, RefusesEncodersAndFilesWithoutTokenizer) {
  const TemporaryFolder folder;
  write_tiny(folder.path() / "e.gguf", {.kind = TinyModel::Kind::encoder});
  EXPECT_THAT(load_llama_model(folder.path() / "e.gguf"),
              FailsWith(ErrorCode::unsupported, HasSubstr("encoder")));
  TinyModel mute;
  mute.vocabulary.tokenizer = false;
  write_tiny(folder.path() / "t.gguf", mute);
  EXPECT_THAT(load_llama_model(folder.path() / "t.gguf"),
              FailsWith(ErrorCode::bad_format, HasSubstr("tokenizer")));
}

TEST(LlamaLoad, TellsWhatLibllamaSaidOfAnUnknownArchitecture) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "m.gguf";
  write_tiny(path);
  std::string bytes;
  {
    std::ifstream in(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  bytes.replace(bytes.find("llama"), 5, "lulla");
  write_text(path, bytes);
  EXPECT_THAT(load_llama_model(path), FailsWith(ErrorCode::unsupported, HasSubstr("lulla")));
}

TEST(LlamaLoad, ReportsProgressAndCanBeCancelled) {
  const TemporaryFolder folder;
  write_tiny(folder.path() / "m.gguf");
  std::vector<float> parts;
  value_of(load_llama_model(folder.path() / "m.gguf", {.progress = [&](float part) {
                              parts.push_back(part);
                              return true;
                            }}));
  ASSERT_GE(parts.size(), 2U);
  EXPECT_TRUE(std::ranges::is_sorted(parts));
  EXPECT_EQ(parts.front(), 0.0F);
  EXPECT_EQ(parts.back(), 1.0F);
  for (const float until : {0.0F, 0.2F}) {
    EXPECT_THAT(load_llama_model(folder.path() / "m.gguf",
                                 {.progress = [&](float part) { return part < until; }}),
                FailsWith(ErrorCode::cancelled));
  }
}

TEST(LlamaLoad, VocabularyAloneTokenisesButDoesNotRun) {
  const TemporaryFolder folder;
  write_tiny(folder.path() / "m.gguf");
  const auto whole = value_of(load_llama_model(folder.path() / "m.gguf"));
  const auto model =
      value_of(load_llama_model(folder.path() / "m.gguf", {.vocabulary_only = true}));
  EXPECT_EQ(value_of(model->vocabulary().tokenize("the end", {})),
            value_of(whole->vocabulary().tokenize("the end", {})));
  EXPECT_EQ(model->info().layers, 2U);
  EXPECT_EQ(model->info().parameters, whole->info().parameters);
  EXPECT_THAT(model->create_runtime({}), FailsWith(ErrorCode::unsupported));
}

TEST(LlamaBackend, NamesItsBuildAndItsCode) {
  EXPECT_THAT(runtime::llama_build(), HasSubstr("libllama"));
  EXPECT_THAT(runtime::llama_backend_name(), HasSubstr("CPU"));
}

}  // namespace
}  // namespace paceline::test
