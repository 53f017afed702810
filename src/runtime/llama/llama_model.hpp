// Models from GGUF files through libllama. The room's public header; no llama.h in it.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "core/result.hpp"
#include "runtime/llama/llama_backend.hpp"
#include "runtime/runtime.hpp"

namespace paceline::runtime {

struct LlamaLoadOptions {
  /// Told the part that is loaded, 0 to 1, on the loading thread. False cancels.
  std::function<bool(float)> progress = {};
  /// Tokens and templates only: no weights, `create_runtime` is refused.
  bool vocabulary_only = false;
};

/// Loads a GGUF file, or a split one by any of its shards, memory-mapped. Needs a LlamaBackend.
/// Errors: not_found, bad_format (damaged, cut, no GGUF, no tokenizer), unsupported (encoders,
/// unknown architectures), cancelled, io.
Result<std::shared_ptr<const Model>> load_llama_model(const std::filesystem::path& path,
                                                      const LlamaLoadOptions& options = {});

}  // namespace paceline::runtime
