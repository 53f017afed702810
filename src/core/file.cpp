#include "core/file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <format>
#include <memory>
#include <tuple>

#include "core/check.hpp"

namespace paceline {

namespace fs = std::filesystem;

Error errno_error(std::string_view what) {
  const int number = errno;
  ErrorCode code = ErrorCode::io;
  if (number == ENOENT || number == ENOTDIR) code = ErrorCode::not_found;
  if (number == ENOMEM) code = ErrorCode::out_of_memory;
  return fail(code, std::format("{}: {}", what, std::strerror(number)));
}

namespace {

constexpr std::size_t k_room_bytes = std::size_t{1} << 16;  // that check_writable tries to write

std::string_view name_of_kind(mode_t mode) {
  if (S_ISREG(mode)) return "a regular file";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode)) return "a character device";
  if (S_ISBLK(mode)) return "a block device";
  return "no file";
}

Error not_regular(const fs::path& path, mode_t mode) {
  return fail(ErrorCode::io, std::format("\"{}\" is {}, a regular file is wanted", path.string(),
                                         name_of_kind(mode)));
}

}  // namespace

Result<FilePointer> open_regular_file(const fs::path& path) {
  const auto failed = [&](std::string_view doing) {
    return errno_error(std::format("{} \"{}\"", doing, path.string()));
  };
  // Not blocking: a pipe would wait for its writer, and a stop would not reach it.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status{};
  if (fd < 0 && errno == ENXIO && ::stat(path.c_str(), &status) == 0) {  // a socket, a dead device
    return not_regular(path, status.st_mode);
  }
  if (fd < 0) return failed("opening");
  FilePointer file(::fdopen(fd, "rb"));
  if (!file) {
    const Error error = failed("opening");
    ::close(fd);
    return error;
  }
  if (::fstat(fd, &status) != 0) return failed("looking at");
  if (!S_ISREG(status.st_mode)) return not_regular(path, status.st_mode);
  return file;
}

Result<std::string> read_file(const fs::path& path, std::size_t limit_bytes) {
  PACELINE_TRY(const FilePointer file, open_regular_file(path));
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

std::string random_name_part() {
  std::uint64_t bits = 0;
  PACELINE_CHECK(::getentropy(&bits, sizeof bits) == 0, "the kernel gives no random bytes");
  return std::format("{:016x}", bits);
}

bool is_character_device(const fs::path& path) {
  std::error_code code;
  return fs::is_character_file(path, code);
}

namespace {

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

/// write_all and close. False: errno says why not.
bool write_and_close(int fd, std::string_view contents) {
  const bool written = write_all(fd, contents);
  const int write_errno = errno;
  const bool closed = ::close(fd) == 0;
  if (!written) errno = write_errno;
  return written && closed;
}

/// A device is written into, since a rename would take it away from everybody.
Result<void> write_device(const fs::path& path, std::string_view contents) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return errno_error(std::format("opening \"{}\"", path.string()));
  if (!write_and_close(fd, contents)) {
    return errno_error(std::format("writing \"{}\"", path.string()));
  }
  return {};
}

/// Refuses what can be neither replaced nor written into.
Result<void> check_kind(const fs::path& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return {};  // nothing there, or a later step says why
  if (S_ISREG(status.st_mode) || S_ISCHR(status.st_mode)) return {};
  return not_regular(path, status.st_mode);
}

}  // namespace

Result<void> replace_file(const fs::path& path, std::string_view contents) {
  PACELINE_TRY_VOID(check_kind(path));
  if (is_character_device(path)) return write_device(path, contents);
  PACELINE_TRY(const fs::path target, follow_links(path));
  const std::string temporary = std::format("{}.{}.tmp", target.string(), random_name_part());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return errno_error(std::format("creating \"{}\"", temporary));
  const auto give_up = [&](std::string_view doing) {
    const Error error = errno_error(std::format("{} \"{}\"", doing, target.string()));
    ::unlink(temporary.c_str());
    return error;
  };
  struct stat old{};
  if (::stat(target.c_str(), &old) == 0) std::ignore = ::fchmod(fd, old.st_mode & 0777);
  if (!write_and_close(fd, contents)) return give_up("writing");
  if (::rename(temporary.c_str(), target.c_str()) != 0) return give_up("replacing");
  return {};
}

Result<bool> create_file(const fs::path& path, std::string_view contents) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0 && errno == EEXIST) return false;
  if (fd < 0) return errno_error(std::format("creating \"{}\"", path.string()));
  if (write_and_close(fd, contents)) return true;
  const Error error = errno_error(std::format("writing \"{}\"", path.string()));
  ::unlink(path.c_str());
  return error;
}

Result<void> check_writable(const fs::path& path) {
  if (path.empty()) return fail(ErrorCode::invalid_argument, "the name of the file is empty");
  PACELINE_TRY_VOID(check_kind(path));
  if (is_character_device(path)) {
    if (::access(path.c_str(), W_OK) == 0) return {};
    return errno_error(std::format("\"{}\" cannot be written", path.string()));
  }
  PACELINE_TRY(const fs::path target, follow_links(path));
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  std::error_code code;
  if (!fs::is_directory(folder, code)) {
    return fail(ErrorCode::not_found,
                std::format("the folder \"{}\" does not exist; create it first", folder.string()));
  }
  const std::string probe = std::format("{}.{}.probe", target.string(), random_name_part());
  const auto made = create_file(probe, std::string(k_room_bytes, '\n'));
  if (!made) return made.error().in(std::format("\"{}\" cannot be written", path.string()));
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
