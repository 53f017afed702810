// The one hash that a draft's artifact is bound to by --draft-model-artifact-sha256.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace paceline::compat {

struct HashOptions {
  std::stop_token stop = {};
  std::function<void(std::uint64_t)> progress = {};  // told the bytes read so far
};

/// Exactly 64 lower-case hex digits. Error invalid_argument.
Result<void> check_artifact_sha256(std::string_view text);

/// Of a file: its SHA-256. Of a split model (any of its shards): the SHA-256 of its shards' hashes,
/// in order, a newline behind each. Of a snapshot directory: over all regular files below it the
/// lines "path\nsize\nsha256\n", sorted by path, hashed. Read in pieces, from the descriptors that
/// were checked.
/// Refused (bad_format, word draft_model_unverified_artifact): a root that is no real directory,
/// hard links, special files, and links; but links of a hub cache (models--x/snapshots/y/) that
/// end in a regular file of its own models--x/blobs/ count as that file.
/// Errors also: not_found, io, cancelled.
Result<std::string> artifact_sha256(const std::filesystem::path& path,
                                    const HashOptions& options = {});

/// Error invalid_argument, word draft_model_unverified_artifact, with both hashes.
Result<void> verify_artifact(const std::filesystem::path& path, std::string_view wanted,
                             const HashOptions& options = {});

}  // namespace paceline::compat
