#include "cli/open_model.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <format>
#include <functional>
#include <memory>

#include "bench/deadline.hpp"
#include "cli/child_probe.hpp"
#include "cli/terminal.hpp"
#include "core/file.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "models/models.hpp"
#include "runtime/llama/llama_memory.hpp"
#include "runtime/llama/llama_model.hpp"
#include "runtime/native/native_model.hpp"
#include "runtime/toy/toy.hpp"

namespace paceline::cli {

namespace fs = std::filesystem;

namespace {

std::string megabytes(std::uint64_t bytes) {
  return std::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

/// A file's identity for the cache of checksums: it changes when the file does.
std::string identity(const fs::path& path) {
  std::error_code code;
  const auto size = fs::file_size(path, code);
  const auto written = fs::last_write_time(path, code).time_since_epoch().count();
  return std::format("{}\n{}\n{}", fs::weakly_canonical(path, code).string(), size, written);
}

/// SHA-256 of a file, remembered between runs: large models take half a minute.
Result<std::string> remembered_sha256(const fs::path& path, std::stop_token stop) {
  fs::path memory;
  if (const auto cache = cache_directory()) {
    memory = *cache / "sha256" / sha256_hex(identity(path));
    if (const auto known = read_file(memory, 1024); known && known->size() == 64) return *known;
  }
  ProgressLine progress;
  std::error_code code;
  const std::uint64_t size = fs::file_size(path, code);
  const auto start = std::chrono::steady_clock::now();
  PACELINE_TRY(const std::string sum, sha256_file(path, stop, [&](std::uint64_t done) {
                 if (std::chrono::steady_clock::now() - start < std::chrono::seconds(1)) return;
                 progress.show(std::format("hashing {}: {} of {}", path.filename().string(),
                                           megabytes(done), megabytes(size)));
               }));
  if (!memory.empty()) {
    fs::create_directories(memory.parent_path(), code);
    if (const auto kept = replace_file(memory, sum); !kept) {
      log_debug("the checksum is not remembered: {}", kept.error().message);
    }
  }
  return sum;
}

/// One hash for all files of a model: of the file, or of the shards' hashes in order.
Result<std::string> model_sha256(const std::vector<std::string>& files, std::stop_token stop) {
  if (files.size() == 1) return remembered_sha256(files.front(), stop);
  std::string sums;
  for (const std::string& file : files) {
    PACELINE_TRY(const std::string sum, remembered_sha256(file, stop));
    sums += sum + "\n";
  }
  return sha256_hex(sums);
}

record::ModelEvidence describe(const std::string& name, const runtime::Model& model) {
  const runtime::ModelInfo& info = model.info();
  record::ModelEvidence evidence;
  evidence.name = name;
  evidence.path = info.path;
  evidence.description = info.name;
  evidence.architecture = info.architecture;
  evidence.file_type = info.file_type;
  if (info.file_bytes > 0) evidence.bytes = info.file_bytes;
  if (info.parameters > 0) evidence.parameters = info.parameters;
  evidence.trained_context = info.trained_context;
  evidence.sliding_window = info.sliding_window;
  const std::string chat_template = model.vocabulary().chat_template();
  if (!chat_template.empty()) evidence.chat_template_sha256 = sha256_hex(chat_template);
  if (const auto chat = model.vocabulary().render_chat({{"user", "hello"}})) {
    evidence.chat_renderer = chat->renderer;
  }
  if (info.inflation) {
    const runtime::Inflation& inflation = *info.inflation;
    evidence.inflation = {.source = inflation.source,
                          .source_sha256 = inflation.source_sha256,
                          .shape = inflation.shape,
                          .noise = inflation.noise,
                          .random = inflation.random,
                          .seed = inflation.seed};
  }
  return evidence;
}

}  // namespace

record::RuntimeEvidence runtime_evidence(const runtime::Runtime& runtime) {
  const runtime::RuntimeInfo info = runtime.info();
  return {.name = info.name,
          .build = info.build,
          .backend = info.backend,
          .threads = info.threads,
          .context = info.context,
          .rows = info.rows,
          .kv_type_k = info.kv_type_k,
          .kv_type_v = info.kv_type_v,
          .flash_attention = info.flash_attention,
          .exact_widths = runtime.capabilities().exact_widths};
}

Result<fs::path> fetch_with_progress(const std::string& name, const OpenOptions& options) {
  ProgressLine progress;
  models::FetchOptions fetch;
  fetch.offline = options.offline;
  fetch.stop = options.stop;
  fetch.progress = [&](std::uint64_t done, std::uint64_t total, std::string_view what) {
    progress.show(total > 0 ? std::format("fetching {}: {} {} of {}", name, what, megabytes(done),
                                          megabytes(total))
                            : std::format("fetching {}: {}", name, what));
  };
  return models::ensure_model(name, fetch);
}

Result<RuntimeChoice> parse_runtime_choice(std::string_view word) {
  if (word == "auto") return RuntimeChoice::automatic;
  if (word == "native") return RuntimeChoice::native;
  if (word == "llama") return RuntimeChoice::llama;
  return fail(
      ErrorCode::invalid_argument,
      std::format("runtime \"{}\" is unknown; auto, native and llama are known", escape(word)));
}

std::string_view to_string(RuntimeChoice choice) {
  switch (choice) {
    case RuntimeChoice::automatic:
      return "auto";
    case RuntimeChoice::native:
      return "native";
    case RuntimeChoice::llama:
      return "llama";
  }
  return "auto";
}

Result<void> check_toy_runtime(const std::string& name, RuntimeChoice choice) {
  if (choice == RuntimeChoice::automatic || !runtime::is_toy_name(name)) return {};
  return fail(
      ErrorCode::invalid_argument,
      std::format("\"{}\" is a toy, which no other runtime computes; leave --runtime {} out "
                  "or name a model file",
                  escape(name), to_string(choice)));
}

CLI::Option* add_runtime_option(CLI::App& app, std::string& word) {
  return app
      .add_option(
          "--runtime", word,
          "What computes: native (the CPU runtime of our own, for Llama-like models), llama "
          "(any GGUF, through libllama), or auto: native where it applies")
      ->check(CLI::IsMember({"auto", "native", "llama"}))
      ->capture_default_str();
}

Result<std::shared_ptr<const runtime::Model>> load_model_file(
    const fs::path& path, const OpenOptions& options, const std::function<bool(float)>& progress) {
  if (options.runtime != RuntimeChoice::llama) {
    auto model = runtime::load_native_model(path, {.progress = progress, .isa = options.isa});
    if (model || options.runtime == RuntimeChoice::native) return model;
    if (model.error().code != ErrorCode::unsupported) return model;
    log_info("{}", model.error().message);
  }
  return runtime::load_llama_model(path, {.progress = progress});
}

Result<std::unique_ptr<runtime::MemoryEstimator>> size_model_file(const fs::path& path,
                                                                  RuntimeChoice choice) {
  if (choice != RuntimeChoice::llama) {
    auto native = runtime::open_native_memory_estimator(path);
    if (native || choice == RuntimeChoice::native) return native;
    if (native.error().code != ErrorCode::unsupported) return native;
  }
  return runtime::open_llama_memory_estimator(path);
}

namespace {

Result<void> probe_unless_done(const fs::path& path, const OpenOptions& options) {
  if (options.probed) return {};
  PACELINE_TRY([[maybe_unused]] const auto probe,
               probe_in_child(path, options.runtime, options.stop));
  return {};
}

}  // namespace

Result<OpenedModel> open_model(const std::string& name, const OpenOptions& options) {
  PACELINE_TRY_VOID(check_toy_runtime(name, options.runtime));
  if (runtime::is_toy_name(name)) {
    PACELINE_TRY(const auto toy, runtime::parse_toy_name(name));
    OpenedModel opened{runtime::make_toy_model(toy), {}};
    opened.evidence = describe(name, *opened.model);
    return opened;
  }
  PACELINE_TRY(const fs::path path, fetch_with_progress(name, options));
  PACELINE_TRY_VOID(probe_unless_done(path, options));
  ProgressLine progress;
  const auto start = std::chrono::steady_clock::now();
  double percent = 0;
  const bench::Deadline deadline(std::chrono::duration<double>(options.load_limit_seconds),
                                 options.stop);
  const auto on_progress = [&](float part) {
    percent = 100 * static_cast<double>(part);
    if (std::chrono::steady_clock::now() - start > std::chrono::seconds(1)) {
      progress.show(std::format("loading {}: {:.0f} %", path.filename().string(), percent));
    }
    return !deadline.token().stop_requested();
  };
  auto model = load_model_file(path, options, on_progress);
  if (!model && model.error().code == ErrorCode::cancelled && deadline.expired()) {
    return fail(
        ErrorCode::timed_out,
        std::format(
            "loading \"{}\" had come to {:.0f} % after {:.0f} s; --run-time-limit raises the limit",
            path.string(), percent, options.load_limit_seconds));
  }
  if (!model) return model.error();
  OpenedModel opened{*std::move(model), {}};
  opened.evidence = describe(name, *opened.model);
  PACELINE_TRY(opened.evidence.sha256, model_sha256(opened.model->info().files, options.stop));
  return opened;
}

Result<std::unique_ptr<runtime::MemoryEstimator>> open_memory_estimator(
    const std::string& name, const OpenOptions& options) {
  PACELINE_TRY_VOID(check_toy_runtime(name, options.runtime));
  if (runtime::is_toy_name(name)) {
    PACELINE_TRY(const auto toy, runtime::parse_toy_name(name));
    return runtime::make_toy_memory_estimator(toy);
  }
  PACELINE_TRY(const fs::path path, fetch_with_progress(name, options));
  PACELINE_TRY_VOID(probe_unless_done(path, options));
  return size_model_file(path, options.runtime);
}

}  // namespace paceline::cli
