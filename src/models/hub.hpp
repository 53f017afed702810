// Downloading one file over HTTP with libcurl, continuing what an earlier try left.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "core/result.hpp"
#include "models/models.hpp"

namespace paceline::models {

struct Download {
  std::string url;
  std::filesystem::path part;  // written here; bytes that are there already are not asked for again
  std::uint64_t bytes = 0;     // the size that the whole file must have
  std::chrono::milliseconds connect_timeout;
  std::chrono::seconds idle_timeout;
};

/// On success the part has exactly `bytes`. A broken connection is taken up again as long as each
/// try brings something; after an error the part stays for the next time, unless it is known to be
/// wrong. Errors: cancelled; io where the part cannot be written; not_found (no such host or file);
/// timed_out; bad_format (another size); runtime_failed for all else.
Result<void> download(const Download& what, const FetchOptions& options);

}  // namespace paceline::models
