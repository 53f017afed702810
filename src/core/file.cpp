#include "core/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <format>
#include <memory>
#include <tuple>

namespace paceline {

namespace fs = std::filesystem;

Error errno_error(std::string_view what) {
  const int number = errno;
  ErrorCode code = ErrorCode::io;
  if (number == ENOENT || number == ENOTDIR) code = ErrorCode::not_found;
  if (number == ENOMEM) code = ErrorCode::out_of_memory;
  return fail(code, std::format("{}: {}", what, std::strerror(number)));
}

Result<std::string> read_file(const fs::path& path, std::size_t limit_bytes) {
  std::error_code code;
  if (fs::is_directory(path, code)) {
    return fail(ErrorCode::io, std::format("\"{}\" is a folder, a file is wanted", path.string()));
  }
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                       &std::fclose);
  if (!file) return errno_error(std::format("opening \"{}\"", path.string()));
  std::string contents;
  char buffer[65536];
  while (true) {
    const std::size_t count = std::fread(buffer, 1, sizeof buffer, file.get());
    contents.append(buffer, count);
    if (contents.size() > limit_bytes) {
      return fail(ErrorCode::bad_format,
                  std::format("\"{}\" is larger than {} bytes, which is the limit here",
                              path.string(), limit_bytes));
    }
    if (count < sizeof buffer) break;
  }
  if (std::ferror(file.get()) != 0) {
    return errno_error(std::format("reading \"{}\"", path.string()));
  }
  return contents;
}

namespace {

/// Where a chain of symlinks ends, whether or not something is there.
Result<fs::path> follow_links(const fs::path& path) {
  constexpr int k_most_links = 40;
  fs::path target = path;
  for (int i = 0; i < k_most_links; ++i) {
    std::error_code code;
    if (!fs::is_symlink(target, code)) return target;
    const fs::path next = fs::read_symlink(target, code);
    target = next.is_absolute() ? next : target.parent_path() / next;
  }
  return fail(ErrorCode::io, std::format("\"{}\" is a link that names itself", path.string()));
}

/// A device or a pipe: written into, since a rename would take it away from everybody.
bool is_special(const fs::path& path) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

/// Writes and syncs. False: errno says why not.
bool write_all(int fd, std::string_view contents) {
  while (!contents.empty()) {
    const ssize_t written = ::write(fd, contents.data(), contents.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    contents.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::fsync(fd) == 0 || errno == EINVAL;  // EINVAL: nothing that can be synced
}

Result<void> write_special(const fs::path& path, std::string_view contents) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno_error(std::format("opening \"{}\"", path.string()));
  const bool written = write_all(fd, contents);
  const Error error = errno_error(std::format("writing \"{}\"", path.string()));
  ::close(fd);
  if (!written) return error;
  return {};
}

}  // namespace

Result<void> replace_file(const fs::path& path, std::string_view contents) {
  PACELINE_TRY(const fs::path target, follow_links(path));
  if (is_special(target)) return write_special(target, contents);
  const std::string temporary = std::format("{}.{}.tmp", target.string(), ::getpid());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return errno_error(std::format("creating \"{}\"", temporary));
  const auto give_up = [&](std::string_view doing) {
    const Error error = errno_error(std::format("{} \"{}\"", doing, target.string()));
    ::unlink(temporary.c_str());
    return error;
  };
  struct stat old{};
  if (::stat(target.c_str(), &old) == 0) std::ignore = ::fchmod(fd, old.st_mode & 0777);
  const bool written = write_all(fd, contents);
  const int write_errno = errno;
  const bool closed = ::close(fd) == 0;
  if (!written) errno = write_errno;
  if (!written || !closed) return give_up("writing");
  if (::rename(temporary.c_str(), target.c_str()) != 0) return give_up("replacing");
  return {};
}

Result<void> check_writable(const fs::path& path) {
  if (path.empty()) return fail(ErrorCode::invalid_argument, "the name of the file is empty");
  PACELINE_TRY(const fs::path target, follow_links(path));
  std::error_code code;
  if (fs::is_directory(target, code)) {
    return fail(ErrorCode::io, std::format("\"{}\" is a folder, a file is wanted", path.string()));
  }
  if (is_special(target)) {
    if (::access(target.c_str(), W_OK) == 0) return {};
    return errno_error(std::format("\"{}\" cannot be written", path.string()));
  }
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, code)) {
    return fail(ErrorCode::not_found,
                std::format("the folder \"{}\" does not exist; create it first", folder.string()));
  }
  const std::string probe = std::format("{}.{}.probe", target.string(), ::getpid());
  const int fd = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return errno_error(std::format("\"{}\" cannot be written", path.string()));
  ::close(fd);
  ::unlink(probe.c_str());
  return {};
}

namespace {

Result<fs::path> user_directory(const char* variable, const char* below_home) {
  if (const char* value = std::getenv(variable); value != nullptr && value[0] == '/') {
    return fs::path(value) / "paceline";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] != '\0') {
    return fs::path(home) / below_home / "paceline";
  }
  return fail(ErrorCode::not_found,
              std::format("neither {} nor HOME is set; set one to an absolute path", variable));
}

}  // namespace

Result<fs::path> cache_directory() { return user_directory("XDG_CACHE_HOME", ".cache"); }
Result<fs::path> state_directory() { return user_directory("XDG_STATE_HOME", ".local/state"); }

}  // namespace paceline
