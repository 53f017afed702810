#include "models/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <format>
#include <string_view>

#include "core/file.hpp"
#include "models/file_descriptor.hpp"

extern char** environ;

namespace paceline::models {

namespace {

constexpr int k_tick_ms = 100;
constexpr int k_kind_ticks = 20;  // from SIGTERM to SIGKILL
constexpr int k_end_tick_ms = 1;  // once the output is closed the program is about to end
constexpr int k_end_ticks = 100;  // so many short ticks, then long ones again
constexpr std::size_t k_output_bytes = 8192;
constexpr std::size_t k_most_output_bytes = std::size_t{64} << 20;

struct Pipe {
  FileDescriptor read;
  FileDescriptor write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe(ends) != 0) return errno_error("making a pipe");
  Pipe pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
  for (const int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return pipe;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// Our environment with `changes` in place of the variables of the same names.
std::vector<std::string> merged_environment(const std::vector<std::string>& changes) {
  std::vector<std::string> result = changes;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    bool is_changed = false;
    for (const std::string& change : changes) is_changed |= change.starts_with(name);
    if (!is_changed) result.emplace_back(text);
  }
  return result;
}

/// Starts the program with these as stdout and stderr. Signals are as in a fresh process.
Result<pid_t> spawn(const ProcessOptions& options, const FileDescriptor& output,
                    const FileDescriptor& errors) {
  std::vector<std::string> command = options.command;
  std::vector<std::string> environment = merged_environment(options.environment);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, errors.get(), STDERR_FILENO);
  sigset_t none;
  sigset_t defaults;
  ::sigemptyset(&none);
  ::sigemptyset(&defaults);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) ::sigaddset(&defaults, signal);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t child = -1;
  const int number = ::posix_spawnp(&child, command.front().c_str(), &actions, &attributes,
                                    pointers(command).data(), pointers(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (number != 0) {
    errno = number;
    return errno_error(std::format("starting \"{}\"", command.front()));
  }
  return child;
}

/// Takes what is in the pipe and keeps the end of it, at most `limit` to twice that.
void drain(const FileDescriptor& pipe, std::string& output, std::size_t limit) {
  char buffer[4096];
  while (true) {
    const ssize_t count = ::read(pipe.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    output.append(buffer, static_cast<std::size_t>(count));
    if (output.size() > 2 * limit) output.erase(0, output.size() - limit);
  }
}

void keep_end(std::string& output, std::size_t limit) {
  if (output.size() > limit) output.erase(0, output.size() - limit);
}

/// True once the child has ended; its status is then in `status`.
bool has_ended(pid_t child, int& status) {
  pid_t waited = -1;
  do {
    waited = ::waitpid(child, &status, WNOHANG);
  } while (waited < 0 && errno == EINTR);
  return waited != 0;
}

}  // namespace

Result<ProcessResult> run_process(const ProcessOptions& options) {
  PACELINE_TRY(Pipe pipe, make_pipe());
  PACELINE_TRY(Pipe errors, make_pipe());
  PACELINE_TRY(const pid_t child,
               spawn(options, pipe.write, options.separate_errors ? errors.write : pipe.write));
  pipe.write.reset();
  errors.write.reset();
  const std::size_t output_limit = options.separate_errors ? k_most_output_bytes : k_output_bytes;
  const auto start = std::chrono::steady_clock::now();
  ProcessResult result;
  int status = 0;
  int ticks_since_stop = 0;
  int ticks_since_end = 0;
  bool is_open = true;
  bool is_late = false;
  while (!has_ended(child, status)) {
    is_late = is_late || (options.time_limit &&
                          std::chrono::steady_clock::now() - start > *options.time_limit);
    if (options.stop.stop_requested() || is_late) {
      if (ticks_since_stop == 0) ::kill(child, SIGTERM);
      if (ticks_since_stop == k_kind_ticks) ::kill(child, SIGKILL);
      ++ticks_since_stop;
    }
    // A closed pipe is always ready; then only the time passes here.
    pollfd waits[2] = {{.fd = is_open ? pipe.read.get() : -1, .events = POLLIN, .revents = 0},
                       {.fd = is_open ? errors.read.get() : -1, .events = POLLIN, .revents = 0}};
    const nfds_t count = options.separate_errors ? 2 : 1;
    const bool is_ending = !is_open && ticks_since_stop == 0 && ticks_since_end++ < k_end_ticks;
    ::poll(waits, count, is_ending ? k_end_tick_ms : k_tick_ms);
    drain(pipe.read, result.output, output_limit);
    if (options.separate_errors) drain(errors.read, result.errors, k_output_bytes);
    is_open = is_open && (waits[0].revents & (POLLHUP | POLLERR)) == 0;
    if (options.on_tick) options.on_tick();
  }
  drain(pipe.read, result.output, output_limit);
  if (options.separate_errors) drain(errors.read, result.errors, k_output_bytes);
  if (options.stop.stop_requested()) {
    return fail(ErrorCode::cancelled, std::format("\"{}\" was cancelled", options.command.front()));
  }
  if (is_late) {
    return fail(ErrorCode::timed_out,
                std::format("\"{}\" took longer than {} s", options.command.front(),
                            std::chrono::duration<double>(*options.time_limit).count()));
  }
  keep_end(result.output, output_limit);
  keep_end(result.errors, k_output_bytes);
  result.exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

}  // namespace paceline::models
