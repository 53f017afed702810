// Checks for bugs: what no file, user, model or client can cause. Everything else is an Error.
#pragma once

namespace paceline {
/// Prints the condition, the reason and the place on stderr, then aborts.
[[noreturn]] void check_failed(const char* condition, const char* why, const char* file, int line);
}  // namespace paceline

#define PACELINE_CHECK(condition, why)   \
  (static_cast<bool>(condition) ? void() \
                                : ::paceline::check_failed(#condition, why, __FILE__, __LINE__))

#ifdef NDEBUG
#define PACELINE_DCHECK(condition, why) void()
#else
#define PACELINE_DCHECK(condition, why) PACELINE_CHECK(condition, why)
#endif
