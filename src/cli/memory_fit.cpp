#include "cli/memory_fit.hpp"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <CLI/CLI.hpp>
#include <algorithm>
#include <format>
#include <utility>

#include "host/host.hpp"

namespace paceline::cli {

CLI::Option* add_memory_limit(CLI::App& app, std::optional<std::uint64_t>& limit) {
  return app
      .add_option_function<std::string>(
          "--memory-limit",
          [&limit](const std::string& text) {
            const auto bytes = compat::parse_bytes(text);
            if (!bytes) throw CLI::ValidationError("--memory-limit", bytes.error().message);
            limit = *bytes;
          },
          "Ask for a machine with this much free memory, for example 64GB or 512MiB [what is free "
          "here]")
      ->type_name("SIZE");
}

Result<MemoryFit> MemoryFit::open(const std::string& target, std::optional<std::uint64_t> limit,
                                  const OpenOptions& options) {
  MemoryFit fit;
  fit.limit_ = limit;
  fit.options_ = options;
  auto estimator = open_memory_estimator(target, options);
  if (!estimator) return estimator.error().in(std::format("target \"{}\"", target));
  fit.models_.push_back({target, *std::move(estimator)});
  return fit;
}

Result<void> MemoryFit::add_draft(const std::string& name) {
  auto estimator = open_memory_estimator(name, options_);
  if (!estimator) return estimator.error().in(std::format("draft \"{}\"", name));
  models_.push_back({name, *std::move(estimator)});
  return {};
}

bool MemoryFit::has_draft(const std::string& name) const {
  return std::ranges::find(models_.begin() + 1, models_.end(), name, &Sized::name) != models_.end();
}

Result<std::vector<compat::ModelNeed>> MemoryFit::needs(
    const runtime::RuntimeLimits& limits) const {
  std::vector<compat::ModelNeed> needs;
  for (const Sized& model : models_) {
    runtime::RuntimeLimits own = limits;
    const std::size_t trained = model.estimator->info().trained_context;
    if (!needs.empty() && trained > 0) own.context = std::min(own.context, trained);
    PACELINE_TRY(auto devices, model.estimator->need(own));
    if (!needs.empty() && model.name == needs.front().model) {
      for (runtime::MemoryNeed& need : devices) need.weights = need.droppable = 0;  // shared
    }
    needs.push_back({.role = needs.empty() ? "target" : "draft",
                     .model = model.name,
                     .context = own.context,
                     .devices = std::move(devices)});
  }
  return needs;
}

Result<compat::FitReport> MemoryFit::judge(const runtime::RuntimeLimits& limits) const {
  PACELINE_TRY(const auto all, needs(limits));
  return compat::judge_fit(all, free());
}

Result<std::size_t> MemoryFit::largest_context(const runtime::RuntimeLimits& limits) const {
  const std::size_t trained = target().trained_context;
  return compat::largest_context(trained > 0 ? trained : limits.context, free(),
                                 [&](std::size_t context) {
                                   runtime::RuntimeLimits other = limits;
                                   other.context = context;
                                   return needs(other);
                                 });
}

compat::MemoryFree MemoryFit::free() const {
#ifdef __GLIBC__
  malloc_trim(0);  // what reading the metadata left behind is not needed later
#endif
  compat::MemoryFree free;
  free.program_bytes = host::resident_bytes().value_or(0);
  if (limit_) {
    free.host_bytes = limit_;
    free.source = "--memory-limit";
    return free;
  }
  free.host_bytes = host::read_host_state().memory_available_bytes;
  if (free.host_bytes) *free.host_bytes += free.program_bytes;
  free.source = "what this host has free, control group limits counted";
  return free;
}

}  // namespace paceline::cli
