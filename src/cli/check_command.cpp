// `paceline check`: may this draft stand in for this target, or what is in this folder?
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <format>
#include <future>
#include <memory>
#include <optional>
#include <system_error>

#include "cli/child_probe.hpp"
#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/memory_fit.hpp"
#include "cli/open_model.hpp"
#include "cli/terminal.hpp"
#include "cli/validators.hpp"
#include "compat/artifact.hpp"
#include "compat/check.hpp"
#include "compat/check_text.hpp"
#include "core/json.hpp"
#include "runtime/toy/toy.hpp"

namespace paceline::cli {

namespace fs = std::filesystem;

namespace {

struct CheckOptions {
  std::string folder;
  std::string target;
  std::string draft;
  std::string draft_artifact_sha256;
  std::string format = "table";
  std::string runtime = "auto";
  std::optional<std::size_t> max_context_tokens;
  std::size_t num_draft_tokens = 3;
  std::optional<std::uint64_t> memory_limit;
  bool offline = false;
};

Result<void> check_usage(const CheckOptions& options) {
  if (!options.draft.empty() && options.target.empty()) {
    return fail(ErrorCode::invalid_argument, "--draft needs --target: a draft is checked for one",
                "draft_model_target_required");
  }
  if (options.target.empty() == options.folder.empty()) {
    return fail(ErrorCode::invalid_argument, options.target.empty()
                                                 ? "name a --target (and a --draft), or a folder"
                                                 : "name a --target or a folder, not both");
  }
  if (options.draft_artifact_sha256.empty()) return {};
  if (options.draft.empty()) {
    return fail(ErrorCode::invalid_argument,
                "--draft-model-artifact-sha256 needs --draft: it binds the draft's bytes");
  }
  return compat::check_artifact_sha256(options.draft_artifact_sha256);
}

/// The probe of a GGUF file, unless the model is refused without it.
Result<void> add_probe(compat::Candidate& candidate, bool as_draft, RuntimeChoice runtime,
                       std::stop_token stop) {
  if (candidate.kind != compat::CandidateKind::gguf) return {};
  const auto alone = compat::check_alone(candidate, as_draft);
  const compat::Difference* hard = compat::first_hard(alone);
  if (hard != nullptr && hard->component != "rollback") return {};
  PACELINE_TRY(candidate.probe, probe_in_child(candidate.files.front(), runtime, stop));
  return {};
}

/// A toy, a known name (fetched where it is missing), a file, or a snapshot directory. No probe.
Result<compat::Candidate> read_named(const std::string& name, const OpenOptions& options) {
  PACELINE_TRY_VOID(check_toy_runtime(name, options.runtime));
  if (runtime::is_toy_name(name)) {
    PACELINE_TRY(const auto toy, runtime::parse_toy_name(name));
    return compat::describe_open_model(*runtime::make_toy_model(toy), name);
  }
  std::error_code code;
  fs::path path = name;
  if (!fs::is_directory(path, code)) {
    PACELINE_TRY(path, fetch_with_progress(name, options));
  }
  return compat::read_candidate(path, name);
}

/// The probes of both, side by side; one for both where they are the same file.
Result<void> add_probes(compat::Candidate& target, compat::Candidate& draft, RuntimeChoice runtime,
                        std::stop_token stop) {
  if (!target.files.empty() && target.files == draft.files) {
    PACELINE_TRY_VOID(add_probe(target, false, runtime, stop));
    draft.probe = target.probe;
    return {};
  }
  auto theirs =
      std::async(std::launch::async, [&] { return add_probe(draft, true, runtime, stop); });
  auto ours = add_probe(target, false, runtime, stop);
  PACELINE_TRY_VOID(theirs.get());
  return ours;
}

Result<void> verify_artifact(const CheckOptions& options, const compat::Candidate& draft,
                             std::stop_token stop) {
  if (draft.path.empty()) {
    return fail(ErrorCode::invalid_argument,
                std::format("the draft {} has no file that a hash could bind", draft.name),
                "draft_model_unverified_artifact");
  }
  ProgressLine progress;
  const auto start = std::chrono::steady_clock::now();
  compat::HashOptions hash;
  hash.stop = stop;
  hash.progress = [&](std::uint64_t done) {
    if (std::chrono::steady_clock::now() - start < std::chrono::seconds(1)) return;
    progress.show(
        std::format("hashing {}: {:.1f} MB", draft.name, static_cast<double>(done) / 1e6));
  };
  return compat::verify_artifact(draft.path, options.draft_artifact_sha256, hash);
}

/// Sizes of models that the probe has opened in its child process without complaint.
Result<compat::MemoryCheck> size_models(const CheckOptions& options, std::size_t context,
                                        const OpenOptions& open) {
  PACELINE_TRY(auto fit, MemoryFit::open(options.target, options.memory_limit, open));
  if (!options.draft.empty()) PACELINE_TRY_VOID(fit.add_draft(options.draft));
  return fit.check(usual_limits(context, options.num_draft_tokens, 0));
}

/// The memory part of a check. Sums that do not agree are told; a model that the runtime asked for
/// cannot open is an error, and so is a usage error.
Result<void> add_memory(const CheckOptions& options, const OpenOptions& open,
                        compat::PairCheck& check) {
  const auto has_sizes = [](const compat::Candidate& candidate) {
    return candidate.kind != compat::CandidateKind::snapshot;
  };
  if (!has_sizes(check.target) || (check.draft && !has_sizes(*check.draft))) {
    check.memory = {.error = "a snapshot directory has no sizes that a runtime here would use"};
    return {};
  }
  if (!check.usable()) return {};
  PACELINE_TRY(const std::size_t context,
               choose_context(options.max_context_tokens, check.draft.has_value(),
                              check.target.trained_context));
  auto sized = size_models(options, context, open);
  if (!sized && sized.error().code != ErrorCode::internal) return sized.error();
  if (sized) {
    check.memory = *std::move(sized);
  } else {
    check.memory = {.error = sized.error().message};
  }
  return {};
}

/// The result in the format that was asked for.
template <typename Check>
Result<void> print(const Check& check, const CheckOptions& options) {
  const std::string text = options.format == "json" ? dump_json(compat::to_json(check), 2) + "\n"
                                                    : compat::to_text(check, terminal_width());
  return print_result(text);
}

Result<int> check_models(const CheckOptions& options, std::stop_token stop) {
  PACELINE_TRY(const RuntimeChoice runtime, parse_runtime_choice(options.runtime));
  const OpenOptions open{
      .offline = options.offline, .stop = stop, .runtime = runtime, .probed = true};
  PACELINE_TRY(compat::Candidate target, read_named(options.target, open));
  std::optional<compat::Candidate> draft;
  if (options.draft.empty()) {
    PACELINE_TRY_VOID(add_probe(target, false, runtime, stop));
  } else {
    PACELINE_TRY(draft, read_named(options.draft, open));
    PACELINE_TRY_VOID(add_probes(target, *draft, runtime, stop));
    if (!options.draft_artifact_sha256.empty()) {
      PACELINE_TRY_VOID(verify_artifact(options, *draft, stop));
    }
  }
  compat::PairCheck check = compat::check_pair(std::move(target), std::move(draft));
  if (!options.draft_artifact_sha256.empty()) {
    check.draft_artifact_sha256 = options.draft_artifact_sha256;
  }
  PACELINE_TRY_VOID(add_memory(options, open, check));
  PACELINE_TRY_VOID(print(check, options));
  return check.usable() ? k_exit_done : k_exit_not_benchmarkable;
}

Result<int> check_folder(const CheckOptions& options, std::stop_token stop) {
  PACELINE_TRY(const std::vector<fs::path> found, compat::find_candidates(options.folder));
  if (found.empty()) {
    return fail(ErrorCode::not_found,
                std::format("\"{}\" holds no GGUF file and no snapshot directory", options.folder));
  }
  PACELINE_TRY(const RuntimeChoice runtime, parse_runtime_choice(options.runtime));
  ProgressLine progress;
  std::vector<compat::FolderEntry> entries;
  for (const fs::path& path : found) {
    if (stop.stop_requested()) return fail(ErrorCode::cancelled, "the check was stopped");
    progress.show(std::format("reading {} of {}", entries.size() + 1, found.size()));
    compat::FolderEntry entry;
    entry.name = path.lexically_proximate(options.folder).string();
    auto candidate = compat::read_candidate(path, entry.name);
    if (candidate) {
      if (const auto probed = add_probe(*candidate, false, runtime, stop); !probed) {
        if (probed.error().code == ErrorCode::cancelled) return probed.error();
        candidate = probed.error();
      }
    }
    if (candidate) {
      entry.candidate = *std::move(candidate);
    } else {
      entry.error = candidate.error().message;
    }
    entries.push_back(std::move(entry));
  }
  progress.clear();
  const compat::FolderCheck check = compat::check_folder(options.folder, std::move(entries));
  PACELINE_TRY_VOID(print(check, options));
  const bool any = std::ranges::any_of(check.pairs, &compat::FolderPair::usable);
  return any ? k_exit_done : k_exit_not_benchmarkable;
}

Result<int> run(const CheckOptions& options, std::stop_token stop) {
  PACELINE_TRY_VOID(check_usage(options));
  return options.folder.empty() ? check_models(options, stop) : check_folder(options, stop);
}

}  // namespace

Command add_check_command(CLI::App& app) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command = app.add_subcommand("check",
                                         "May this draft stand in for this target, and does it "
                                         "fit? Reads metadata only and lists every "
                                         "difference");
  command->add_option("FOLDER", options->folder,
                      "Explain every GGUF file and snapshot directory in a folder");
  command->add_option("--target", options->target,
                      "Target: a known name, a GGUF file, a snapshot directory, or toy:SEED");
  command->add_option("--draft", options->draft, "Draft model, named likewise");
  command->add_option("--draft-model-artifact-sha256", options->draft_artifact_sha256,
                      "Refuse the draft unless its file or directory has this hash");
  command
      ->add_option("--max-context-tokens", options->max_context_tokens,
                   "Context to size for [by this host's memory, at most what the model was trained "
                   "for]")
      ->check(count_between(2, runtime::k_longest_context));
  command
      ->add_option("--num-draft-tokens,-n", options->num_draft_tokens, "Deepest round to size for")
      ->check(count_between(0, 64))
      ->capture_default_str();
  add_runtime_option(*command, options->runtime);
  add_memory_limit(*command, options->memory_limit);
  command->add_option("--format", options->format, "table or json [table]")
      ->check(CLI::IsMember({"table", "json"}));
  command->add_flag("--offline", options->offline, "Fetch nothing");
  return [options](std::stop_token stop) {
    const auto code = run(*options, stop);
    if (code) return *code;
    print_error(code.error());
    return exit_code(code.error());
  };
}

}  // namespace paceline::cli
