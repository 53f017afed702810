#include "bench/deadline.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <limits>

namespace paceline::test {
namespace {

using bench::Deadline;
using Seconds = std::chrono::duration<double>;

/// Returns when a stop is requested.
void wait_for(std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  wake.wait(lock, stop, [] { return false; });
}

TEST(Deadline, RequestsAStopWhenTheTimeIsUp) {
  for (const double limit : {0.01, 0.0, -5.0}) {
    const Deadline deadline(Seconds(limit), {});
    wait_for(deadline.token());
    EXPECT_TRUE(deadline.expired());
  }
}

TEST(Deadline, PassesTheCallersStopOnWithoutExpiring) {
  std::stop_source caller;
  const Deadline deadline(Seconds(1e5), caller.get_token());
  EXPECT_FALSE(deadline.token().stop_requested());
  caller.request_stop();
  wait_for(deadline.token());
  EXPECT_FALSE(deadline.expired());
}

TEST(Deadline, KnowsAStopFromBeforeItsTime) {
  std::stop_source caller;
  caller.request_stop();
  const Deadline deadline(Seconds(1e5), caller.get_token());
  wait_for(deadline.token());
  EXPECT_FALSE(deadline.expired());
}

TEST(Deadline, EndsBeforeItsTimeWithItsOwner) {
  for (const double limit : {1e9, std::numeric_limits<double>::infinity()}) {
    const Deadline deadline(Seconds(limit), {});
    EXPECT_FALSE(deadline.expired());
  }
}

}  // namespace
}  // namespace paceline::test
