// Shared inside this room: a model that is open for its sizes.
#pragma once

#include <cstdint>
#include <filesystem>

#include "core/result.hpp"
#include "runtime/llama/llama_version.hpp"
#include "runtime/runtime.hpp"

namespace paceline::runtime {

struct SizedModel {
  llama_model_ptr model;
  ModelInfo info;
  std::uint64_t tensor_bytes = 0;  // of all tensors, as the files hold them
};

/// Errors: those of load_llama_model.
Result<SizedModel> load_llama_sizes(const std::filesystem::path& path);

}  // namespace paceline::runtime
