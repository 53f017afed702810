#include "core/clock.hpp"

namespace paceline {

Nanoseconds SystemClock::now() { return std::chrono::steady_clock::now().time_since_epoch(); }

double SystemClock::unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace paceline
