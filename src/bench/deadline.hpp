// A stop token that is requested when the caller's is, or when time is up: a pass that hangs is
// broken off from another thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

namespace paceline::bench {

/// One run's limit, on the steady clock. The thread ends with the object.
class Deadline {
 public:
  Deadline(std::chrono::duration<double> limit, std::stop_token caller);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  /// True where the time was up before the caller stopped.
  bool expired() const { return expired_; }

 private:
  std::stop_source source_;
  std::atomic<bool> expired_ = false;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::stop_callback<std::function<void()>> on_caller_;
  std::jthread timer_;  // last: it uses the members above
};

}  // namespace paceline::bench
