#include "support/gguf_builder.hpp"

#include <ggml-cpp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <format>
#include <initializer_list>
#include <numbers>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/check.hpp"
#include "core/random.hpp"

namespace paceline::test {

namespace {

using Weights = TinyModel::Weights;

// Of TINY. Rows of 64 and not of 32: ggml 0.27 on processors with AMX gives NaN for quantised
// matrices whose rows are one block long.
constexpr std::int64_t k_width = 64;  // of recurrent models
constexpr std::size_t k_tensor_memory = 64u << 20u;

ggml_type to_ggml(Weights weights) {
  switch (weights) {
    case Weights::f32:
      return GGML_TYPE_F32;
    case Weights::f16:
      return GGML_TYPE_F16;
    case Weights::q4_0:
      return GGML_TYPE_Q4_0;
    case Weights::q4_1:
      return GGML_TYPE_Q4_1;
    case Weights::q8_0:
      return GGML_TYPE_Q8_0;
    case Weights::bf16:
      return GGML_TYPE_BF16;
    case Weights::q5_0:
      return GGML_TYPE_Q5_0;
    case Weights::q5_1:
      return GGML_TYPE_Q5_1;
    case Weights::q4_k:
      return GGML_TYPE_Q4_K;
    case Weights::q5_k:
      return GGML_TYPE_Q5_K;
    case Weights::q6_k:
      return GGML_TYPE_Q6_K;
  }
  return GGML_TYPE_F32;
}

// Collects metadata and tensors, then writes one file or several.
class Builder {
 public:
  explicit Builder(std::string architecture)
      : architecture_(std::move(architecture)),
        gguf_(gguf_init_empty()),
        memory_(
            ggml_init({.mem_size = k_tensor_memory, .mem_buffer = nullptr, .no_alloc = false})) {
    gguf_set_val_str(gguf_.get(), "general.architecture", architecture_.c_str());
  }

  /// Leaves tensors out and changes others as they are added.
  void damage_like(const TinyModel& model) { model_ = model; }

  gguf_context* gguf() { return gguf_.get(); }
  void set(std::string_view key, std::size_t value) {
    gguf_set_val_u32(gguf_.get(), std::format("{}.{}", architecture_, key).c_str(),
                     static_cast<std::uint32_t>(value));
  }
  void set(std::string_view key, float value) {
    gguf_set_val_f32(gguf_.get(), std::format("{}.{}", architecture_, key).c_str(), value);
  }
  void set(std::string_view key, bool value) {
    gguf_set_val_bool(gguf_.get(), std::format("{}.{}", architecture_, key).c_str(), value);
  }

  // `values` row by row, the first extent running fastest.
  void tensor(const std::string& name, ggml_type type, std::initializer_list<std::int64_t> extents,
              std::span<const float> values) {
    if (model_.tensors_left_out.contains(name)) return;
    const std::vector<std::int64_t> ne(extents);
    if (model_.integer_tensors.contains(name)) {
      ggml_tensor* zeros =
          ggml_new_tensor(memory_.get(), GGML_TYPE_I32, static_cast<int>(ne.size()), ne.data());
      std::memset(zeros->data, 0, ggml_nbytes(zeros));
      ggml_set_name(zeros, name.c_str());
      tensors_.push_back(zeros);
      return;
    }
    std::vector<float> same;
    if (const auto filled = model_.tensors_of.find(name); filled != model_.tensors_of.end()) {
      same.assign(values.size(), filled->second);
      values = same;
    }
    ggml_tensor* made =
        ggml_new_tensor(memory_.get(), type, static_cast<int>(ne.size()), ne.data());
    PACELINE_CHECK(static_cast<std::size_t>(ggml_nelements(made)) == values.size(),
                   "as many values as the tensor has elements");
    ggml_quantize_chunk(type, values.data(), made->data, 0, ggml_nelements(made) / ne.front(),
                        ne.front(), nullptr);
    ggml_set_name(made, name.c_str());
    tensors_.push_back(made);
  }

  void write(const std::filesystem::path& path) {
    for (const ggml_tensor* made : tensors_) gguf_add_tensor(gguf_.get(), made);
    PACELINE_CHECK(gguf_write_to_file(gguf_.get(), path.c_str(), false), "the file is written");
  }

  std::vector<std::filesystem::path> write_shards(const std::filesystem::path& prefix,
                                                  std::size_t count) {
    std::vector<std::filesystem::path> paths;
    for (std::size_t shard = 0; shard < count; ++shard) {
      const gguf_context_ptr part(gguf_init_empty());
      if (shard == 0) gguf_set_kv(part.get(), gguf_.get());
      gguf_set_val_u16(part.get(), "split.no", static_cast<std::uint16_t>(shard));
      gguf_set_val_u16(part.get(), "split.count", static_cast<std::uint16_t>(count));
      gguf_set_val_i32(part.get(), "split.tensors.count",
                       static_cast<std::int32_t>(tensors_.size()));
      const std::size_t begin = tensors_.size() * shard / count;
      const std::size_t end = tensors_.size() * (shard + 1) / count;
      for (std::size_t i = begin; i < end; ++i) gguf_add_tensor(part.get(), tensors_[i]);
      paths.emplace_back(std::format("{}-{:05}-of-{:05}.gguf", prefix.string(), shard + 1, count));
      PACELINE_CHECK(gguf_write_to_file(part.get(), paths.back().c_str(), false),
                     "the shard is written");
    }
    return paths;
  }

 private:
  std::string architecture_;
  TinyModel model_;  // only what it says of damage
  gguf_context_ptr gguf_;
  ggml_context_ptr memory_;
  std::vector<const ggml_tensor*> tensors_;
};

void add_vocabulary(Builder& builder, const GgufVocabulary& vocabulary) {
  gguf_context* gguf = builder.gguf();
  if (!vocabulary.tokenizer) {
    gguf_set_val_str(gguf, "tokenizer.ggml.model", "no_vocab");
    return;
  }
  enum Kind : std::int32_t { normal = 1, unknown = 2, control = 3, unused = 5, byte = 6 };
  std::vector<std::string> texts = {"<unk>", "<s>", "</s>"};
  std::vector<std::int32_t> kinds = {unknown, control, control};
  for (int value = 0; value < 256; ++value) {
    texts.push_back(std::format("<0x{:02X}>", value));
    kinds.push_back(byte);
  }
  for (const char* turn : {"<|im_start|>", "<|im_end|>"}) {
    texts.emplace_back(turn);
    kinds.push_back(control);
  }
  for (const std::string& piece : vocabulary.pieces) {
    texts.push_back(piece);
    kinds.push_back(normal);
  }
  for (std::size_t i = 0; i < vocabulary.padding; ++i) {
    texts.push_back(std::format("[PAD{}]", i));
    kinds.push_back(unused);
  }
  for (const auto& [id, text] : vocabulary.other_texts) texts.at(id) = text;
  for (const auto& [id, kind] : vocabulary.other_kinds) kinds.at(id) = kind;
  std::vector<const char*> pointers;
  std::vector<float> scores;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    pointers.push_back(texts[i].c_str());
    scores.push_back(-static_cast<float>(i));
  }
  for (const auto& [id, score] : vocabulary.other_scores) scores.at(id) = score;
  gguf_set_val_str(gguf, "tokenizer.ggml.model", "llama");
  gguf_set_arr_str(gguf, "tokenizer.ggml.tokens", pointers.data(), pointers.size());
  gguf_set_arr_data(gguf, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores.data(), scores.size());
  gguf_set_arr_data(gguf, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, kinds.data(), kinds.size());
  gguf_set_val_u32(gguf, "tokenizer.ggml.unknown_token_id", 0);
  gguf_set_val_u32(gguf, "tokenizer.ggml.bos_token_id", 1);
  gguf_set_val_u32(gguf, "tokenizer.ggml.eos_token_id", 2);
  gguf_set_val_bool(gguf, "tokenizer.ggml.add_space_prefix", false);
  if (vocabulary.add_begin_of_text) {
    gguf_set_val_bool(gguf, "tokenizer.ggml.add_bos_token", *vocabulary.add_begin_of_text);
  }
  if (!vocabulary.chat_template.empty()) {
    gguf_set_val_str(gguf, "tokenizer.chat_template", vocabulary.chat_template.c_str());
  }
}

void describe(Builder& builder, const std::string& name, std::size_t context, std::size_t layers,
              std::int64_t width) {
  gguf_set_val_str(builder.gguf(), "general.name", name.c_str());
  builder.set("context_length", context);
  builder.set("block_count", layers);
  builder.set("embedding_length", static_cast<std::size_t>(width));
}

void describe_attention(Builder& builder, std::int64_t heads, std::int64_t key_value_heads,
                        std::int64_t head_width, std::int64_t feed_forward) {
  builder.set("feed_forward_length", static_cast<std::size_t>(feed_forward));
  builder.set("attention.head_count", static_cast<std::size_t>(heads));
  builder.set("attention.head_count_kv", static_cast<std::size_t>(key_value_heads));
  builder.set("attention.key_length", static_cast<std::size_t>(head_width));
  builder.set("attention.value_length", static_cast<std::size_t>(head_width));
  builder.set("rope.dimension_count", static_cast<std::size_t>(head_width));
  builder.set("attention.layer_norm_rms_epsilon", 1e-5F);
}

// Adds tensors of normally distributed values with a mean square of `gain` over the inputs.
class RandomTensors {
 public:
  RandomTensors(Builder& builder, std::uint64_t seed, ggml_type type)
      : builder_(builder), random_(seed), type_(type) {}

  void matrix(const std::string& name, std::int64_t inputs, std::int64_t outputs,
              double gain = 1.0) {
    fill(name, type_, {inputs, outputs}, 0.0, gain / std::sqrt(static_cast<double>(inputs)));
  }
  void matrix_f32(const std::string& name, std::int64_t inputs, std::int64_t outputs, double mean,
                  double deviation) {
    fill(name, GGML_TYPE_F32, {inputs, outputs}, mean, deviation);
  }
  void vector(const std::string& name, std::int64_t size, double mean = 1.0,
              double deviation = 0.1) {
    fill(name, GGML_TYPE_F32, {size}, mean, deviation);
  }

 private:
  void fill(const std::string& name, ggml_type type, std::initializer_list<std::int64_t> extents,
            double mean, double deviation) {
    std::int64_t count = 1;
    for (const std::int64_t extent : extents) count *= extent;
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = static_cast<float>(mean + deviation * normal());
    builder_.tensor(name, type, extents, values);
  }
  double normal() {  // Box-Muller
    const double radius = std::sqrt(-2.0 * std::log(1.0 - random_.unit()));
    return radius * std::cos(2.0 * std::numbers::pi * random_.unit());
  }

  Builder& builder_;
  Random random_;
  ggml_type type_;
};

std::string block(std::size_t layer, std::string_view name) {
  return std::format("blk.{}.{}", layer, name);
}

// The sizes of a model with attention, as the builder counts.
struct Widths {
  std::int64_t model;
  std::int64_t feed_forward;
  std::int64_t heads;
  std::int64_t key_value_heads;

  explicit Widths(const TinyModel& tiny)
      : model(static_cast<std::int64_t>(tiny.width)),
        feed_forward(static_cast<std::int64_t>(tiny.feed_forward)),
        heads(static_cast<std::int64_t>(tiny.heads)),
        key_value_heads(static_cast<std::int64_t>(tiny.key_value_heads)) {}
  std::int64_t head() const { return model / heads; }
  std::int64_t key_value() const { return key_value_heads * head(); }
};

void add_attention_layer(RandomTensors& tensors, std::size_t layer, const Widths& widths,
                         TinyModel::Kind kind) {
  using Kind = TinyModel::Kind;
  tensors.vector(block(layer, "attn_norm.weight"), widths.model);
  tensors.matrix(block(layer, "attn_q.weight"), widths.model, widths.model, 2.0);
  tensors.matrix(block(layer, "attn_k.weight"), widths.model, widths.key_value(), 2.0);
  tensors.matrix(block(layer, "attn_v.weight"), widths.model, widths.key_value());
  tensors.matrix(block(layer, "attn_output.weight"), widths.model, widths.model);
  tensors.vector(block(layer, "ffn_norm.weight"), widths.model);
  tensors.matrix(block(layer, "ffn_gate.weight"), widths.model, widths.feed_forward);
  tensors.matrix(block(layer, "ffn_up.weight"), widths.model, widths.feed_forward);
  tensors.matrix(block(layer, "ffn_down.weight"), widths.feed_forward, widths.model);
  if (kind == Kind::sliding_window) {
    tensors.vector(block(layer, "post_attention_norm.weight"), widths.model);
    tensors.vector(block(layer, "post_ffw_norm.weight"), widths.model);
  }
  if (kind == Kind::biased) {
    tensors.vector(block(layer, "attn_q.bias"), widths.model, 0.0, 0.5);
    tensors.vector(block(layer, "attn_k.bias"), widths.key_value(), 0.0, 0.5);
    tensors.vector(block(layer, "attn_v.bias"), widths.key_value(), 0.0, 0.5);
  }
  if (kind == Kind::normed) {
    tensors.vector(block(layer, "attn_q_norm.weight"), widths.head());
    tensors.vector(block(layer, "attn_k_norm.weight"), widths.head());
  }
}

void add_recurrent_layer(RandomTensors& tensors, std::size_t layer) {
  constexpr std::int64_t inner = 2 * k_width;
  constexpr std::int64_t state = 16;
  constexpr std::int64_t kernel = 4;
  constexpr std::int64_t rank = 4;
  tensors.vector(block(layer, "attn_norm.weight"), k_width);
  tensors.matrix_f32(block(layer, "ssm_in.weight"), k_width, 2 * inner, 0.0, 0.3);
  tensors.matrix_f32(block(layer, "ssm_conv1d.weight"), kernel, inner, 0.0, 0.5);
  tensors.vector(block(layer, "ssm_conv1d.bias"), inner, 0.0);
  tensors.matrix_f32(block(layer, "ssm_x.weight"), inner, rank + 2 * state, 0.0, 0.3);
  tensors.matrix_f32(block(layer, "ssm_dt.weight"), rank, inner, 0.0, 0.3);
  tensors.vector(block(layer, "ssm_dt.bias"), inner, 0.0);
  tensors.matrix_f32(block(layer, "ssm_a"), state, inner, -1.0, 0.2);
  tensors.vector(block(layer, "ssm_d"), inner);
  tensors.matrix_f32(block(layer, "ssm_out.weight"), inner, k_width, 0.0, 0.3);
}

std::string architecture_of(TinyModel::Kind kind) {
  switch (kind) {
    case TinyModel::Kind::dense:
    case TinyModel::Kind::encoder:
      return "llama";
    case TinyModel::Kind::biased:
      return "qwen2";
    case TinyModel::Kind::normed:
      return "qwen3";
    case TinyModel::Kind::sliding_window:
      return "gemma2";
    case TinyModel::Kind::recurrent:
      return "mamba";
  }
  return "llama";
}

void set_metadata(Builder& builder, const TinyModel& model) {
  for (const auto& [key, value] : model.metadata) {
    if (const auto* flag = std::get_if<bool>(&value)) {
      gguf_set_val_bool(builder.gguf(), key.c_str(), *flag);
    } else if (const auto* number = std::get_if<std::uint32_t>(&value)) {
      gguf_set_val_u32(builder.gguf(), key.c_str(), *number);
    } else if (const auto* real = std::get_if<float>(&value)) {
      gguf_set_val_f32(builder.gguf(), key.c_str(), *real);
    } else {
      gguf_set_val_str(builder.gguf(), key.c_str(), std::get<std::string>(value).c_str());
    }
  }
  for (const std::string& key : model.keys_left_out) {
    PACELINE_CHECK(gguf_remove_key(builder.gguf(), key.c_str()) >= 0, "the key is there");
  }
}

Builder build_tiny(const TinyModel& model) {
  using Kind = TinyModel::Kind;
  Builder builder(architecture_of(model.kind));
  builder.damage_like(model);
  const Widths widths(model);
  const std::int64_t width = model.kind == Kind::recurrent ? k_width : widths.model;
  describe(builder, model.name, model.context, model.layers, width);
  add_vocabulary(builder, model.vocabulary);
  const auto vocabulary = static_cast<std::int64_t>(model.vocabulary.size());
  RandomTensors tensors(builder, model.seed, to_ggml(model.weights));
  // A tied head turns the embedding's size into the logits'.
  const double spread = std::sqrt(static_cast<double>(width));
  tensors.matrix("token_embd.weight", width, vocabulary, model.tied ? 3.0 : spread);
  tensors.vector("output_norm.weight", width);
  if (model.kind != Kind::sliding_window && !model.tied) {
    tensors.matrix("output.weight", width, vocabulary, 3.0);
  }
  if (model.kind == Kind::recurrent) {
    builder.set("feed_forward_length", std::size_t{0});
    builder.set("attention.head_count", std::size_t{0});
    builder.set("attention.layer_norm_rms_epsilon", 1e-5F);
    builder.set("ssm.conv_kernel", std::size_t{4});
    builder.set("ssm.inner_size", std::size_t{2 * k_width});
    builder.set("ssm.state_size", std::size_t{16});
    builder.set("ssm.time_step_rank", std::size_t{4});
    for (std::size_t layer = 0; layer < model.layers; ++layer) add_recurrent_layer(tensors, layer);
    return builder;
  }
  describe_attention(builder, widths.heads, widths.key_value_heads, widths.head(),
                     widths.feed_forward);
  if (model.rope_scale != 0.0F) {
    gguf_set_val_str(builder.gguf(),
                     std::format("{}.rope.scaling.type", architecture_of(model.kind)).c_str(),
                     "linear");
    builder.set("rope.scaling.factor", model.rope_scale);
  }
  if (model.rope_divisors) tensors.vector("rope_freqs.weight", widths.head() / 2, 3.0, 0.5);
  if (model.kind == Kind::encoder) builder.set("attention.causal", false);
  if (model.kind == Kind::sliding_window) {
    builder.set("attention.sliding_window", model.window);
    builder.set("attn_logit_softcapping", 50.0F);
    builder.set("final_logit_softcapping", 30.0F);
  }
  for (std::size_t layer = 0; layer < model.layers; ++layer) {
    add_attention_layer(tensors, layer, widths, model.kind);
  }
  set_metadata(builder, model);
  return builder;
}

}  // namespace

std::size_t GgufVocabulary::size() const {
  return to_index(k_first_piece) + pieces.size() + padding;
}

GgufVocabulary small_vocabulary() {
  GgufVocabulary vocabulary;
  for (const char* piece :
       {"▁the", "▁and", "▁of", "▁to", "▁in", "▁is", "ing", "▁a", "▁th", "he", "in", "er",   "an",
        "re",   "on",   "▁t",  "▁o",  "▁w",  "▁s",  "▁an", "▁i", "▁b",  "nd", "ng", "日本", "日",
        "本",   "é",    "ü",   "→",   "▁",   "e",   "t",   "a",  "o",   "i",  "n",  "s",    "r",
        "h",    "l",    "d",   "c",   "u",   "m",   "f",   "p",  "g",   "w",  "y",  "b",    "v",
        "k",    "x",    "j",   "q",   "z",   ".",   ",",   "!",  "?",   ":",  "0",  "1",    "2",
        "3",    "4",    "5",   "6",   "7",   "8",   "9",   "(",  ")",   "T",  "A",  "I",    "▁x"}) {
    vocabulary.pieces.emplace_back(piece);
  }
  return vocabulary;
}

void write_tiny(const std::filesystem::path& path, const TinyModel& model) {
  build_tiny(model).write(path);
}

std::vector<std::filesystem::path> write_tiny_shards(const std::filesystem::path& prefix,
                                                     std::size_t count, const TinyModel& model) {
  return build_tiny(model).write_shards(prefix, count);
}

// The residual stream holds a one-hot vector of the present token, because everything that layers
// add to it is zero. The final norm scales it by sqrt(width), and column t of the head holds the
// logits that follow token t.
void write_perm(const std::filesystem::path& path, const PermModel& model) {
  constexpr std::int64_t head_width = 32;
  constexpr std::int64_t feed_forward = 32;
  constexpr double k_successor_logit = 30.0;  // over everything else: e^-30 each
  const std::size_t vocabulary = model.vocabulary.size();
  PACELINE_CHECK(model.next.size() <= vocabulary, "the table is not longer than the vocabulary");
  const std::size_t width = (vocabulary + 31) / 32 * 32;
  const auto rows = static_cast<std::int64_t>(vocabulary);
  const auto columns = static_cast<std::int64_t>(width);

  Builder builder("llama");
  describe(builder, model.name, model.context, 1, columns);
  describe_attention(builder, 1, 1, head_width, feed_forward);
  add_vocabulary(builder, model.vocabulary);

  std::vector<float> embedding(vocabulary * width, 0.0F);
  std::vector<float> head(vocabulary * width, 0.0F);
  const double scale = std::sqrt(static_cast<double>(width));
  for (std::size_t token = 0; token < vocabulary; ++token) {
    embedding[token * width + token] = 1.0F;
    const std::vector<Successor> end = {{k_end, 1.0}};
    const bool listed = token < model.next.size() && !model.next[token].empty();
    for (const Successor& successor : listed ? model.next[token] : end) {
      head[to_index(successor.token) * width + token] =
          static_cast<float>((k_successor_logit + std::log(successor.weight)) / scale);
    }
  }
  builder.tensor("token_embd.weight", GGML_TYPE_F32, {columns, rows}, embedding);
  builder.tensor("output.weight", GGML_TYPE_F32, {columns, rows}, head);
  const std::vector<float> ones(width, 1.0F);
  for (const char* norm :
       {"output_norm.weight", "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight"}) {
    builder.tensor(norm, GGML_TYPE_F32, {columns}, ones);
  }
  const std::vector<float> zeros(width * head_width, 0.0F);
  for (const char* name :
       {"attn_q.weight", "attn_k.weight", "attn_v.weight", "ffn_gate.weight", "ffn_up.weight"}) {
    builder.tensor(block(0, name), GGML_TYPE_F32, {columns, head_width}, zeros);
  }
  for (const char* name : {"attn_output.weight", "ffn_down.weight"}) {
    builder.tensor(block(0, name), GGML_TYPE_F32, {head_width, columns}, zeros);
  }
  builder.write(path);
}

void cut_file(const std::filesystem::path& path, double part) {
  std::error_code error;
  const auto bytes = static_cast<double>(std::filesystem::file_size(path, error));
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(bytes * part), error);
  PACELINE_CHECK(!error, "the file can be cut");
}

}  // namespace paceline::test
