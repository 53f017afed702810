// The cost curve: how long a pass takes by its number of rows, for several runtimes side by side,
// and the machine's own ceiling from the same minutes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "core/token.hpp"
#include "record/record.hpp"
#include "runtime/native/ceiling.hpp"
#include "runtime/runtime.hpp"

namespace paceline::plan {

/// Up to this many rows a pass is one of verification: every row wants its argmax. Wider ones are
/// chunks of a prompt: only the last row wants it.
inline constexpr std::size_t k_most_verified_rows = 64;

/// A runtime that takes part.
struct Subject {
  std::unique_ptr<runtime::Runtime> runtime;
  record::RuntimeEvidence evidence;
  bool draft = false;       // measured at one row only, what drafting a token costs
  std::vector<Token> text;  // fills contexts and passes, over and over; not empty
};

struct CurveSettings {
  std::vector<std::size_t> rows;      // each at least 1
  std::vector<std::size_t> contexts;  // committed tokens in front of the pass, each at least 1
  std::size_t sequences = 1;          // that the rows of a pass are spread over
  std::size_t repeats = 10;           // at least 1
  std::uint64_t seed = 1;             // of the order
};

/// One number of rows.
struct Point {
  std::size_t rows = 0;
  std::size_t results = 0;  // rows that want their argmax
  std::vector<double> ms;   // per pass, one of each repeat; repeats of all curves correspond

  double median_ms() const;
  double least_ms() const;
};

struct Curve {
  std::size_t subject = 0;
  std::size_t context = 0;
  std::vector<Point> points;

  /// Null where that number of rows was not measured.
  const Point* at(std::size_t rows) const;
};

/// Of one instruction set and number of threads.
struct Ceiling {
  std::string isa;
  std::size_t threads = 0;
  std::size_t buffer_bytes = 0;
  std::vector<double> read_bytes_per_second;  // one of each repeat
  std::vector<double> multiply_adds_per_second;

  double read_speed() const;  // the best seen
  double multiply_add_speed() const;
};

struct Measured {
  std::vector<Curve> curves;  // by context, then by subject
  std::vector<Ceiling> ceilings;
  std::size_t repeats = 0;  // complete ones, of the context that has fewest
  bool complete = false;    // all that were asked for
};

struct Progress {
  std::size_t context = 0;
  std::size_t repeat = 0;  // of `repeats`, counted from 1
  std::size_t repeats = 0;
};

/// The limits that a subject's runtime must be made with.
runtime::RuntimeLimits limits_for(const CurveSettings& settings, std::size_t threads);

/// In every repeat each number of rows of each subject is timed once, in random order, after an
/// untimed pass of the same kind; the ceilings are measured in the same repeat. Where `stop` comes
/// after the first repeat, what is whole is given. Errors: those of the runtimes, cancelled.
Result<Measured> measure_curves(std::span<Subject> subjects,
                                std::span<runtime::CeilingMeter> meters,
                                const CurveSettings& settings, std::stop_token stop,
                                const std::function<void(const Progress&)>& progress = {});

}  // namespace paceline::plan
