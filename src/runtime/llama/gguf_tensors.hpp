// A GGUF model's tensors, mapped into memory, and its metadata by key. For runtimes of our own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "runtime/llama/gguf_file.hpp"

namespace paceline::runtime {

struct MappedTensor {
  std::string name;
  std::string type;                  // ggml's word: "q4_K"
  std::vector<std::size_t> extents;  // the first runs fastest; trailing ones of 1 are left out
  std::span<const std::byte> data;   // in the mapping
};

/// Const methods from any thread, but `release` only where nobody reads the tensor any more.
class GgufTensors {
 public:
  /// Maps all shards of the model. Errors: those of read_gguf_summary, io.
  static Result<GgufTensors> open(const std::filesystem::path& path);
  ~GgufTensors();
  GgufTensors(GgufTensors&&) noexcept;
  GgufTensors& operator=(GgufTensors&&) noexcept;

  const GgufSummary& summary() const { return summary_; }
  const std::vector<MappedTensor>& tensors() const { return tensors_; }
  /// Null where there is none.
  const MappedTensor* find(std::string_view name) const;
  /// Gives all pages back, likewise.
  void release() const;
  /// Gives the tensor's pages back to the system; reading it again reads the file again.
  void release(const MappedTensor& tensor) const;

  // Metadata of the first shard; none where the key is missing or of another kind.
  std::optional<std::uint64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::optional<std::string> string(std::string_view key) const;
  /// True where the key is there, whatever its kind.
  bool has(std::string_view key) const;

 private:
  struct Impl;
  GgufTensors();

  std::unique_ptr<Impl> impl_;
  GgufSummary summary_;
  std::vector<MappedTensor> tensors_;
};

}  // namespace paceline::runtime
