#include "runtime/native/native_model.hpp"

#include <algorithm>
#include <format>
#include <string>
#include <utility>

#include "runtime/cores.hpp"
#include "runtime/llama/gguf_tensors.hpp"
#include "runtime/llama/llama_model.hpp"
#include "runtime/native/native_runtime.hpp"
#include "runtime/native/network.hpp"

namespace paceline::runtime {

namespace {

class NativeModel final : public Model, public std::enable_shared_from_this<NativeModel> {
 public:
  NativeModel(std::shared_ptr<const Model> described, native::Network network,
              const native::Kernels& kernels)
      : described_(std::move(described)), network_(std::move(network)), kernels_(kernels) {}

  const Vocabulary& vocabulary() const override { return described_->vocabulary(); }
  const ModelInfo& info() const override { return described_->info(); }

  Result<std::unique_ptr<Runtime>> create_runtime(const RuntimeLimits& limits) const override {
    auto runtime = native::create_native_runtime(shared_from_this(), network_, kernels_, limits);
    if (!runtime) return runtime.error().in(std::format("running \"{}\"", info().path));
    return runtime;
  }

 private:
  std::shared_ptr<const Model> described_;  // vocabulary and facts, no weights
  native::Network network_;
  const native::Kernels& kernels_;
};

Result<const native::Kernels*> choose_kernels(std::optional<native::Isa> isa) {
  if (!isa) return native::available_kernels().front();
  if (const native::Kernels* const kernels = native::find_kernels(*isa)) return kernels;
  std::string known;
  for (const native::Isa one : native_isas()) {
    known += std::format("{}{}", known.empty() ? "" : ", ", native::to_string(one));
  }
  return fail(ErrorCode::unsupported, std::format("this processor or build has no {}, it has {}",
                                                  native::to_string(*isa), known));
}

class NativeMemoryEstimator final : public MemoryEstimator {
 public:
  NativeMemoryEstimator(std::shared_ptr<const Model> described, native::Network network,
                        const GgufTensors& file)
      : described_(std::move(described)),
        network_(std::move(network)),
        weights_(native::packed_bytes(network_, file)) {
    for (const MappedTensor& tensor : file.tensors()) {
      largest_tensor_ = std::max<std::uint64_t>(largest_tensor_, tensor.data.size());
    }
  }

  const ModelInfo& info() const override { return described_->info(); }

  Result<std::vector<MemoryNeed>> need(const RuntimeLimits& limits) const override {
    auto need = native::memory_need(network_, limits);
    if (!need) return need.error().in(std::format("sizing \"{}\"", info().path));
    need->weights = weights_;
    // One tensor at a time is read while the weights are packed, before the cache is there.
    const std::uint64_t later = need->kv + need->compute + need->results;
    need->droppable = largest_tensor_ - std::min(largest_tensor_, later);
    return std::vector<MemoryNeed>{*need};
  }

 private:
  std::shared_ptr<const Model> described_;
  native::Network network_;  // without weights
  std::uint64_t weights_;
  std::uint64_t largest_tensor_ = 0;
};

Error named(const std::filesystem::path& path, const Error& error) {
  if (error.message.contains(path.string())) return error;
  return error.in(std::format("model \"{}\"", path.string()));
}

Result<std::unique_ptr<MemoryEstimator>> open_estimator(const std::filesystem::path& path) {
  PACELINE_TRY(const GgufTensors file, GgufTensors::open(path));
  PACELINE_TRY(auto described, load_llama_model(path, {.vocabulary_only = true}));
  PACELINE_TRY(native::Network network,
               native::describe_network(file, described->vocabulary().size()));
  return std::make_unique<NativeMemoryEstimator>(std::move(described), std::move(network), file);
}

Result<std::shared_ptr<const Model>> load(const std::filesystem::path& path,
                                          const NativeLoadOptions& options) {
  PACELINE_TRY(const native::Kernels* const kernels, choose_kernels(options.isa));
  PACELINE_TRY(const GgufTensors file, GgufTensors::open(path));
  PACELINE_TRY(auto described, load_llama_model(path, {.vocabulary_only = true}));
  PACELINE_TRY(native::Network network,
               native::describe_network(file, described->vocabulary().size()));
  PACELINE_TRY_VOID(native::pack_weights(
      network, file, {.threads = available_cores(), .progress = options.progress}));
  return std::make_shared<const NativeModel>(std::move(described), std::move(network), *kernels);
}

}  // namespace

std::vector<native::Isa> native_isas() {
  std::vector<native::Isa> isas;
  for (const native::Kernels* kernels : native::available_kernels()) isas.push_back(kernels->isa);
  return isas;
}

Result<std::shared_ptr<const Model>> load_native_model(const std::filesystem::path& path,
                                                       const NativeLoadOptions& options) {
  auto model = load(path, options);
  if (!model) return named(path, model.error());
  return model;
}

Result<std::unique_ptr<MemoryEstimator>> open_native_memory_estimator(
    const std::filesystem::path& path) {
  auto estimator = open_estimator(path);
  if (!estimator) return named(path, estimator.error());
  return estimator;
}

}  // namespace paceline::runtime
