#include "bench/deadline.hpp"

#include <algorithm>

namespace paceline::bench {

Deadline::Deadline(std::chrono::duration<double> limit, std::stop_token caller)
    : timer_([this, limit, caller](std::stop_token ended) {
        const std::stop_callback on_caller(caller, [this] { source_.request_stop(); });
        // A year is longer than any run and fits the clock.
        const auto wait = std::chrono::duration_cast<std::chrono::nanoseconds>(
            std::clamp(limit, std::chrono::duration<double>(0),
                       std::chrono::duration<double>(std::chrono::years(1))));
        std::unique_lock lock(mutex_);
        wake_.wait_for(lock, ended, wait, [] { return false; });
        if (ended.stop_requested() || source_.stop_requested()) return;
        expired_ = true;
        source_.request_stop();
      }) {}

Deadline::~Deadline() = default;

}  // namespace paceline::bench
