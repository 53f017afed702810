// A network of the Llama family as its GGUF file describes it, and its packed weights.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "runtime/llama/gguf_tensors.hpp"
#include "runtime/native/kernels/packed.hpp"
#include "runtime/native/memory.hpp"

namespace paceline::runtime::native {

struct Shape {
  std::size_t layers = 0;
  std::size_t hidden = 0;
  std::size_t feed_forward = 0;
  std::size_t heads = 0;
  std::size_t key_value_heads = 0;
  std::size_t head_width = 0;
  std::size_t vocabulary = 0;
  std::size_t trained_context = 0;
  float epsilon = 0.0F;

  std::size_t query_width() const { return heads * head_width; }
  std::size_t key_value_width() const { return key_value_heads * head_width; }
};

/// Rotary positions: pair i turns by position * frequencies[i].
struct Rotation {
  bool halves = false;  // pairs are (i, i + n) instead of (2 i, 2 i + 1)
  std::vector<double> frequencies;
};

struct Matrix {
  Format format{};
  std::size_t rows = 0;
  std::size_t columns = 0;
  const std::byte* data = nullptr;
  const float* bias = nullptr;  // [rows], null: none

  std::size_t blocks() const { return columns / k_block; }
  std::size_t row_blocks() const { return (rows + k_row_block - 1) / k_row_block; }
  const std::byte* row_block(std::size_t index) const {
    return data + index * row_block_bytes(format, blocks());
  }
};

struct Layer {
  const float* attention_norm = nullptr;  // [hidden]
  const float* feed_forward_norm = nullptr;
  const float* query_norm = nullptr;  // [head_width], null: none
  const float* key_norm = nullptr;
  Matrix query;
  Matrix key;
  Matrix value;
  Matrix output;
  Matrix gate;
  Matrix up;
  Matrix down;
};

struct Network {
  Shape shape;
  Rotation rotation;
  Matrix embedding;
  Matrix output;  // the embedding's where the file has none of its own
  const float* output_norm = nullptr;
  std::vector<Layer> layers;
  Memory memory;  // what all pointers point into
};

struct PackOptions {
  std::size_t threads = 1;
  std::function<bool(float)> progress = {};  // as in LlamaLoadOptions
};

/// Shape and rotation, and whether native computes such a network at all.
/// Errors: unsupported (names what it is), bad_format (keys or tensors are missing or of a wrong
/// size).
Result<Network> describe_network(const GgufTensors& file, std::size_t vocabulary);

/// Bytes that the packed weights take.
std::size_t packed_bytes(const Network& network, const GgufTensors& file);

/// Packs all weights into memory of their own, giving the file's pages back on the way.
/// Errors: out_of_memory, cancelled, bad_format (weights that are no numbers).
Result<void> pack_weights(Network& network, const GgufTensors& file, const PackOptions& options);

}  // namespace paceline::runtime::native
