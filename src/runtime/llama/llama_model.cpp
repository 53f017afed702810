#include "runtime/llama/llama_model.hpp"

#include <exception>
#include <format>
#include <string>
#include <utility>
#include <vector>

#include "runtime/llama/gguf_file.hpp"
#include "runtime/llama/llama_backend_impl.hpp"
#include "runtime/llama/llama_model_impl.hpp"
#include "runtime/llama/llama_runtime.hpp"
#include "runtime/llama/llama_version.hpp"
#include "runtime/llama/llama_vocabulary.hpp"

namespace paceline::runtime {

namespace {

class LlamaModel final : public Model, public std::enable_shared_from_this<LlamaModel> {
 public:
  LlamaModel(llama_model_ptr model, ModelInfo info, bool vocabulary_only)
      : model_(std::move(model)),
        vocabulary_(model_.get()),
        info_(std::move(info)),
        vocabulary_only_(vocabulary_only) {}

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  const ModelInfo& info() const override { return info_; }

  Result<std::unique_ptr<Runtime>> create_runtime(const RuntimeLimits& limits) const override {
    if (vocabulary_only_) {
      return fail(ErrorCode::unsupported,
                  std::format("\"{}\" was loaded without its weights", info_.path));
    }
    auto runtime = create_llama_runtime(shared_from_this(), model_.get(), limits);
    if (!runtime) return runtime.error().in(std::format("running \"{}\"", info_.path));
    return runtime;
  }

 private:
  llama_model_ptr model_;
  LlamaVocabulary vocabulary_;
  ModelInfo info_;
  bool vocabulary_only_;
};

Result<void> check_usable(const GgufSummary& summary) {
  if (summary.architecture.empty()) {
    return fail(ErrorCode::bad_format, "the file names no architecture (general.architecture)");
  }
  if (!summary.causal) {
    return fail(ErrorCode::unsupported,
                std::format("architecture \"{}\" is an encoder; a model that writes text is wanted",
                            summary.architecture));
  }
  if (summary.tokenizer.empty() || summary.tokenizer == "none" || summary.tokenizer == "no_vocab") {
    return fail(ErrorCode::bad_format,
                "the file has no tokenizer (tokenizer.ggml.model); convert it with one");
  }
  return {};
}

Result<void> check_writes_text(const llama_model* model) {
  if (llama_model_has_encoder(model) || !llama_model_has_decoder(model)) {
    return fail(ErrorCode::unsupported, "models with an encoder are not supported");
  }
  if (llama_model_is_diffusion(model)) {
    return fail(ErrorCode::unsupported, "diffusion models are not supported");
  }
  return {};
}

struct Progress {
  const std::function<bool(float)>* callback;
  bool cancelled = false;
};

bool on_progress(float part, void* user_data) {
  auto& progress = *static_cast<Progress*>(user_data);
  if (!(*progress.callback)(part)) progress.cancelled = true;
  return !progress.cancelled;
}

// libllama's own loader; its exceptions end here.
Result<llama_model_ptr> load(const GgufSummary& summary, const LlamaLoadOptions& options,
                             llama_model_params params) {
  Progress progress{&options.progress};
  params.vocab_only = options.vocabulary_only;
  if (options.progress) {
    if (!on_progress(0.0F, &progress)) return fail(ErrorCode::cancelled, "loading was cancelled");
    params.progress_callback = on_progress;
    params.progress_callback_user_data = &progress;
  }
  std::vector<std::string> names;
  for (const std::filesystem::path& file : summary.files) names.push_back(file.string());
  std::vector<const char*> paths;
  for (const std::string& name : names) paths.push_back(name.c_str());

  const CapturedErrors errors;
  llama_model_ptr model;
  std::string reason;
  try {
    model.reset(paths.size() == 1
                    ? llama_model_load_from_file(paths.front(), params)
                    : llama_model_load_from_splits(paths.data(), paths.size(), params));
  } catch (const std::exception& error) {
    reason = error.what();
  }
  if (progress.cancelled) return fail(ErrorCode::cancelled, "loading was cancelled");
  if (model == nullptr) {
    if (reason.empty()) reason = errors.text("no reason given");
    const bool unknown = reason.find("unknown model architecture") != std::string::npos;
    return fail(unknown ? ErrorCode::unsupported : ErrorCode::bad_format,
                std::format("{} cannot load it: {}", library_versions(), reason));
  }
  return model;
}

constexpr std::uint64_t k_file_type_guessed = LLAMA_FTYPE_GUESSED;

ModelInfo describe(const std::filesystem::path& path, const GgufSummary& summary,
                   const llama_model* model) {
  ModelInfo info;
  info.name = summary.name.empty() ? path.stem().string() : summary.name;
  info.path = path.string();
  info.architecture = summary.architecture;
  // Without its weights a model does not know its type.
  info.file_type = summary.file_type && *summary.file_type < k_file_type_guessed
                       ? file_type_name(static_cast<llama_ftype>(*summary.file_type))
                       : file_type_name(llama_model_ftype(model));
  info.parameters = summary.parameters;
  info.file_bytes = summary.file_bytes;
  info.layers = summary.layers;
  info.hidden = summary.hidden;
  info.trained_context = summary.trained_context;
  info.sliding_window = summary.sliding_window;
  info.recurrent = llama_model_is_recurrent(model) || llama_model_is_hybrid(model);
  info.inflation = summary.inflation;
  for (const std::filesystem::path& file : summary.files) info.files.push_back(file.string());
  return info;
}

Result<std::shared_ptr<const Model>> load_checked(const std::filesystem::path& path,
                                                  const GgufSummary& summary,
                                                  const LlamaLoadOptions& options) {
  PACELINE_TRY_VOID(check_usable(summary));
  PACELINE_TRY(llama_model_ptr model, load(summary, options, mapped_model_params()));
  PACELINE_TRY_VOID(check_writes_text(model.get()));
  ModelInfo info = describe(path, summary, model.get());
  return std::make_shared<const LlamaModel>(std::move(model), std::move(info),
                                            options.vocabulary_only);
}

Result<SizedModel> load_sizes_checked(const std::filesystem::path& path,
                                      const GgufSummary& summary) {
  PACELINE_TRY_VOID(check_usable(summary));
  PACELINE_TRY(llama_model_ptr model, load(summary, {}, simulated_model_params()));
  PACELINE_TRY_VOID(check_writes_text(model.get()));
  ModelInfo info = describe(path, summary, model.get());
  return SizedModel{std::move(model), std::move(info), summary.tensor_bytes};
}

}  // namespace

Result<SizedModel> load_llama_sizes(const std::filesystem::path& path) {
  PACELINE_TRY(const GgufSummary summary, read_gguf_summary(path));
  auto model = load_sizes_checked(path, summary);
  if (!model) return model.error().in(std::format("model \"{}\"", path.string()));
  return model;
}

Result<std::shared_ptr<const Model>> load_llama_model(const std::filesystem::path& path,
                                                      const LlamaLoadOptions& options) {
  PACELINE_TRY(const GgufSummary summary, read_gguf_summary(path));
  auto model = load_checked(path, summary, options);
  if (!model) return model.error().in(std::format("model \"{}\"", path.string()));
  return model;
}

}  // namespace paceline::runtime
