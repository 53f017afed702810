// Tables and probes, token by token.
#include <algorithm>
#include <array>
#include <cstdint>
#include <format>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "compat/compare_impl.hpp"
#include "core/text.hpp"

namespace paceline::compat {

namespace {

constexpr const char* k_mismatch = "draft_model_tokenizer_mismatch";
constexpr const char* k_same_family =
    "take a draft of the same family, or --lookup, which needs none";
constexpr std::string_view k_space = "\xe2\x96\x81";  // U+2581, SentencePiece's space

/// The text with SentencePiece's space as a space: converters write added tokens either way.
std::string with_spaces(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const bool space = text.substr(at).starts_with(k_space);
    out += space ? ' ' : text[at];
    at += space ? k_space.size() : 1;
  }
  return out;
}

bool same_text(std::string_view target, std::string_view draft) {
  if (target == draft) return true;
  const bool any_space = target.find(k_space) != std::string_view::npos ||
                         draft.find(k_space) != std::string_view::npos;
  return any_space && with_spaces(target) == with_spaces(draft);
}

/// How many entries differ, and the first that does.
struct Count {
  std::size_t count = 0;
  std::size_t first = 0;
  void add(std::size_t id) {
    if (count++ == 0) first = id;
  }
};

struct TextCounts {
  Count different;
  Count only_target;  // a text in the target, padding in the draft
  Count only_draft;
};

TextCounts count_texts(const TokenTable& target, const TokenTable& draft) {
  TextCounts counts;
  const std::size_t common = std::min(target.size(), draft.size());
  for (std::size_t id = 0; id < common; ++id) {
    if (target.texts[id] == draft.texts[id]) continue;
    const bool ours_unused = target.is_padding(id);
    const bool theirs_unused = draft.is_padding(id);
    if (ours_unused && theirs_unused) continue;
    if (ours_unused) {
      counts.only_draft.add(id);
    } else if (theirs_unused) {
      counts.only_target.add(id);
    } else if (!same_text(target.texts[id], draft.texts[id])) {
      counts.different.add(id);
    }
  }
  return counts;
}

TokenDifference token_difference(const TokenTable& target, const TokenTable& draft,
                                 std::size_t id) {
  const auto text = [id](const TokenTable& table) {
    return id < table.size() ? std::string(table.texts[id]) : std::string{};
  };
  return {id, text(target), text(draft)};
}

void compare_lengths(const TokenTable& target, const TokenTable& draft, Differences& out) {
  const std::size_t common = std::min(target.size(), draft.size());
  const TokenTable& longer = target.size() > draft.size() ? target : draft;
  const std::size_t more = longer.size() - common;
  if (more == 0) return;
  std::size_t used = 0;
  for (std::size_t id = common; id < longer.size(); ++id) used += longer.is_padding(id) ? 0U : 1U;
  const bool too_many = more > k_most_padding;
  Difference d{.component = "vocabulary_size",
               .severity = too_many   ? Severity::hard
                           : used > 0 ? Severity::soft
                                      : Severity::cosmetic,
               .message = std::format("the target has {} tokens, the draft {}; {} of the {} rows "
                                      "more are used, and up to {} rows of padding are allowed",
                                      target.size(), draft.size(), used, more, k_most_padding),
               .count = more};
  if (too_many) {
    d.word = k_mismatch;
    d.advice = k_same_family;
    d.token = token_difference(target, draft, common);
  } else if (used > 0) {
    d.advice = &longer == &draft ? "what the draft proposes of them is thrown away"
                                 : "the draft never proposes them";
  }
  out.add(std::move(d));
}

void compare_unused(const TokenTable& target, const TokenTable& draft, const TextCounts& counts,
                    Differences& out) {
  for (const auto& [count, role, other] : {std::tuple(&counts.only_target, "target", "draft"),
                                           std::tuple(&counts.only_draft, "draft", "target")}) {
    if (count->count == 0) continue;
    const bool too_many = count->count > k_most_padding;
    out.add(
        {.component = "unused_tokens",
         .severity = too_many ? Severity::hard : Severity::soft,
         .word = too_many ? k_mismatch : "",
         .message = std::format("{} of the {}'s tokens are padding in the {} (the first is {}); "
                                "up to {} are allowed",
                                count->count, role, other, count->first, k_most_padding),
         .advice = too_many ? k_same_family : "they are not drafted well",
         .token = token_difference(target, draft, count->first),
         .count = count->count});
  }
}

std::string kind_name(std::int32_t kind) {
  constexpr std::array<const char*, 7> k_names = {"undefined",    "normal", "unknown", "control",
                                                  "user-defined", "unused", "byte"};
  if (kind < 0 || static_cast<std::size_t>(kind) >= k_names.size()) {
    return std::format("type {}", kind);
  }
  return k_names[static_cast<std::size_t>(kind)];
}

void compare_kinds(const TokenTable& target, const TokenTable& draft, Differences& out) {
  if (target.kinds.empty() || draft.kinds.empty()) return;
  Count bytes;
  Count others;
  for (std::size_t id = 0; id < std::min(target.kinds.size(), draft.kinds.size()); ++id) {
    const std::int32_t ours = target.kinds[id];
    const std::int32_t theirs = draft.kinds[id];
    if (ours == theirs || target.is_padding(id) || draft.is_padding(id)) continue;
    const bool byte = ours == TokenTable::Kind::byte || theirs == TokenTable::Kind::byte;
    (byte ? bytes : others).add(id);
  }
  for (const Count* count : {&bytes, &others}) {
    if (count->count == 0) continue;
    const bool hard = count == &bytes;
    out.add({.component = "token_types",
             .severity = hard ? Severity::hard : Severity::soft,
             .word = hard ? k_mismatch : "",
             .message = std::format("token {} (\"{}\") is {} in the target and {} in the draft; {} "
                                    "differ so",
                                    count->first, escape(target.texts[count->first], 40),
                                    kind_name(target.kinds[count->first]),
                                    kind_name(draft.kinds[count->first]), count->count),
             .advice = hard ? k_same_family
                            : "the target's is used; convert both with the same converter",
             .token = token_difference(target, draft, count->first),
             .count = count->count});
  }
}

constexpr const char* k_probe_decides = "the texts of the probe show whether it matters";

void compare_scores(const TokenTable& target, const TokenTable& draft, Differences& out) {
  if (target.scores.empty() || draft.scores.empty()) return;
  Count count;
  for (std::size_t id = 0; id < std::min(target.scores.size(), draft.scores.size()); ++id) {
    if (target.scores[id] == draft.scores[id] || target.is_padding(id) || draft.is_padding(id)) {
      continue;
    }
    count.add(id);
  }
  if (count.count == 0) return;
  out.add(
      {.component = "scores",
       .severity = Severity::soft,
       .message = std::format("token {} (\"{}\") has score {} in the target and {} in the "
                              "draft; {} scores differ",
                              count.first, escape(target.texts[count.first], 40),
                              target.scores[count.first], draft.scores[count.first], count.count),
       .advice = k_probe_decides,
       .token = token_difference(target, draft, count.first),
       .count = count.count});
}

void compare_merges(const TokenTable& target, const TokenTable& draft, Differences& out) {
  if (target.merges.size() == draft.merges.size() &&
      std::ranges::equal(target.merges, draft.merges)) {
    return;
  }
  const auto [ours, theirs] = std::ranges::mismatch(target.merges, draft.merges);
  const auto shown = [](auto at, auto end) {
    return at == end ? std::string("none") : std::format("\"{}\"", escape(*at, 40));
  };
  out.add({.component = "merges",
           .severity = Severity::soft,
           .message = std::format("merge {} is {} in the target and {} in the draft; they have {} "
                                  "and {}",
                                  ours - target.merges.begin(), shown(ours, target.merges.end()),
                                  shown(theirs, draft.merges.end()), target.merges.size(),
                                  draft.merges.size()),
           .advice = k_probe_decides});
}

/// Whether a tokenizer of this table may put the special token of that name into a prompt.
bool is_used(const TokenTable& table, const std::string& name) {
  const auto flag = [&](const char* key, bool otherwise) {
    const auto found = table.flags.find(key);
    return found == table.flags.end() ? otherwise : found->second;
  };
  if (name == "bos") return flag("add_bos_token", true);
  if (name == "seperator") return flag("add_sep_token", false);
  return name == "eos" || name == "eot" || name == "eom" || name == "unknown";
}

std::string shown_id(const TokenTable& table, std::optional<std::uint64_t> id) {
  if (!id) return "none";
  if (*id >= table.size()) return std::format("{} (no such token)", *id);
  return std::format("{} (\"{}\")", *id, escape(table.texts[*id], 40));
}

void compare_special_ids(const TokenTable& target, const TokenTable& draft, Differences& out) {
  std::set<std::string> names;
  for (const TokenTable* table : {&target, &draft}) {
    for (const auto& [name, id] : table->special_ids) names.insert(name);
  }
  for (const std::string& name : names) {
    const auto id_of = [&](const TokenTable& table) -> std::optional<std::uint64_t> {
      const auto found = table.special_ids.find(name);
      if (found == table.special_ids.end()) return std::nullopt;
      return found->second;
    };
    if (id_of(target) == id_of(draft)) continue;  // their texts are compared as tokens
    const std::string ours = shown_id(target, id_of(target));
    const std::string theirs = shown_id(draft, id_of(draft));
    const bool used = is_used(target, name) || is_used(draft, name);
    out.add({.component = name + "_token",
             .severity = used ? Severity::soft : Severity::cosmetic,
             .message = std::format("{}_token_id is {} in the target and {} in the draft", name,
                                    ours, theirs),
             .advice = used ? "the target's is used for both; the draft may have been trained for "
                              "another use"
                            : ""});
  }
}

void compare_flags(const TokenTable& target, const TokenTable& draft, Differences& out) {
  std::set<std::string> names;
  for (const TokenTable* table : {&target, &draft}) {
    for (const auto& [name, value] : table->flags) names.insert(name);
  }
  for (const std::string& name : names) {
    const auto value_of = [&](const TokenTable& table) -> std::string {
      const auto found = table.flags.find(name);
      return found == table.flags.end() ? "not set" : found->second ? "true" : "false";
    };
    const std::string ours = value_of(target);
    const std::string theirs = value_of(draft);
    if (ours == theirs) continue;
    const bool both = ours != "not set" && theirs != "not set";
    out.add(
        {.component = name,
         .severity = both ? Severity::soft : Severity::cosmetic,
         .message = std::format("{} is {} in the target and {} in the draft", name, ours, theirs),
         .advice = both ? "paceline tokenises once, with the target; programs that tokenise for "
                          "the draft apart lose all acceptance"
                        : k_probe_decides});
  }
}

void compare_tokenizers(const TokenTable& target, const TokenTable& draft, Differences& out) {
  const bool known = !target.tokenizer.empty() && !draft.tokenizer.empty();
  if (known && target.tokenizer != draft.tokenizer) {
    out.add({.component = "tokenizer_type",
             .severity = Severity::hard,
             .word = k_mismatch,
             .message = std::format("the target's tokenizer is of type \"{}\", the draft's \"{}\"",
                                    escape(target.tokenizer, 40), escape(draft.tokenizer, 40)),
             .advice = k_same_family});
  }
  if (known && target.pre_tokenizer != draft.pre_tokenizer) {
    out.add(
        {.component = "pre_tokenizer",
         .severity = Severity::soft,
         .message = std::format("the target's pre-tokenizer is \"{}\", the draft's \"{}\"",
                                escape(target.pre_tokenizer, 40), escape(draft.pre_tokenizer, 40)),
         .advice = k_probe_decides});
  }
}

/// Without what the tokenizer adds to the ends of every text.
std::span<const std::int32_t> without_added(std::span<const std::int32_t> ids,
                                            std::span<const std::int32_t> added) {
  while (!ids.empty() && !added.empty() && ids.front() == added.front()) {
    ids = ids.subspan(1);
    added = added.subspan(1);
  }
  while (!ids.empty() && !added.empty() && ids.back() == added.back()) {
    ids = ids.first(ids.size() - 1);
    added = added.first(added.size() - 1);
  }
  return ids;
}

bool same_ids(const TokenIds& target, const TokenIds& draft,
              std::span<const std::int32_t> target_added,
              std::span<const std::int32_t> draft_added) {
  if (!target || !draft) return !target && !draft;
  return std::ranges::equal(without_added(*target, target_added),
                            without_added(*draft, draft_added));
}

std::string list_ids(std::span<const std::int32_t> ids) {
  constexpr std::size_t k_shown = 12;
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(ids.size(), k_shown); ++i) {
    parts.push_back(std::to_string(ids[i]));
  }
  if (ids.size() > k_shown) parts.emplace_back("...");
  return ids.empty() ? "nothing" : join(parts, " ");
}

void compare_ends(const Probe& target, const Probe& draft, const TokenTable* texts,
                  Differences& out) {
  // Rows beyond the shorter vocabulary are padding, compared as such.
  const auto common = static_cast<std::int64_t>(std::min(target.tokens, draft.tokens));
  std::vector<std::int32_t> apart;
  std::ranges::set_symmetric_difference(target.ends, draft.ends, std::back_inserter(apart));
  std::erase_if(apart, [common](std::int32_t id) { return id >= common; });
  if (apart.empty()) return;
  const bool ours = std::ranges::binary_search(target.ends, apart.front());
  const auto id = static_cast<std::size_t>(apart.front());
  const std::string text = texts != nullptr && id < texts->size()
                               ? std::format(" (\"{}\")", escape(texts->texts[id], 40))
                               : std::string();
  out.add({.component = "end_of_text",
           .severity = Severity::hard,
           .word = k_mismatch,
           .message = std::format("token {}{} ends the text in the {} only", id, text,
                                  ours ? "target" : "draft"),
           .advice = k_same_family,
           .count = apart.size()});
}

}  // namespace

std::vector<Difference> Differences::sorted() && {
  std::ranges::stable_sort(list_, {}, &Difference::severity);
  return std::move(list_);
}

void compare_texts(const TokenTable& target, const TokenTable& draft, Differences& out) {
  const TextCounts counts = count_texts(target, draft);
  if (counts.different.count > 0) {
    const std::size_t id = counts.different.first;
    out.add(
        {.component = "token_texts",
         .severity = Severity::hard,
         .word = k_mismatch,
         .message = std::format("token {} is \"{}\" in the target and \"{}\" in the draft; {} of "
                                "{} tokens differ",
                                id, escape(target.texts[id], 40), escape(draft.texts[id], 40),
                                counts.different.count, std::min(target.size(), draft.size())),
         .advice = k_same_family,
         .token = token_difference(target, draft, id),
         .count = counts.different.count});
  }
  compare_lengths(target, draft, out);
  compare_unused(target, draft, counts, out);
}

void compare_tables(const TokenTable& target, const TokenTable& draft, Differences& out) {
  if (target.spelling != draft.spelling) {
    out.add({.component = "tokenizer_type",
             .severity = Severity::hard,
             .word = k_mismatch,
             .message = "one is a file and the other a model without a file; their tokens are "
                        "spelled differently and cannot be compared",
             .advice = "take two files, or two toy models"});
    return;
  }
  if (target.storage == draft.storage) return;  // the same table
  compare_texts(target, draft, out);
  compare_tokenizers(target, draft, out);
  compare_kinds(target, draft, out);
  const bool both_files = !target.tokenizer.empty() && !draft.tokenizer.empty();
  if (!both_files) return;  // a snapshot's table has texts only
  compare_scores(target, draft, out);
  compare_merges(target, draft, out);
  compare_special_ids(target, draft, out);
  compare_flags(target, draft, out);
}

void compare_probes(const Probe& target, const Probe& draft, const TokenTable* table,
                    Differences& out) {
  compare_ends(target, draft, table, out);
  const std::vector<std::int32_t> ours = target.added();
  const std::vector<std::int32_t> theirs = draft.added();
  const bool added_differ = ours != theirs;
  if (added_differ) {
    out.add({.component = "added_tokens",
             .severity = Severity::soft,
             .message = std::format("the target's tokenizer adds {} to a text, the draft's {}",
                                    list_ids(ours), list_ids(theirs)),
             .advice = "paceline tokenises once, with the target; programs that tokenise for the "
                       "draft apart lose all acceptance"});
  }
  Count count;
  const std::span<const ProbeText> texts = probe_texts();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const bool same = same_ids(target.plain[i], draft.plain[i], {}, {}) &&
                      (added_differ ? same_ids(target.special[i], draft.special[i], ours, theirs)
                                    : same_ids(target.special[i], draft.special[i], {}, {}));
    if (!same) count.add(i);
  }
  if (count.count == 0) return;
  const auto shown = [&](const Probe& probe) {
    const bool plain = !same_ids(target.plain[count.first], draft.plain[count.first], {}, {});
    const TokenIds& ids = (plain ? probe.plain : probe.special)[count.first];
    return ids ? list_ids(*ids) : std::string("an error");
  };
  out.add({.component = "probe",
           .severity = Severity::hard,
           .word = k_mismatch,
           .message = std::format("{} of {} texts of the probe have other token ids; the first is "
                                  "\"{}\": {} in the target and {} in the draft",
                                  count.count, texts.size(), texts[count.first].name, shown(target),
                                  shown(draft)),
           .advice = k_same_family,
           .count = count.count});
}

}  // namespace paceline::compat
