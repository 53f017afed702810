#include "compat/check.hpp"

#include <algorithm>
#include <format>
#include <regex>
#include <system_error>
#include <utility>

namespace paceline::compat {

namespace fs = std::filesystem;

namespace {

constexpr int k_deepest = 8;

/// False for all shards of a split model but the first that is there.
bool is_first_shard(const fs::path& path) {
  static const std::regex pattern(R"((.*-)([0-9]{5})(-of-[0-9]{5}\.gguf))");
  std::smatch match;
  const std::string name = path.filename().string();
  if (name.size() > 255 || !std::regex_match(name, match, pattern)) return true;
  const int number = std::stoi(match[2].str());
  for (int i = 1; i < number; ++i) {
    std::error_code code;
    fs::path earlier = path;
    earlier.replace_filename(std::format("{}{:05}{}", match[1].str(), i, match[3].str()));
    if (fs::exists(earlier, code)) return false;
  }
  return true;
}

bool same_table(const TokenTable& a, const TokenTable& b) {
  return a.spelling == b.spelling && a.tokenizer == b.tokenizer &&
         a.pre_tokenizer == b.pre_tokenizer && a.texts == b.texts && a.kinds == b.kinds &&
         a.scores == b.scores && a.merges == b.merges && a.special_ids == b.special_ids &&
         a.flags == b.flags;
}

void share_tables(std::vector<FolderEntry>& entries) {
  std::vector<std::shared_ptr<const TokenTable>> known;
  for (FolderEntry& entry : entries) {
    if (!entry.candidate || !entry.candidate->tokens) continue;
    auto& table = entry.candidate->tokens;
    const auto same =
        std::ranges::find_if(known, [&](const auto& other) { return same_table(*other, *table); });
    if (same == known.end()) {
      known.push_back(table);
    } else {
      table = *same;
    }
  }
}

std::uint64_t weight(const Candidate& candidate, bool by_parameters) {
  return by_parameters ? candidate.parameters : candidate.bytes;
}

bool is_larger(const Candidate& draft, const Candidate& target) {
  const bool by_parameters = draft.parameters > 0 && target.parameters > 0;
  return weight(draft, by_parameters) > weight(target, by_parameters);
}

}  // namespace

PairCheck check_pair(Candidate target, std::optional<Candidate> draft) {
  PairCheck check;
  check.differences = draft ? compare(target, *draft) : check_alone(target, false);
  check.target = std::move(target);
  check.draft = std::move(draft);
  return check;
}

Result<std::vector<fs::path>> find_candidates(const fs::path& folder) {
  std::error_code code;
  if (!fs::is_directory(folder, code)) {
    return fail(
        ErrorCode::not_found,
        std::format("\"{}\" is no folder; name one, or use --target FILE", folder.string()));
  }
  std::vector<fs::path> found;
  if (is_snapshot(folder)) found.push_back(folder);
  fs::recursive_directory_iterator walk(folder, fs::directory_options::skip_permission_denied,
                                        code);
  for (; !code && walk != fs::recursive_directory_iterator(); walk.increment(code)) {
    const fs::path& path = walk->path();
    std::error_code ignored;
    if (walk->is_directory(ignored)) {
      if (path.filename().string().starts_with('.') || walk.depth() >= k_deepest ||
          fs::is_symlink(walk->symlink_status(ignored))) {
        walk.disable_recursion_pending();
      } else if (is_snapshot(path)) {
        found.push_back(path);
        walk.disable_recursion_pending();
      }
    } else if (path.extension() == ".gguf" && is_first_shard(path)) {
      found.push_back(path);
    }
  }
  if (code) {
    return fail(ErrorCode::io,
                std::format("reading the folder \"{}\": {}", folder.string(), code.message()));
  }
  std::ranges::sort(found);
  return found;
}

FolderCheck check_folder(std::string folder, std::vector<FolderEntry> entries) {
  FolderCheck check;
  share_tables(entries);
  check.folder = std::move(folder);
  check.entries = std::move(entries);
  for (std::size_t target = 0; target < check.entries.size(); ++target) {
    for (std::size_t draft = 0; draft < check.entries.size(); ++draft) {
      const auto& ours = check.entries[target].candidate;
      const auto& theirs = check.entries[draft].candidate;
      if (target == draft || !ours || !theirs) continue;
      FolderPair pair{.target = target,
                      .draft = draft,
                      .draft_is_larger = is_larger(*theirs, *ours),
                      .differences = {}};
      if (!pair.draft_is_larger) pair.differences = compare(*ours, *theirs);
      check.pairs.push_back(std::move(pair));
    }
  }
  return check;
}

}  // namespace paceline::compat
