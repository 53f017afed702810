// Llama-family models on the CPU, written for passes of 1 to 16 rows. The room's public header.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "runtime/native/kernels/kernels.hpp"
#include "runtime/runtime.hpp"

namespace paceline::runtime {

struct NativeLoadOptions {
  /// Told the part that is loaded, 0 to 1, on the loading thread. False cancels.
  std::function<bool(float)> progress = {};
  /// The instruction set to compute with; none: the best that this processor has. A set that it
  /// lacks is refused.
  std::optional<native::Isa> isa = {};
};

/// The instruction sets that can be asked for here, best first.
std::vector<native::Isa> native_isas();

/// Loads a GGUF file, or a split one by any of its shards: architectures llama, qwen2 and qwen3
/// without experts, weights in F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K.
/// The weights are packed anew and not held twice. Needs a LlamaBackend (for the vocabulary).
/// Errors: unsupported (names what native does not compute), those of load_llama_model,
/// out_of_memory, cancelled.
Result<std::shared_ptr<const Model>> load_native_model(const std::filesystem::path& path,
                                                       const NativeLoadOptions& options = {});

/// Opens a file for its sizes only. Errors: those of load_native_model.
Result<std::unique_ptr<MemoryEstimator>> open_native_memory_estimator(
    const std::filesystem::path& path);

}  // namespace paceline::runtime
