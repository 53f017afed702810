// Opening a model file in a process of its own first: what libraries do with damaged files (they
// may abort, or never end) must not happen to the one that reports it.
#pragma once

#include <filesystem>
#include <stop_token>

#include "cli/open_model.hpp"
#include "compat/probe.hpp"
#include "core/result.hpp"

namespace paceline::cli {

/// Starts this program once more for the file, with a time limit of a minute. The child reads the
/// vocabulary, then opens the file for its sizes by the runtime that `choice` gives it: metadata
/// and the presence, type and shape of every tensor. A small file is loaded whole and given a pass.
/// What the child found fit to load, this process may open. Errors: bad_format (the child ended by
/// a signal or refused the file; the reason is given), timed_out, cancelled, io.
Result<compat::Probe> probe_in_child(const std::filesystem::path& path, RuntimeChoice choice,
                                     std::stop_token stop);

}  // namespace paceline::cli
