#include <algorithm>

#include "compat/check_text.hpp"
#include "core/hash.hpp"
#include "core/json.hpp"
#include "embedded_check.hpp"

namespace paceline::compat {

namespace {

constexpr int k_schema_version = 1;

template <typename T>
Json known(T value) {
  return value == T{} ? Json(nullptr) : Json(value);
}

Json to_json(const Fingerprint& fingerprint) {
  Json files = Json::array();
  for (const FingerprintFile& file : fingerprint.files) {
    files.push_back({{"name", file.name}, {"sha256", file.sha256}, {"size", file.size}});
  }
  return {{"layout", to_string(fingerprint.layout)},
          {"sha256", fingerprint.sha256 ? Json(*fingerprint.sha256) : Json(nullptr)},
          {"files", std::move(files)}};
}

Json to_json(const Candidate& c) {
  Json files = Json::array();
  for (const auto& file : c.files) files.push_back(file.string());
  return {{"kind", to_string(c.kind)},
          {"name", c.name},
          {"path", c.path.empty() ? Json(nullptr) : Json(c.path.string())},
          {"files", std::move(files)},
          {"architecture", known(c.architecture)},
          {"weight_bytes", known(c.bytes)},
          {"parameters", known(c.parameters)},
          {"layers", known(c.layers)},
          {"hidden", known(c.hidden)},
          {"key_value_heads", known(c.key_value_heads)},
          {"key_width", known(c.key_width)},
          {"value_width", known(c.value_width)},
          {"kv_type_k", known(c.kv_type_k)},
          {"kv_type_v", known(c.kv_type_v)},
          {"trained_context", known(c.trained_context)},
          {"sliding_window", known(c.sliding_window)},
          {"vocabulary", known(c.vocabulary)},
          {"recurrent", c.recurrent},
          {"chat_template_sha256",
           c.chat_template.empty() ? Json(nullptr) : Json(sha256_hex(c.chat_template))},
          {"fingerprint", c.fingerprint ? to_json(*c.fingerprint) : Json(nullptr)}};
}

Json to_json(const Difference& d) {
  Json token = nullptr;
  if (d.token) {
    token = {{"id", d.token->id},
             {"target_text", d.token->target_text},
             {"draft_text", d.token->draft_text}};
  }
  return {{"component", d.component},  {"severity", to_string(d.severity)},
          {"code", known(d.word)},     {"message", d.message},
          {"advice", known(d.advice)}, {"first_token", std::move(token)},
          {"count", known(d.count)}};
}

Json to_json(const std::vector<Difference>& differences) {
  Json list = Json::array();
  for (const Difference& difference : differences) list.push_back(to_json(difference));
  return list;
}

Json code_of(const std::vector<Difference>& differences) {
  const Difference* hard = first_hard(differences);
  return hard == nullptr ? Json(nullptr) : Json(hard->word);
}

Json known(const std::optional<std::uint64_t>& bytes) {
  return bytes ? Json(*bytes) : Json(nullptr);
}

Json to_json(const ModelNeed& need) {
  Json devices = Json::array();
  for (const runtime::MemoryNeed& device : need.devices) {
    devices.push_back({{"device", device.device},
                       {"weights_bytes", device.weights},
                       {"kv_bytes", device.kv},
                       {"compute_bytes", device.compute},
                       {"results_bytes", device.results},
                       {"droppable_bytes", device.droppable}});
  }
  return {{"role", need.role},
          {"model", need.model},
          {"context", need.context},
          {"devices", std::move(devices)}};
}

Json to_json(const MemoryCheck& memory) {
  if (!memory.error.empty()) return {{"fit", nullptr}, {"error", memory.error}};
  Json models = Json::array();
  for (const ModelNeed& need : memory.models) models.push_back(to_json(need));
  Json devices = Json::array();
  for (const DeviceFit& device : memory.report.devices) {
    devices.push_back({{"device", device.device},
                       {"free_bytes", known(device.free)},
                       {"usable_bytes", known(device.usable)},
                       {"plain_bytes", device.plain},
                       {"pair_bytes", device.pair}});
  }
  return {{"fit", to_string(memory.report.fit)},
          {"sentence", memory.report.sentence},
          {"free_source", memory.free.source},
          {"headroom", k_headroom},
          {"program_bytes", memory.free.program_bytes},
          {"peak_resident_bytes", memory.report.peak_resident},
          {"largest_context", memory.largest_context},
          {"largest_plain_context", memory.largest_plain_context},
          {"models", std::move(models)},
          {"devices", std::move(devices)}};
}

Json result_of(bool usable) { return usable ? "usable" : "not_usable"; }

}  // namespace

Json to_json(const PairCheck& check) {
  Json probe = nullptr;
  if (check.draft) {
    probe = {{"run", check.target.probe.has_value() && check.draft->probe.has_value()},
             {"texts", probe_texts().size()}};
  }
  return {{"schema_version", k_schema_version},
          {"kind", "pair"},
          {"result", result_of(check.usable())},
          {"code", code_of(check.differences)},
          {"target", to_json(check.target)},
          {"draft", check.draft ? to_json(*check.draft) : Json(nullptr)},
          {"differences", to_json(check.differences)},
          {"probe", std::move(probe)},
          {"draft_artifact_sha256",
           check.draft_artifact_sha256 ? Json(*check.draft_artifact_sha256) : Json(nullptr)},
          {"memory", check.memory ? to_json(*check.memory) : Json(nullptr)}};
}

Json to_json(const FolderCheck& check) {
  Json candidates = Json::array();
  for (const FolderEntry& entry : check.entries) {
    const auto alone =
        entry.candidate ? check_alone(*entry.candidate, false) : std::vector<Difference>{};
    candidates.push_back(
        {{"name", entry.name},
         {"error", known(entry.error)},
         {"may_be_target", entry.candidate && first_hard(alone) == nullptr},
         {"differences", to_json(alone)},
         {"candidate", entry.candidate ? to_json(*entry.candidate) : Json(nullptr)}});
  }
  Json pairs = Json::array();
  for (const FolderPair& pair : check.pairs) {
    pairs.push_back(
        {{"target", check.entries[pair.target].name},
         {"draft", check.entries[pair.draft].name},
         {"result", pair.draft_is_larger ? Json("draft_is_larger") : result_of(pair.usable())},
         {"code", code_of(pair.differences)},
         {"differences", to_json(pair.differences)}});
  }
  return {{"schema_version", k_schema_version},
          {"kind", "folder"},
          {"folder", check.folder},
          {"candidates", std::move(candidates)},
          {"pairs", std::move(pairs)}};
}

std::string_view check_schema() { return embedded::embedded_check().front().contents; }

}  // namespace paceline::compat
