#include "compat/check_text.hpp"

#include <algorithm>
#include <format>
#include <ranges>
#include <vector>

#include "core/text.hpp"

namespace paceline::compat {

namespace {

constexpr std::size_t k_label = 11;

/// "  label    text", the text wrapped and its further lines indented alike.
std::string line(std::string_view label, std::string_view text, std::size_t width) {
  const std::size_t room = std::max<std::size_t>(width, 40) - k_label;
  std::string out = std::format("  {:<{}}", label, k_label - 2);
  std::size_t column = 0;
  const std::string shown = printable(text);  // names and texts of files stand in it
  for (const std::string_view word : split(shown, ' ')) {
    if (column > 0 && column + 1 + word.size() > room) {
      out += "\n" + std::string(k_label, ' ');
      column = 0;
    }
    if (column > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out + "\n";
}

std::string size_of(const Candidate& c) {
  std::vector<std::string> parts;
  if (c.parameters > 0) {
    parts.push_back(std::format("{:.1f} M parameters", static_cast<double>(c.parameters) / 1e6));
  }
  if (c.bytes > 0) {
    parts.push_back(std::format("{:.1f} MiB", static_cast<double>(c.bytes) / (1 << 20)));
  }
  return join(parts, ", ");
}

std::string facts(const Candidate& c) {
  std::vector<std::string> parts = {c.architecture.empty() ? "unknown architecture"
                                                           : escape(c.architecture, 40)};
  if (const std::string size = size_of(c); !size.empty()) parts.push_back(size);
  if (c.layers > 0) parts.push_back(std::format("{} layers", c.layers));
  if (c.vocabulary > 0) parts.push_back(std::format("{} tokens", c.vocabulary));
  if (c.trained_context > 0) parts.push_back(std::format("context {}", c.trained_context));
  if (c.sliding_window > 0) parts.push_back(std::format("sliding window {}", c.sliding_window));
  if (!c.kv_type_k.empty()) parts.push_back(std::format("KV {}/{}", c.kv_type_k, c.kv_type_v));
  if (c.recurrent) parts.emplace_back("recurrent state");
  if (c.files.size() > 1) parts.push_back(std::format("{} shards", c.files.size()));
  if (c.fingerprint) {
    parts.push_back(
        std::format("{} tokenizer files, fingerprint {}", to_string(c.fingerprint->layout),
                    c.fingerprint->sha256 ? c.fingerprint->sha256->substr(0, 12) : "none"));
  }
  return join(parts, ", ");
}

std::string describe(const Difference& d, std::size_t width) {
  std::string text = std::format("{}: {}", d.component, d.message);
  if (!d.advice.empty()) text += std::format("; {}", d.advice);
  if (!d.word.empty()) text += std::format(" ({})", d.word);
  return line(to_string(d.severity), text, width);
}

/// What was found out by tokenising.
std::string probe_state(const Candidate& target, const Candidate& draft) {
  if (target.probe && draft.probe) {
    return std::format("{} texts were tokenised by both, as plain text and with special tokens",
                       probe_texts().size());
  }
  const bool snapshots =
      target.kind == CandidateKind::snapshot || draft.kind == CandidateKind::snapshot;
  return snapshots ? "not run: no tokenizer here reads a snapshot's files"
                   : "not run: the pair was refused before";
}

std::string need_text(const ModelNeed& need) {
  std::string text = std::format("{} at {} tokens:", need.role, need.context);
  for (const runtime::MemoryNeed& device : need.devices) {
    if (device.device != need.devices.front().device) text += std::format("; {}", device.device);
    text += std::format(" weights {}, KV {}, compute {}, results {}", format_bytes(device.weights),
                        format_bytes(device.kv), format_bytes(device.compute),
                        format_bytes(device.results));
    if (device.droppable > 0) {
      text += std::format(", droppable {}", format_bytes(device.droppable));
    }
  }
  return text;
}

std::string memory_text(const std::optional<MemoryCheck>& memory, std::size_t width) {
  if (!memory) return line("memory", "not estimated: the pair was refused before", width);
  if (!memory->error.empty()) {
    return line("memory", std::format("not estimated: {}", memory->error), width);
  }
  std::string out = line("memory", memory->report.sentence, width);
  for (const ModelNeed& need : memory->models) out += line("", need_text(need), width);
  out += line("",
              std::format("program {}; at most {} resident while loading",
                          format_bytes(memory->free.program_bytes),
                          format_bytes(memory->report.peak_resident)),
              width);
  std::string longest = memory->largest_context > 0
                            ? std::format("longest context that fits: {}", memory->largest_context)
                            : std::string("no context fits");
  if (memory->models.size() > 1) {
    longest += memory->largest_plain_context > 0
                   ? std::format("; without the draft {}", memory->largest_plain_context)
                   : "; nor does the target alone";
  }
  return out + line("", longest, width);
}

std::string first_reason(const std::vector<Difference>& differences) {
  const Difference* hard = first_hard(differences);
  return hard == nullptr ? std::string() : std::format("{}: {}", hard->component, hard->message);
}

std::string folder_entry(const FolderCheck& check, std::size_t index, std::size_t width) {
  const FolderEntry& entry = check.entries[index];
  std::string out = std::format("{}\n", printable(entry.name));
  if (!entry.candidate) return out + line("no", entry.error, width);
  out += line(to_string(entry.candidate->kind), facts(*entry.candidate), width);
  const auto alone = check_alone(*entry.candidate, false);
  if (const std::string reason = first_reason(alone); !reason.empty()) {
    return out + line("target", "no: " + reason, width);
  }
  std::vector<std::string> drafts;
  std::vector<std::string> larger;
  std::string refused;
  for (const FolderPair& pair : check.pairs) {
    if (pair.target != index) continue;
    const std::string& name = check.entries[pair.draft].name;
    if (pair.draft_is_larger) {
      larger.push_back(name);
    } else if (pair.usable()) {
      const auto soft = std::ranges::count(pair.differences, Severity::soft, &Difference::severity);
      drafts.push_back(soft == 0 ? name : std::format("{} ({} soft)", name, soft));
    } else {
      refused += line("not", std::format("{}: {}", name, first_reason(pair.differences)), width);
    }
  }
  out += line("target", "yes", width);
  out +=
      line("drafts", drafts.empty() ? "none here; --lookup needs none" : join(drafts, ", "), width);
  out += refused;
  if (!larger.empty()) out += line("larger", join(larger, ", "), width);
  return out;
}

}  // namespace

std::string to_text(const PairCheck& check, std::size_t width) {
  const char* answer = check.usable() ? "Yes." : "No.";
  std::string out =
      printable(check.draft ? std::format("May {} draft for {}? {}", check.draft->name,
                                          check.target.name, answer)
                            : std::format("May {} be a target? {}", check.target.name, answer));
  out += "\n";
  out += line("target", facts(check.target), width);
  if (check.draft) out += line("draft", facts(*check.draft), width);
  for (const Difference& difference : check.differences) out += describe(difference, width);
  if (check.draft) {
    if (check.differences.empty()) out += line("equal", "no difference was found", width);
    out += line("probe", probe_state(check.target, *check.draft), width);
    out +=
        line("artifact",
             check.draft_artifact_sha256
                 ? std::format("bound, sha256 {}", *check.draft_artifact_sha256)
                 : std::string("not bound; --draft-model-artifact-sha256 binds the draft's bytes"),
             width);
  }
  return out + memory_text(check.memory, width);
}

std::string to_text(const FolderCheck& check, std::size_t width) {
  std::string out;
  for (std::size_t i = 0; i < check.entries.size(); ++i) out += folder_entry(check, i, width);
  const auto usable = std::ranges::count_if(check.pairs, &FolderPair::usable);
  const auto candidates = std::ranges::count_if(
      check.entries, [](const FolderEntry& entry) { return entry.candidate.has_value(); });
  return out + std::format("{}: {} candidates, {} usable pairs\n", printable(check.folder),
                           candidates, usable);
}

}  // namespace paceline::compat
