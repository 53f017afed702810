#include "compat/compare.hpp"

#include <algorithm>
#include <array>
#include <format>
#include <set>
#include <span>
#include <utility>

#include "compat/compare_impl.hpp"
#include "core/hash.hpp"
#include "core/text.hpp"

namespace paceline::compat {

namespace {

constexpr const char* k_mismatch = "draft_model_tokenizer_mismatch";

std::string or_none(std::string_view text) { return text.empty() ? "none" : std::string(text); }

std::string gigabytes(std::uint64_t bytes) {
  return std::format("{:.2f} GB", static_cast<double>(bytes) / 1e9);
}

void compare_architecture(const Candidate& target, const Candidate& draft, Differences& out) {
  if (target.architecture == draft.architecture) return;
  out.add({.component = "architecture",
           .severity = Severity::cosmetic,
           .message = std::format("the target is \"{}\", the draft \"{}\"",
                                  or_none(target.architecture), or_none(draft.architecture))});
}

void compare_size(const Candidate& target, const Candidate& draft, Differences& out) {
  const bool counted = target.parameters > 0 && draft.parameters > 0;
  const std::uint64_t ours = counted ? target.parameters : target.bytes;
  const std::uint64_t theirs = counted ? draft.parameters : draft.bytes;
  if (ours == 0 || theirs == 0 || 2 * theirs <= ours) return;
  out.add({.component = "size",
           .severity = Severity::soft,
           .message = counted ? std::format("the draft has {:.2f} times the target's parameters",
                                            static_cast<double>(theirs) / static_cast<double>(ours))
                              : std::format("the draft has {} of weights, the target {}",
                                            gigabytes(theirs), gigabytes(ours)),
           .advice = "a draft pays where a step of it costs a small part of a step of the target"});
}

void compare_contexts(const Candidate& target, const Candidate& draft, Differences& out) {
  if (target.trained_context == 0 || draft.trained_context == 0 ||
      target.trained_context == draft.trained_context) {
    return;
  }
  const bool shorter = draft.trained_context < target.trained_context;
  out.add({.component = "context",
           .severity = shorter ? Severity::soft : Severity::cosmetic,
           .message = std::format("the target was trained for {} tokens, the draft for {}",
                                  target.trained_context, draft.trained_context),
           .advice = shorter
                         ? std::format("drafting ends {} tokens into a text; the target goes on "
                                       "alone",
                                       draft.trained_context)
                         : ""});
}

void compare_windows(const Candidate& target, const Candidate& draft, Differences& out) {
  if (target.sliding_window == draft.sliding_window) return;
  const auto shown = [](std::size_t window) {
    return window == 0 ? std::string("none") : std::format("{} tokens", window);
  };
  out.add({.component = "sliding_window",
           .severity = Severity::cosmetic,
           .message = std::format("the target's sliding window is {}, the draft's {}",
                                  shown(target.sliding_window), shown(draft.sliding_window))});
}

void compare_key_values(const Candidate& target, const Candidate& draft, Differences& out) {
  const auto shape = [](const Candidate& c) {
    return std::format("{} x ({} + {})", c.key_value_heads, c.key_width, c.value_width);
  };
  if (target.key_width == 0 || draft.key_width == 0 || shape(target) == shape(draft)) return;
  out.add({.component = "kv_shape",
           .severity = Severity::cosmetic,
           .message = std::format("a layer caches {} numbers per token in the target, {} in the "
                                  "draft; each has its own cache",
                                  shape(target), shape(draft))});
}

void compare_kv_types(const Candidate& target, const Candidate& draft, Differences& out) {
  if (target.kv_type_k.empty() || draft.kv_type_k.empty()) return;
  if (target.kv_type_k == draft.kv_type_k && target.kv_type_v == draft.kv_type_v) return;
  out.add(
      {.component = "kv_types",
       .severity = Severity::soft,
       .message = std::format("the target caches keys and values as {} and {}, the draft as {} "
                              "and {}",
                              target.kv_type_k, target.kv_type_v, draft.kv_type_k, draft.kv_type_v),
       .advice = "a coarse cache of the draft can halve the acceptance"});
}

void compare_templates(const Candidate& target, const Candidate& draft, Differences& out) {
  if (target.chat_template == draft.chat_template) return;
  const auto shown = [](const std::string& source) {
    return source.empty() ? std::string("none") : sha256_hex(source).substr(0, 12);
  };
  out.add({.component = "chat_template",
           .severity = Severity::soft,
           .message = std::format("the chat templates differ (sha256 {} and {})",
                                  shown(target.chat_template), shown(draft.chat_template)),
           .advice = "the target's is used for both; a draft made for another template or thinking "
                     "mode, or a base model, is right less often in chats"});
}

/// Two snapshots: the published policy decides, and the tables are only told of.
void compare_fingerprints(const Candidate& target, const Candidate& draft, Differences& out) {
  const auto& ours = *target.fingerprint;
  const auto& theirs = *draft.fingerprint;
  if (ours.sha256 && theirs.sha256 && *ours.sha256 == *theirs.sha256) return;
  std::string same_tables;
  if (target.tokens && draft.tokens &&
      std::ranges::equal(target.tokens->texts, draft.tokens->texts)) {
    same_tables = "; the token tables are equal all the same";
  }
  for (const std::string& reason : explain_mismatch(target.path, ours, draft.path, theirs)) {
    out.add({.component = "tokenizer_fingerprint",
             .severity = Severity::hard,
             .word = k_mismatch,
             .message = reason + same_tables,
             .advice = "take a draft with the same tokenizer files"});
  }
  if (target.tokens && draft.tokens) compare_texts(*target.tokens, *draft.tokens, out);
}

}  // namespace

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::hard:
      return "hard";
    case Severity::soft:
      return "soft";
    case Severity::cosmetic:
      return "cosmetic";
  }
  return "";
}

std::vector<Difference> check_alone(const Candidate& candidate, bool as_draft) {
  Differences out;
  const char* role = as_draft ? "draft" : "target";
  if (!candidate.causal) {
    out.add({.component = "architecture",
             .severity = Severity::hard,
             .word = std::format("{}_writes_no_text", as_draft ? "draft_model" : "target"),
             .message = std::format("the {} is an encoder (\"{}\"), which writes no text", role,
                                    candidate.architecture),
             .advice = "take a model that writes text"});
  }
  if (candidate.recurrent || (candidate.probe && candidate.probe->recurrent)) {
    out.add({.component = "rollback",
             .severity = Severity::hard,
             .word = as_draft ? "draft_model_no_rollback" : "target_no_rollback",
             .message = std::format("the {} (\"{}\") keeps a recurrent state, so rejected tokens "
                                    "cannot be taken back",
                                    role, candidate.architecture),
             .advice = as_draft ? "take a draft without recurrent layers, or --lookup"
                                : "serve it plainly, without speculation"});
  }
  if (!candidate.tokens && candidate.kind != CandidateKind::snapshot) {
    out.add({.component = "tokenizer",
             .severity = Severity::hard,
             .word = k_mismatch,
             .message =
                 std::format("the {}'s tokens cannot be read: {}", role, candidate.tokens_reason),
             .advice = "take a file that holds its tokenizer"});
  }
  return std::move(out).sorted();
}

std::vector<Difference> compare(const Candidate& target, const Candidate& draft) {
  Differences out;
  for (Difference& d : check_alone(target, false)) out.add(std::move(d));
  for (Difference& d : check_alone(draft, true)) out.add(std::move(d));
  if (target.kind == CandidateKind::snapshot && draft.kind == CandidateKind::snapshot) {
    compare_fingerprints(target, draft, out);
  } else if (target.tokens && draft.tokens) {
    compare_tables(*target.tokens, *draft.tokens, out);
  } else {
    for (const Candidate* side : {&target, &draft}) {
      if (side->tokens || side->kind != CandidateKind::snapshot) continue;
      out.add({.component = "token_texts",
               .severity = Severity::hard,
               .word = k_mismatch,
               .message = side->tokens_reason,
               .advice = "compare two snapshots, or two GGUF files"});
    }
  }
  if (target.probe && draft.probe)
    compare_probes(*target.probe, *draft.probe, target.tokens.get(), out);
  compare_architecture(target, draft, out);
  compare_size(target, draft, out);
  compare_contexts(target, draft, out);
  compare_windows(target, draft, out);
  compare_key_values(target, draft, out);
  compare_kv_types(target, draft, out);
  compare_templates(target, draft, out);
  return std::move(out).sorted();
}

const Difference* first_hard(const std::vector<Difference>& differences) {
  const auto found = std::ranges::find(differences, Severity::hard, &Difference::severity);
  return found == differences.end() ? nullptr : &*found;
}

Result<void> check_vocabularies(const runtime::Vocabulary& target,
                                const runtime::Vocabulary& draft) {
  Differences out;
  const TokenTable ours = token_table(target);
  compare_tables(ours, token_table(draft), out);
  compare_probes(probe(target), probe(draft), &ours, out);
  const std::vector<Difference> differences = std::move(out).sorted();
  const Difference* hard = first_hard(differences);
  if (hard == nullptr) return {};
  return fail(ErrorCode::unsupported, std::format("{}; {}", hard->message, hard->advice),
              hard->word);
}

}  // namespace paceline::compat
