#include "compat/probe.hpp"

#include <array>
#include <format>
#include <utility>

#include "core/json.hpp"

namespace paceline::compat {

namespace {

constexpr std::array<ProbeText, 18> k_texts = {{
    {"empty", ""},
    {"greeting", "hello"},
    {"prose", "The quick brown fox jumps over the lazy dog; it didn't look back."},
    {"request", "Write a Swift function that gives the larger of two numbers."},
    {"end-of-text", "<|endoftext|>"},
    {"json", R"({"role": "user", "content": "a\nb"})"},
    {"code",
     "def f(x):\n    if x <= 0:\n\treturn -x  # \u00b1\n    return {'k': [1, 2.50, 0xFF]}\n"},
    {"crlf", "one\r\ntwo\r\n\r\nthree\rfour\n"},
    {"digits", "3141592653589793238462643383279502884197 1,000,000.00 2024-02-29T23:59:60Z"},
    {"emoji", "\U0001F600 \U0001F468\u200D\U0001F469\u200D\U0001F467 \U0001F3F3\uFE0F"},
    {"cjk", "\u65e5\u672c\u8a9e\u306e\u6587\u7ae0\u3002 \u4e2d\u6587\uff0c\ud55c\uad6d\uc5b4"},
    {"scripts",
     "na\u00efve \u0417\u0434\u0440\u0430\u0432\u0441\u0442\u0432\u0443\u0439 "
     "\u0645\u0631\u062d\u0628\u0627 \u0928\u092e\u0938\u094d\u0924\u0947 e\u0301"},
    {"turns", "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"},
    {"markers", "<s>[INST] x [/INST]</s><start_of_turn>model\n<|eot_id|><0x0A><unk>[PAD7]"},
    {"spaces", "  two  and   three \t tabs\u00a0\u2003end   "},
    {"blank", " "},
    {"newlines", "\n\n\n"},
    {"symbols", "!!??...---===>>>%$#@^&*()~`\\/|\u20ac\u2192\u221e\u2260"},
}};

TokenIds tokenize(const runtime::Vocabulary& vocabulary, std::string_view text, bool special) {
  const auto tokens = vocabulary.tokenize(text, {.add_special = special, .parse_special = special});
  if (!tokens) return std::nullopt;
  std::vector<std::int32_t> ids;
  ids.reserve(tokens->size());
  for (const Token token : *tokens) ids.push_back(to_int(token));
  return ids;
}

Json to_json(const std::vector<TokenIds>& list) {
  Json json = Json::array();
  for (const TokenIds& ids : list) json.push_back(ids ? Json(*ids) : Json(nullptr));
  return json;
}

Result<std::vector<TokenIds>> read_list(const Json& json, std::string_view key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array() || found->size() != k_texts.size()) {
    return fail(ErrorCode::bad_format,
                std::format("probe.{}: a list of {} is wanted", key, k_texts.size()));
  }
  std::vector<TokenIds> list;
  for (const Json& entry : *found) {
    if (entry.is_null()) {
      list.emplace_back();
      continue;
    }
    PACELINE_TRY(auto ids, read<std::vector<std::int32_t>>(Json{{key, entry}}, key, "probe"));
    list.emplace_back(std::move(ids));
  }
  return list;
}

}  // namespace

std::span<const ProbeText> probe_texts() { return k_texts; }

std::vector<std::int32_t> Probe::added() const {
  if (special.empty() || !special.front()) return {};
  return *special.front();
}

Probe probe(const runtime::Vocabulary& vocabulary) {
  Probe result;
  for (const ProbeText& text : k_texts) {
    result.plain.push_back(tokenize(vocabulary, text.text, false));
    result.special.push_back(tokenize(vocabulary, text.text, true));
  }
  result.tokens = vocabulary.size();
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.is_end_of_text(to_token(id))) result.ends.push_back(to_int(to_token(id)));
  }
  return result;
}

Json to_json(const Probe& probe) {
  return {{"plain", to_json(probe.plain)},
          {"special", to_json(probe.special)},
          {"ends", probe.ends},
          {"tokens", probe.tokens},
          {"recurrent", probe.recurrent}};
}

Result<Probe> probe_from_json(const Json& json) {
  Probe probe;
  if (!json.is_object()) return fail(ErrorCode::bad_format, "probe: an object is wanted");
  PACELINE_TRY(probe.plain, read_list(json, "plain"));
  PACELINE_TRY(probe.special, read_list(json, "special"));
  PACELINE_TRY(probe.ends, read<std::vector<std::int32_t>>(json, "ends", "probe"));
  PACELINE_TRY(probe.tokens, read<std::size_t>(json, "tokens", "probe"));
  PACELINE_TRY(probe.recurrent, read<bool>(json, "recurrent", "probe"));
  return probe;
}

}  // namespace paceline::compat
