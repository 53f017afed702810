// Small GGUF model files, made in milliseconds: PERM, whose next token is a table lookup of the
// present one, and TINY, random weights in several architectures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/token.hpp"

namespace paceline::test {

/// Every file built here has the same first tokens: unknown, begin, end, the 256 bytes, two tokens
/// for chat turns, then the pieces.
inline constexpr Token k_unknown{0};
inline constexpr Token k_begin{1};
inline constexpr Token k_end{2};
inline constexpr Token k_turn_start{259};  // "<|im_start|>"
inline constexpr Token k_turn_end{260};    // "<|im_end|>", ends the text as well
inline constexpr Token k_first_piece{261};
constexpr Token byte_token(unsigned char byte) { return to_token(3U + byte); }

struct GgufVocabulary {
  std::vector<std::string> pieces;  // "▁" stands for a space; earlier ones are preferred
  std::size_t padding = 0;          // unused tokens behind the pieces
  std::optional<bool> add_begin_of_text = true;  // none: the key is left out
  std::string chat_template;                     // empty: none
  bool tokenizer = true;                         // false: the file says that it has none
  // By token id, in place of what the file would have.
  std::map<std::size_t, std::string> other_texts = {};
  std::map<std::size_t, std::int32_t> other_kinds = {};
  std::map<std::size_t, float> other_scores = {};

  std::size_t size() const;
};

/// Letters, some words, some characters of more than one byte: about 90 pieces.
GgufVocabulary small_vocabulary();

struct TinyModel {
  enum class Kind {
    dense,           // llama
    biased,          // qwen2: biases on queries, keys and values
    normed,          // qwen3: norms on queries and keys
    sliding_window,  // gemma2: first layer sees `window` tokens, second all
    recurrent,       // mamba
    encoder,         // bert's word for "not causal" on llama's tensors; only for refusals
  };
  enum class Weights { f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q4_k, q5_k, q6_k };

  Kind kind = Kind::dense;
  Weights weights = Weights::f32;  // quantised ones round small differences away
  std::uint64_t seed = 1;
  std::size_t context = 512;
  std::size_t window = 8;
  std::size_t layers = 2;
  // Not of recurrent models. The K types of weights want multiples of 256.
  std::size_t width = 64;
  std::size_t feed_forward = 128;
  std::size_t heads = 2;
  std::size_t key_value_heads = 1;
  bool tied = false;           // the embedding is the head as well
  float rope_scale = 0.0F;     // linear; 0: none
  bool rope_divisors = false;  // Llama 3's tensor of divisors
  std::string name = "tiny";
  GgufVocabulary vocabulary = small_vocabulary();
  /// Keys that are set last, in place of others.
  std::map<std::string, std::variant<bool, std::uint32_t, float, std::string>> metadata = {};
  /// What a damaged file lacks, and what its tensors hold instead.
  std::set<std::string> keys_left_out = {};
  std::set<std::string> tensors_left_out = {};
  std::map<std::string, float> tensors_of = {};  // every value is this one
  std::set<std::string> integer_tensors = {};    // of type I32
};

/// What may follow a token, with its relative weight.
struct Successor {
  Token token{};
  double weight = 1.0;
};

struct PermModel {
  /// [vocabulary size] or shorter; tokens without successors are followed by the end of text.
  std::vector<std::vector<Successor>> next;
  std::size_t context = 512;
  std::string name = "perm";
  GgufVocabulary vocabulary = small_vocabulary();
};

/// A failure to write ends the test program.
void write_tiny(const std::filesystem::path& path, const TinyModel& model = {});
void write_perm(const std::filesystem::path& path, const PermModel& model);

/// The same split into `count` files "<prefix>-00001-of-0000N.gguf". Gives their paths in order.
std::vector<std::filesystem::path> write_tiny_shards(const std::filesystem::path& prefix,
                                                     std::size_t count,
                                                     const TinyModel& model = {});

/// Cuts a file to the given part of its length.
void cut_file(const std::filesystem::path& path, double part);

}  // namespace paceline::test
