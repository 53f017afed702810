#include "cli/memory_fit.hpp"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <CLI/CLI.hpp>
#include <algorithm>
#include <format>
#include <ranges>
#include <utility>

#include "host/host.hpp"

namespace paceline::cli {

namespace {

constexpr std::size_t k_pass_rows = 512;

}  // namespace

Result<std::size_t> choose_context(std::optional<std::size_t> asked, bool with_draft,
                                   std::size_t trained) {
  if (asked && trained > 0 && *asked > trained) {
    return fail(ErrorCode::invalid_argument,
                std::format("--max-context-tokens {} is more than the {} that the target was "
                            "trained for",
                            *asked, trained));
  }
  const host::RamTier tier = host::ram_tier(host::read_host_info().memory_gib());
  std::size_t context = asked.value_or(tier.draft_context_cap);
  if (with_draft) {
    PACELINE_TRY(context, compat::draft_context(tier, asked));
  }
  return trained > 0 ? std::min(context, trained) : context;
}

runtime::RuntimeLimits usual_limits(std::size_t context, std::size_t deepest, std::size_t threads) {
  return {.sequences = 1,
          .context = context,
          .rows = k_pass_rows,
          .results = deepest + 1,
          .leaves = 1,
          .threads = threads,
          .features = false};
}

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
  if (name == models_.front().name) {
    models_.push_back(models_.front());
    return {};
  }
  auto estimator = open_memory_estimator(name, options_);
  if (!estimator) return estimator.error().in(std::format("draft \"{}\"", name));
  models_.push_back({name, *std::move(estimator)});
  return {};
}

bool MemoryFit::has_draft(const std::string& name) const {
  return std::ranges::find(models_.begin() + 1, models_.end(), name, &Sized::name) != models_.end();
}

Result<std::vector<compat::ModelNeed>> MemoryFit::needs(const runtime::RuntimeLimits& limits,
                                                        std::size_t count) const {
  std::vector<compat::ModelNeed> needs;
  for (const Sized& model : models_ | std::views::take(count)) {
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
  PACELINE_TRY(const auto all, needs(limits, models_.size()));
  return compat::judge_fit(all, free());
}

Result<std::size_t> MemoryFit::largest_context(const runtime::RuntimeLimits& limits,
                                               std::size_t count) const {
  const std::size_t trained = target().trained_context;
  return compat::largest_context(
      trained > 0 ? std::min(trained, runtime::k_longest_context) : limits.context, free(),
      [&](std::size_t context) {
        runtime::RuntimeLimits other = limits;
        other.context = context;
        return needs(other, count);
      });
}

Result<compat::MemoryCheck> MemoryFit::check(const runtime::RuntimeLimits& limits) const {
  compat::MemoryCheck check;
  check.free = free();
  PACELINE_TRY(check.models, needs(limits, models_.size()));
  check.report = compat::judge_fit(check.models, check.free);
  PACELINE_TRY(check.largest_context, largest_context(limits, models_.size()));
  PACELINE_TRY(check.largest_plain_context, largest_context(limits, 1));
  return check;
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
