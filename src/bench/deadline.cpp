#include "bench/deadline.hpp"

#include <algorithm>
#include <utility>

namespace paceline::bench {

Deadline::Deadline(std::chrono::duration<double> limit, std::stop_token caller)
    : on_caller_(std::move(caller), [this] { source_.request_stop(); }),
      timer_([this, limit](std::stop_token ended) {
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
