// Reading whole small files and replacing files so that a reader sees the old or the new one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace paceline {

/// An Error from errno: "<what>: No such file or directory". Codes: not_found, io, out_of_memory.
Error errno_error(std::string_view what);

/// The whole file. Files over `limit_bytes` are refused (bad_format).
Result<std::string> read_file(const std::filesystem::path& path,
                              std::size_t limit_bytes = std::size_t{1} << 30);

/// Writes next to `path`, syncs and renames over it. On failure the old file stays as it was and
/// the temporary file is gone. A symlink at `path` is followed, so that the link stays; the rights
/// of the old file stay too. A device or pipe is written into and not replaced.
Result<void> replace_file(const std::filesystem::path& path, std::string_view contents);

/// Checks that `replace_file(path, ...)` can work, without touching `path`: the folder exists, is
/// writable and `path` is not a folder (errors: not_found, io), nor empty (invalid_argument).
Result<void> check_writable(const std::filesystem::path& path);

/// $XDG_CACHE_HOME/paceline or ~/.cache/paceline; $XDG_STATE_HOME/paceline or ~/.local/state/...
/// Error: not_found where neither the variable nor HOME is set.
Result<std::filesystem::path> cache_directory();
Result<std::filesystem::path> state_directory();

}  // namespace paceline
