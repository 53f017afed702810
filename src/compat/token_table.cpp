#include "compat/token_table.hpp"

#include <algorithm>
#include <array>
#include <format>
#include <utility>

#include "core/json.hpp"
#include "core/text.hpp"

namespace paceline::compat {

namespace {

constexpr std::uint64_t k_most_hole = 4096;  // ids without tokens in a tokenizer.json

// "[PAD12]", as converters name the rows that no token fills.
bool is_padding_name(std::string_view text) {
  constexpr std::string_view k_begin = "[PAD";
  if (!text.starts_with(k_begin) || !text.ends_with(']')) return false;
  const std::string_view digits = text.substr(k_begin.size(), text.size() - k_begin.size() - 1);
  return !digits.empty() &&
         std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
}

constexpr std::string_view k_prefix = "tokenizer.ggml.";

constexpr std::array<std::string_view, 14> k_special_ids = {
    "bos", "eos",  "eot",     "eom",     "unknown", "seperator", "padding",
    "cls", "mask", "fim_pre", "fim_suf", "fim_mid", "prefix",    "suffix"};

constexpr std::array<std::string_view, 6> k_flags = {"add_bos_token",
                                                     "add_eos_token",
                                                     "add_sep_token",
                                                     "add_space_prefix",
                                                     "remove_extra_whitespaces",
                                                     "escape_whitespaces"};

struct Entry {
  std::uint64_t id = 0;
  std::string text;
};

/// One text per id; later entries win, holes become "[PADn]".
Result<std::vector<std::string>> fill(std::vector<Entry> entries, std::string_view what) {
  std::vector<std::string> texts;
  const std::uint64_t limit = 2 * entries.size() + k_most_hole;
  std::vector<bool> filled;
  for (Entry& entry : entries) {
    if (entry.id >= limit) {
      return fail(ErrorCode::bad_format, std::format("{}: token id {} with {} tokens in all", what,
                                                     entry.id, entries.size()));
    }
    if (entry.id >= texts.size()) {
      texts.resize(entry.id + 1);
      filled.resize(entry.id + 1, false);
    }
    texts[entry.id] = std::move(entry.text);
    filled[entry.id] = true;
  }
  for (std::size_t id = 0; id < texts.size(); ++id) {
    if (!filled[id]) texts[id] = std::format("[PAD{}]", id);
  }
  return texts;
}

Result<void> put_vocabulary(std::vector<Entry>& entries, const Json& model, std::string_view what) {
  const auto vocab = model.find("vocab");
  if (vocab == model.end() || (!vocab->is_object() && !vocab->is_array())) {
    return fail(ErrorCode::unsupported,
                std::format("{}: model.vocab is neither an object nor a list", what));
  }
  if (vocab->is_object()) {
    for (const auto& [text, id] : vocab->items()) {
      if (!id.is_number_unsigned()) {
        return fail(ErrorCode::bad_format,
                    std::format("{}: token \"{}\" has the id {}", what, escape(text, 40),
                                escape(dump_json(id), 40)));
      }
      entries.push_back({id.get<std::uint64_t>(), text});
    }
    return {};
  }
  std::uint64_t next = 0;
  for (const Json& entry : *vocab) {
    if (!entry.is_array() || entry.empty() || !entry.front().is_string()) {
      return fail(
          ErrorCode::bad_format,
          std::format("{}: entry {} of model.vocab is no pair of text and score", what, next));
    }
    entries.push_back({next++, entry.front().get<std::string>()});
  }
  return {};
}

Result<void> put_added_tokens(std::vector<Entry>& entries, const Json& tokenizer,
                              std::string_view what) {
  const auto added = tokenizer.find("added_tokens");
  if (added == tokenizer.end() || added->is_null()) return {};
  if (!added->is_array()) {
    return fail(ErrorCode::bad_format, std::format("{}: added_tokens is no list", what));
  }
  for (const Json& token : *added) {
    PACELINE_TRY(const auto id, read<std::uint64_t>(token, "id", "added_tokens"));
    PACELINE_TRY(auto text, read<std::string>(token, "content", "added_tokens"));
    entries.push_back({id, std::move(text)});
  }
  return {};
}

}  // namespace

bool TokenTable::is_padding(std::size_t id) const {
  if (id >= texts.size()) return false;
  if (spelling == Spelling::pieces && texts[id].empty()) return true;
  if (id < kinds.size() && kinds[id] == Kind::unused) return true;
  return is_padding_name(texts[id]);
}

Result<TokenTable> token_table(const runtime::GgufHeader& header) {
  TokenTable table;
  const auto key = [](std::string_view name) { return std::format("{}{}", k_prefix, name); };
  table.storage = header.bytes();
  table.tokenizer = header.string(key("model")).value_or("");
  table.pre_tokenizer = header.string(key("pre")).value_or("");
  table.texts = header.strings(key("tokens"));
  if (table.texts.empty()) {
    return fail(ErrorCode::bad_format,
                "the file has no tokens (tokenizer.ggml.tokens); convert it with a tokenizer");
  }
  table.scores = header.floats(key("scores"));
  table.merges = header.strings(key("merges"));
  for (const std::int64_t kind : header.integers(key("token_type"))) {
    table.kinds.push_back(static_cast<std::int32_t>(kind));
  }
  const auto fits = [&](std::size_t count) { return count == 0 || count == table.size(); };
  if (!fits(table.scores.size()) || !fits(table.kinds.size())) {
    return fail(ErrorCode::bad_format,
                std::format("the file has {} tokens, but {} scores and {} token types",
                            table.size(), table.scores.size(), table.kinds.size()));
  }
  for (const std::string_view name : k_special_ids) {
    if (const auto id = header.integer(key(std::format("{}_token_id", name)))) {
      table.special_ids.emplace(name, *id);
    }
  }
  for (const std::string_view name : k_flags) {
    if (const auto flag = header.boolean(key(name))) table.flags.emplace(name, *flag);
  }
  return table;
}

TokenTable token_table(const runtime::Vocabulary& vocabulary) {
  TokenTable table;
  table.spelling = TokenTable::Spelling::pieces;
  auto pieces = std::make_shared<std::vector<std::string>>();
  pieces->reserve(vocabulary.size());
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    pieces->push_back(vocabulary.piece(to_token(id), true));
  }
  table.texts.assign(pieces->begin(), pieces->end());
  table.storage = std::move(pieces);
  return table;
}

Result<TokenTable> token_table_of_tokenizer_json(std::string_view text, std::string_view what) {
  PACELINE_TRY(const Json tokenizer, parse_json(text, what));
  if (!tokenizer.is_object() || !tokenizer.contains("model") || !tokenizer["model"].is_object()) {
    return fail(ErrorCode::bad_format, std::format("{}: there is no object \"model\"", what));
  }
  std::vector<Entry> entries;
  PACELINE_TRY_VOID(put_vocabulary(entries, tokenizer["model"], what));
  PACELINE_TRY_VOID(put_added_tokens(entries, tokenizer, what));
  if (entries.empty()) {
    return fail(ErrorCode::bad_format, std::format("{}: the vocabulary is empty", what));
  }
  PACELINE_TRY(auto filled, fill(std::move(entries), what));
  TokenTable table;
  auto texts = std::make_shared<std::vector<std::string>>(std::move(filled));
  table.texts.assign(texts->begin(), texts->end());
  table.storage = std::move(texts);
  return table;
}

}  // namespace paceline::compat
