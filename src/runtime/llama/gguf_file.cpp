#include "runtime/llama/gguf_file.hpp"

#include <algorithm>
#include <array>
#include <format>
#include <limits>
#include <optional>
#include <regex>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/text.hpp"
#include "runtime/llama/llama_version.hpp"
#include "runtime/runtime.hpp"

namespace paceline::runtime {

namespace {

constexpr std::uint64_t k_far = std::uint64_t{1} << 60;  // sums of two of them do not overflow

std::string quoted(const std::filesystem::path& path) {
  return std::format("\"{}\"", path.string());
}

// Size of what may be a model file.
Result<std::uint64_t> check_is_file(const std::filesystem::path& path) {
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
  return bytes;
}

/// libllama ends the process where it meets weights of these types in a product or a norm.
bool is_no_weight(ggml_type type) {
  switch (type) {
    case GGML_TYPE_I8:
    case GGML_TYPE_I16:
    case GGML_TYPE_I32:
    case GGML_TYPE_I64:
    case GGML_TYPE_F64:
      return true;
    default:
      return false;
  }
}

Result<void> check_weights(const GgufHeader& header, const std::filesystem::path& path) {
  for (const GgufTensor& tensor : header.tensors()) {
    const bool is_map = tensor.name.contains("2eid");  // which experts a token has: integers
    if (!tensor.name.ends_with(".weight") || is_map || tensor.type >= GGML_TYPE_COUNT) continue;
    const auto type = static_cast<ggml_type>(tensor.type);
    if (!is_no_weight(type)) continue;
    return fail(
        ErrorCode::bad_format,
        std::format("{} holds tensor \"{}\" in format {}, which nothing can multiply by; it "
                    "is damaged or was converted wrongly",
                    quoted(path), escape(tensor.name, 60), ggml_type_name(type)));
  }
  return {};
}

/// What a norm adds below its root. libllama ends the process where it is negative or NaN.
Result<void> check_epsilons(const GgufHeader& header, std::string_view architecture,
                            const std::filesystem::path& path) {
  for (const char* name : {"attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon",
                           "attention.group_norm_epsilon"}) {
    const std::string key = std::format("{}.{}", architecture, name);
    const auto value = header.number(key);
    if (!value || (*value >= 0 && *value < 1)) continue;
    return fail(ErrorCode::bad_format,
                std::format("{} is damaged: {} is {}, a number from 0 up to 1 is wanted",
                            quoted(path), escape(key, 80), *value));
  }
  return {};
}

Result<void> check_not_cut(const GgufHeader& header, const std::filesystem::path& path,
                           std::uint64_t file_bytes) {
  std::uint64_t end = 0;
  for (const GgufTensor& tensor : header.tensors()) {
    const auto bytes = gguf_tensor_bytes(tensor);
    if (!bytes) {
      return fail(
          ErrorCode::bad_format,
          std::format("{} holds tensor \"{}\" in format {}, which {} does not know", quoted(path),
                      escape(tensor.name, 60), tensor.type, library_versions()));
    }
    if (tensor.offset > file_bytes || *bytes > file_bytes - tensor.offset) {
      end = std::max(
          end, header.data_offset() + std::min(tensor.offset, k_far) + std::min(*bytes, k_far));
    } else {
      end = std::max(end, header.data_offset() + tensor.offset + *bytes);
    }
  }
  if (end > file_bytes) {
    return fail(ErrorCode::bad_format,
                std::format("{} is cut: the file ends at byte {}, its tensors need {}",
                            quoted(path), file_bytes, end));
  }
  return {};
}

std::uint64_t count_parameters(const GgufHeader& header) {
  std::uint64_t count = 0;
  for (const GgufTensor& tensor : header.tensors()) {
    std::uint64_t elements = 1;
    for (const std::uint64_t extent : tensor.extents) elements *= extent;
    count += elements;
  }
  return count;
}

std::uint64_t count_tensor_bytes(const GgufHeader& header) {
  std::uint64_t bytes = 0;
  for (const GgufTensor& tensor : header.tensors()) bytes += gguf_tensor_bytes(tensor).value_or(0);
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
  for (std::uint64_t i = 0; i < count; ++i) {  // five digits in the name bound it
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

std::string text_of(const GgufHeader& header, std::string_view key) {
  return std::string(header.string(key).value_or(""));
}

// Keys that only models with recurrent state have, behind the name of the architecture.
constexpr std::array<std::string_view, 4> k_recurrent_keys = {"ssm.", "wkv.", "shortconv.", "kda."};

std::optional<Inflation> read_inflation(const GgufHeader& header) {
  if (!header.has_prefix("paceline.inflated.")) return std::nullopt;
  Inflation inflation;
  inflation.source = text_of(header, "paceline.inflated.source");
  inflation.source_sha256 = text_of(header, "paceline.inflated.source_sha256");
  inflation.shape = text_of(header, "paceline.inflated.shape");
  inflation.noise = header.number("paceline.inflated.noise").value_or(0);
  inflation.random = header.boolean("paceline.inflated.random").value_or(false);
  inflation.seed = header.integer("paceline.inflated.seed").value_or(0);
  return inflation;
}

// Names, sizes and the like; they stand in the first shard. Error: bad_format for a context that is
// none; one that is not named is unknown, 0.
Result<void> read_description(const GgufHeader& header, GgufSummary& summary) {
  summary.name = text_of(header, "general.name");
  summary.architecture = text_of(header, "general.architecture");
  summary.tokenizer = text_of(header, "tokenizer.ggml.model");
  const auto number = [&](std::string_view key) -> std::size_t {
    return header.integer(std::format("{}.{}", summary.architecture, key)).value_or(0);
  };
  summary.file_type = header.integer("general.file_type");
  summary.layers = number("block_count");
  summary.hidden = number("embedding_length");
  summary.trained_context = number("context_length");
  summary.sliding_window = number("attention.sliding_window");
  summary.causal = header.integer(summary.architecture + ".attention.causal").value_or(1) != 0;
  summary.inflation = read_inflation(header);
  for (const std::string_view key : k_recurrent_keys) {
    summary.recurrent |= header.has_prefix(std::format("{}.{}", summary.architecture, key));
  }
  const std::string context_key = summary.architecture + ".context_length";
  if (!header.has_prefix(context_key)) return {};
  const auto context = header.integer(context_key);
  if (context && *context > 0 && *context <= k_longest_context) return {};
  return fail(
      ErrorCode::bad_format,
      std::format("{}: {} is {}, 1 to {} is wanted; the file's metadata is damaged",
                  quoted(summary.files.front()), escape(context_key, 60),
                  context ? std::format("{}", *context) : "no whole number", k_longest_context));
}

}  // namespace

std::optional<std::uint64_t> gguf_tensor_bytes(const GgufTensor& tensor) {
  if (tensor.type >= GGML_TYPE_COUNT) return std::nullopt;
  const auto type = static_cast<ggml_type>(tensor.type);
  const auto block = static_cast<std::uint64_t>(std::max<std::int64_t>(ggml_blck_size(type), 0));
  if (block == 0 || ggml_type_size(type) == 0) return std::nullopt;  // removed formats
  std::uint64_t elements = 1;                                        // the header bounds it
  for (const std::uint64_t extent : tensor.extents) elements *= extent;
  const std::uint64_t blocks = elements / block;
  const std::uint64_t size = ggml_type_size(type);
  if (blocks > std::numeric_limits<std::uint64_t>::max() / size) return std::nullopt;
  return blocks * size;
}

Result<GgufSummary> read_gguf_summary(const std::filesystem::path& path) {
  PACELINE_TRY(GgufModelFile model, read_gguf_model(path));
  return std::move(model.summary);
}

Result<GgufModelFile> read_gguf_model(const std::filesystem::path& path) {
  PACELINE_TRY(const std::uint64_t bytes, check_is_file(path));
  PACELINE_TRY(GgufHeader first, read_gguf_header(path));
  GgufSummary summary;
  const std::uint64_t shard_count = first.integer("split.count").value_or(1);
  if (shard_count <= 1) {
    PACELINE_TRY_VOID(check_not_cut(first, path, bytes));
    PACELINE_TRY_VOID(check_weights(first, path));
    summary.files = {path};
    summary.file_bytes = bytes;
    summary.parameters = count_parameters(first);
    summary.tensor_bytes = count_tensor_bytes(first);
    PACELINE_TRY_VOID(read_description(first, summary));
    PACELINE_TRY_VOID(check_epsilons(first, summary.architecture, path));
    return GgufModelFile{std::move(summary), std::move(first)};
  }
  PACELINE_TRY(summary.files,
               find_shards(path, first.integer("split.no").value_or(0), shard_count));
  for (std::size_t i = 0; i < summary.files.size(); ++i) {
    const std::filesystem::path& shard = summary.files[i];
    PACELINE_TRY(const std::uint64_t shard_bytes, check_is_file(shard));
    PACELINE_TRY(GgufHeader header, read_gguf_header(shard));
    PACELINE_TRY_VOID(check_not_cut(header, shard, shard_bytes));
    PACELINE_TRY_VOID(check_weights(header, shard));
    summary.file_bytes += shard_bytes;
    summary.parameters += count_parameters(header);
    summary.tensor_bytes += count_tensor_bytes(header);
    if (i == 0) {
      PACELINE_TRY_VOID(read_description(header, summary));
      PACELINE_TRY_VOID(check_epsilons(header, summary.architecture, shard));
      first = std::move(header);
    }
  }
  return GgufModelFile{std::move(summary), std::move(first)};
}

}  // namespace paceline::runtime
