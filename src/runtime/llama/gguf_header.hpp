// Our own reading of what stands before the weights of a GGUF file: keys, values and the list of
// tensors. It must survive any bytes, in this process, which libllama's reader does not promise.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace paceline::runtime {

/// Numbers of the GGUF specification.
enum class GgufType : std::uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};

struct GgufTensor {
  std::string_view name;
  std::uint32_t type = 0;  // ggml's number of the weights' format; may be unknown here
  std::array<std::uint64_t, 4> extents = {1, 1, 1, 1};  // the first runs fastest
  std::uint64_t offset = 0;                             // from data_offset()
};

/// Refers to the bytes it was parsed from and keeps them alive; so do copies. Const methods from
/// any thread.
class GgufHeader {
 public:
  /// Parses the first bytes of a file that has `file_bytes` in all. Errors: bad_format with the
  /// byte and the reason; its word is "more" where only bytes behind `bytes` are missing.
  static Result<GgufHeader> parse(std::shared_ptr<const std::string> bytes,
                                  std::uint64_t file_bytes);

  bool has(std::string_view key) const { return values_.contains(key); }
  /// Nothing where the key is missing or holds another type. Integers may have any width; negative
  /// ones give nothing.
  std::optional<std::uint64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;  // f32, f64 or integer
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string_view> string(std::string_view key) const;
  std::vector<std::string_view> strings(std::string_view key) const;
  std::vector<std::int64_t> integers(std::string_view key) const;  // 32-bit arrays or narrower
  std::vector<float> floats(std::string_view key) const;           // f32 arrays
  /// True where some key begins with this.
  bool has_prefix(std::string_view prefix) const;

  std::span<const GgufTensor> tensors() const { return tensors_; }
  std::uint64_t data_offset() const { return data_offset_; }
  const std::shared_ptr<const std::string>& bytes() const { return bytes_; }

 private:
  struct Value {
    GgufType type = GgufType::u8;  // of the elements where it is an array
    bool is_array = false;
    std::uint64_t count = 1;
    std::string_view bytes;
  };
  const Value* find(std::string_view key, bool is_array) const;
  friend class GgufParser;

  std::shared_ptr<const std::string> bytes_;
  std::map<std::string_view, Value> values_;
  std::vector<GgufTensor> tensors_;
  std::uint64_t data_offset_ = 0;
};

/// Reads the header of a file and no weights. Headers over 128 MiB are refused. Errors: not_found,
/// bad_format (no GGUF, damaged or cut), io.
Result<GgufHeader> read_gguf_header(const std::filesystem::path& path);

}  // namespace paceline::runtime
