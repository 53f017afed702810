#include "runtime/llama/gguf_file.hpp"

#include <ggml-cpp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <format>
#include <fstream>
#include <optional>
#include <regex>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/file.hpp"
#include "core/text.hpp"
#include "runtime/llama/gguf_metadata_impl.hpp"
#include "runtime/llama/llama_backend_impl.hpp"

namespace paceline::runtime {

namespace {

std::string quoted(const std::filesystem::path& path) {
  return std::format("\"{}\"", path.string());
}

}  // namespace

std::optional<std::uint64_t> gguf_integer(const gguf_context* gguf, const std::string& key) {
  const std::int64_t id = gguf_find_key(gguf, key.c_str());
  if (id < 0) return std::nullopt;
  const auto not_negative = [](std::int64_t value) -> std::optional<std::uint64_t> {
    if (value < 0) return std::nullopt;
    return static_cast<std::uint64_t>(value);
  };
  switch (gguf_get_kv_type(gguf, id)) {
    case GGUF_TYPE_UINT8:
      return gguf_get_val_u8(gguf, id);
    case GGUF_TYPE_UINT16:
      return gguf_get_val_u16(gguf, id);
    case GGUF_TYPE_UINT32:
      return gguf_get_val_u32(gguf, id);
    case GGUF_TYPE_UINT64:
      return gguf_get_val_u64(gguf, id);
    case GGUF_TYPE_INT8:
      return not_negative(gguf_get_val_i8(gguf, id));
    case GGUF_TYPE_INT16:
      return not_negative(gguf_get_val_i16(gguf, id));
    case GGUF_TYPE_INT32:
      return not_negative(gguf_get_val_i32(gguf, id));
    case GGUF_TYPE_INT64:
      return not_negative(gguf_get_val_i64(gguf, id));
    case GGUF_TYPE_BOOL:
      return gguf_get_val_bool(gguf, id) ? 1 : 0;
    default:
      return std::nullopt;
  }
}

std::string gguf_string(const gguf_context* gguf, const std::string& key) {
  const std::int64_t id = gguf_find_key(gguf, key.c_str());
  if (id < 0 || gguf_get_kv_type(gguf, id) != GGUF_TYPE_STRING) return {};
  return gguf_get_val_str(gguf, id);
}

Result<gguf_context_ptr> open_gguf_metadata(const std::filesystem::path& path) {
  const CapturedErrors errors;
  gguf_context_ptr gguf(gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}));
  if (gguf == nullptr) {
    return fail(ErrorCode::bad_format,
                std::format("the metadata of {} cannot be read, the file is damaged or cut: {}",
                            quoted(path), errors.text("no reason given")));
  }
  return gguf;
}

namespace {

// Size of a regular file that begins with the GGUF magic.
Result<std::uint64_t> check_is_gguf(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    return fail(ErrorCode::not_found, std::format("model file {} does not exist", quoted(path)));
  }
  if (std::filesystem::is_directory(status)) {
    return fail(ErrorCode::bad_format,
                std::format("{} is a folder, a GGUF file is wanted", quoted(path)));
  }
  const std::uint64_t bytes = std::filesystem::file_size(path, error);
  if (error) {
    return fail(ErrorCode::io, std::format("size of {}: {}", quoted(path), error.message()));
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return errno_error(std::format("opening {}", quoted(path)));
  std::array<char, 4> magic{};
  file.read(magic.data(), magic.size());
  const std::string_view seen(magic.data(), static_cast<std::size_t>(file.gcount()));
  if (seen != GGUF_MAGIC) {
    return fail(ErrorCode::bad_format,
                std::format("{} begins with \"{}\", a GGUF file begins with \"GGUF\"", quoted(path),
                            escape(seen)));
  }
  return bytes;
}

Result<void> check_not_cut(const gguf_context* gguf, const std::filesystem::path& path,
                           std::uint64_t file_bytes) {
  std::uint64_t end = 0;
  for (std::int64_t i = 0; i < gguf_get_n_tensors(gguf); ++i) {
    end =
        std::max<std::uint64_t>(end, gguf_get_data_offset(gguf) + gguf_get_tensor_offset(gguf, i) +
                                         gguf_get_tensor_size(gguf, i));
  }
  if (end > file_bytes) {
    return fail(ErrorCode::bad_format,
                std::format("{} is cut: the file ends at byte {}, its tensors need {}",
                            quoted(path), file_bytes, end));
  }
  return {};
}

std::uint64_t count_parameters(const gguf_context* gguf) {
  std::uint64_t count = 0;
  for (std::int64_t i = 0; i < gguf_get_n_tensors(gguf); ++i) {
    const std::int64_t* extent = gguf_get_tensor_ne(gguf, i);
    std::uint64_t elements = 1;
    for (int d = 0; d < GGML_MAX_DIMS; ++d) elements *= static_cast<std::uint64_t>(extent[d]);
    count += elements;
  }
  return count;
}

std::uint64_t count_tensor_bytes(const gguf_context* gguf) {
  std::uint64_t bytes = 0;
  for (std::int64_t i = 0; i < gguf_get_n_tensors(gguf); ++i)
    bytes += gguf_get_tensor_size(gguf, i);
  return bytes;
}

// All shards of the model that `path` is shard `number` (from 0) of `count` of.
Result<std::vector<std::filesystem::path>> find_shards(const std::filesystem::path& path,
                                                       std::uint64_t number, std::uint64_t count) {
  static const std::regex pattern(R"((.*)-([0-9]{5})-of-([0-9]{5})\.gguf)");
  std::smatch match;
  const std::string name = path.filename().string();
  const std::string wanted_end = std::format("-{:05}-of-{:05}.gguf", number + 1, count);
  if (!std::regex_match(name, match, pattern) || !name.ends_with(wanted_end)) {
    return fail(ErrorCode::bad_format,
                std::format("{} says that it is shard {} of {}, so its name must end in \"{}\" for "
                            "the others to be found",
                            quoted(path), number + 1, count, wanted_end));
  }
  std::vector<std::filesystem::path> shards;
  for (std::uint64_t i = 0; i < count; ++i) {
    auto shard = path;
    shard.replace_filename(std::format("{}-{:05}-of-{:05}.gguf", match[1].str(), i + 1, count));
    std::error_code error;
    if (!std::filesystem::exists(shard, error)) {
      return fail(ErrorCode::not_found, std::format("shard {} of {} of {} is missing: {}", i + 1,
                                                    count, quoted(path), quoted(shard)));
    }
    shards.push_back(std::move(shard));
  }
  return shards;
}

// Names, sizes and the like; they stand in the first shard.
void read_description(const gguf_context* gguf, GgufSummary& summary) {
  summary.name = gguf_string(gguf, "general.name");
  summary.architecture = gguf_string(gguf, "general.architecture");
  summary.tokenizer = gguf_string(gguf, "tokenizer.ggml.model");
  const auto number = [&](std::string_view key) -> std::size_t {
    return gguf_integer(gguf, std::format("{}.{}", summary.architecture, key)).value_or(0);
  };
  summary.layers = number("block_count");
  summary.hidden = number("embedding_length");
  summary.trained_context = number("context_length");
  summary.sliding_window = number("attention.sliding_window");
  summary.causal = gguf_integer(gguf, summary.architecture + ".attention.causal").value_or(1) != 0;
}

}  // namespace

Result<GgufSummary> read_gguf_summary(const std::filesystem::path& path) {
  PACELINE_TRY(const std::uint64_t bytes, check_is_gguf(path));
  PACELINE_TRY(const gguf_context_ptr first, open_gguf_metadata(path));
  GgufSummary summary;
  const std::uint64_t shard_count = gguf_integer(first.get(), "split.count").value_or(1);
  if (shard_count <= 1) {
    PACELINE_TRY_VOID(check_not_cut(first.get(), path, bytes));
    summary.files = {path};
    summary.file_bytes = bytes;
    summary.parameters = count_parameters(first.get());
    summary.tensor_bytes = count_tensor_bytes(first.get());
    read_description(first.get(), summary);
    return summary;
  }
  PACELINE_TRY(summary.files,
               find_shards(path, gguf_integer(first.get(), "split.no").value_or(0), shard_count));
  for (std::size_t i = 0; i < summary.files.size(); ++i) {
    const std::filesystem::path& shard = summary.files[i];
    PACELINE_TRY(const std::uint64_t shard_bytes, check_is_gguf(shard));
    PACELINE_TRY(const gguf_context_ptr gguf, open_gguf_metadata(shard));
    PACELINE_TRY_VOID(check_not_cut(gguf.get(), shard, shard_bytes));
    summary.file_bytes += shard_bytes;
    summary.parameters += count_parameters(gguf.get());
    summary.tensor_bytes += count_tensor_bytes(gguf.get());
    if (i == 0) read_description(gguf.get(), summary);
  }
  return summary;
}

}  // namespace paceline::runtime
