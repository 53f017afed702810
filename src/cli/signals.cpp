#include "cli/signals.hpp"

#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "cli/exit_code.hpp"

namespace paceline::cli {

namespace {

sigset_t handled() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGUSR1);  // from the destructor: no more waiting
  return set;
}

}  // namespace

Signals::Signals() {
  const sigset_t set = handled();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of write
  waiter_ = std::jthread([this] {
    const sigset_t waited = handled();
    while (true) {
      int number = 0;
      if (sigwait(&waited, &number) != 0) continue;
      if (number == SIGUSR1) return;
      if (source_.stop_requested()) _exit(k_exit_cancelled);
      std::fprintf(stderr, "\npaceline: stopping; once more to stop at once\n");
      source_.request_stop();
    }
  });
}

Signals::~Signals() { pthread_kill(waiter_.native_handle(), SIGUSR1); }

}  // namespace paceline::cli
