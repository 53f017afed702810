#include "host/process_impl.hpp"

#include <sys/resource.h>
#include <sys/utsname.h>

#include <cerrno>
#include <cstdlib>
#include <format>

#include "core/clock.hpp"

namespace paceline::host {

SystemName system_name() {
  utsname name{};
  if (::uname(&name) != 0) return {"not readable", "not readable"};
  return {name.machine, std::format("{} {}", name.sysname, name.release)};
}

int process_nice() {
  errno = 0;
  const int nice = ::getpriority(PRIO_PROCESS, 0);
  return errno == 0 ? nice : 0;
}

ProcessUsage process_usage() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return {};
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {seconds(usage.ru_utime) + seconds(usage.ru_stime),
          static_cast<std::uint64_t>(usage.ru_nivcsw)};
}

double unix_seconds() { return SystemClock().unix_seconds(); }

std::optional<double> load_average_1min() {
  double load = 0;
  if (::getloadavg(&load, 1) != 1) return std::nullopt;
  return load;
}

}  // namespace paceline::host
