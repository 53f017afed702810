// What a GGUF file says about itself, and whether all of it is there, before anything is loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "runtime/inflation.hpp"
#include "runtime/llama/gguf_header.hpp"

namespace paceline::runtime {

/// Metadata of one model, over all its shards. Numbers that the file does not give are 0.
struct GgufSummary {
  std::vector<std::filesystem::path> files;  // all shards, in order
  std::uint64_t file_bytes = 0;
  std::uint64_t parameters = 0;
  std::uint64_t tensor_bytes = 0;
  std::string name;
  std::string architecture;
  std::string tokenizer;                   // tokenizer.ggml.model; empty where there is none
  std::optional<std::uint64_t> file_type;  // general.file_type
  std::size_t layers = 0;
  std::size_t hidden = 0;
  std::size_t trained_context = 0;
  std::size_t sliding_window = 0;
  bool causal = true;      // false: an encoder
  bool recurrent = false;  // has keys of layers with recurrent state
  std::optional<Inflation> inflation;
};

/// Bytes of a tensor; nothing for formats that this ggml does not know.
std::optional<std::uint64_t> gguf_tensor_bytes(const GgufTensor& tensor);

/// Reads the metadata of `path` and, where it is one shard of a split model, of all others.
/// Errors: not_found (file or shard missing), bad_format (not GGUF, damaged, shorter than its
/// tensors, or with weights or an epsilon that libllama would end the process at), io.
Result<GgufSummary> read_gguf_summary(const std::filesystem::path& path);

/// The same with the header of the first shard, which holds the tokenizer. Same errors.
struct GgufModelFile {
  GgufSummary summary;
  GgufHeader header;
};
Result<GgufModelFile> read_gguf_model(const std::filesystem::path& path);

}  // namespace paceline::runtime
