// A lock between processes on a file that is going to be replaced.
#pragma once

#include <filesystem>
#include <utility>

#include "core/result.hpp"

namespace paceline {

/// Holds the lock of a file, `<path>.lock` beside it, until it is destroyed; then that file is
/// gone. A process that is killed leaves the file but not the lock. The file itself cannot carry
/// it, since replacing makes a new one. One thread.
class FileLock {
 public:
  FileLock() = default;  // holds nothing
  FileLock(FileLock&& other) noexcept
      : path_(std::exchange(other.path_, {})), fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock() { release(); }

  /// Does not wait. Errors: busy where another process (or this one) holds it; from errno. Where
  /// the file system knows no locks, a warning is logged and nothing is held.
  static Result<FileLock> take(const std::filesystem::path& path);

  void release();

 private:
  FileLock(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::filesystem::path path_;
  int fd_ = -1;
};

}  // namespace paceline
