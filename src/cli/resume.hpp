// Continuing a run that was broken off.
#pragma once

#include <string>

#include "core/result.hpp"
#include "record/record.hpp"

namespace paceline::cli {

/// Takes the finished blocks of the JSON document at `path` into `record`, whose environment and
/// plan are filled. Failed blocks are tried again.
/// Errors: invalid_argument names every part of environment and plan that differs; bad_format, io.
Result<void> resume_from(const std::string& path, record::Record& record);

}  // namespace paceline::cli
