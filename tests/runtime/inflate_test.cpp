// Inflated files compute what their sources compute, and say what they are.
#include "runtime/llama/inflate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <format>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/file.hpp"
#include "core/hash.hpp"
#include "runtime/llama/gguf_tensors.hpp"
#include "runtime/llama/llama_model.hpp"
#include "runtime/llama_checks.hpp"
#include "support/gguf_builder.hpp"
#include "support/matchers.hpp"
#include "support/temporary_folder.hpp"

namespace paceline::test {
namespace {

namespace fs = std::filesystem;

using runtime::inflate_model;
using runtime::InflateOptions;
using runtime::LlamaShape;
using runtime::load_llama_model;
using runtime::Model;
using testing::AllOf;
using testing::HasSubstr;
using Kind = TinyModel::Kind;
using Weights = TinyModel::Weights;

// TINY has 2 layers of 64, 128 neurons, 2 heads of 32 over 1. Groups grow from 2 to 4.
constexpr LlamaShape k_larger = {.layers = 3,
                                 .hidden = 256,
                                 .feed_forward = 512,
                                 .heads = 8,
                                 .key_value_heads = 2,
                                 .head_width = 32};
// For types with blocks of 256.
constexpr LlamaShape k_large_blocks = {.layers = 2,
                                       .hidden = 512,
                                       .feed_forward = 256,
                                       .heads = 8,
                                       .key_value_heads = 4,
                                       .head_width = 32};

class Inflating : public testing::Test {
 protected:
  fs::path at(const std::string& name) const { return folder_.path() / name; }
  /// Inflates a tiny model and loads the file.
  std::shared_ptr<const Model> inflated(const std::string& name, const InflateOptions& options) {
    EXPECT_THAT(inflate_model(at("source.gguf"), at(name), options), IsOk());
    return value_of(load_llama_model(at(name)));
  }
  std::shared_ptr<const Model> source() { return value_of(load_llama_model(at("source.gguf"))); }

  const TemporaryFolder folder_;
};

double largest_difference(const Logits& a, const Logits& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, static_cast<double>(std::abs(a[i] - b[i])));
  }
  return largest;
}

double cosine(const Logits& a, const Logits& b) {
  double ab = 0;
  double aa = 0;
  double bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    aa += static_cast<double>(a[i]) * static_cast<double>(a[i]);
    bb += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return ab / std::sqrt(aa * bb);
}

Logits logits_of(const Model& model, std::uint64_t seed = 3) {
  return plain_logits(model, 9, random_tokens(model, 12, seed));
}

TEST_F(Inflating, LeavesTheFunctionOfEveryArchitectureAsItIs) {
  const GgufVocabulary chat = [] {
    GgufVocabulary vocabulary = small_vocabulary();
    vocabulary.chat_template = "{{ messages[0]['content'] }}";
    return vocabulary;
  }();
  int number = 0;
  for (const TinyModel& tiny :
       {TinyModel{}, TinyModel{.tied = true, .vocabulary = chat},
        TinyModel{.rope_scale = 2.0F, .rope_divisors = true}, TinyModel{.kind = Kind::biased},
        TinyModel{.kind = Kind::normed}, TinyModel{.heads = 4, .key_value_heads = 2}}) {
    SCOPED_TRACE(number);
    write_tiny(at("source.gguf"), tiny);
    LlamaShape shape = k_larger;
    if (tiny.heads == 4)
      shape = {.layers = 2,
               .hidden = 96,
               .feed_forward = 128,
               .heads = 15,
               .key_value_heads = 3,
               .head_width = 16};
    const auto model = inflated(std::format("{}.gguf", number++),
                                {.shape = "own", .own_shape = shape, .type = "F32"});
    const auto expected = source();
    EXPECT_EQ(model->info().hidden, shape.hidden);
    EXPECT_EQ(model->info().layers, shape.layers);
    EXPECT_LT(largest_difference(logits_of(*model), logits_of(*expected)), 2e-3);
    const Tokens prompt = random_tokens(*expected, 7, 1);
    EXPECT_EQ(greedy(*model, prompt, 24), greedy(*expected, prompt, 24));
    EXPECT_EQ(model->vocabulary().size(), expected->vocabulary().size());
    EXPECT_EQ(model->vocabulary().chat_template(), expected->vocabulary().chat_template());
    EXPECT_EQ(value_of(model->vocabulary().tokenize("the end", {})),
              value_of(expected->vocabulary().tokenize("the end", {})));
  }
}

TEST_F(Inflating, IsNearTheSourceInEveryType) {
  write_tiny(at("source.gguf"));
  const Logits expected = logits_of(*source());
  struct Case {
    const char* type;
    const char* shown;
    double cosine;
  };
  for (const Case& one : {Case{"F16", "F16", 0.9999},
                          {"BF16", "BF16", 0.999},
                          {"Q8_0", "Q8_0", 0.995},
                          {"Q4_0", "Q4_0", 0.9},
                          {"Q4_1", "Q4_1", 0.9},
                          {"Q5_0", "Q5_0", 0.95},
                          {"Q5_1", "Q5_1", 0.95},
                          {"Q4_K", "Q4_K - Small", 0.9},
                          {"Q5_K", "Q5_K - Small", 0.95},
                          {"Q6_K", "Q6_K", 0.99},
                          {"Q4_K_M", "Q4_K - Medium", 0.9},
                          {"Q5_K_M", "Q5_K - Medium", 0.95}}) {
    const auto model = inflated(std::format("{}.gguf", one.type),
                                {.shape = "own", .own_shape = k_large_blocks, .type = one.type});
    EXPECT_EQ(model->info().file_type, one.shown);
    EXPECT_GT(cosine(logits_of(*model), expected), one.cosine) << one.type;
  }
}

TEST_F(Inflating, ReadsQuantisedSourcesAndShards) {
  write_tiny(at("source.gguf"), {.weights = Weights::q8_0});
  const auto model = inflated("big.gguf", {.shape = "own", .own_shape = k_larger, .type = "F32"});
  EXPECT_GT(cosine(logits_of(*model), logits_of(*source())), 0.999);

  const auto shards = write_tiny_shards(at("part"), 3);
  write_tiny(at("whole.gguf"));
  const InflateOptions options = {.shape = "own", .own_shape = k_larger, .type = "F32"};
  EXPECT_THAT(inflate_model(shards.front(), at("from-shards.gguf"), options), IsOk());
  const auto joined = value_of(load_llama_model(at("from-shards.gguf")));
  const auto whole = value_of(load_llama_model(at("whole.gguf")));
  EXPECT_LT(largest_difference(logits_of(*joined), logits_of(*whole)), 2e-3);
}

TEST_F(Inflating, GivesTheSameBytesForTheSameSeedAndAnyThreads) {
  write_tiny(at("source.gguf"));
  InflateOptions options = {.shape = "own", .own_shape = k_larger, .noise = 0.1, .seed = 5};
  const auto sum = [&](const std::string& name) {
    EXPECT_THAT(inflate_model(at("source.gguf"), at(name), options), IsOk());
    return value_of(sha256_file(at(name)));
  };
  const std::string first = sum("1");
  options.threads = 5;
  EXPECT_EQ(sum("2"), first);
  options.seed = 6;
  EXPECT_NE(sum("3"), first);
}

TEST_F(Inflating, MoreNoiseGoesFurtherFromTheSource) {
  write_tiny(at("source.gguf"));
  const Logits expected = logits_of(*source());
  double before = 1.0;
  for (const double noise : {0.0, 0.03, 0.3}) {
    const auto model =
        inflated(std::format("{}.gguf", noise),
                 {.shape = "own", .own_shape = k_larger, .type = "F32", .noise = noise});
    const double near = cosine(logits_of(*model), expected);
    EXPECT_LT(near, before + 1e-6) << noise;
    if (noise > 0) {
      EXPECT_LT(near, before - 1e-5) << noise;
    }
    before = near;
  }
}

TEST_F(Inflating, TheNoiseDoesNotDependOnTheShape) {
  write_tiny(at("source.gguf"));
  const auto same = inflated("same.gguf", {.shape = "source", .type = "F32", .noise = 0.2});
  const auto large =
      inflated("large.gguf", {.shape = "own", .own_shape = k_larger, .type = "F32", .noise = 0.2});
  EXPECT_LT(largest_difference(logits_of(*same), logits_of(*large)), 2e-3);
  EXPECT_GT(largest_difference(logits_of(*same), logits_of(*source())), 1e-2);
}

TEST_F(Inflating, PadsRowsToWholeBlocks) {
  write_tiny(at("source.gguf"));
  const auto made =
      inflated("k.gguf", {.shape = "own", .own_shape = k_large_blocks, .type = "Q6_K"});
  const auto file = value_of(runtime::GgufTensors::open(at("k.gguf")));
  const auto* const down = file.find("blk.0.ffn_down.weight");  // 128 real columns of 256
  ASSERT_NE(down, nullptr);
  EXPECT_EQ(down->type, "q6_K");
  EXPECT_EQ(down->extents, (std::vector<std::size_t>{256, 512}));
  const auto first = down->data.subspan(0, 210);
  const auto nothing = down->data.subspan(64 * 210, 210);  // a row behind the source's 64
  EXPECT_NE(std::vector(first.begin(), first.end()), std::vector(nothing.begin(), nothing.end()));
}

TEST_F(Inflating, LabelsTheFile) {
  write_tiny(at("source.gguf"), {.name = "small one"});
  const auto model = inflated(
      "big.gguf", {.shape = "own", .own_shape = k_larger, .noise = 0.25, .seed = 12345678901});
  const auto& info = model->info();
  ASSERT_TRUE(info.inflation.has_value());
  EXPECT_EQ(*info.inflation,
            (runtime::Inflation{.source = "small one",
                                .source_sha256 = value_of(sha256_file(at("source.gguf"))),
                                .shape = "own",
                                .noise = 0.25,
                                .random = false,
                                .seed = 12345678901}));
  EXPECT_EQ(info.name, "small one in own shape, noise 0.25");
  EXPECT_EQ(source()->info().inflation, std::nullopt);
}

TEST_F(Inflating, RandomWeightsKeepTheVocabularyAndSaySo) {
  write_tiny(at("source.gguf"), {.rope_divisors = true});
  const auto model = inflated("big.gguf", {.shape = "own", .own_shape = k_larger, .random = true});
  EXPECT_TRUE(model->info().inflation->random);
  EXPECT_THAT(model->info().name, HasSubstr("random"));
  const Logits logits = logits_of(*model);
  EXPECT_TRUE(std::ranges::all_of(logits, [](float x) { return std::isfinite(x); }));
  EXPECT_GT(*std::ranges::max_element(logits) - *std::ranges::min_element(logits), 0.1F);
  EXPECT_LT(std::abs(cosine(logits, logits_of(*source()))), 0.5);
  // Nothing is left of padding: rows behind the source's have weights too.
  const auto file = value_of(runtime::GgufTensors::open(at("big.gguf")));
  const auto* const up = file.find("blk.2.ffn_up.weight");
  ASSERT_NE(up, nullptr);
  const auto last = up->data.last(18);
  EXPECT_NE(std::vector(last.begin(), last.end()),
            std::vector(up->data.begin(), up->data.begin() + 18));
}

TEST_F(Inflating, RefusesWhatCannotBe) {
  write_tiny(at("source.gguf"));
  const auto fails = [&](const InflateOptions& options, ErrorCode code, const auto& message) {
    EXPECT_THAT(inflate_model(at("source.gguf"), at("never.gguf"), options),
                FailsWith(code, message));
    EXPECT_FALSE(fs::exists(at("never.gguf")));
  };
  fails({.shape = "9b"}, ErrorCode::invalid_argument, HasSubstr("9b"));
  fails({.type = "Q1"}, ErrorCode::invalid_argument, HasSubstr("Q1"));
  fails({.noise = -1}, ErrorCode::invalid_argument, HasSubstr("-1"));
  fails({.noise = std::numeric_limits<double>::quiet_NaN()}, ErrorCode::invalid_argument,
        HasSubstr("nan"));
  fails({.noise = 0.5, .random = true}, ErrorCode::invalid_argument, HasSubstr("random"));
  fails({.shape = "source", .type = "Q4_K"}, ErrorCode::unsupported,
        AllOf(HasSubstr("64 numbers"), HasSubstr("256")));
  LlamaShape small = k_larger;
  small.layers = 1;
  fails({.own_shape = small}, ErrorCode::invalid_argument, HasSubstr("2 layers"));
  small = k_larger;
  small.head_width = 64;
  fails({.own_shape = small}, ErrorCode::invalid_argument, HasSubstr("32 wide"));

  write_tiny(at("biased.gguf"), {.kind = Kind::biased});
  small = k_larger;
  small.heads = 6;
  EXPECT_THAT(inflate_model(at("biased.gguf"), at("never.gguf"), {.own_shape = small}),
              FailsWith(ErrorCode::unsupported, HasSubstr("6 heads of 32")));
  EXPECT_THAT(inflate_model(at("missing.gguf"), at("never.gguf"), {}),
              FailsWith(ErrorCode::not_found, HasSubstr("missing.gguf")));
  EXPECT_THAT(inflate_model(at("source.gguf"), at("no folder/never.gguf"), {}),
              FailsWith(ErrorCode::not_found, HasSubstr("no folder")));
  for (const Kind kind : {Kind::sliding_window, Kind::recurrent}) {
    write_tiny(at("other.gguf"), {.kind = kind});
    EXPECT_THAT(inflate_model(at("other.gguf"), at("never.gguf"), {}),
                FailsWith(ErrorCode::unsupported, HasSubstr("architecture")));
  }
}

TEST_F(Inflating, LeavesAFileThatIsThereAlone) {
  write_tiny(at("source.gguf"));
  ASSERT_THAT(replace_file(at("mine.gguf"), "mine"), IsOk());
  EXPECT_THAT(inflate_model(at("source.gguf"), at("mine.gguf"), {}),
              FailsWith(ErrorCode::invalid_argument, HasSubstr("exists")));
  EXPECT_EQ(value_of(read_file(at("mine.gguf"))), "mine");
}

TEST_F(Inflating, LeavesNothingBehindWhenItIsCancelled) {
  write_tiny(at("source.gguf"));
  std::stop_source stop;
  InflateOptions options = {.shape = "own", .own_shape = k_larger};
  options.progress = [&](std::uint64_t, std::uint64_t) { stop.request_stop(); };
  options.stop = stop.get_token();
  EXPECT_THAT(inflate_model(at("source.gguf"), at("big.gguf"), options),
              FailsWith(ErrorCode::cancelled));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator{}), 1);
}

TEST_F(Inflating, TellsItsProgressToTheEnd) {
  write_tiny(at("source.gguf"));
  std::uint64_t last = 0;
  std::uint64_t all = 0;
  InflateOptions options = {.shape = "own", .own_shape = k_larger};
  options.progress = [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_GE(done, last);
    last = done;
    all = total;
  };
  const auto made = value_of(inflate_model(at("source.gguf"), at("big.gguf"), options));
  EXPECT_EQ(all, made.bytes);
  EXPECT_EQ(fs::file_size(at("big.gguf")), made.bytes);
  EXPECT_LE(last, all);
  EXPECT_GT(last, all - 64);
}

}  // namespace
}  // namespace paceline::test
