// Continuing a run that was broken off.
#pragma once

#include <string>

#include "core/result.hpp"
#include "record/record.hpp"

namespace paceline::cli {

/// The record in a JSON document that bench wrote. Errors: not_found, io, bad_format, unsupported.
Result<record::Record> read_earlier(const std::string& path);

/// Compares the plans as far as `plan` is known before a model is loaded. `path` is for messages.
/// Error: invalid_argument names every part that differs.
Result<void> check_plan(const std::string& path, const record::Record& earlier, record::Plan plan);

/// Takes the finished blocks of `earlier` into `record`, whose environment and plan are filled.
/// Failed blocks are tried again. Error: invalid_argument names every part of environment and plan
/// that differs.
Result<void> resume_from(const std::string& path, record::Record earlier, record::Record& record);

}  // namespace paceline::cli
