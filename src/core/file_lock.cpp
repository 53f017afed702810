#include "core/file_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <format>

#include "core/file.hpp"
#include "core/log.hpp"

namespace paceline {

namespace fs = std::filesystem;

namespace {

/// Whether the name still leads to what is open: who held the lock before has removed its file.
bool is_same_file(int fd, const fs::path& path) {
  struct stat open{};
  struct stat named{};
  return ::fstat(fd, &open) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open.st_ino == named.st_ino && open.st_dev == named.st_dev;
}

}  // namespace

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  if (this != &other) {
    release();
    path_ = std::exchange(other.path_, {});
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void FileLock::release() {
  if (fd_ < 0) return;
  ::unlink(path_.c_str());  // before the lock goes, so that nobody waits at a file without a name
  ::close(fd_);
  fd_ = -1;
}

Result<FileLock> FileLock::take(const fs::path& path) {
  fs::path name = path;
  name += ".lock";
  while (true) {
    const int fd =
        ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (fd < 0) return errno_error(std::format("opening \"{}\"", name.string()));
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) {
      if (is_same_file(fd, name)) return FileLock(name, fd);
      ::close(fd);
      continue;
    }
    const int number = errno;
    ::close(fd);
    if (number == EINTR) continue;
    if (number == EWOULDBLOCK) {
      return fail(ErrorCode::busy,
                  std::format("another run is writing \"{}\" (it holds \"{}\"); wait for it, or "
                              "name another file",
                              path.string(), name.string()));
    }
    log_warning("\"{}\" cannot be locked ({}); do not start a second run that writes \"{}\"",
                name.string(), std::strerror(number), path.string());
    ::unlink(name.c_str());
    return FileLock();
  }
}

}  // namespace paceline
