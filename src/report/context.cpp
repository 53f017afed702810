// Who was measured, where and with what: the lines above the table.
#include <algorithm>
#include <format>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text.hpp"
#include "report/figures_impl.hpp"
#include "report/outline_impl.hpp"
#include "report/text_impl.hpp"

namespace paceline::report {

namespace {

constexpr std::string_view k_not_readable = "not readable";

/// "a, b, c" without empty parts.
std::string listed(const std::vector<std::string>& parts) {
  std::vector<std::string> filled;
  std::ranges::copy_if(parts, std::back_inserter(filled),
                       [](const std::string& part) { return !part.empty(); });
  return printable(join(filled, ", "));
}

/// "SmolLM2 135M inflated to 7b, noise 0.1".
std::string inflation_text(const record::Inflation& inflation) {
  if (inflation.random) return std::format("random weights in {} shape", inflation.shape);
  return std::format("{} inflated to {}{}", inflation.source, inflation.shape,
                     inflation.noise > 0 ? std::format(", noise {}", inflation.noise) : "");
}

std::string model_text(const record::ModelEvidence& model) {
  return listed({model.name, model.architecture, model.file_type == "none" ? "" : model.file_type,
                 model.bytes ? bytes_text(*model.bytes) : "",
                 model.inflation ? inflation_text(*model.inflation) : ""});
}

std::string runtime_text(const record::RuntimeEvidence& runtime) {
  if (runtime.name.empty()) return {};
  return listed({listed({runtime.name}) + (runtime.build.empty() ? "" : " " + runtime.build),
                 runtime.backend.empty() ? "" : "on " + runtime.backend,
                 counted(runtime.threads, "thread"), std::format("context {}", runtime.context),
                 runtime.kv_type_k.empty()
                     ? ""
                     : std::format("KV {}/{}", runtime.kv_type_k, runtime.kv_type_v)});
}

std::string host_text(const host::HostInfo& host) {
  if (host.cores == 0) return {};
  return listed({host.cpu_model,
                 host.cores_allowed == host.cores
                     ? counted(host.cores, "core")
                     : std::format("{} of {}", host.cores_allowed, counted(host.cores, "core")),
                 host.cpu_quota ? std::format("quota {:.2g} cores", *host.cpu_quota) : "",
                 host.memory_bytes ? std::format("{} GiB", host.memory_gib())
                                   : std::format("memory {}", k_not_readable),
                 host.memory_limit_bytes ? "limit " + bytes_text(*host.memory_limit_bytes) : "",
                 host.system});
}

/// "0.25 to 2.00", once where it did not change. Absent where both readings are.
std::optional<std::string> change(std::optional<double> before, std::optional<double> after,
                                  std::string_view unit) {
  if (!before && !after) return std::nullopt;
  const std::string first = amount_text(before);
  const std::string last = amount_text(after);
  return first == last ? first + std::string(unit) : std::format("{} to {}{}", first, last, unit);
}

/// The share of all cores' time that was stolen between two readings.
std::optional<std::string> stolen_text(const host::HostState& start, const host::HostState& end,
                                       std::size_t cores) {
  const double seconds = end.at_unix_seconds - start.at_unix_seconds;
  if (!start.steal_seconds || !end.steal_seconds || !(seconds > 0) || cores == 0) return {};
  const double stolen = *end.steal_seconds - *start.steal_seconds;
  if (!(stolen >= 0)) return {};
  return percent_text(stolen / (seconds * static_cast<double>(cores)));
}

/// The noise that was seen between start and end.
std::string noise_text(const record::Record& record) {
  if (!record.host_at_start || !record.host_at_end) return {};
  const host::HostState& start = *record.host_at_start;
  const host::HostState& end = *record.host_at_end;
  std::vector<std::string> parts;
  std::vector<std::string> unread;
  const auto add = [&](std::string name, const std::optional<std::string>& value) {
    if (value) {
      parts.push_back(name + " " + *value);
    } else {
      unread.push_back(std::move(name));
    }
  };
  add("load", change(start.load_1min, end.load_1min, ""));
  add("stolen time", stolen_text(start, end, record.environment.host.cores));
  add("frequency", change(start.frequency_mhz, end.frequency_mhz, " MHz"));
  add("temperature", change(start.temperature_celsius, end.temperature_celsius, " C"));
  if (!unread.empty()) parts.push_back(std::format("{}: {}", k_not_readable, join(unread, ", ")));
  return printable(join(parts, "; "));
}

std::string work_text(const record::Record& record) {
  std::size_t prompts = 0;
  std::size_t repetitions = 1;
  std::size_t longest = 0;
  std::set<std::string> classes;
  for (const record::FixtureEvidence& fixture : record.plan.fixtures) {
    prompts += fixture.prompts;
    repetitions = std::max(repetitions, fixture.repetitions);
    longest = std::max(longest, fixture.max_tokens);
    classes.insert(fixture.content_class);
  }
  const record::Sampling& sampling = record.plan.sampling;
  return listed(
      {counted(prompts, "prompt"),
       classes.size() == 1 ? "class " + *classes.begin()
                           : std::format("{} classes", classes.size()),
       repetitions > 1 ? std::format("{} pairs each", repetitions) : "",
       longest > 0 ? std::format("up to {}", counted(longest, "token")) : "",
       sampling.temperature == 0 ? "greedy" : std::format("temperature {}", sampling.temperature),
       record.plan.quick ? "quick" : ""});
}

std::string progress_text(const record::Record& record) {
  const auto done =
      std::ranges::count(record.blocks, record::CellStatus::ok, &record::Block::status);
  std::size_t planned = 0;
  for (const record::FixtureEvidence& fixture : record.plan.fixtures) {
    planned += fixture.prompts * fixture.repetitions;
  }
  return printable(std::format(
      "{} of {} measured{}{}", done, counted(std::max(planned, record.blocks.size()), "block"),
      record.incomplete_reason.empty() ? "" : ": ", record.incomplete_reason));
}

}  // namespace

std::vector<Finding> context_of(const record::Record& record) {
  std::vector<Finding> lines;
  const auto add = [&](std::string label, std::string text, Tone tone = Tone::neutral) {
    if (!text.empty()) lines.push_back({std::move(label), std::move(text), tone});
  };
  const record::Environment& environment = record.environment;
  add("target", model_text(environment.target));
  for (const record::ModelEvidence& draft : environment.drafts) add("draft", model_text(draft));
  add("runtime", runtime_text(environment.target_runtime));
  add("host", host_text(environment.host));
  add("noise", noise_text(record));
  add("work", work_text(record));
  if (environment.build_type == "Debug" || !environment.sanitizers.empty()) {
    add("build", listed({environment.build_type, environment.sanitizers}), Tone::bad);
  }
  if (!record.complete) add("incomplete", progress_text(record), Tone::unsure);
  return lines;
}

}  // namespace paceline::report
