// Reading a vocabulary through libllama in a process of its own: what libllama does with damaged
// files (it may abort, or never end) must not happen to the one that reports it.
#pragma once

#include <filesystem>
#include <stop_token>

#include "compat/probe.hpp"
#include "core/result.hpp"

namespace paceline::cli {

/// Starts this program once more for the file, with a time limit of a minute. Errors: bad_format
/// (the child ended by a signal or refused the file; the reason is given), timed_out, unsupported,
/// cancelled, io.
Result<compat::Probe> probe_in_child(const std::filesystem::path& path, std::stop_token stop);

}  // namespace paceline::cli
