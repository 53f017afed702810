#include "core/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace paceline {

void check_failed(const char* condition, const char* why, const char* file, int line) {
  std::fprintf(stderr, "paceline: internal error: %s (%s) at %s:%d. Please report this.\n", why,
               condition, file, line);
  std::abort();
}

}  // namespace paceline
