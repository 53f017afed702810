// A clock that only moves when it is told to, or by a fixed step at every reading.
#pragma once

#include "core/clock.hpp"

namespace paceline::test {

/// One thread.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Nanoseconds step_per_reading = Nanoseconds{0}) : step_(step_per_reading) {}

  Nanoseconds now() override { return now_ += step_; }
  double unix_seconds() override { return std::chrono::duration<double>(now_).count(); }

  void advance(Nanoseconds duration) { now_ += duration; }
  /// The time of the last reading, without a new one.
  Nanoseconds time() const { return now_; }

 private:
  Nanoseconds step_;
  Nanoseconds now_{1'000'000'000};
};

}  // namespace paceline::test
