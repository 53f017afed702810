#include "bench/warnings.hpp"

#include <algorithm>
#include <format>
#include <optional>
#include <set>

namespace paceline::bench {

namespace {

using record::Warning;

constexpr double k_noisy_steal_share = 0.02;    // of the time of all cores
constexpr double k_noisy_foreign_share = 0.10;  // used by other processes
constexpr std::size_t k_short_prompt = 16;      // tokens
constexpr std::size_t k_quiet_samples = 3;      // without a draft, before it is worth a word

void add_build(const record::Record& record, std::vector<Warning>& warnings) {
  if (record.environment.build_type != "Debug" && record.environment.sanitizers.empty()) return;
  warnings.push_back({"debug_build",
                      std::format("this is a {} build{}{}", record.environment.build_type,
                                  record.environment.sanitizers.empty() ? "" : " with sanitizers ",
                                  record.environment.sanitizers),
                      "times of it say nothing; build the release preset"});
}

void add_threads(const record::Record& record, std::vector<Warning>& warnings) {
  const std::size_t cores = record.environment.host.cores_allowed;
  const std::size_t threads = record.environment.target_runtime.threads;
  if (record.environment.target_runtime.name == "toy" || threads == 0) return;
  if (threads == 1 && cores > 1) {
    warnings.push_back({"one_thread",
                        std::format("one thread is used, {} cores are allowed", cores),
                        std::format("--threads {} is the usual choice", cores)});
  } else if (threads > cores && cores > 0) {
    warnings.push_back({"too_many_threads",
                        std::format("{} threads share {} cores", threads, cores),
                        std::format("--threads {} is usually faster", cores)});
  }
}

/// The share of all cores' time between two readings, where both could be read.
std::optional<double> share(std::optional<double> before, std::optional<double> after,
                            double seconds, std::size_t cores) {
  if (!before || !after || seconds <= 0 || cores == 0) return std::nullopt;
  return (*after - *before) / (seconds * static_cast<double>(cores));
}

void add_noise(const record::Record& record, std::vector<Warning>& warnings) {
  if (!record.host_at_start || !record.host_at_end) return;
  const host::HostState& start = *record.host_at_start;
  const host::HostState& end = *record.host_at_end;
  const double seconds = end.at_unix_seconds - start.at_unix_seconds;
  const std::size_t cores = record.environment.host.cores;
  const auto stolen = share(start.steal_seconds, end.steal_seconds, seconds, cores);
  if (stolen && *stolen > k_noisy_steal_share) {
    warnings.push_back(
        {"noisy_host",
         std::format("the hypervisor took {:.1f} % of the processor's time", 100 * *stolen),
         "intervals are wider than they need be; repeat at a quieter time"});
  }
  const auto busy = share(start.busy_seconds, end.busy_seconds, seconds, cores);
  const auto own = share(start.own_cpu_seconds, end.own_cpu_seconds, seconds, cores);
  if (busy && own && *busy - *own > k_noisy_foreign_share) {
    warnings.push_back(
        {"busy_host",
         std::format("other programs used {:.0f} % of the processor's time", 100 * (*busy - *own)),
         "stop them, or expect wider intervals"});
  }
}

void add_governor(const record::Record& record, std::vector<Warning>& warnings) {
  if (record.environment.host.governor != "powersave") return;
  warnings.push_back(
      {"governor", "the frequency governor is powersave", "\"performance\" gives steadier times"});
}

void add_random_weights(const record::Record& record, std::vector<Warning>& warnings) {
  const auto is_random = [](const record::ModelEvidence& model) {
    return model.inflation && model.inflation->random;
  };
  const record::Environment& environment = record.environment;
  if (!is_random(environment.target) && std::ranges::none_of(environment.drafts, is_random)) return;
  warnings.push_back(
      {"random_weights",
       std::format("the {} has random weights", is_random(environment.target) ? "target" : "draft"),
       "its passes cost what they cost, but texts and what is accepted mean "
       "nothing; inflate without --random for those"});
}

void add_prompts(const record::Record& record, std::vector<Warning>& warnings) {
  std::set<std::string> short_ones;
  for (const record::Block& block : record.blocks) {
    for (const record::Sample& sample : block.samples) {
      if (sample.prompt_tokens < k_short_prompt) short_ones.insert(block.prompt);
    }
  }
  if (short_ones.empty()) return;
  warnings.push_back({"short_prompt",
                      std::format("{} prompts have fewer than {} tokens, for example \"{}\"",
                                  short_ones.size(), k_short_prompt, *short_ones.begin()),
                      "prompts of the length you really use give a truer answer"});
}

void add_warmup(const record::Record& record, std::vector<Warning>& warnings) {
  if (!record.warmup || record.warmup->first_arm_ms.empty()) return;
  const auto& runs = record.warmup->first_arm_ms;
  if (!record.warmup->stable) {
    warnings.push_back({"unstable_warmup",
                        std::format("after {} warm-up runs the times still varied by more than "
                                    "a tenth",
                                    runs.size()),
                        "the host is noisy; more prompts or runs narrow the interval"});
  }
}

void add_quiet_drafters(const record::Record& record, std::vector<Warning>& warnings) {
  for (const record::Arm& arm : record.plan.arms) {
    if (arm.num_draft_tokens == 0) continue;
    std::size_t samples = 0;
    std::uint64_t drafted = 0;
    for (const record::Block& block : record.blocks) {
      for (const record::Sample& sample : block.samples) {
        if (sample.arm != arm.id) continue;
        ++samples;
        for (const record::Round& round : sample.rounds) drafted += round.drafted;
      }
    }
    if (samples < k_quiet_samples || drafted > 0) continue;
    warnings.push_back(
        {"no_drafts", std::format("arm {} has drafted nothing in {} samples", arm.id, samples),
         arm.kind == record::ArmKind::lookup
             ? "nothing in these texts repeats; prompts that are edited or quoted suit lookup"
             : "is the draft's context long enough, its confidence threshold too high?"});
  }
}

void add_skipped(const record::Record& record, std::vector<Warning>& warnings) {
  const auto bad = [](const record::Block& b) { return b.status != record::CellStatus::ok; };
  const auto count = std::ranges::count_if(record.blocks, bad);
  if (count == 0) return;
  const auto first = std::ranges::find_if(record.blocks, bad);
  warnings.push_back(
      {"blocks_left_out",
       std::format("{} of {} blocks were not measured, the first, {} {}: {}", count,
                   record.blocks.size(), first->fixture, first->prompt, first->reason),
       "the record has the reason of each"});
}

}  // namespace

std::vector<Warning> find_warnings(const record::Record& record) {
  std::vector<Warning> warnings;
  add_build(record, warnings);
  add_threads(record, warnings);
  add_noise(record, warnings);
  add_governor(record, warnings);
  add_random_weights(record, warnings);
  add_prompts(record, warnings);
  add_warmup(record, warnings);
  add_quiet_drafters(record, warnings);
  add_skipped(record, warnings);
  return warnings;
}

}  // namespace paceline::bench
