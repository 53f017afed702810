// Ctrl-C as a stop token. Made first in main: threads made later leave the signals to it.
#pragma once

#include <stop_token>
#include <thread>

namespace paceline::cli {

/// The first SIGINT, SIGTERM or SIGHUP requests a stop, the second ends the process with 130.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::jthread waiter_;
};

}  // namespace paceline::cli
