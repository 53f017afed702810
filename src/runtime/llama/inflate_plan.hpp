// Where each number of a small Llama-like network goes in a larger one that computes the same
// function. Pure arithmetic over names and sizes; inflate.hpp moves the weights.
//
// Zero columns, heads, feed-forward neurons and layers add nothing to the residual stream. The one
// thing that they change is the mean in an RMS norm: over `hidden` columns instead of h of them the
// mean square is h / hidden of what it was, so the norm's weights are multiplied by
// sqrt(h / hidden) and its epsilon by h / hidden.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace paceline::runtime {

/// The sizes of a Llama-like network.
struct LlamaShape {
  std::size_t layers = 0;
  std::size_t hidden = 0;
  std::size_t feed_forward = 0;
  std::size_t heads = 0;  // of queries
  std::size_t key_value_heads = 0;
  std::size_t head_width = 0;

  /// Heads of queries that share a head of keys.
  std::size_t group() const { return heads / key_value_heads; }
  std::size_t query_width() const { return heads * head_width; }
  std::size_t key_value_width() const { return key_value_heads * head_width; }

  bool operator==(const LlamaShape&) const = default;
};

/// Words for `inflated_shape`: source, 0.5b, 1.5b, 3b, 7b.
std::vector<std::string> inflated_shape_names();

/// The named shape for a source: heads keep the source's width, and no group is smaller than the
/// source's. "source" is the source's own shape. Errors: invalid_argument (unknown name), and those
/// of check_inflatable.
Result<LlamaShape> inflated_shape(std::string_view name, const LlamaShape& source);

/// Error: invalid_argument where some size of the target is below the source's.
Result<void> check_inflatable(const LlamaShape& source, const LlamaShape& target);

/// The types that a file's matrices get. Vectors are F32.
struct WeightTypes {
  std::string name;       // "Q4_K_M"
  std::string usual;      // ggml's words: "q4_K"
  std::string more_bits;  // values and down-projections of some layers; empty: as usual
};

/// Words for `weight_types`: F32, F16, BF16, Q8_0, ... Q6_K, and the mixes Q4_K_M and Q5_K_M.
std::vector<std::string> weight_type_names();
/// Error: invalid_argument.
Result<WeightTypes> weight_types(std::string_view name);

/// Numbers [from, from + count) of a source's axis go to [to, to + count) of the target's.
struct Run {
  std::size_t from = 0;
  std::size_t to = 0;
  std::size_t count = 0;

  bool operator==(const Run&) const = default;
};

/// A tensor as the source has it. Vectors have one row.
struct SourceTensor {
  std::string name;
  std::size_t rows = 1;
  std::size_t columns = 1;
};

/// A tensor of the inflated file.
struct TensorPlan {
  std::string name;
  bool is_vector = false;  // F32, one row
  std::string type;        // ggml's word
  std::size_t rows = 1;
  std::size_t columns = 1;
  // What stands there of the source's tensor of the same name; in layers that it lacks, nothing.
  std::vector<Run> row_runs;
  std::vector<Run> column_runs;
  float scale = 1.0F;    // of the source's numbers
  float padding = 0.0F;  // what stands everywhere else
  bool noisy = false;    // a matrix of a layer
};

/// All tensors of the inflated file in order. Every tensor of the source has its place.
/// Errors: those of check_inflatable, bad_format (a tensor is missing or of a wrong size),
/// unsupported (a tensor that is none of this kind of network's).
Result<std::vector<TensorPlan>> plan_inflation(const LlamaShape& source, const LlamaShape& target,
                                               const std::vector<SourceTensor>& tensors,
                                               const WeightTypes& types);

}  // namespace paceline::runtime
