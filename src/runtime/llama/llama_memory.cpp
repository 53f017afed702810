#include "runtime/llama/llama_memory.hpp"

#include <ggml-backend.h>

#include <algorithm>
#include <cstdint>
#include <format>
#include <string>
#include <utility>
#include <vector>

#include "runtime/llama/context_impl.hpp"
#include "runtime/llama/llama_model_impl.hpp"

namespace paceline::runtime {

namespace {

constexpr const char* k_host = "host";

bool computes_on_host(ggml_backend_dev_t device) {
  if (device == nullptr) return true;
  const auto type = ggml_backend_dev_type(device);
  return type == GGML_BACKEND_DEVICE_TYPE_CPU || type == GGML_BACKEND_DEVICE_TYPE_ACCEL;
}

class LlamaMemoryEstimator final : public MemoryEstimator {
 public:
  explicit LlamaMemoryEstimator(SizedModel sized) : sized_(std::move(sized)) {}

  const ModelInfo& info() const override { return sized_.info; }

  Result<std::vector<MemoryNeed>> need(const RuntimeLimits& limits) const override {
    const ModelInfo& info = sized_.info;
    auto opened = open_context(sized_.model.get(), info, limits);
    if (!opened) return opened.error().in(std::format("sizing \"{}\"", info.path));
    std::vector<MemoryNeed> needs{{.device = k_host}};
    std::uint64_t mapped = 0;  // weights that stay where the file is mapped
    std::uint64_t weights = 0;
    for (const auto& [type, bytes] : llama_get_memory_breakdown(opened->context.get())) {
      ggml_backend_dev_t device = ggml_backend_buft_get_device(type);
      MemoryNeed& need = of_device(needs, device, ggml_backend_buft_is_host(type));
      need.weights += bytes.model;
      need.kv += bytes.context;
      need.compute += bytes.compute;
      weights += bytes.model;
      if (ggml_backend_buft_is_host(type)) mapped += bytes.model;
    }
    // Tied embeddings may be held twice, tensors of parts that are not used not at all.
    if (weights > sized_.tensor_bytes * 2 || weights < sized_.tensor_bytes / 2) {
      return fail(
          ErrorCode::internal,
          std::format("libllama counts {} bytes of weights in \"{}\", whose tensors have {}",
                      weights, info.path, sized_.tensor_bytes));
    }
    // The host gets every row's results, whatever computed them.
    const auto floats = static_cast<std::uint64_t>(
        llama_vocab_n_tokens(llama_model_get_vocab(sized_.model.get())) +
        (limits.features ? output_embedding_size(sized_.model.get()) : 0));
    needs.front().results = opened->limits.results * floats * sizeof(float);
    needs.front().droppable = info.file_bytes - std::min(info.file_bytes, mapped);
    return needs;
  }

 private:
  static MemoryNeed& of_device(std::vector<MemoryNeed>& needs, ggml_backend_dev_t device,
                               bool host_buffer) {
    if (host_buffer || computes_on_host(device)) return needs.front();
    const std::string name = ggml_backend_dev_name(device);
    const auto known = std::ranges::find(needs, name, &MemoryNeed::device);
    if (known != needs.end()) return *known;
    std::size_t free = 0;
    std::size_t total = 0;
    ggml_backend_dev_memory(device, &free, &total);
    needs.push_back({.device = name, .device_free = free});
    return needs.back();
  }

  SizedModel sized_;
};

}  // namespace

Result<std::unique_ptr<MemoryEstimator>> open_llama_memory_estimator(
    const std::filesystem::path& path) {
  PACELINE_TRY(SizedModel sized, load_llama_sizes(path));
  return std::make_unique<LlamaMemoryEstimator>(std::move(sized));
}

}  // namespace paceline::runtime
