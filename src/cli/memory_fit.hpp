// Measures what models need and the host has free, and asks compat whether it fits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/open_model.hpp"
#include "compat/fit.hpp"
#include "core/result.hpp"
#include "runtime/runtime.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace paceline::cli {

/// The context in effect: what was asked for, else the published cap of this host's memory, never
/// more than the target was trained for. Errors: invalid_argument.
Result<std::size_t> choose_context(std::optional<std::size_t> asked, bool with_draft,
                                   std::size_t trained);

/// The limits of a benchmark whose deepest arm drafts this many tokens.
runtime::RuntimeLimits usual_limits(std::size_t context, std::size_t deepest, std::size_t threads);

/// --memory-limit. Returns the option for its group.
CLI::Option* add_memory_limit(CLI::App& app, std::optional<std::uint64_t>& limit);

/// The models of one request, open for their sizes.
class MemoryFit {
 public:
  /// Opens the target's sizes. `limit`: another machine's memory instead of what is free here.
  static Result<MemoryFit> open(const std::string& target, std::optional<std::uint64_t> limit,
                                const OpenOptions& options);

  /// Adds a draft model to the request.
  Result<void> add_draft(const std::string& name);
  void drop_last_draft() { models_.pop_back(); }
  bool has_draft(const std::string& name) const;

  Result<compat::FitReport> judge(const runtime::RuntimeLimits& limits) const;
  /// The longest context up to what the target was trained for with which the first `count` models
  /// fit; 0: none does.
  Result<std::size_t> largest_context(const runtime::RuntimeLimits& limits,
                                      std::size_t count) const;
  /// Everything that `check` tells.
  Result<compat::MemoryCheck> check(const runtime::RuntimeLimits& limits) const;

  const runtime::ModelInfo& target() const { return models_.front().estimator->info(); }

  /// What is free for this process, what it holds already counted in.
  compat::MemoryFree free() const;

 private:
  struct Sized {
    std::string name;
    std::shared_ptr<const runtime::MemoryEstimator> estimator;
  };

  /// Sizes of the first `count` models. A draft's context is cut to what it was trained for; a
  /// target that is its own draft has its weights counted once.
  Result<std::vector<compat::ModelNeed>> needs(const runtime::RuntimeLimits& limits,
                                               std::size_t count) const;

  std::optional<std::uint64_t> limit_;
  OpenOptions options_;
  std::vector<Sized> models_;  // the target first
};

}  // namespace paceline::cli
