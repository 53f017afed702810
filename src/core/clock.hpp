// The one clock that all measurements read. Tests hand in a scripted one.
#pragma once

#include <chrono>
#include <cstdint>

namespace paceline {

using Nanoseconds = std::chrono::nanoseconds;

/// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Time since an arbitrary, fixed start. A real clock never goes backwards; scripted ones may.
  virtual Nanoseconds now() = 0;
  /// Seconds since 1970-01-01 UTC.
  virtual double unix_seconds() = 0;
};

/// std::chrono::steady_clock and system_clock.
class SystemClock final : public Clock {
 public:
  Nanoseconds now() override;
  double unix_seconds() override;
};

inline double to_ms(Nanoseconds duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace paceline
