#include "compat/artifact.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <format>
#include <map>
#include <optional>
#include <system_error>
#include <vector>

#include "core/file.hpp"
#include "core/hash.hpp"
#include "runtime/llama/gguf_file.hpp"

namespace paceline::compat {

namespace fs = std::filesystem;

namespace {

constexpr const char* k_unverified = "draft_model_unverified_artifact";
constexpr std::size_t k_piece_bytes = std::size_t{1} << 20;

Error refused(const fs::path& path, std::string_view why) {
  return fail(ErrorCode::bad_format,
              std::format("\"{}\" cannot be bound to a hash: {}", path.string(), why),
              k_unverified);
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

struct FileHash {
  std::uint64_t size = 0;
  std::string sha256;
};

/// Hashes one directory or file, and counts what it read for all of them.
class Hasher {
 public:
  explicit Hasher(const HashOptions& options) : options_(options), buffer_(k_piece_bytes) {}

  /// The path's last part must be no link. `alone`: further hard links are refused.
  Result<FileHash> file(const fs::path& path, bool alone) {
    const Descriptor fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (fd.get() < 0) {
      if (errno == ELOOP) return refused(path, "it became a link while it was read");
      return errno_error(std::format("opening \"{}\"", path.string()));
    }
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0) {
      return errno_error(std::format("looking at \"{}\"", path.string()));
    }
    if (!S_ISREG(status.st_mode)) return refused(path, "it is no regular file");
    if (alone && status.st_nlink > 1) {
      return refused(path, std::format("it has {} hard links, so another name can change it",
                                       status.st_nlink));
    }
    return read_all(fd.get(), path);
  }

 private:
  Result<FileHash> read_all(int fd, const fs::path& path) {
    Sha256 hash;
    FileHash result;
    while (true) {
      if (options_.stop.stop_requested()) {
        return fail(ErrorCode::cancelled, std::format("hashing \"{}\" was stopped", path.string()));
      }
      const ssize_t count = ::read(fd, buffer_.data(), buffer_.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return errno_error(std::format("reading \"{}\"", path.string()));
      if (count == 0) break;
      const auto bytes = static_cast<std::size_t>(count);
      hash.update({buffer_.data(), bytes});
      result.size += bytes;
      total_ += bytes;
      if (options_.progress) options_.progress(total_);
    }
    result.sha256 = hash.finish();
    return result;
  }

  const HashOptions& options_;
  std::vector<char> buffer_;
  std::uint64_t total_ = 0;
};

/// The blobs folder of the hub cache that `root` (.../models--x/snapshots/y) is a snapshot of.
std::optional<fs::path> blobs_of(const fs::path& root) {
  const fs::path repository = root.parent_path().parent_path();
  if (root.parent_path().filename() != "snapshots" ||
      !repository.filename().string().starts_with("models--")) {
    return std::nullopt;
  }
  std::error_code code;
  const fs::path blobs = repository / "blobs";
  if (fs::symlink_status(blobs, code).type() != fs::file_type::directory) return std::nullopt;
  return blobs;
}

/// Where a link of a snapshot ends, if that is a file of the cache's own blobs.
Result<fs::path> follow_into_blobs(const fs::path& link, const std::optional<fs::path>& blobs) {
  std::error_code code;
  const fs::path end = fs::canonical(link, code);
  if (code) return refused(link, std::format("it is a link to nothing ({})", code.message()));
  if (!blobs || end.parent_path() != *blobs) {
    return refused(link, std::format("it is a link to \"{}\", outside the blobs folder of its own "
                                     "hub cache; bind a copy without links",
                                     end.string()));
  }
  return end;
}

Result<std::string> hash_folder(const fs::path& given, const HashOptions& options) {
  std::error_code code;
  const fs::path root = fs::canonical(given, code);
  if (code) return refused(given, code.message());
  const auto blobs = blobs_of(root);
  std::map<std::string, FileHash> files;  // sorted by path, as bytes
  Hasher hasher(options);
  fs::recursive_directory_iterator walk(root, code);
  for (; !code && walk != fs::recursive_directory_iterator(); walk.increment(code)) {
    const fs::path& path = walk->path();
    const fs::file_type type = fs::symlink_status(path, code).type();
    if (code) break;
    if (type == fs::file_type::directory) continue;
    const std::string name = path.lexically_relative(root).generic_string();
    if (name.find('\n') != std::string::npos) {
      return refused(path, "a newline in a name would make the list of files ambiguous");
    }
    if (type == fs::file_type::symlink) {
      PACELINE_TRY(const fs::path blob, follow_into_blobs(path, blobs));
      PACELINE_TRY(files[name], hasher.file(blob, true));
    } else {
      PACELINE_TRY(files[name], hasher.file(path, true));
    }
  }
  if (code) return refused(given, code.message());
  std::string manifest;
  for (const auto& [name, file] : files) {
    manifest += std::format("{}\n{}\n{}\n", name, file.size, file.sha256);
  }
  return sha256_hex(manifest);
}

}  // namespace

Result<void> check_artifact_sha256(std::string_view text) {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (text.size() == 64 && std::ranges::all_of(text, is_hex)) return {};
  return fail(ErrorCode::invalid_argument,
              std::format("draft_model_artifact_sha256 must be 64 lowercase hex characters, \"{}\" "
                          "has {}",
                          text.substr(0, 80), text.size()));
}

Result<std::string> artifact_sha256(const fs::path& given, const HashOptions& options) {
  std::error_code code;
  const fs::path path = given.has_filename() ? given : given.parent_path();  // "folder/"
  const fs::file_status status = fs::symlink_status(path, code);
  if (!fs::exists(status)) {
    return fail(ErrorCode::not_found, std::format("\"{}\" does not exist", path.string()));
  }
  if (fs::is_directory(status)) return hash_folder(path, options);
  if (fs::is_symlink(status) && fs::is_directory(path, code)) {
    return refused(path, "it is a link; name the directory itself");
  }
  std::vector<fs::path> files = {path};
  if (const auto summary = runtime::read_gguf_summary(path)) files = summary->files;
  Hasher hasher(options);
  std::string sums;
  for (const fs::path& file : files) {
    const fs::path end = fs::canonical(file, code);
    if (code) return refused(file, code.message());
    PACELINE_TRY(const FileHash hash, hasher.file(end, false));
    if (files.size() == 1) return hash.sha256;
    sums += hash.sha256 + "\n";
  }
  return sha256_hex(sums);
}

Result<void> verify_artifact(const fs::path& path, std::string_view wanted,
                             const HashOptions& options) {
  PACELINE_TRY_VOID(check_artifact_sha256(wanted));
  PACELINE_TRY(const std::string seen, artifact_sha256(path, options));
  if (seen == wanted) return {};
  return fail(ErrorCode::invalid_argument,
              std::format("the draft's artifact \"{}\" has the hash {}, "
                          "--draft-model-artifact-sha256 wants {}",
                          path.string(), seen, wanted),
              k_unverified);
}

}  // namespace paceline::compat
