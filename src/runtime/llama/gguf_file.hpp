// What a GGUF file says about itself, and whether all of it is there, before anything is loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace paceline::runtime {

/// Metadata of one model, over all its shards. Numbers that the file does not give are 0.
struct GgufSummary {
  std::vector<std::filesystem::path> files;  // all shards, in order
  std::uint64_t file_bytes = 0;
  std::uint64_t parameters = 0;
  std::uint64_t tensor_bytes = 0;
  std::string name;
  std::string architecture;
  std::string tokenizer;  // tokenizer.ggml.model; empty where there is none
  std::size_t layers = 0;
  std::size_t hidden = 0;
  std::size_t trained_context = 0;
  std::size_t sliding_window = 0;
  bool causal = true;  // false: an encoder
};

/// Reads the metadata of `path` and, where it is one shard of a split model, of all others.
/// Errors: not_found (file or shard missing), bad_format (not GGUF, damaged, or shorter than its
/// tensors), io.
Result<GgufSummary> read_gguf_summary(const std::filesystem::path& path);

}  // namespace paceline::runtime
