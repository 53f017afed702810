// Does a target, with or without a draft, fit into the memory that is free? Pure: sizes in,
// judgement out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "host/host.hpp"
#include "runtime/runtime.hpp"

namespace paceline::compat {

enum class Fit { fits, fits_plain_only, does_not_fit };
std::string_view to_string(Fit fit);

/// This part of what is free is left alone: other programs grow, and allocators keep reserves.
inline constexpr double k_headroom = 0.05;

/// The sizes of one model that takes part.
struct ModelNeed {
  std::string role;   // "target" or "draft"
  std::string model;  // as named by the user
  std::size_t context = 0;
  std::vector<runtime::MemoryNeed> devices;  // the host first
};

struct MemoryFree {
  /// What the host has free for this process, what it holds already included. Absent: not
  /// readable, then the host is not judged.
  std::optional<std::uint64_t> host_bytes;
  std::uint64_t program_bytes = 0;  // of the process itself, vocabularies included
  std::string source;  // where host_bytes comes from: "MemAvailable and cgroups", "--memory-limit"
};

/// Sums of one device.
struct DeviceFit {
  std::string device;
  std::optional<std::uint64_t> free = {};    // absent: not readable
  std::optional<std::uint64_t> usable = {};  // free less the headroom
  std::uint64_t plain = 0;                   // target alone, with the program on the host
  std::uint64_t pair = 0;                    // with the draft; equal to plain where there is none
};

struct FitReport {
  Fit fit = Fit::fits;
  std::vector<DeviceFit> devices;
  /// Most that can be resident on the host at one moment: with file pages that are only read while
  /// loading, which the system drops when it needs room.
  std::uint64_t peak_resident = 0;
  /// One line: the word, and the sums of the device that decides.
  std::string sentence;
};

/// Judges one request. The target comes first in `models`.
FitReport judge_fit(std::span<const ModelNeed> models, const MemoryFree& free);

/// The longest context up to `most` with which `need_of(context)` fits; 0: none. `need_of` must
/// grow with the context. Errors: what `need_of` says.
Result<std::size_t> largest_context(
    std::size_t most, const MemoryFree& free,
    const std::function<Result<std::vector<ModelNeed>>(std::size_t context)>& need_of);

/// The published context rule for a draft (SPEC-028): without an explicit value the tier's default,
/// at most the tier's draft cap. Error invalid_argument, word draft_model_capacity_shortfall, where
/// `explicit_context` lies above the cap.
Result<std::size_t> draft_context(const host::RamTier& tier,
                                  std::optional<std::size_t> explicit_context);

/// A size with its unit: "64MiB", "1.5 GB", "800k", "1000" (bytes). K, M, G, T are powers of 1000,
/// Ki, Mi, Gi, Ti of 1024. Error invalid_argument.
Result<std::uint64_t> parse_bytes(std::string_view text);
/// "98.4 MB".
std::string format_bytes(std::uint64_t bytes);

}  // namespace paceline::compat
