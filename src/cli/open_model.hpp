// From what the user calls a model to weights and evidence about them.
#pragma once

#include <filesystem>
#include <functional>
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
std::string_view to_string(RuntimeChoice choice);

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
  /// True where `probe_in_child` has found the files fit to load; else it is asked first.
  bool probed = false;
};

/// Error invalid_argument where a runtime is asked for and the name is a toy, which has its own.
Result<void> check_toy_runtime(const std::string& name, RuntimeChoice choice);

/// toy:..., a known name (fetched where it is missing, never with offline), or a path.
/// Progress goes to stderr, and why native was not chosen automatically. A file is opened in a
/// child process first, so that a damaged one ends in an error and not in the end of this process.
Result<OpenedModel> open_model(const std::string& name, const OpenOptions& options);

/// The sizes of a model, by the same names, without loading it; the child process comes first here
/// as well.
Result<std::unique_ptr<runtime::MemoryEstimator>> open_memory_estimator(const std::string& name,
                                                                        const OpenOptions& options);

/// What open_model does with a path, in this process and without evidence.
Result<std::shared_ptr<const runtime::Model>> load_model_file(
    const std::filesystem::path& path, const OpenOptions& options,
    const std::function<bool(float)>& progress);
/// The same for its sizes.
Result<std::unique_ptr<runtime::MemoryEstimator>> size_model_file(const std::filesystem::path& path,
                                                                  RuntimeChoice choice);

/// Fetches a known model if need be, with progress on stderr; gives its path.
Result<std::filesystem::path> fetch_with_progress(const std::string& name,
                                                  const OpenOptions& options);

}  // namespace paceline::cli
