// Reading whole small files and replacing files so that a reader sees the old or the new one.
#pragma once

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace paceline {

/// An Error from errno: "<what>: No such file or directory". Codes: not_found, io, out_of_memory.
Error errno_error(std::string_view what);

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FilePointer = std::unique_ptr<std::FILE, FileCloser>;

/// Opens a regular file for reading. Never waits: a pipe, a socket, a device or a folder is an
/// error (io) that names the path and what it is. Further errors: from errno.
Result<FilePointer> open_regular_file(const std::filesystem::path& path);

/// The whole regular file. Files over `limit_bytes` are refused (bad_format). Errors: as above.
Result<std::string> read_file(const std::filesystem::path& path,
                              std::size_t limit_bytes = std::size_t{1} << 30);

/// Writes next to `path`, syncs and renames over it. On failure the old file stays as it was and
/// the temporary file is gone. A symlink at `path` is followed, so that the link stays; the rights
/// of the old file stay too. A character device is written into and not replaced; a pipe, a socket
/// or a block device is refused (io).
Result<void> replace_file(const std::filesystem::path& path, std::string_view contents);

/// Makes a new file with these contents, synced. False: the name is taken, and what has it was not
/// touched. On failure nothing is left.
Result<bool> create_file(const std::filesystem::path& path, std::string_view contents);

/// Checks that `replace_file(path, ...)` can work, without touching `path`: the folder exists, is
/// writable, has room for a few blocks, and `path` is a regular file, a character device or nothing
/// yet (errors: not_found, io), and not empty (invalid_argument).
Result<void> check_writable(const std::filesystem::path& path);

/// Sixteen random hexadecimal digits, for names that no other process makes. Processes in
/// containers share their numbers.
std::string random_name_part();

/// A terminal, /dev/null and the like: written into, never replaced.
bool is_character_device(const std::filesystem::path& path);

/// Where a chain of symlinks ends, whether or not something is there. Error: io for a circle.
Result<std::filesystem::path> follow_links(const std::filesystem::path& path);

/// $XDG_CACHE_HOME/paceline or ~/.cache/paceline; $XDG_STATE_HOME/paceline or ~/.local/state/...
/// Error: not_found where neither the variable nor HOME is set.
Result<std::filesystem::path> cache_directory();
Result<std::filesystem::path> state_directory();

}  // namespace paceline
