// Writes a small GGUF file for the end-to-end tests: KIND PATH.
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "support/gguf_builder.hpp"

namespace {

using paceline::test::TinyModel;

constexpr float k_nan = std::numeric_limits<float>::quiet_NaN();
constexpr float k_infinity = std::numeric_limits<float>::infinity();

std::function<void(TinyModel&)> number(std::string key, std::uint32_t value) {
  return [=](TinyModel& model) { model.metadata[key] = value; };
}
std::function<void(TinyModel&)> real(std::string key, float value) {
  return [=](TinyModel& model) { model.metadata[key] = value; };
}
std::function<void(TinyModel&)> without_key(std::string key) {
  return [=](TinyModel& model) { model.keys_left_out.insert(key); };
}
std::function<void(TinyModel&)> without(std::string tensor) {
  return [=](TinyModel& model) { model.tensors_left_out.insert(tensor); };
}
std::function<void(TinyModel&)> integers(std::string tensor) {
  return [=](TinyModel& model) { model.integer_tensors.insert(tensor); };
}
std::function<void(TinyModel&)> filled(std::string tensor, float value,
                                       TinyModel::Weights weights = TinyModel::Weights::f32) {
  return [=](TinyModel& model) {
    model.weights = weights;
    model.tensors_of[tensor] = value;
  };
}

/// Nothing but the embedding, or nothing at all.
std::function<void(TinyModel&)> hollow(bool with_embedding) {
  return [=](TinyModel& model) {
    auto& out = model.tensors_left_out;
    out = {"output_norm.weight", "output.weight"};
    if (!with_embedding) out.insert("token_embd.weight");
    for (const char* layer : {"blk.0.", "blk.1."}) {
      for (const char* part : {"attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm",
                               "ffn_gate", "ffn_up", "ffn_down"}) {
        out.insert(std::string(layer) + part + ".weight");
      }
    }
  };
}

/// Files that our reader of headers parses and that nothing can run.
const std::map<std::string, std::function<void(TinyModel&)>, std::less<>>& damages() {
  static const std::map<std::string, std::function<void(TinyModel&)>, std::less<>> all = {
      {"no-tensors", hollow(false)},
      {"one-tensor", hollow(true)},
      {"no-query", without("blk.0.attn_q.weight")},
      {"no-down", without("blk.1.ffn_down.weight")},
      {"no-norm", without("blk.1.attn_norm.weight")},
      {"no-output-norm", without("output_norm.weight")},
      {"no-embedding", without("token_embd.weight")},
      {"layers-0", number("llama.block_count", 0)},
      {"layers-1", number("llama.block_count", 1)},
      {"layers-3", number("llama.block_count", 3)},
      {"layers-many", number("llama.block_count", 100000)},
      {"layers-missing", without_key("llama.block_count")},
      {"heads-0", number("llama.attention.head_count", 0)},
      {"heads-3", number("llama.attention.head_count", 3)},
      {"heads-missing", without_key("llama.attention.head_count")},
      {"key-heads-0", number("llama.attention.head_count_kv", 0)},
      {"key-heads-3", number("llama.attention.head_count_kv", 3)},
      {"key-length-0", number("llama.attention.key_length", 0)},
      {"key-length-7", number("llama.attention.key_length", 7)},
      {"width-0", number("llama.embedding_length", 0)},
      {"width-128", number("llama.embedding_length", 128)},
      {"width-missing", without_key("llama.embedding_length")},
      {"forward-0", number("llama.feed_forward_length", 0)},
      {"forward-missing", without_key("llama.feed_forward_length")},
      {"rotation-3", number("llama.rope.dimension_count", 3)},
      {"rotation-3000", number("llama.rope.dimension_count", 3000)},
      {"epsilon-missing", without_key("llama.attention.layer_norm_rms_epsilon")},
      {"epsilon-nan", real("llama.attention.layer_norm_rms_epsilon", k_nan)},
      {"epsilon-negative", real("llama.attention.layer_norm_rms_epsilon", -1e-5F)},
      {"epsilon-infinite", real("llama.attention.layer_norm_rms_epsilon", k_infinity)},
      {"experts", number("llama.expert_count", 4)},
      {"integer-up", integers("blk.0.ffn_up.weight")},
      {"integer-norm", integers("blk.0.attn_norm.weight")},
      {"integer-embedding", integers("token_embd.weight")},
      {"nan-output", filled("output.weight", k_nan)},
      {"nan-norm", filled("output_norm.weight", k_nan, TinyModel::Weights::q8_0)},
      {"nan-query", filled("blk.0.attn_q.weight", k_nan, TinyModel::Weights::f16)},
      {"infinite-output", filled("output.weight", k_infinity)},
      {"minus-infinite-output", filled("output.weight", -k_infinity)},
  };
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  namespace test = paceline::test;
  if (argc == 2 && std::string_view(argv[1]) == "damages") {
    for (const auto& [name, damage] : damages()) std::puts(name.c_str());
    return 0;
  }
  if (argc != 3) return 2;
  const std::string_view kind = argv[1];
  test::TinyModel model;
  if (kind == "window") model.kind = test::TinyModel::Kind::sliding_window;
  if (kind == "recurrent") model.kind = test::TinyModel::Kind::recurrent;
  if (kind == "other-words") model.vocabulary.pieces.at(3) += "x";
  if (kind == "padded") model.vocabulary.padding += 64;
  if (kind == "small") model.layers = 1;
  if (kind == "no-begin") model.vocabulary.add_begin_of_text = false;
  if (kind == "twice") model.vocabulary.other_texts[270] = model.vocabulary.pieces.at(0);
  if (kind == "encoder") model.kind = test::TinyModel::Kind::encoder;
  // Finite weights whose products are not.
  if (kind == "overflow") model.tensors_of["output.weight"] = 3e38F;
  // Our reader has nothing against it, libllama's vocabulary has.
  if (kind == "odd-tokenizer")
    model.metadata["tokenizer.ggml.model"] = std::string("no such tokenizer");
  if (const auto damage = damages().find(kind); damage != damages().end()) damage->second(model);
  test::write_tiny(argv[2], model);
  if (kind == "cut") test::cut_file(argv[2], 0.5);
  return 0;
}
