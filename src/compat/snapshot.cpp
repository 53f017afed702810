#include "compat/snapshot.hpp"

#include <algorithm>
#include <array>
#include <format>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "core/file.hpp"
#include "core/hash.hpp"
#include "core/json.hpp"
#include "core/text.hpp"

namespace paceline::compat {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view k_config = "tokenizer_config.json";
constexpr std::string_view k_fast = "tokenizer.json";
constexpr std::size_t k_most_bytes = std::size_t{256} << 20;

// The order is part of the fingerprint.
constexpr std::array<std::string_view, 4> k_fast_files = {
    k_fast, k_config, "special_tokens_map.json", "added_tokens.json"};
constexpr std::array<std::string_view, 6> k_slow_files = {
    k_config,     "special_tokens_map.json", "tokenizer.model", "vocab.json",
    "merges.txt", "added_tokens.json"};

// Keys of config.json that only models with recurrent layers have.
constexpr std::array<std::string_view, 9> k_recurrent_keys = {"ssm_state_size",
                                                              "mamba_d_state",
                                                              "d_conv",
                                                              "linear_conv_kernel_dim",
                                                              "ssm_cfg",
                                                              "conv_L_cache",
                                                              "mamba_num_heads",
                                                              "linear_attn_config",
                                                              "attention_hidden_size"};

std::span<const std::string_view> files_of(TokenizerLayout layout) {
  if (layout == TokenizerLayout::fast) return k_fast_files;
  return k_slow_files;
}

bool is_file(const fs::path& path) {
  std::error_code code;
  return fs::is_regular_file(path, code);
}

/// The bytes that count for the fingerprint.
Result<std::string> content(const fs::path& folder, std::string_view name) {
  const fs::path path = folder / name;
  PACELINE_TRY(std::string text, read_file(path, k_most_bytes));
  if (name != k_config) return text;
  auto normalised = normalised_tokenizer_config(text);
  if (!normalised) return normalised.error().in(std::format("\"{}\"", path.string()));
  return normalised;
}

const FingerprintFile* find(const Fingerprint& fingerprint, std::string_view name) {
  const auto found = std::ranges::find(fingerprint.files, name, &FingerprintFile::name);
  return found == fingerprint.files.end() ? nullptr : &*found;
}

/// The keys whose values differ, or what else keeps two JSON texts apart.
std::string json_difference(const std::string& target, const std::string& draft) {
  const auto ours = parse_json(target, "target");
  const auto theirs = parse_json(draft, "draft");
  if (!ours || !theirs) return "the bytes differ";
  if (*ours == *theirs) {
    return "only spaces, order or spelling of the JSON differ; the policy compares bytes";
  }
  if (!ours->is_object() || !theirs->is_object()) return "the contents differ";
  std::set<std::string> keys;
  for (const auto& [key, value] : ours->items()) keys.insert(key);
  for (const auto& [key, value] : theirs->items()) keys.insert(key);
  std::vector<std::string> parts;
  for (const std::string& key : keys) {
    const auto shown = [&](const Json& side) {
      return side.contains(key) ? escape(dump_json(side[key]), 60) : std::string("absent");
    };
    if (ours->contains(key) && theirs->contains(key) && (*ours)[key] == (*theirs)[key]) continue;
    parts.push_back(std::format("\"{}\" is {} in the target and {} in the draft", escape(key, 40),
                                shown(*ours), shown(*theirs)));
  }
  return join(parts, "; ");
}

std::string explain(const fs::path& target_folder, const fs::path& draft_folder,
                    const std::string& name, const FingerprintFile* target,
                    const FingerprintFile* draft) {
  if (target == nullptr || draft == nullptr) {
    return std::format("{} counts in the {} only", name, target == nullptr ? "draft" : "target");
  }
  if (!name.ends_with(".json")) {
    return std::format("{} differs: {} and {} bytes", name, target->size, draft->size);
  }
  const auto ours = content(target_folder, name);
  const auto theirs = content(draft_folder, name);
  if (!ours || !theirs) return std::format("{} differs", name);
  return std::format("{} differs: {}", name, json_difference(*ours, *theirs));
}

std::size_t number(const Json& config, std::string_view key) {
  const auto found = config.find(key);
  if (found == config.end() || !found->is_number_unsigned()) return 0;
  return found->get<std::size_t>();
}

bool has_recurrent_layers(const Json& config) {
  for (const std::string_view key : k_recurrent_keys) {
    if (config.contains(key)) return true;
  }
  const auto types = config.find("layer_types");
  if (types == config.end() || !types->is_array()) return false;
  return std::ranges::any_of(*types, [](const Json& type) {
    if (!type.is_string()) return false;
    const auto& word = type.get_ref<const std::string&>();
    return word.find("linear") != std::string::npos || word.find("mamba") != std::string::npos ||
           word.find("conv") != std::string::npos || word.find("recurrent") != std::string::npos;
  });
}

std::string read_chat_template(const fs::path& folder) {
  if (const auto text = read_file(folder / "chat_template.jinja", k_most_bytes)) return *text;
  const auto text = read_file(folder / k_config, k_most_bytes);
  if (!text) return {};
  const auto config = parse_json(*text, k_config);
  if (!config || !config->is_object() || !config->contains("chat_template")) return {};
  const Json& source = (*config)["chat_template"];
  return source.is_string() ? source.get<std::string>() : dump_json(source);
}

}  // namespace

std::string_view to_string(TokenizerLayout layout) {
  return layout == TokenizerLayout::fast ? "fast" : "slow";
}

Result<std::string> normalised_tokenizer_config(std::string_view text) {
  PACELINE_TRY(Json config, parse_json(text, k_config));
  if (!config.is_object()) return std::string(text);
  config.erase("chat_template");
  return dump_json(config);  // compact, keys sorted, slashes as they are
}

Result<Fingerprint> tokenizer_fingerprint(const fs::path& folder) {
  Fingerprint fingerprint;
  if (is_file(folder / k_fast)) fingerprint.layout = TokenizerLayout::fast;
  Json list = Json::array();
  for (const std::string_view name : files_of(fingerprint.layout)) {
    if (!is_file(folder / name)) continue;
    PACELINE_TRY(const std::string bytes, content(folder, name));
    fingerprint.files.push_back({std::string(name), sha256_hex(bytes), bytes.size()});
    const FingerprintFile& file = fingerprint.files.back();
    list.push_back({{"name", file.name}, {"sha256", file.sha256}, {"size", file.size}});
  }
  if (!fingerprint.files.empty()) {
    fingerprint.sha256 = sha256_hex(dump_json(Json{{"files", std::move(list)}}));
  }
  return fingerprint;
}

std::vector<std::string> explain_mismatch(const fs::path& target_folder, const Fingerprint& target,
                                          const fs::path& draft_folder, const Fingerprint& draft) {
  std::vector<std::string> reasons;
  for (const auto& [fingerprint, role] :
       {std::pair(&target, "target"), std::pair(&draft, "draft")}) {
    if (!fingerprint->sha256) {
      reasons.push_back(std::format("the {} has no tokenizer file, which matches nothing", role));
    }
  }
  if (target.layout != draft.layout) {
    reasons.push_back(
        std::format("the target has the {} layout and the draft the {} one; only the "
                    "fast one counts tokenizer.json, so they never match",
                    to_string(target.layout), to_string(draft.layout)));
  }
  std::vector<std::string> names;
  for (const Fingerprint* fingerprint : {&target, &draft}) {
    for (const FingerprintFile& file : fingerprint->files) {
      if (std::ranges::find(names, file.name) == names.end()) names.push_back(file.name);
    }
  }
  for (const std::string& name : names) {
    const FingerprintFile* ours = find(target, name);
    const FingerprintFile* theirs = find(draft, name);
    if (ours != nullptr && theirs != nullptr && ours->sha256 == theirs->sha256) continue;
    reasons.push_back(explain(target_folder, draft_folder, name, ours, theirs));
  }
  return reasons;
}

Result<SnapshotFacts> snapshot_facts(std::string_view config_json) {
  PACELINE_TRY(const Json whole, parse_json(config_json, "config.json"));
  if (!whole.is_object()) {
    return fail(ErrorCode::bad_format,
                std::format("config.json: an object is wanted, found {}", whole.type_name()));
  }
  const auto inner = whole.find("text_config");
  const Json& config = inner != whole.end() && inner->is_object() ? *inner : whole;
  SnapshotFacts facts;
  if (const auto type = whole.find("model_type"); type != whole.end() && type->is_string()) {
    facts.architecture = type->get<std::string>();
  }
  facts.layers = number(config, "num_hidden_layers");
  facts.hidden = number(config, "hidden_size");
  facts.vocabulary = number(config, "vocab_size");
  facts.trained_context = number(config, "max_position_embeddings");
  facts.sliding_window = number(config, "sliding_window");
  const auto use = config.find("use_sliding_window");
  if (use != config.end() && *use == false) facts.sliding_window = 0;
  facts.recurrent = has_recurrent_layers(config);
  return facts;
}

Result<SnapshotFacts> read_snapshot_facts(const fs::path& folder) {
  SnapshotFacts facts;
  if (is_file(folder / "config.json")) {
    PACELINE_TRY(const std::string text, read_file(folder / "config.json", k_most_bytes));
    auto read = snapshot_facts(text);
    if (!read) return read.error().in(std::format("\"{}\"", folder.string()));
    facts = *std::move(read);
  }
  facts.chat_template = read_chat_template(folder);
  std::error_code code;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, code)) {
    if (entry.path().extension() != ".safetensors") continue;
    const auto bytes = fs::file_size(entry.path(), code);
    if (!code) facts.weight_bytes += bytes;
  }
  return facts;
}

Result<TokenTable> read_snapshot_tokens(const fs::path& folder) {
  if (is_file(folder / k_fast)) {
    PACELINE_TRY(const std::string text, read_file(folder / k_fast, k_most_bytes));
    return token_table_of_tokenizer_json(text, (folder / k_fast).string());
  }
  if (!is_file(folder / "vocab.json")) {
    return fail(
        ErrorCode::unsupported,
        std::format("\"{}\" has neither tokenizer.json nor vocab.json, so its tokens cannot "
                    "be listed; save its tokenizer as tokenizer.json",
                    folder.string()));
  }
  const std::string what = (folder / "vocab.json").string();
  PACELINE_TRY(const std::string text, read_file(folder / "vocab.json", k_most_bytes));
  PACELINE_TRY(Json vocabulary, parse_json(text, what));
  Json added = Json::array();
  if (is_file(folder / "added_tokens.json")) {
    PACELINE_TRY(const std::string more, read_file(folder / "added_tokens.json", k_most_bytes));
    PACELINE_TRY(const Json tokens, parse_json(more, (folder / "added_tokens.json").string()));
    for (const auto& [name, id] : tokens.items()) added.push_back({{"content", name}, {"id", id}});
  }
  // The same shape as a tokenizer.json has, so that there is one reading.
  const Json tokenizer = {{"model", {{"vocab", std::move(vocabulary)}}},
                          {"added_tokens", std::move(added)}};
  return token_table_of_tokenizer_json(dump_json(tokenizer), what);
}

bool is_snapshot(const fs::path& folder) {
  for (const std::string_view name :
       {std::string_view("config.json"), k_fast, k_config, std::string_view("tokenizer.model")}) {
    if (is_file(folder / name)) return true;
  }
  return false;
}

}  // namespace paceline::compat
