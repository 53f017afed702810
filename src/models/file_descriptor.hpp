// Owned file descriptors, and a lock between processes made of one.
#pragma once

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string_view>
#include <utility>

#include "core/result.hpp"

namespace paceline::models {

/// Closes its descriptor. One thread.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor() { reset(); }

  int get() const { return fd_; }
  void reset();

  /// Opens with O_CLOEXEC. Error: from errno, naming the path.
  static Result<FileDescriptor> open(const std::filesystem::path& path, int flags);
  /// Writes all bytes. Error: io.
  Result<void> write(std::string_view bytes) const;

 private:
  int fd_ = -1;
};

/// Holds an advisory lock on a file (made if need be) until it is destroyed; the lock ends with the
/// process, however that ends. `on_wait` is called once where somebody else holds it.
/// Errors: io, cancelled.
Result<FileDescriptor> lock_file(const std::filesystem::path& path, const std::stop_token& stop,
                                 const std::function<void()>& on_wait);

}  // namespace paceline::models
