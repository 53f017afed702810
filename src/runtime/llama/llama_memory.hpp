// How much memory a GGUF file will need, without loading it.
#pragma once

#include <filesystem>
#include <memory>

#include "core/result.hpp"
#include "runtime/runtime.hpp"

namespace paceline::runtime {

/// Opens a GGUF file, or a split one by any of its shards, for its sizes only: metadata and
/// vocabulary are read, weights are not, and allocations are simulated by libllama. Needs a
/// LlamaBackend. Errors: those of load_llama_model.
Result<std::unique_ptr<MemoryEstimator>> open_llama_memory_estimator(
    const std::filesystem::path& path);

}  // namespace paceline::runtime
