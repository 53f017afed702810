// From what the user calls a model to weights and evidence about them.
#pragma once

#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "record/record.hpp"
#include "runtime/native/native_model.hpp"
#include "runtime/runtime.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace paceline::cli {

struct OpenedModel {
  std::shared_ptr<const runtime::Model> model;
  record::ModelEvidence evidence;
};

/// What computes a model that is a file: native where it applies and else llama, or one of them.
enum class RuntimeChoice { automatic, native, llama };

/// "auto", "native" or "llama". Error: invalid_argument.
Result<RuntimeChoice> parse_runtime_choice(std::string_view word);

/// --runtime. Returns the option for its group.
CLI::Option* add_runtime_option(CLI::App& app, std::string& word);

/// What computes, for the record.
record::RuntimeEvidence runtime_evidence(const runtime::Runtime& runtime);

struct OpenOptions {
  bool offline = false;
  std::stop_token stop = {};
  double load_limit_seconds = 300;
  RuntimeChoice runtime = RuntimeChoice::automatic;
  std::optional<runtime::native::Isa> isa = {};  // of native; none: the best
};

/// toy:..., a known name (fetched where it is missing, never with offline), or a path.
/// Progress goes to stderr, and why native was not chosen automatically.
Result<OpenedModel> open_model(const std::string& name, const OpenOptions& options);

/// The sizes of a model, by the same names, without loading it.
Result<std::unique_ptr<runtime::MemoryEstimator>> open_memory_estimator(const std::string& name,
                                                                        const OpenOptions& options);

/// Fetches a known model if need be, with progress on stderr; gives its path.
Result<std::filesystem::path> fetch_with_progress(const std::string& name,
                                                  const OpenOptions& options);

}  // namespace paceline::cli
