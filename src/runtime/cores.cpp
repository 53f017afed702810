#include "runtime/cores.hpp"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace paceline::runtime {

std::size_t available_cores() {
#ifdef __linux__
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    return static_cast<std::size_t>(std::max(1, CPU_COUNT(&set)));
  }
#endif
  return std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace paceline::runtime
