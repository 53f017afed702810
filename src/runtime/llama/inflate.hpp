// Writes a small Llama-like model's weights into the shape of a large one: real text, tokenizer and
// chat template at the large model's cost. For measurements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "core/result.hpp"
#include "runtime/inflation.hpp"
#include "runtime/llama/inflate_plan.hpp"

namespace paceline::runtime {

struct InflateOptions {
  std::string shape = "7b";  // a name, see inflated_shape_names
  /// In place of the shape of that name.
  std::optional<LlamaShape> own_shape = {};
  std::string type = "Q4_0";  // see weight_type_names
  /// Each weight w of the layers' matrices becomes w (1 + noise g), g normally distributed. The
  /// noise of a weight depends on the seed and its place in the source alone.
  double noise = 0;
  /// Random weights in place of the source's, for speed alone.
  bool random = false;
  std::uint64_t seed = 1;
  std::size_t threads = 2;
  std::function<void(std::uint64_t done, std::uint64_t total)> progress = {};  // bytes
  std::stop_token stop = {};
};

struct InflatedFile {
  LlamaShape source;
  LlamaShape shape;
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;
};

/// Makes `output`, which must not exist, beside a temporary name first. All metadata of the source
/// is kept but what the shape changes; the file is labelled (Inflation). Holds some 100 MB of
/// memory at most, whatever the shape.
/// Errors: invalid_argument (unknown words, a shape that is too small, numbers out of range, the
/// output exists), unsupported (the source is no dense model of architecture llama, qwen2 or
/// qwen3; a type whose blocks do not divide a width), not_found, bad_format, io (also: not enough
/// space), cancelled.
Result<InflatedFile> inflate_model(const std::filesystem::path& source,
                                   const std::filesystem::path& output,
                                   const InflateOptions& options);

}  // namespace paceline::runtime
