// What a verdict depends on, as a list of named parts: the key is its hash and the differences are
// its unequal entries, so the two cannot disagree.
#include <algorithm>
#include <array>
#include <format>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/hash.hpp"
#include "core/json.hpp"
#include "core/text.hpp"
#include "record/record.hpp"

namespace paceline::record {

namespace {

using Parts = std::vector<std::pair<std::string, std::string>>;  // name, value

std::string or_none(const std::string& text) { return text.empty() ? "none" : text; }

/// A model is its file's contents; one without a file (toy) is its name.
void add_model(Parts& parts, const std::string& role, const ModelEvidence& model) {
  parts.emplace_back(role, model.sha256 ? "sha256 " + *model.sha256 : model.name);
  parts.emplace_back(role + " chat template", or_none(model.chat_template_sha256));
  parts.emplace_back(role + " chat renderer", or_none(model.chat_renderer));
}

void add_runtime(Parts& parts, const std::string& role, const RuntimeEvidence& runtime) {
  parts.emplace_back(role, runtime.name);
  parts.emplace_back(role + " build", runtime.build);
  parts.emplace_back(role + " backend", runtime.backend);
  parts.emplace_back(role + " threads", std::format("{}", runtime.threads));
  parts.emplace_back(role + " context", std::format("{}", runtime.context));
  parts.emplace_back(role + " KV types",
                     std::format("{} and {}", runtime.kv_type_k, runtime.kv_type_v));
  parts.emplace_back(role + " flash attention", runtime.flash_attention);
}

void add_host(Parts& parts, const host::HostInfo& host) {
  parts.emplace_back("machine", host.machine);
  parts.emplace_back("processor", host.cpu_model);
  parts.emplace_back("instruction sets", join(host.instruction_sets, " "));
  parts.emplace_back("cores allowed", std::format("{}", host.cores_allowed));
  parts.emplace_back(
      "memory", host.memory_gib() == 0 ? "not readable" : std::format("{} GiB", host.memory_gib()));
  parts.emplace_back("memory limit", host.memory_limit_bytes
                                         ? std::format("{} bytes", *host.memory_limit_bytes)
                                         : "none");
  parts.emplace_back("processor quota",
                     host.cpu_quota ? std::format("{} cores", *host.cpu_quota) : "none");
}

/// The packages that compute. The others only build or look.
bool package_matters(std::string_view name) {
  constexpr std::array<std::string_view, 3> k_prefixes{"libllama", "libggml", "llama.cpp"};
  return std::ranges::any_of(k_prefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

Parts key_parts(const Environment& environment) {
  Parts parts;
  parts.emplace_back("paceline", environment.paceline_version);
  parts.emplace_back("build type", environment.build_type);
  parts.emplace_back("compiler", environment.compiler);
  parts.emplace_back("sanitizers", or_none(environment.sanitizers));
  add_host(parts, environment.host);
  add_model(parts, "target", environment.target);
  add_runtime(parts, "target runtime", environment.target_runtime);
  for (std::size_t i = 0; i < environment.drafts.size(); ++i) {
    add_model(parts, std::format("draft {}", i + 1), environment.drafts[i]);
  }
  for (std::size_t i = 0; i < environment.draft_runtimes.size(); ++i) {
    add_runtime(parts, std::format("draft runtime {}", i + 1), environment.draft_runtimes[i]);
  }
  for (const auto& [name, version] : environment.packages) {
    if (package_matters(name)) parts.emplace_back("package " + name, version);
  }
  return parts;
}

std::optional<std::string> value_in(const Parts& parts, const std::string& name) {
  const auto found = std::ranges::find(parts, name, &Parts::value_type::first);
  if (found == parts.end()) return std::nullopt;
  return found->second;
}

}  // namespace

std::string Environment::key() const {
  Json list = Json::array();
  for (const auto& [name, value] : key_parts(*this)) list.push_back({name, value});
  return sha256_hex(dump_json(list));
}

std::vector<std::string> environment_differences(const Environment& a, const Environment& b) {
  const Parts parts_a = key_parts(a);
  const Parts parts_b = key_parts(b);
  std::vector<std::string> differences;
  const auto report = [&](const std::string& name) {
    const auto before = value_in(parts_a, name);
    const auto after = value_in(parts_b, name);
    if (before == after) return;
    differences.push_back(to_valid_utf8(
        std::format("{}: {} -> {}", name, before.value_or("absent"), after.value_or("absent"))));
  };
  for (const auto& [name, value] : parts_a) report(name);
  for (const auto& [name, value] : parts_b) {
    if (!value_in(parts_a, name)) report(name);
  }
  return differences;
}

}  // namespace paceline::record
