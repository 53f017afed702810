#include "engine/text_stream.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace paceline::engine {

namespace {

/// Length of the longest end of `text` that begins one of the stop strings.
std::size_t possible_stop(std::string_view text, const std::vector<std::string>& stops) {
  std::size_t longest = 0;
  for (const std::string& stop : stops) {
    if (stop.empty()) continue;
    for (std::size_t n = std::min(stop.size() - 1, text.size()); n > longest; --n) {
      if (text.ends_with(std::string_view(stop).substr(0, n))) longest = n;
    }
  }
  return longest;
}

}  // namespace

std::string TextStream::push(std::string_view bytes) {
  if (stopped_) return {};
  held_ += bytes;
  // The stop that is complete first ends the text, as if the bytes had come one by one.
  std::size_t stop_at = std::string::npos;
  std::size_t stop_end = std::string::npos;
  for (const std::string& stop : stops_) {
    const std::size_t at = stop.empty() ? std::string::npos : held_.find(stop);
    if (at == std::string::npos) continue;
    const std::size_t end = at + stop.size();
    if (end > stop_end || (end == stop_end && at > stop_at)) continue;
    stop_at = at;
    stop_end = end;
  }
  if (stop_at != std::string::npos) {
    stopped_ = true;
    held_.resize(stop_at);
    return finish();
  }
  const std::string_view free =
      std::string_view(held_).substr(0, held_.size() - possible_stop(held_, stops_));
  const std::size_t count = whole_utf8_prefix(free);
  std::string text = to_valid_utf8(free.substr(0, count));
  held_.erase(0, count);
  return text;
}

std::string TextStream::finish() {
  std::string text = to_valid_utf8(held_);
  held_.clear();
  return text;
}

}  // namespace paceline::engine
