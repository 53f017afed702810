#include "models/file_descriptor.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <format>
#include <mutex>

#include "core/file.hpp"

namespace paceline::models {

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void FileDescriptor::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<FileDescriptor> FileDescriptor::open(const std::filesystem::path& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  if (fd < 0) return errno_error(std::format("opening \"{}\"", path.string()));
  return FileDescriptor(fd);
}

Result<void> FileDescriptor::write(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_error("writing");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<FileDescriptor> lock_file(const std::filesystem::path& path, const std::stop_token& stop,
                                 const std::function<void()>& on_wait) {
  constexpr std::chrono::milliseconds k_poll{100};
  PACELINE_TRY(FileDescriptor file, FileDescriptor::open(path, O_RDWR | O_CREAT));
  std::mutex mutex;
  std::condition_variable_any wake;
  bool waited = false;
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return errno_error(std::format("locking \"{}\"", path.string()));
    if (!std::exchange(waited, true)) on_wait();
    std::unique_lock lock(mutex);
    wake.wait_for(lock, stop, k_poll, [] { return false; });
    if (stop.stop_requested()) {
      return fail(ErrorCode::cancelled, "cancelled while another process held the lock");
    }
  }
  return file;
}

}  // namespace paceline::models
