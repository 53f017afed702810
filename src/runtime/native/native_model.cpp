#include "runtime/native/native_model.hpp"

#include <format>
#include <string>
#include <utility>

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
  return fail(ErrorCode::unsupported,
              std::format("this processor or build has no {}, it has {}", native::to_string(*isa),
                          known));
}

Result<std::shared_ptr<const Model>> load(const std::filesystem::path& path,
                                          const NativeLoadOptions& options) {
  PACELINE_TRY(const native::Kernels* const kernels, choose_kernels(options.isa));
  PACELINE_TRY(const GgufTensors file, GgufTensors::open(path));
  PACELINE_TRY(auto described, load_llama_model(path, {.vocabulary_only = true}));
  PACELINE_TRY(native::Network network,
               native::describe_network(file, described->vocabulary().size()));
  PACELINE_TRY_VOID(native::pack_weights(
      network, file, {.threads = native::available_cores(), .progress = options.progress}));
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
  if (!model && !model.error().message.contains(path.string())) {
    return model.error().in(std::format("model \"{}\"", path.string()));
  }
  return model;
}

}  // namespace paceline::runtime
