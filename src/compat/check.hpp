// What `paceline check` finds out: about a pair, or about everything in a folder.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "compat/candidate.hpp"
#include "compat/compare.hpp"
#include "compat/fit.hpp"
#include "core/json_fwd.hpp"
#include "core/result.hpp"

namespace paceline::compat {

struct PairCheck {
  Candidate target;
  std::optional<Candidate> draft;
  std::vector<Difference> differences;               // hard ones first
  std::optional<std::string> draft_artifact_sha256;  // verified
  std::optional<MemoryCheck> memory;                 // none where the pair is refused anyway
  bool usable() const {
    return first_hard(differences) == nullptr && (!memory || memory->report.fit == Fit::fits);
  }
};

/// Without a draft: whether the target may be one.
PairCheck check_pair(Candidate target, std::optional<Candidate> draft);

/// GGUF files and snapshot directories in a folder, at any depth up to eight, sorted by path. Of a
/// split model one shard is listed. Linked folders and hidden ones are left out; a snapshot is
/// searched no further. Errors: not_found (no such folder), io.
Result<std::vector<std::filesystem::path>> find_candidates(const std::filesystem::path& folder);

/// One thing that was found: a candidate, or why it is none.
struct FolderEntry {
  std::string name;  // path within the folder
  std::optional<Candidate> candidate;
  std::string error;
};

struct FolderPair {
  std::size_t target = 0;  // indices of entries
  std::size_t draft = 0;
  bool draft_is_larger = false;  // never useful, so not compared
  std::vector<Difference> differences;
  bool usable() const { return !draft_is_larger && first_hard(differences) == nullptr; }
};

struct FolderCheck {
  std::string folder;
  std::vector<FolderEntry> entries;
  std::vector<FolderPair> pairs;  // every ordered pair of two candidates
};

/// Compares all entries with each other. Equal token tables are shared first, so that a folder
/// costs the memory of its different vocabularies.
FolderCheck check_folder(std::string folder, std::vector<FolderEntry> entries);

}  // namespace paceline::compat
