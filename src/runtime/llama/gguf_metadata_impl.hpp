// Shared inside this room: reading GGUF metadata.
#pragma once

#include <ggml-cpp.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/result.hpp"

namespace paceline::runtime {

/// The metadata of one file, no tensors. Error: bad_format.
Result<gguf_context_ptr> open_gguf_metadata(const std::filesystem::path& path);
/// None where the key is missing, of another kind or negative.
std::optional<std::uint64_t> gguf_integer(const gguf_context* gguf, const std::string& key);
/// Empty where the key is missing or of another kind.
std::string gguf_string(const gguf_context* gguf, const std::string& key);

}  // namespace paceline::runtime
